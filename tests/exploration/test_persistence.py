"""εz-greedy, against a plain state machine and against ε-greedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.exploration import selection

pytestmark = pytest.mark.core


def _keys(num: int) -> jax.Array:
  return jax.random.split(jax.random.PRNGKey(7), num)


@pytest.mark.parametrize(
  "of", [exploration.Boltzmann(0.5), exploration.Thompson(period_steps=7)], ids=str
)
def test_actions_follow_the_state_machine(of):
  """The rule of section 4 as a loop, fed with the draws of the same keys."""
  up_to_four = exploration.UniformDuration(4)
  rule = exploration.EzGreedy(0.4, of=of, duration=up_to_four)

  def body(states, inputs):
    (state, inner), (key, q) = states, inputs
    action, prob, state = rule.select(key, q, state, 0)
    probs, inner = of.probs(key, q, inner, 0)
    choice = selection.draw(key, probs, 0.4)
    duration = up_to_four(jax.random.fold_in(key, 1))
    found = action, prob, state.repeat.remaining
    return (state, inner), (found, choice, duration)

  @jax.jit
  def run(key, q):
    start = rule.init(key, 2, 5), of.init(key, 2, 5)
    return jax.lax.scan(body, start, (_keys(200), q))[1]

  q = np.random.default_rng(0).normal(size=(200, 2, 5)).astype(np.float32)
  found, choices, durations = jax.device_get(run(jax.random.PRNGKey(1), q))
  remaining, repeated, num_repeats = 0, None, 0
  for i, (action, prob, left) in enumerate(zip(*found, strict=True)):
    if remaining > 0:
      expected, expected_prob = repeated, 1.0
      remaining -= 1
      num_repeats += 1
    else:
      expected, expected_prob = choices.action[i], choices.prob[i]
      if choices.explored[i]:
        repeated = expected
        remaining = durations[i] - 1
    assert (action, left) == (expected, remaining)
    np.testing.assert_allclose(prob, expected_prob, rtol=1e-6)
  assert num_repeats > 50


def test_the_default_duration_is_the_papers_zeta():
  @jax.jit
  @jax.vmap
  def select(key):
    start = exploration.init_ez_state()
    _, state = exploration.ez_greedy(key, jnp.zeros(2), 1.0, start)
    duration = exploration.ZetaDuration(2.0, 10_000)(jax.random.fold_in(key, 1))
    return state.remaining, duration

  remaining, durations = select(_keys(20))
  np.testing.assert_array_equal(remaining, durations - 1)
