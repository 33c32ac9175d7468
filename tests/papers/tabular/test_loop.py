"""The loop of acting and learning, against stepping by hand."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.environments import chain, jax_types
from explorax.papers.tabular import learners, loop


class _Params(NamedTuple):
  truncates: jax.Array | bool = False
  stop_at: jax.Array | int = 99  # Updates of the learner.


@dataclasses.dataclass(frozen=True)
class _Steps:
  """A line on which action 1 moves on and action 0 stays; reward t + 1 at step t.

  It ends after three steps; the first observation is drawn from 0 to 3.
  """

  num_actions = 2

  def reset(self, key, params):
    place = jax.random.randint(key, (), 0, 4, jnp.int32)
    return (place, jnp.int32(0)), jax_types.restart(place)

  def step(self, key, state, action, params):
    place, time = state[0] + action, state[1] + 1
    over = time >= 3
    return (place, time), jax_types.transition(
      place,
      time.astype(jnp.float32),
      terminated=over & ~jnp.bool_(params.truncates),
      truncated=over,
    )


class _Seen(NamedTuple):
  """Transitions in the order in which they were learned from."""

  count: jax.Array
  log: jax.Array
  begun: jax.Array


def _witness(on_policy):
  """A learner that writes down what it is given.

  Its values are the number of updates it has had at action 0, so that the rule's view
  of them can be told.
  """

  def update(state, transition):
    *step, learns = transition
    row = jnp.stack([jnp.float32(x) for x in (*step, state.begun)])
    here = (jnp.arange(64) == state.count) & learns
    log = jnp.where(here[:, None], row[None, :], state.log)
    return state._replace(count=state.count + learns, log=log)

  return learners.Learner(
    init=lambda key: _Seen(jnp.int32(0), jnp.zeros((64, 7)), jnp.int32(0)),
    encode=lambda state, observation: observation,
    q_values=lambda state, seen: jnp.stack([jnp.float32(state.count), 2.5]),
    update=update,
    begin_episode=lambda state: state._replace(begun=state.begun + 1),
    discount=0.5,
    on_policy=on_policy,
  )


def _watch(params, num_episodes, on_policy=False, **options):
  """The records of seed 1 with each of the parameters."""
  rule, seeds = exploration.Greedy(), [1] * len(params)
  options["num_episodes"] = num_episodes
  records = loop.run(_witness(on_policy), rule, _Steps(), params, seeds, **options)
  return [jax.tree.map(lambda x, i=i: x[i], records) for i in range(len(params))]


@pytest.mark.parametrize("on_policy", [False, True])
def test_the_learner_sees_each_step_once_in_order(on_policy):
  params = [_Params(truncates=x) for x in (False, True)]
  records = _watch(params, 5, on_policy, max_steps=9)
  for end, record in zip((0.0, 1.0), records, strict=True):
    log = np.asarray(record.learner.log)[: int(record.learner.count)]
    assert len(log) == 9 and record.steps == 9 and record.learner.begun == 4
    assert record.episodes == 3  # It ends with its ninth step.
    np.testing.assert_array_equal(log[:, 2], [1, 2, 3] * 3)
    np.testing.assert_array_equal(log[:, 3], [1, 1, end] * 3)
    np.testing.assert_array_equal(log[:, 6], np.repeat([1, 2, 3], 3))
    np.testing.assert_array_equal(log[:, 4], log[:, 0] + log[:, 1])
    within = np.arange(8) % 3 != 2
    np.testing.assert_array_equal(log[1:, 0][within], log[:-1, 4][within])
    # Greedy moves on until it has seen more than two updates. On policy the choice
    # comes before the update of the step just taken.
    known = np.arange(9)
    if on_policy:
      np.testing.assert_array_equal(log[1:, 1][within], log[:-1, 5][within])
      # Updates at the choices of steps 0, 1, 2, then the next episodes' first.
      known = np.array([0, 0, 1, 3, 3, 4, 6, 6, 7])
    np.testing.assert_array_equal(log[:, 1], known < 2.5)


def test_a_run_ends_within_an_episode():
  (record,) = _watch([_Params()], 5, max_steps=7)
  assert record.learner.count == record.steps == 7
  assert record.episodes == 2 and not record.stopped
  finished = np.array([1.0, 1.0, 0.0, 0.0, 0.0])
  np.testing.assert_allclose(record.returns, 6.0 * finished)
  np.testing.assert_allclose(record.discounted_returns, (1 + 2 / 2 + 3 / 4) * finished)


def test_a_run_stops_at_the_end_of_an_episode_or_after_all():
  """Of three steps each, at the end of which the learner has seen the last one."""
  ends = {2: 1, 3: 1, 4: 2, 15: 5, 99: 9}
  params = [_Params(stop_at=x) for x in ends]
  records = _watch(params, 9, stop=lambda state, params: state.count >= params.stop_at)
  for episodes, record in zip(ends.values(), records, strict=True):
    assert record.episodes == episodes and record.stopped == (episodes < 9)
    assert record.learner.count == record.steps == 3 * episodes


def test_a_seed_is_the_same_alone_and_in_a_batch(monkeypatch):
  """Their episodes, and the runs, end at different steps."""
  size, rule = 5, exploration.EzGreedy(0.2, duration=exploration.UniformDuration(5))
  learner = learners.q_learning(
    lambda state, _: state.position,
    *(size, 2),
    step_size=0.5,
    discount=0.9,
    initial_std=0.1,
  )

  def run(seeds):
    return loop.run(
      *(learner, rule, chain.Chain(size), chain.Chain(size).default_params(), seeds),
      num_episodes=40,
      max_steps=80,
      stop=lambda table, params: jnp.any(table > 1.9),
    )

  alone = run([3, 5])
  monkeypatch.setattr(jax, "__version_info__", (0, 5, 0))  # Batches on a CPU, too.
  batch = run(range(8))
  for a, b in zip(jax.tree.leaves(batch), jax.tree.leaves(alone), strict=True):
    np.testing.assert_allclose(a[np.array([3, 5])], b, rtol=1e-5, atol=1e-6)
  assert len(set(np.asarray(batch.steps).tolist())) > 1
