"""Each learner, fed transitions, against a plain loop in float64."""

import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.papers.tabular import learners

STATES, ACTIONS = 5, 3


def _walk(seed, steps=200, terminal=0.1, states=STATES):
  """Transitions of a random walk, in episodes: (s, a, r, discount, s', a', first)."""
  rng = np.random.default_rng(seed)
  rows, state, action, first = [], rng.integers(states), rng.integers(ACTIONS), True
  for _ in range(steps):
    following, next_action = rng.integers(states), rng.integers(ACTIONS)
    discount = float(rng.random() > terminal)
    rows.append((state, action, rng.normal(), discount, following, next_action, first))
    first = discount == 0.0
    state = rng.integers(states) if first else following
    action = rng.integers(ACTIONS) if first else next_action
  return rows


def _feed(learner, rows, encoded, key=0):
  """The learner's state before the first and after each row."""

  def step(state, row):
    transition, first = row
    begun = learner.begin_episode(state)
    state = jax.tree.map(lambda a, b: jnp.where(first, a, b), begun, state)
    state = learner.update(state, transition)
    return state, state

  columns = [np.asarray(column) for column in zip(*rows, strict=True)]
  transitions = learners.Transition(
    encoded[columns[0]],
    jnp.asarray(columns[1], jnp.int32),
    jnp.asarray(columns[2], jnp.float32),
    jnp.asarray(columns[3], jnp.float32),
    encoded[columns[4]],
    jnp.asarray(columns[5], jnp.int32),
    jnp.ones(len(rows), bool),
  )
  start = learner.init(jax.random.PRNGKey(key))
  _, states = jax.jit(lambda s: jax.lax.scan(step, s, (transitions, columns[6])))(start)
  return start, states


def _index(state):
  return state


INDICES = jnp.arange(STATES, dtype=jnp.int32)


@pytest.mark.parametrize(
  "learner",
  [
    learners.QLearning(_index, STATES, ACTIONS, 0.3, 0.9),
    learners.SarsaLambda(
      learners.FourierBasis(2, (0.0,), (1.0,)), ACTIONS, 0.1, 0.9, 0.5, 0.01
    ),
    learners.RMax(_index, STATES, ACTIONS, 1, 1.0, 0.9),
  ],
)
def test_learners_ignore_resets(learner):
  state = learner.init(jax.random.PRNGKey(0))
  seen = learner.encode(jnp.int32(1), jnp.ones((1,)))
  transition = learners.Transition(seen, jnp.int32(1), jnp.float32(1.0), 1.0, seen, 0)
  same = learner.update(state, transition._replace(learns=jnp.bool_(False)))
  chex.assert_trees_all_close(same, state, rtol=1e-6)


def test_q_learning_against_a_plain_loop():
  rows = _walk(1)
  learner = learners.QLearning(_index, STATES, ACTIONS, 0.3, 0.9, initial_std=1.0)
  start, states = _feed(learner, rows, INDICES)
  table = np.array(start, np.float64)
  assert 0.4 < table.std() < 1.6
  for i, (s, a, r, d, following, _, _) in enumerate(rows):
    table[s, a] += 0.3 * (r + 0.9 * d * table[following].max() - table[s, a])
    np.testing.assert_allclose(states[i], table, atol=1e-4)


BASIS = learners.FourierBasis(2, (-1.0, 0.0), (1.0, 4.0))


