"""The loop of acting and learning, against stepping by hand."""

import dataclasses
import functools
from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.environments import chain, gridworld, jax_types
from explorax.papers.tabular import learners, loop

ROOM = gridworld.GridWorld(5)


def room_index(state):
  return state.position[0] * 5 + state.position[1]


def _limited(limit):
  return ROOM.default_params()._replace(time_limit=limit)


class _StepParams(NamedTuple):
  length: jax.Array | int
  truncates: jax.Array | bool = False


@dataclasses.dataclass(frozen=True)
class _Steps:
  """A line on which action 1 moves on and action 0 stays; reward t + 1 at step t.

  It ends after `length` steps; the first observation is drawn from 0 to 3.
  """

  num_actions = 2

  def default_params(self):
    return _StepParams(3)

  def observation_spec(self):
    return dm_env.specs.Array((), np.int32)

  def reset(self, key, params):
    place = jax.random.randint(key, (), 0, 4, jnp.int32)
    return (place, jnp.int32(0)), jax_types.restart(place)

  def step(self, key, state, action, params):
    place, time = state[0] + action, state[1] + 1
    over = time >= params.length
    return (place, time), jax_types.transition(
      place,
      time.astype(jnp.float32),
      terminated=over & ~jnp.bool_(params.truncates),
      truncated=over,
    )

  def metrics(self, state, params):
    return {}


class _Seen(NamedTuple):
  """Transitions in the order in which they were learned from."""

  count: jax.Array
  log: jax.Array
  begun: jax.Array


@dataclasses.dataclass(frozen=True)
class _Witness:
  """A learner that writes down what it is given; values prefer action 1 lightly.

  On policy or not, its values are the number of updates it has had at action 0, so
  that the rule's view of them can be told.
  """

  on_policy: bool
  sequential = False
  discount = 0.5

  def init(self, key):
    return _Seen(jnp.int32(0), jnp.zeros((64, 7)), jnp.int32(0))

  def begin_episode(self, state):
    return state._replace(begun=state.begun + 1)

  def encode(self, state, observation):
    return observation

  def q_values(self, state, encoded):
    return jnp.stack([state.count.astype(jnp.float32), jnp.float32(2.5)])

  def update(self, state, transition):
    *step, learns = transition
    row = jnp.stack([jnp.float32(x) for x in (*step, state.begun)])
    here = (jnp.arange(64) == state.count) & learns
    log = jnp.where(here[:, None], row[None, :], state.log)
    return state._replace(count=state.count + learns, log=log)


@functools.partial(
  jax.jit, static_argnums=(0, 1), static_argnames=("stop", "num_cells", "max_steps")
)
def _watch(on_policy, num_episodes, truncates=False, **options):
  return loop.run(
    _Witness(on_policy),
    exploration.Greedy(),
    _Steps(),
    _StepParams(3, truncates),
    jax.random.PRNGKey(1),
    num_episodes=num_episodes,
    **options,
  )


@pytest.mark.parametrize("truncates", [False, True])
@pytest.mark.parametrize("on_policy", [False, True])
def test_the_learner_sees_each_step_once_in_order(on_policy, truncates):
  record = _watch(on_policy, 5, truncates, max_steps=9)
  log = np.asarray(record.learner.log)[: int(record.learner.count)]
  assert len(log) == 9 and record.steps == 9 and record.learner.begun == 4
  np.testing.assert_array_equal(log[:, 2], [1, 2, 3] * 3)
  np.testing.assert_array_equal(log[:, 3], [1, 1, 1.0 if truncates else 0.0] * 3)
  np.testing.assert_array_equal(log[:, 6], np.repeat([1, 2, 3], 3))
  np.testing.assert_array_equal(log[:, 4], log[:, 0] + log[:, 1])
  within = np.arange(8) % 3 != 2
  np.testing.assert_array_equal(log[1:, 0][within], log[:-1, 4][within])
  # Greedy moves on until it has seen more than two updates. On policy the
  # choice comes before the update of the step just taken.
  if on_policy:
    np.testing.assert_array_equal(log[1:, 1][within], log[:-1, 5][within])
    # Known updates at the choices of steps 0, 1, 2, then the next episodes' first.
    known = np.array([0, 0, 1, 3, 3, 4, 6, 6, 7])
  else:
    known = np.arange(9)
  np.testing.assert_array_equal(log[:, 1], known < 2.5)


