"""Each learner, fed transitions, against a plain loop in float64."""

import dataclasses
import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.papers.tabular import fourier, q_learning, r_max, sarsa, types

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


def _feed(learner, params, rows, observations, key=0):
  """The learner's state before the first and after each row."""

  def step(state, row):
    transition, first = row
    begun = learner.begin_episode(state)
    state = jax.tree.map(lambda a, b: jnp.where(first, a, b), begun, state)
    state = learner.update(state, transition)
    return state, state

  columns = [np.asarray(column) for column in zip(*rows, strict=True)]
  encoded = jax.vmap(learner.encode)(jnp.asarray(observations, jnp.float32))
  transitions = types.Transition(
    encoded[columns[0]],
    jnp.asarray(columns[1], jnp.int32),
    jnp.asarray(columns[2], jnp.float32),
    jnp.asarray(columns[3], jnp.float32),
    encoded[columns[4]],
    jnp.asarray(columns[5], jnp.int32),
    jnp.ones(len(rows), bool),
  )
  start = learner.init(jax.random.PRNGKey(key), params)
  _, states = jax.jit(lambda s: jax.lax.scan(step, s, (transitions, columns[6])))(start)
  return start, states


@pytest.mark.parametrize(
  ("learner", "params"),
  [
    (q_learning.QLearning(STATES, ACTIONS), q_learning.Params(0.3, 0.9)),
    (q_learning.QLearning(STATES, ACTIONS, 3), q_learning.Params(0.3, 0.9, 0.5)),
    (
      sarsa.SarsaLambda(fourier.FourierBasis(2, (0.0,), (1.0,)), ACTIONS),
      sarsa.Params(0.1, 0.9, 0.5, 0.1),
    ),
    (r_max.RMax(STATES, ACTIONS, 1), r_max.Params(1.0, 0.9, 1e-3)),
  ],
)
def test_learners_ignore_resets(learner, params):
  state = learner.init(jax.random.PRNGKey(0), params)
  seen = learner.encode(jnp.ones((1,)))
  transition = types.Transition(seen, jnp.int32(1), jnp.float32(1.0), 1.0, seen, 0)
  same = learner.update(state, transition._replace(learns=jnp.bool_(False)))
  chex.assert_trees_all_close(same, state, rtol=1e-6)
  # The transition would teach something.
  learnt = jax.tree.leaves(learner.update(state, transition))
  changed = zip(learnt, jax.tree.leaves(state), strict=True)
  assert any(not np.array_equal(a, b) for a, b in changed)


def test_q_learning_against_a_plain_loop():
  rows = _walk(0)
  learner = q_learning.QLearning(STATES, ACTIONS)
  params = q_learning.Params(0.3, 0.9, initial_mean=0.5, initial_std=2.0)
  start, states = _feed(learner, params, rows, np.eye(STATES))
  table = np.array(start.table[0], np.float64)
  assert 1.0 < table.std() < 4.0
  for i, (s, a, r, d, following, _, _) in enumerate(rows):
    table[s, a] += 0.3 * (r + 0.9 * d * table[following].max() - table[s, a])
    np.testing.assert_allclose(states.table[i, 0], table, atol=1e-4)


def test_members_learn_where_their_masks_let_them():
  rows = _walk(1, steps=1000)
  learner = q_learning.QLearning(STATES, ACTIONS, num_members=4)
  params = q_learning.Params(0.3, 0.9, mask_prob=0.25, initial_std=1.0)
  start, states = _feed(learner, params, rows, np.eye(STATES))
  tables = np.concatenate([start.table[None], states.table]).astype(np.float64)
  learned = np.zeros((len(rows), 4))
  for i, (s, a, r, d, following, _, _) in enumerate(rows):
    for k in range(4):
      expected = tables[i, k].copy()
      change = 0.3 * (r + 0.9 * d * expected[following].max() - expected[s, a])
      learned[i, k] = not np.array_equal(tables[i + 1, k], tables[i, k])
      expected[s, a] += change * learned[i, k]
      np.testing.assert_allclose(tables[i + 1, k], expected, atol=1e-4)
  np.testing.assert_allclose(learned.mean(axis=0), 0.25, atol=0.06)
  # The members' masks have nothing to do with each other.
  assert np.all(np.abs(np.corrcoef(learned.T) - np.eye(4)) < 0.15)


BASIS = fourier.FourierBasis(2, (-1.0, 0.0), (1.0, 4.0))


@pytest.mark.parametrize("scale_steps", [False, True])
@pytest.mark.parametrize("lambda_", [0.0, 0.6, 1.0])
def test_sarsa_against_a_plain_loop(lambda_, scale_steps):
  rng = np.random.default_rng(3)
  observations = rng.uniform((-1.0, 0.0), (1.0, 4.0), (STATES, 2))
  rows = _walk(4)
  learner = sarsa.SarsaLambda(BASIS, ACTIONS, scale_steps=scale_steps)
  params = sarsa.Params(0.02, 0.9, lambda_, initial_std=0.5)
  start, states = _feed(learner, params, rows, observations)
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


@dataclasses.dataclass(frozen=True)
class _Tables:
  """Features that make a linear function a table: the observation, one-hot."""

  num_features: int = STATES

  def __call__(self, observation):
    return observation

  def step_scales(self):
    return np.ones(self.num_features, np.float32)


def test_sarsa_1_moves_towards_the_returns():
  """At a small α, an episode's changes are α·(G_t − q(x_t, a_t))·φ(x_t), summed."""
  rng = np.random.default_rng(6)
  length, gamma, step_size = 12, 0.8, 1e-3
  path = rng.integers(STATES, size=length + 1)
  actions = rng.integers(ACTIONS, size=length + 1)
  rewards = rng.normal(size=length)

  def after(t):
    return path[t + 1], actions[t + 1], t == 0

  rows = [
    (path[t], actions[t], rewards[t], float(t < length - 1), *after(t))
    for t in range(length)
  ]
  learner = sarsa.SarsaLambda(_Tables(), ACTIONS)
  params = sarsa.Params(step_size, gamma, 1.0, initial_std=1.0)
  start, states = _feed(learner, params, rows, np.eye(STATES))
  before = np.array(start.weights, np.float64)
  expected = np.zeros((ACTIONS, STATES))
  for t in range(length):
    total = sum(gamma**k * reward for k, reward in enumerate(rewards[t:]))
    expected[actions[t], path[t]] += total - before[actions[t], path[t]]
  change = (np.array(states.weights[-1], np.float64) - before) / step_size
  # Within an episode the values that are bootstrapped from change by O(α).
  np.testing.assert_allclose(change, expected, atol=0.03)
  assert np.abs(expected).max() > 1.0


@pytest.mark.parametrize("total_order", [False, True])
@pytest.mark.parametrize("order, dimensions", [(0, 1), (5, 1), (5, 2), (3, 5)])
def test_fourier_features(order, dimensions, total_order):
  low = tuple(-1.0 - i for i in range(dimensions))
  high = tuple(2.0 * i + 1.0 for i in range(dimensions))
  basis = fourier.FourierBasis(order, low, high, total_order)
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
  learner = r_max.RMax(states, ACTIONS, threshold)
  params = r_max.Params(1.5, 0.8, tolerance=1e-6)
  start, after = _feed(learner, params, rows, np.eye(states))
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
