"""What the engines' updates have in common."""

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from explorax.agents import updates


@pytest.mark.parametrize(
  ("max_norm", "expected"), [(None, 1.0 - 6.0), (2.0, 1.0 - 2.0)]
)
def test_a_step_is_gradient_descent_on_clipped_gradients(max_norm, expected):
  def loss(w, x):
    return w * w * x, "aux"

  optimizer = updates.clipped(optax.sgd(1.0), max_norm)
  w = jnp.float32(1.0)
  step = updates.step(optimizer, loss, w, optimizer.init(w), 3.0)
  assert (step.loss, step.aux) == (3.0, "aux")
  np.testing.assert_allclose(step.params, expected, rtol=1e-6)


@pytest.mark.parametrize("finite", [True, False])
def test_an_update_that_is_not_finite_keeps_the_old_state(finite):
  fixed, old, new = jnp.zeros(2), jnp.zeros(()), jnp.ones(())
  state, output = updates.finish(
    jnp.bool_(finite), (fixed, new), (fixed, old), new, fixed, {"q": old}
  )
  assert state[0] is fixed and state[1] == finite
  assert output.metrics == {"loss": 1.0, "finite": float(finite), "q": 0.0}
  assert output.priorities is fixed
