"""Choosing actions, against plain loops in float64 and counted draws."""

import hypothesis
import hypothesis.extra.numpy as hnp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st

from explorax import exploration
from explorax.exploration import selection

pytestmark = pytest.mark.core

_NUM_DRAWS = 20_000
_SETTINGS = {"max_examples": 15, "deadline": None, "derandomize": True}

# Whole numbers tie often, and their means are exact.
_VALUES = hnp.arrays(
  np.float32,
  hnp.array_shapes(min_dims=2, max_dims=2, max_side=5),
  elements=st.integers(-2, 2).map(float),
)


def _keys(num: int = _NUM_DRAWS, seed: int = 0) -> jax.Array:
  return jax.random.split(jax.random.PRNGKey(seed), num)


# Compiled once for each shape.
_draw = jax.jit(jax.vmap(exploration.epsilon_greedy, in_axes=(0, None, None)))


def _greedy_probs(values) -> np.ndarray:
  """1 over the number of greatest values, by a loop."""
  best = max(values)
  ties = sum(1 for v in values if v == best)
  return np.array([1.0 / ties if v == best else 0.0 for v in values])


def _assert_drawn_from(actions, probs) -> None:
  """The share of each action is within five deviations; impossible ones never come."""
  shares = np.bincount(np.asarray(actions), minlength=len(probs)) / len(actions)
  assert len(shares) == len(probs)
  probs = np.asarray(probs, np.float64)
  deviation = np.sqrt(probs * (1 - probs) / len(actions))
  np.testing.assert_array_less(np.abs(shares - probs), 5 * deviation + 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(
  "values",
  [[1.0, 3.0, 2.0], [3.0, 3.0, 1.0], [0.0] * 3, [0.0, -np.inf, 0.0], [-1.0]],
)
def test_epsilon_greedy_is_drawn_from_its_formula(values, epsilon):
  actions = _draw(_keys(), jnp.asarray(values), epsilon)
  expected = epsilon / len(values) + (1 - epsilon) * _greedy_probs(values)
  _assert_drawn_from(actions, expected)


@hypothesis.given(_VALUES, st.sampled_from([0.0, 0.25, 1.0]), st.integers(0, 2**31 - 1))
@hypothesis.settings(**_SETTINGS)
def test_draw_reports_the_probability_of_its_action(values, epsilon, seed):
  values = values[0]
  probs = selection.greedy_probs(jnp.asarray(values))
  np.testing.assert_allclose(probs, _greedy_probs(values), rtol=1e-6)
  choice = selection.draw(jax.random.PRNGKey(seed), probs, epsilon)
  expected = epsilon / len(values) + (1 - epsilon) * _greedy_probs(values)
  np.testing.assert_allclose(choice.prob, expected[choice.action], rtol=1e-6)
  assert choice.prob.dtype == jnp.float32
  assert choice.action.dtype == jnp.int32


@hypothesis.given(_VALUES)
@hypothesis.settings(**_SETTINGS)
def test_of_tied_actions_the_first_is_taken(values):
  values = values[0]
  probs = selection.greedy_probs(jnp.asarray(values), ties="first")
  expected = np.zeros(len(values), np.float32)
  expected[list(values).index(max(values))] = 1.0
  np.testing.assert_array_equal(probs, expected)
  assert probs.dtype == jnp.float32


def test_draw_says_how_often_it_explored():
  probs = jnp.array([0.0, 0.25, 0.0, 0.75, 0.0])
  draw = jax.jit(jax.vmap(selection.draw, in_axes=(0, None, None)))
  choices = jax.tree.map(np.asarray, draw(_keys(), probs, 0.3))
  _assert_drawn_from(choices.explored.astype(int), [0.7, 0.3])
  _assert_drawn_from(choices.action[choices.explored], [0.2] * 5)
  _assert_drawn_from(choices.action[~choices.explored], probs)
  _assert_drawn_from(choices.action, selection.mix_uniform(probs, 0.3))


@hypothesis.given(_VALUES, st.floats(0.0, 3.0), st.sampled_from([0, 1]))
@hypothesis.settings(**_SETTINGS)
def test_bounds_are_the_mean_and_deviations(q, scale, ddof):
  hypothesis.assume(q.shape[0] > ddof)
  expected = []
  for column in q.T.astype(np.float64):
    mean = sum(column) / len(column)
    squares = sum((value - mean) ** 2 for value in column)
    expected.append(mean + scale * np.sqrt(squares / (len(column) - ddof)))
  q = jnp.asarray(q)
  bounds = selection.mean_over_members(q) + scale * selection.member_std(q, ddof)
  np.testing.assert_allclose(bounds, expected, rtol=1e-5, atol=1e-5)


def test_ucb_prefers_disagreement_as_the_scale_grows():
  # Means 1.0 and 0.5, population deviations 0 and 1.5, sample deviations 0 and 2.12.
  q = jnp.array([[1.0, 2.0], [1.0, -1.0]])
  assert exploration.ucb(q, 0.0) == 0
  assert exploration.ucb(q, 0.3) == 0
  assert exploration.ucb(q, 0.3, ddof=1) == 1
  assert exploration.ucb(q, 0.4) == 1


@hypothesis.given(_VALUES)
@hypothesis.settings(**_SETTINGS)
def test_votes_are_counted(q):
  expected = [0] * q.shape[1]
  for member in q:
    expected[list(member).index(max(member))] += 1
  votes = selection.count_votes(jnp.asarray(q))
  np.testing.assert_array_equal(votes, expected)


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_boltzmann_is_drawn_from_the_softmax(temperature):
  q = np.array([0.5, 1.0, -0.5])
  weights = [np.exp(value / temperature) for value in q]
  draw = jax.vmap(exploration.boltzmann, in_axes=(0, None, None))
  actions = draw(_keys(), jnp.asarray(q, jnp.float32), temperature)
  _assert_drawn_from(actions, np.array(weights) / sum(weights))


def test_bad_arguments_in_compiled_programs():
  """The nearest ε counts; with one, or a temperature, that is none, it is NaN."""
  draw = jax.jit(
    lambda epsilon: selection.draw(_keys(1)[0], jnp.full(3, 1 / 3), epsilon)
  )
  for epsilon, near in ((-1.0, 0.0), (2.0, 1.0)):
    assert draw(epsilon) == draw(near)
  assert np.isnan(draw(np.nan).prob)
  for temperature in (0.0, -1.0, np.nan):
    assert np.isnan(jax.jit(selection.boltzmann_probs)(jnp.zeros(3), temperature)).all()


def test_ucb_ties():
  q = jnp.zeros((3, 4))
  assert exploration.ucb(q, 0.1) == 0
  draw = jax.vmap(lambda key: exploration.ucb(q, 0.1, key=key))
  _assert_drawn_from(draw(_keys()), [0.25] * 4)


def test_majority_vote_breaks_ties_at_random():
  # Two votes for action 0, two for action 2, one for action 1.
  q = jnp.eye(4)[jnp.array([0, 2, 1, 2, 0])]
  draw = jax.vmap(exploration.majority_vote, in_axes=(0, None))
  _assert_drawn_from(draw(_keys(), q), [0.5, 0.0, 0.5, 0.0])
  q = jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 9.0]])
  assert exploration.majority_vote(_keys(1)[0], q) == 0  # Not the mean, which is:
  assert exploration.epsilon_greedy(_keys(1)[0], q.mean(axis=0), 0.0) == 1
