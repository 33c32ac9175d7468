"""Choosing actions, against formulas in float64 and counted draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.exploration import selection

pytestmark = pytest.mark.core

KEYS = jax.random.split(jax.random.PRNGKey(0), 20_000)


def _assert_drawn_from(actions, probs) -> None:
  """The share of each action is within five deviations; impossible ones never come."""
  shares = np.bincount(np.asarray(actions), minlength=len(probs)) / len(actions)
  assert len(shares) == len(probs)
  probs = np.asarray(probs, np.float64)
  deviation = np.sqrt(probs * (1 - probs) / len(actions))
  np.testing.assert_array_less(np.abs(shares - probs), 5 * deviation + 1e-12)


# Compiled once for each shape.
_draw = jax.jit(jax.vmap(exploration.epsilon_greedy, in_axes=(0, None, None)))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
  ("values", "greedy"),
  [
    ([1.0, 3.0, 2.0], [0.0, 1.0, 0.0]),
    ([3.0, 3.0, 1.0], [0.5, 0.5, 0.0]),
    ([0.0, -np.inf, 0.0], [0.5, 0.0, 0.5]),
    ([0.0] * 3, [1 / 3] * 3),
    ([-1.0], [1.0]),
  ],
)
def test_epsilon_greedy_is_drawn_from_its_formula(values, greedy, epsilon):
  actions = _draw(KEYS, jnp.asarray(values), epsilon)
  _assert_drawn_from(actions, epsilon / len(values) + (1 - epsilon) * np.array(greedy))


@pytest.mark.parametrize("num_actions", [1, 2, 18, 40])
@pytest.mark.parametrize(
  "dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8]
)
def test_greedy_probabilities_of_all_types_are_those_of_their_definition(
  num_actions, dtype
):
  scores = np.random.default_rng(num_actions).integers(0, 5, (20, num_actions))
  if np.issubdtype(dtype, np.signedinteger):
    scores -= 9
  is_greatest = scores == scores.max(axis=1, keepdims=True)
  expected = is_greatest / is_greatest.sum(axis=1, keepdims=True, dtype=np.float32)
  found = [selection.greedy_probs(row) for row in scores[:2].astype(dtype)]
  found += [*jax.jit(jax.vmap(selection.greedy_probs))(scores.astype(dtype))]
  np.testing.assert_array_equal(found, [*expected[:2], *expected])


def test_a_score_that_is_nan_has_no_greedy_policy():
  for place in range(3):
    scores = np.full(3, 2.0, np.float32)
    scores[place] = np.nan
    assert np.isnan(selection.greedy_probs(scores)).all()


def test_draw_says_how_often_it_explored():
  probs = np.array([0.0, 0.25, 0.0, 0.75, 0.0], np.float32)
  draw = jax.jit(jax.vmap(selection.draw, in_axes=(0, None, None)))
  choices = jax.device_get(draw(KEYS, probs, 0.3))
  _assert_drawn_from(choices.explored.astype(int), [0.7, 0.3])
  _assert_drawn_from(choices.action[choices.explored], [0.2] * 5)
  _assert_drawn_from(choices.action[~choices.explored], probs)
  mixed = 0.3 / 5 + 0.7 * probs
  _assert_drawn_from(choices.action, mixed)
  np.testing.assert_allclose(choices.prob, mixed[choices.action], rtol=1e-6)


@pytest.mark.parametrize("ddof", [0, 1])
def test_bounds_are_the_mean_and_deviations(ddof):
  q = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
  found = selection.mean_over_members(q), selection.member_std(q, ddof)
  exact = q.astype(np.float64)
  np.testing.assert_allclose(found[0], exact.mean(axis=0), rtol=1e-5)
  np.testing.assert_allclose(found[1], exact.std(axis=0, ddof=ddof), rtol=1e-5)


def test_ucb_prefers_disagreement_as_the_scale_grows():
  # Means 1.0 and 0.5, population deviations 0 and 1.5, sample deviations 0 and 2.12.
  q = jnp.array([[1.0, 2.0], [1.0, -1.0]])
  assert exploration.ucb(q, 0.0) == 0
  assert exploration.ucb(q, 0.3) == 0
  assert exploration.ucb(q, 0.3, ddof=1) == 1
  assert exploration.ucb(q, 0.4) == 1
  equal = jnp.zeros((3, 4))
  assert exploration.ucb(equal, 0.1) == 0
  draw = jax.jit(jax.vmap(lambda key: exploration.ucb(equal, 0.1, key=key)))
  _assert_drawn_from(draw(KEYS), [0.25] * 4)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_boltzmann_is_drawn_from_the_softmax(temperature):
  q = np.array([0.5, 1.0, -0.5])
  weights = [np.exp(value / temperature) for value in q]
  draw = jax.jit(jax.vmap(exploration.boltzmann, in_axes=(0, None, None)))
  actions = draw(KEYS, jnp.asarray(q, jnp.float32), temperature)
  _assert_drawn_from(actions, np.array(weights) / sum(weights))


def test_bad_arguments_in_compiled_programs():
  """The nearest ε counts; with one, or a temperature, that is none, it is NaN."""
  draw = jax.jit(lambda epsilon: selection.draw(KEYS[0], jnp.full(3, 1 / 3), epsilon))
  for epsilon, near in ((-1.0, 0.0), (2.0, 1.0)):
    assert draw(epsilon) == draw(near)
  assert np.isnan(draw(np.nan).prob)
  probs = jax.jit(selection.boltzmann_probs)
  for temperature in (0.0, -1.0, np.nan):
    assert np.isnan(probs(jnp.zeros(3), temperature)).all()


def test_majority_vote_breaks_ties_at_random():
  # Two votes for action 0, one of them for the lowest index of a tie, two for action 2.
  q = jnp.array(
    [[1.0, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 0], [2, 2, 0, 2]]
  )
  draw = jax.jit(jax.vmap(exploration.majority_vote, in_axes=(0, None)))
  _assert_drawn_from(draw(KEYS, q), [0.5, 0.0, 0.5, 0.0])
  q = jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 9.0]])
  assert exploration.majority_vote(KEYS[0], q) == 0  # Not the mean, which is:
  assert exploration.epsilon_greedy(KEYS[0], q.mean(axis=0), 0.0) == 1
