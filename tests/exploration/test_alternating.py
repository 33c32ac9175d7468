"""ε that switches among schedules: against a plain loop that keeps its own books."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.exploration import alternating

pytestmark = pytest.mark.ops

RULE = exploration.AlternatingEpsilonGreedy(
  epsilon=0.9,
  final_epsilons=(0.5, 0.1, 0.01),
  probabilities=(0.3, 0.4, 0.3),
  decay_steps=25,
  period_steps=10,
  seed=3,
)


def test_a_schedule_goes_on_where_it_was_left():
  rng = np.random.default_rng(3)
  drawn = rng.choice(3, size=4096, p=RULE.probabilities)
  followed, expected = [0, 0, 0], []
  for step in range(300):
    schedule = drawn[step // 10]
    share = min(followed[schedule] / 25, 1.0)
    expected.append(0.9 + share * (RULE.final_epsilons[schedule] - 0.9))
    followed[schedule] += 1
  assert min(followed) > 25
  found = jax.vmap(RULE.epsilon_at)(jnp.arange(300))
  np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_schedules_are_drawn_as_often_as_they_should_be():
  rule = exploration.AlternatingEpsilonGreedy()
  late = jax.vmap(rule.epsilon_at)(12_500 * jnp.arange(100, 4000) + 77)
  for final, prob in zip(rule.final_epsilons, rule.probabilities, strict=True):
    share = np.mean(np.isclose(late, final))
    assert abs(share - prob) < 4 * np.sqrt(prob * (1 - prob) / 3900)
  other = exploration.AlternatingEpsilonGreedy(seed=1)
  others = jax.vmap(other.epsilon_at)(12_500 * jnp.arange(100, 4000) + 77)
  assert np.any(others != late)


def test_draws_come_again_after_the_last_with_all_schedules_decayed():
  steps = jnp.arange(0, 400, 10)
  around = 10 * alternating._NUM_DRAWN
  late = jax.vmap(RULE.epsilon_at)(around + steps)
  drawn, _ = alternating._draw_schedules(RULE.probabilities, RULE.seed)
  expected = np.take(RULE.final_epsilons, drawn[:40])
  np.testing.assert_allclose(late, expected, rtol=1e-5)


def test_the_probability_is_that_of_the_action():
  q = jnp.array([[0.0, 1.0, 0.0, 0.0]])
  state = RULE.init(jax.random.key(0), 1, 4)
  for step in (0, 24, 290):
    epsilon = RULE.epsilon_at(jnp.int32(step))
    for seed in range(8):
      action, prob, _ = RULE.select(jax.random.key(seed), q, state, jnp.int32(step))
      expected = epsilon / 4 + (1 - epsilon) * (action == 1)
      np.testing.assert_allclose(prob, expected, rtol=1e-5)


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"epsilon": 1.5}, "AlternatingEpsilonGreedy.epsilon is 1.5"),
    ({"final_epsilons": (0.5, -0.1, 0.0)}, "AlternatingEpsilonGreedy.epsilon is -0.1"),
    ({"final_epsilons": (0.5,)}, "each schedule needs one of both"),
    ({"final_epsilons": (), "probabilities": ()}, "one schedule at least"),
    ({"probabilities": (0.5, 0.6, -0.1)}, "must not be negative, and add up to 1"),
    ({"probabilities": (0.5, 0.5, 0.5)}, "must not be negative, and add up to 1"),
    ({"decay_steps": 0}, "AlternatingEpsilonGreedy.decay_steps is 0"),
    ({"period_steps": 0}, "AlternatingEpsilonGreedy.period_steps is 0"),
    ({"seed": -1}, "AlternatingEpsilonGreedy.seed is -1"),
  ],
)
def test_refuses(changes, message):
  with pytest.raises(ValueError, match=message):
    exploration.AlternatingEpsilonGreedy(**changes)
