"""Each learner, fed transitions, against a plain loop in float64."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.papers.tabular import learners

STATES, ACTIONS = 5, 3
INDICES = jnp.arange(STATES, dtype=jnp.int32)


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


def _feed(learner, rows, encoded=INDICES):
  """The learner's state before the first and after each row, and of one not learned."""

  def step(state, row):
    transition, first = row
    begun = learner.begin_episode(state)
    state = jax.tree.map(lambda a, b: jnp.where(first, a, b), begun, state)
    state = learner.update(state, transition)
    return learner.update(state, transition._replace(reward=9.0, learns=False)), state

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
  start = learner.init(jax.random.PRNGKey(0))
  _, states = jax.jit(lambda s: jax.lax.scan(step, s, (transitions, columns[6])))(start)
  return start, states


@pytest.mark.parametrize("pairs", [False, True])
def test_first_visits(pairs):
  rows = _walk(2, steps=40)
  learner = learners.first_visits(None, STATES, ACTIONS, 0, pairs)
  _, states = _feed(learner, rows)
  first = {}
  for i, (s, a, _, _, following, _, _) in enumerate(rows):
    for cell, step in [((s, a), i + 1)] if pairs else [(s, i), (following, i + 1)]:
      first.setdefault(cell, step)
    expected = np.full(states.first.shape[1:], learners.NEVER)
    for cell, step in first.items():
      expected[cell] = step
    np.testing.assert_array_equal(states.first[i], expected)


def test_q_learning_against_a_plain_loop():
  rows = _walk(1)
  learner = learners.q_learning(
    None, STATES, ACTIONS, step_size=0.3, discount=0.9, initial_std=1.0
  )
  start, states = _feed(learner, rows)
  table = np.array(start, np.float64)
  assert 0.4 < table.std() < 1.6
  for i, (s, a, r, d, following, _, _) in enumerate(rows):
    table[s, a] += 0.3 * (r + 0.9 * d * table[following].max() - table[s, a])
    np.testing.assert_allclose(states[i], table, atol=1e-4)


@pytest.mark.parametrize(("lambda_", "scale_steps"), [(0.6, False), (1.0, True)])
def test_sarsa_against_a_plain_loop(lambda_, scale_steps):
  rng = np.random.default_rng(3)
  observations = rng.uniform((-1.0, 0.0), (1.0, 4.0), (STATES, 2))
  rows, basis = _walk(4), learners.FourierBasis(2, (-1.0, 0.0), (1.0, 4.0))
  features = jax.vmap(basis)(jnp.asarray(observations, jnp.float32))
  learner = learners.sarsa_lambda(
    basis,
    ACTIONS,
    step_size=0.02,
    discount=0.9,
    trace_decay=lambda_,
    initial_variance=0.25,
    scale_steps=scale_steps,
  )
  start, states = _feed(learner, rows, features)
  phi = np.asarray(features, np.float64)
  sizes = 0.02 * (basis.step_scales() if scale_steps else np.ones(9))
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


@pytest.mark.parametrize(
  ("order", "dimensions", "total_order"), [(5, 1, False), (3, 5, False), (3, 5, True)]
)
def test_fourier_features(order, dimensions, total_order):
  low = tuple(-1.0 - i for i in range(dimensions))
  high = tuple(2.0 * i + 1.0 for i in range(dimensions))
  basis = learners.FourierBasis(order, low, high, total_order)
  indices = itertools.product(range(order + 1), repeat=dimensions)
  chosen = [c for c in indices if not total_order or sum(c) <= order]
  norms = [math.hypot(*c) or 1.0 for c in chosen]
  np.testing.assert_allclose(1 / basis.step_scales(), norms, rtol=1e-6)
  rng = np.random.default_rng(7)
  for x in (*rng.uniform(low, high, (5, dimensions)), np.array(low), np.array(high)):
    scaled = (x - low) / (np.array(high) - low)
    expected = [np.cos(np.pi * np.dot(c, scaled)) for c in chosen]
    np.testing.assert_allclose(jax.jit(basis)(x), expected, atol=3e-6)
  beyond = basis(np.array(high) + 1.0)
  np.testing.assert_array_equal(beyond, basis(np.array(high, np.float64)))


def test_r_max_against_plain_value_iteration():
  states, threshold, gamma, optimism = 4, 4, 0.8, 7.5
  rows = _walk(8, steps=40, terminal=0.2, states=states)
  learner = learners.r_max(
    *(None, states, ACTIONS),
    threshold=threshold,
    reward_max=1.5,
    discount=gamma,
    tolerance=1e-6,
  )
  start, after = _feed(learner, rows)
  np.testing.assert_allclose(start.table, optimism, rtol=1e-6)
  visits = {(s, a): [] for s in range(states) for a in range(ACTIONS)}
  for i, (s, a, r, d, following, _, _) in enumerate(rows):
    visits[s, a].append((r, d, following))
    if i % 10 == 9:
      table = np.full((states, ACTIONS), optimism)
      known = {x: y[:threshold] for x, y in visits.items() if len(y) >= threshold}
      assert len(known) < len(visits)
      for _ in range(2000):
        values = table.max(axis=1)
        for pair, samples in known.items():
          table[pair] = np.mean([r + gamma * d * values[s] for r, d, s in samples])
      np.testing.assert_allclose(after.table[i], table, atol=1e-3)
  # Some were seen more often than they are learned from.
  assert max(map(len, visits.values())) > threshold