@pytest.mark.parametrize(
  ("max_steps", "episodes"), [(1000, 5), (7, 2), (6, 2), (0, 0), (11, 3)]
)
def test_a_run_ends_after_its_episodes_or_within_one(max_steps, episodes):
  record = _watch(False, 5, max_steps=max_steps)
  steps = min(max_steps, 15)
  assert (record.episodes, record.steps, bool(record.stopped)) == (
    episodes,
    steps,
    False,
  )
  assert record.learner.count == steps
  expected = np.array([1.0] * episodes + [0.0] * (5 - episodes))
  np.testing.assert_allclose(record.returns, 6.0 * expected)
  np.testing.assert_allclose(record.discounted_returns, (1 + 2 / 2 + 3 / 4) * expected)
  np.testing.assert_array_equal(record.lengths, 3 * expected)


@pytest.mark.parametrize(("least", "episodes"), [(2, 1), (3, 1), (4, 2), (15, 5)])
def test_a_run_stops_at_the_end_of_an_episode(least, episodes):
  """Of three steps each, at the end of which the learner has seen the last one."""
  ended = _watch(False, 9, stop=lambda state, params: state.count >= least)
  steps = 3 * episodes
  assert (ended.episodes, ended.steps, bool(ended.stopped)) == (episodes, steps, True)
  assert ended.learner.count == steps
  never = _watch(False, 5, stop=lambda state, params: state.count > params.length * 5)
  assert (never.episodes, bool(never.stopped)) == (5, False)


def test_first_visits_of_cells():
  record = _watch(False, 20, num_cells=10)
  log = np.asarray(record.learner.log)[:60]
  for place in range(10):
    arrivals = [t + 1 for t in range(60) if log[t, 4] == place]
    starts = [t for t in range(0, 60, 3) if log[t, 0] == place]
    seen = arrivals + starts
    assert bool(record.visited[place]) == bool(seen)
    assert record.first_visits[place] == min(seen, default=60)
  assert np.asarray(record.visited)[:4].all()
  # Greedy first moves on for three steps; here the run ends after two of them.
  short = _watch(False, 20, max_steps=2, num_cells=10)
  start = int(log[0, 0])
  np.testing.assert_array_equal(np.flatnonzero(short.visited), start + np.arange(3))
  np.testing.assert_array_equal(short.first_visits[start : start + 3], [0, 1, 2])


def _has_learned(table, params):
  return jnp.any(table > 0.45)


def test_a_seed_is_the_same_alone_and_in_a_batch():
  """Their episodes, and the runs, end at different steps."""
  learner = learners.QLearning(room_index, 25, 4, 0.5, 0.9, initial_std=0.1)
  rule = exploration.EzGreedy(0.2, duration=exploration.UniformDuration(5))
  options = {"num_episodes": 40, "max_steps": 400, "stop": _has_learned}

  def of(keys):
    run = functools.partial(loop.run, learner, rule, ROOM, _limited(40), **options)
    return jax.jit(jax.vmap(functools.partial(run, num_cells=25)))(keys)

  key = jax.random.key(0)
  keys = jax.vmap(lambda seed: jax.random.fold_in(key, seed))(jnp.arange(8))
  batch = of(keys)
  alone = loop.run_seeds(
    learner, rule, ROOM, [_limited(40)] * 2, [3, 5], num_cells=25, **options
  )
  for a, b in zip(jax.tree.leaves(batch), jax.tree.leaves(alone), strict=True):
    np.testing.assert_allclose(a[np.array([3, 5])], b, rtol=1e-5, atol=1e-6)
  assert len(set(np.asarray(batch.steps).tolist())) > 1
  for i, count in enumerate(batch.episodes):
    lengths = np.asarray(batch.lengths[i])
    assert np.all((lengths[:count] >= 1) & (lengths[:count] <= 40))
    assert 0 <= batch.steps[i] - lengths.sum() < 40


def _position(state):
  return state.position


def test_q_learning_finds_the_best_stop_in_the_chain():
  """With γ = 0.99, the 3 of state 8 is worth the most of 0, 1, 0, 0, 2, …, 3."""
  environment, gamma = chain.Chain(9), 0.99
  record = loop.run_seeds(
    learners.QLearning(_position, 10, 2, 1.0, gamma, initial_std=1.0),
    exploration.EpsilonGreedy(0.8),
    environment,
    environment.default_params(),
    range(2),
    num_episodes=1500,
  )
  rewards = chain.make_rewards(9).astype(np.float64)
  best = np.zeros((10, 2))
  for state in reversed(range(9)):
    onward = gamma * best[state + 1].max() if state < 8 else 0.0
    best[state] = onward, rewards[state]
  np.testing.assert_allclose(record.learner[0, :9], best[:9], atol=1e-4)
