"""What the engines' updates have in common."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from explorax.agents import updates


@pytest.mark.parametrize(
  ("ours", "theirs"),
  [
    (updates.adam(0.1, b2=0.9, eps=1e-3), optax.adam(0.1, b2=0.9, eps=1e-3)),
    (updates.skip_nonfinite(optax.rmsprop(0.1)), optax.rmsprop(0.1)),
  ],
)
@pytest.mark.parametrize("max_norm", [None, 0.5])
def test_an_optimizer_skips_the_steps_that_are_not_finite(ours, theirs, max_norm):
  ours, theirs = updates.clipped(ours, max_norm), updates.clipped(theirs, max_norm)
  rng = np.random.default_rng(0)
  params = expected = {"w": jnp.asarray(rng.normal(size=(3, 2)), jnp.float32)}
  state, other = ours.init(params), theirs.init(params)
  for finite in (False, True, True, False, True):  # The first step is not finite.
    gradients = jax.tree.map(lambda x: jnp.float32(rng.normal(size=x.shape)), params)
    if finite:
      steps, other = theirs.update(gradients, other, expected)
      expected = optax.apply_updates(expected, steps)
    else:
      gradients = jax.tree.map(lambda x: x * jnp.nan, gradients)
    params, state = updates.apply_if(jnp.bool_(finite), ours, gradients, params, state)
    np.testing.assert_array_equal(params["w"], expected["w"])
    jax.tree.map(np.testing.assert_array_equal, state, other)


@pytest.mark.parametrize("finite", [True, False])
def test_an_update_that_is_not_finite_keeps_the_old_state(finite):
  fixed, old, new = jnp.zeros(2), jnp.zeros(()), jnp.ones(())
  state, output = updates.finish(
    jnp.bool_(finite), (fixed, new), (fixed, old), new, fixed, {"q": old}
  )
  assert state[0] is fixed and state[1] == finite
  assert output.metrics == {"loss": 1.0, "finite": float(finite), "q": 0.0}
  assert output.priorities is fixed
