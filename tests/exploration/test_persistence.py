"""εz-greedy, against a plain state machine and against ε-greedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.exploration import selection

pytestmark = pytest.mark.core

_UP_TO_FOUR = exploration.UniformDuration(4)


def _keys(num: int) -> jax.Array:
  return jax.random.split(jax.random.PRNGKey(7), num)


@pytest.mark.parametrize(
  "of",
  [
    exploration.Greedy(),
    exploration.Boltzmann(0.5),
    exploration.Ucb(1.0),
    exploration.Thompson(),
  ],
  ids=str,
)
def test_actions_follow_the_state_machine(of):
  """The rule of section 4 as a loop, fed with the draws of the same keys."""
  q = jax.random.normal(jax.random.PRNGKey(0), (200, 2, 5))
  rule = exploration.EzGreedy(0.4, of=of, duration=_UP_TO_FOUR)
  state = rule.init(jax.random.PRNGKey(1), 2, 5)
  step = jax.jit(rule.select)

  @jax.jit
  def draw(key, q, inner):
    probs, inner = of.probs(key, q, inner, 0)
    return selection.draw(key, probs, 0.4), inner

  duration = jax.jit(lambda key: _UP_TO_FOUR(jax.random.fold_in(key, 1)))
  inner = of.init(jax.random.PRNGKey(1), 2, 5)
  remaining, repeated, num_repeats = 0, None, 0
  for key, values in zip(_keys(200), q, strict=True):
    action, prob, state = step(key, values, state, 0)
    choice, inner = draw(key, values, inner)
    if remaining > 0:
      expected, expected_prob = repeated, 1.0
      remaining -= 1
      num_repeats += 1
    else:
      expected, expected_prob = int(choice.action), float(choice.prob)
      if choice.explored:
        repeated = expected
        remaining = int(duration(key)) - 1
    assert int(action) == expected
    np.testing.assert_allclose(prob, expected_prob, rtol=1e-6)
    assert int(state.repeat.remaining) == remaining
  assert num_repeats > 50


def test_the_default_duration_is_the_papers_zeta_in_a_batch_too():
  keys, start = _keys(20), exploration.init_ez_state()

  def select(key):
    return exploration.ez_greedy(key, jnp.zeros((2,)), 1.0, start)

  _, batch = jax.jit(jax.vmap(select))(keys)
  for key, remaining in zip(keys[:5], batch.remaining, strict=False):
    duration = exploration.ZetaDuration(2.0, 10_000)(jax.random.fold_in(key, 1))
    assert int(select(key)[1].remaining) == int(remaining) == int(duration) - 1
