"""What the learner trains: f and h, RND's predictor, and on which frames."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents.bonuses import ngu_training


def leaves(tree):
  return [np.asarray(x) for x in jax.tree.leaves(tree)]


def assert_same(a, b):
  for x, y in zip(leaves(a), leaves(b), strict=True):
    np.testing.assert_array_equal(x, y)


def assert_moved(a, b):
  assert all(np.any(x != y) for x, y in zip(leaves(a), leaves(b), strict=True))


def train(bonus, windows, num_updates=150):
  """The first and the last state, and the metrics of all updates."""
  update = jax.jit(bonus.training.update)
  start = state = jax.jit(bonus.training.init)(jax.random.PRNGKey(1))
  history = []
  for _ in range(num_updates):
    state, metrics = update(state, *windows)
    history.append({name: float(value) for name, value in metrics.items()})
  return start, state, history


@pytest.fixture(scope="module")
def learned(make_bonus, vector_spec, windows):
  bonus = make_bonus(vector_spec, embedding_learning_rate=0.03, rnd_learning_rate=0.03)
  return bonus, *train(bonus, windows)


def test_inverse_dynamics_and_the_predictor_are_learnt(learned):
  _, start, end, history = learned
  assert set(history[0]) == {"inverse_loss", "rnd_loss"}
  # Of three actions; the embedding has two dimensions, enough for them.
  assert history[0]["inverse_loss"] > 0.5 * np.log(3)
  assert history[-1]["inverse_loss"] < 0.1
  assert history[-1]["rnd_loss"] < 0.05 * history[0]["rnd_loss"]
  assert_moved(start.embedding, end.embedding)
  assert_moved(start.predictor, end.predictor)


def test_actors_get_f_and_both_networks_but_not_h(learned):
  bonus, _, end, _ = learned
  weights = bonus.training.weights(end)
  assert_same(weights.embedding, end.embedding.embedding)
  assert_same((weights.predictor, weights.target), (end.predictor, end.target))
  held = jax.tree.map(jnp.zeros_like, weights)
  mixed = bonus.refresh(held, weights)
  assert_same(mixed.embedding, held.embedding)
  assert_same(mixed[1:], weights[1:])


def test_rows_after_an_episode_are_ignored(learned, windows):
  bonus, start, _, _ = learned
  update = jax.jit(bonus.training.update)
  observation, action, num_transitions = windows
  other, other_action = observation.copy(), action.copy()
  for window, n in enumerate(num_transitions):
    other[window, n + 1 :] = -7.0
    other_action[window, n:] = 2
  assert np.any(other != observation)
  expected = update(start, *windows)
  assert_same(update(start, other, other_action, num_transitions), expected)
  # But the last transition does.
  other_action[:, :] = 1
  changed = update(start, other, other_action, num_transitions)[1]
  assert changed["inverse_loss"] != expected[1]["inverse_loss"]


def test_l2_pulls_f_and_h_to_zero_where_there_is_nothing_to_learn(learned, windows):
  """Windows without transitions have one frame each, and no pair of them.

  The gradient g is then 1e-5 of each weight, and Adam's first step, by its learning
  rate, is g / (|g| + ε).
  """
  bonus, start, _, _ = learned
  observation, action, num_transitions = windows
  state, metrics = jax.jit(bonus.training.update)(
    start, observation, action, np.zeros_like(num_transitions)
  )
  assert metrics["inverse_loss"] == 0.0 and metrics["rnd_loss"] > 0.0
  for before, after in zip(
    leaves(start.embedding), leaves(state.embedding), strict=True
  ):
    gradient = 1e-5 * before.astype(np.float64)
    expected = -0.03 * gradient / (np.abs(gradient) + 1e-4)
    np.testing.assert_allclose(after - before, expected, rtol=1e-2, atol=1e-7)


def test_last_frames():
  """Observations are 10 · window + row."""
  observation = 10 * np.arange(5)[:, None] + np.arange(6)[None]
  action = 100 + observation
  num_transitions = np.array([5, 6, 3, 1, 0], np.int32)
  last_frames = jax.jit(ngu_training.last_frames, static_argnums=3)
  frames = last_frames(observation, action, num_transitions, 3)
  np.testing.assert_array_equal(
    frames.observation,
    [[3, 4, 5], [13, 14, 15], [21, 22, 23], [30, 30, 31], [40, 40, 40]],
  )
  np.testing.assert_array_equal(frames.action, 100 + frames.observation)
  np.testing.assert_array_equal(
    frames.mask, [[1, 1, 1], [1, 1, 1], [1, 1, 1], [0, 1, 1], [0, 0, 1]]
  )
  short = last_frames(np.arange(2.0)[None], np.arange(2)[None], np.array([2]), 4)
  np.testing.assert_array_equal(short.observation, [[0, 0, 0, 1]])
  np.testing.assert_array_equal(short.mask, [[0, 0, 1, 1]])