@pytest.mark.parametrize("scale_steps", [False, True])
@pytest.mark.parametrize("lambda_", [0.0, 0.6, 1.0])
def test_sarsa_against_a_plain_loop(lambda_, scale_steps):
  rng = np.random.default_rng(3)
  observations = rng.uniform((-1.0, 0.0), (1.0, 4.0), (STATES, 2))
  rows = _walk(4)
  learner = learners.SarsaLambda(
    BASIS, ACTIONS, 0.02, 0.9, lambda_, initial_variance=0.25, scale_steps=scale_steps
  )
  features = jax.vmap(BASIS)(jnp.asarray(observations, jnp.float32))
  start, states = _feed(learner, rows, features)
  scaled = (observations - (-1.0, 0.0)) / (2.0, 4.0)
  indices = list(itertools.product(range(3), repeat=2))
  phi = np.array([[np.cos(np.pi * np.dot(c, x)) for c in indices] for x in scaled])
  sizes = np.full(9, 0.02)
  if scale_steps:
    sizes[1:] /= [np.hypot(*c) for c in indices[1:]]
  weights = np.array(start.weights, np.float64)
  assert 0.3 < weights.std() < 0.7
  for i, (s, a, r, d, following, next_action, first) in enumerate(rows):
    if first:
      traces = np.zeros((ACTIONS, 9))
    error = r + 0.9 * d * weights[next_action] @ phi[following] - weights[a] @ phi[s]
    traces *= 0.9 * lambda_
    traces[a] += phi[s]
    weights += sizes * error * traces
    np.testing.assert_allclose(states.weights[i], weights, atol=2e-4)


@pytest.mark.parametrize("total_order", [False, True])
@pytest.mark.parametrize("order, dimensions", [(0, 1), (5, 1), (5, 2), (3, 5)])
def test_fourier_features(order, dimensions, total_order):
  low = tuple(-1.0 - i for i in range(dimensions))
  high = tuple(2.0 * i + 1.0 for i in range(dimensions))
  basis = learners.FourierBasis(order, low, high, total_order)
  indices = itertools.product(range(order + 1), repeat=dimensions)
  chosen = [c for c in indices if not total_order or sum(c) <= order]
  assert basis.num_features == len(chosen)
  norms = [math.hypot(*c) or 1.0 for c in chosen]
  np.testing.assert_allclose(1 / basis.step_scales(), norms, rtol=1e-6)
  rng = np.random.default_rng(7)
  for x in (*rng.uniform(low, high, (5, dimensions)), np.array(low), np.array(high)):
    scaled = (x - low) / (np.array(high) - low)
    expected = [np.cos(np.pi * np.dot(c, scaled)) for c in chosen]
    np.testing.assert_allclose(jax.jit(basis)(x), expected, atol=3e-6)
  beyond = basis(np.array(high) + 1.0)
  np.testing.assert_array_equal(beyond, basis(np.array(high, np.float64)))


def _plain_values(counts, rewards, trips, threshold, reward_max, gamma):
  """Value iteration on the known pairs' samples, to convergence."""
  table = np.full(counts.shape, reward_max / (1.0 - gamma))
  for _ in range(2000):
    values = table.max(axis=1)
    for s, a in np.argwhere(counts >= threshold):
      samples = trips[s, a][:threshold]
      followed = [d * values[following] for following, d in samples]
      table[s, a] = np.mean(rewards[s, a][:threshold]) + gamma * np.mean(followed)
  return table


@pytest.mark.parametrize("threshold", [1, 4])
def test_r_max_against_plain_value_iteration(threshold):
  states = 4
  rows = _walk(8, steps=40, terminal=0.2, states=states)
  learner = learners.RMax(_index, states, ACTIONS, threshold, 1.5, 0.8, 1e-6)
  start, after = _feed(learner, rows, INDICES)
  np.testing.assert_allclose(start.table, 1.5 / 0.2, rtol=1e-6)
  counts = np.zeros((states, ACTIONS), int)
  rewards = {(s, a): [] for s in range(states) for a in range(ACTIONS)}
  trips = {(s, a): [] for s in range(states) for a in range(ACTIONS)}
  for i, (s, a, r, d, following, _, _) in enumerate(rows):
    counts[s, a] += 1
    rewards[s, a].append(r)
    trips[s, a].append((following, d))
    np.testing.assert_array_equal(after.counts[i], np.minimum(counts, threshold))
    if i % 10 == 9:
      expected = _plain_values(counts, rewards, trips, threshold, 1.5, 0.8)
      np.testing.assert_allclose(after.table[i], expected, atol=1e-3)
    if i == 9:  # Some pairs are not known yet,
      assert (counts < threshold).any()
  # and some were seen oftener than they are learned from.
  assert (counts > threshold).any()
