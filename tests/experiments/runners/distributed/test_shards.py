"""Shards of replay: their turns, their writers, their limits and their checkpoints."""

import asyncio
import time
import types as types_lib
from typing import Any

import dm_env
import fakes
import jax
import numpy as np
import pytest
import ray

from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.replay import adder
from explorax.environments import factory, standard
from explorax.experiments import checkpoint, ray_cluster
from explorax.experiments import config as config_lib
from explorax.experiments.runners.distributed import (
  board,
  checkpoints,
  memory_shard,
  messages,
  rate_limit,
  replay,
)

LIMIT = rate_limit.RateLimit(1, 1.0, 1, 100.0)
CONFIG = config_lib.RunConfig(
  agent="dqn", env="bsuite:catch/0", runner="distributed", replay="memory"
)


@pytest.fixture(scope="module", autouse=True)
def ray_for_all():
  with ray_cluster.connect(None, 1):
    yield


@pytest.fixture
def wait():
  """A function that waits for a coroutine."""
  loop = asyncio.new_event_loop()
  yield loop.run_until_complete
  loop.close()


class _Client:
  """A shard whose batches contain its number; records the new priorities."""

  def __init__(self, number: int):
    self.number, self.died, self.updates = number, False, []

  def batches(self):
    while not self.died:
      yield np.array([self.number]), None
    raise RuntimeError("the process died")

  def update_priorities(self, keys, priorities):
    self.updates.append((keys.tolist(), priorities.tolist()))


def test_shards_take_turns_and_one_that_died_is_passed_over():
  clients = [_Client(number) for number in range(3)]
  batches = replay.ShardedBatches(clients)
  drawn = []
  for step in range(18):
    clients[1].died = step >= 6
    time.sleep(0.02)  # Each shard has a batch.
    keys, _ = next(batches)
    batches.update_priorities(keys, np.array([float(step)]))
    drawn.append(int(keys[0]))
  assert drawn[:6] == [0, 1, 2, 0, 1, 2]
  # One batch of the shard that died was in its queue, and one may have waited for it.
  assert drawn[6:].count(1) <= 2
  assert [shard for shard in drawn[6:] if shard != 1][:10] == [0, 2] * 5
  assert clients[2].updates[0] == ([2], [2.0])
  clients[1].died = False  # Ray has restarted it.
  until = time.monotonic() + 20
  while next(batches)[0][0] != 1 and time.monotonic() < until:
    pass
  assert time.monotonic() < until
  batches.close()


class _Process:
  """A stand-in for a Ray actor, whose methods run at once in this process."""

  def __init__(self, process: Any, wait: Any):
    self._process, self._wait = process, wait

  def __getattr__(self, name: str) -> Any:
    method = getattr(self._process, name)

    def call(*arguments):
      return ray.put(self._wait(method(*arguments)))

    return types_lib.SimpleNamespace(remote=call)


class _Run(messages.Run):
  """A run with a board in this process."""

  def handle(self, role):
    served = board.Board(["replay 0"], CONFIG, messages.Counts())
    return _Process(served, asyncio.run)


def _shard(limit=LIMIT, directory=None, shard=0, config=CONFIG):
  run = _Run("run", config, limit, directory)
  return memory_shard.MemoryShard(run, _agent(), shard)


def _agent():
  environment = standard.StandardEnvironment(fakes.FakeEnvironment())
  config = q_config.QConfig(
    replay_capacity=40, min_replay_size=10, batch_size=8, hidden_sizes=(4,)
  )
  return q_agent.make_agent(config, factory.spec(environment))


def _act(rows: adder.WindowAdder, value: float, num_steps: int) -> None:
  agent = _agent()
  extras = {name: np.zeros(s.shape, s.dtype) for name, s in agent.extras_spec.items()}
  observation = np.full(3, value, np.float32)
  for _ in range(num_steps):
    rows.add(1, dm_env.transition(reward=value, observation=observation), extras)


def _first() -> dm_env.TimeStep:
  return dm_env.restart(np.zeros(3, np.float32))


class _Actor:
  """An actor's process with one environment."""

  def __init__(self, shard: Any, wait: Any):
    client = memory_shard.MemoryClient(_Process(shard, wait))
    self.inserter = client.inserter("actor 0", 1)
    self.rows = adder.WindowAdder(_agent(), self.inserter.writer(0))

  def act(
    self, value: float, num_steps: int, *, begins: bool = False, num_inserts: int = 1
  ) -> None:
    if begins:
      self.rows.add_first(_first())
    _act(self.rows, value, num_steps)
    self.inserter.send(num_inserts)
    assert self.inserter.wait(1.0)


def _rewards(shard: Any, wait: Any) -> np.ndarray:
  """The rewards of a few batches of windows."""
  batches = [wait(shard.sample())[1].rows["reward"] for _ in range(5)]
  return np.concatenate(batches)


def test_half_an_episode_of_a_process_is_never_part_of_another(wait):
  shard = _shard()
  _Actor(shard, wait).act(100.0, 3, begins=True)
  _Actor(shard, wait).act(1.0, 3, begins=True)
  rewards = _rewards(shard, wait)
  assert ((rewards == 1.0).all(axis=1) | (rewards == 100.0).all(axis=1)).all()
  assert set(np.unique(rewards)) == {1.0, 100.0}


def test_a_restarted_shard_takes_no_half_episode(wait):
  actor = _Actor(_shard(), wait)
  actor.act(1.0, 3, begins=True)
  actor.inserter.shard = _Process(shard := _shard(), wait)
  actor.act(2.0, 3)
  actor.act(3.0, 4, begins=True)
  assert (_rewards(shard, wait) == 3.0).all()


def test_actors_wait_for_the_learner_only_where_there_is_a_window(wait):
  shard = _shard(limit=rate_limit.RateLimit(1, 1.0, 1, 2.0))
  actor = _Actor(shard, wait)
  for _ in range(10):
    wait(asyncio.wait_for(shard.insert("actor 0", 1, False, [], 1), 0.1))
  actor.act(1.0, 3, begins=True, num_inserts=0)
  with pytest.raises(asyncio.TimeoutError):
    wait(asyncio.wait_for(shard.insert("actor 0", 1, False, [], 1), 0.1))
  wait(shard.sample())
  wait(asyncio.wait_for(shard.insert("actor 0", 1, False, [], 1), 0.1))


def test_learner_counts_and_replay_come_back_from_a_checkpoint(wait, tmp_path):
  agent = _agent()
  directory = tmp_path / "checkpoints"
  config = config_lib.RunConfig(
    agent="dqn",
    env="bsuite:catch/0",
    runner="distributed",
    replay="memory",
    replay_shards=2,
  )
  run = _Run("run", config, LIMIT, directory)
  assert checkpoints.newest(run, 0) is None
  shards = [_shard(), _shard(shard=1)]
  actor = _Actor(shards[0], wait)
  actor.act(1.0, 1, begins=True)
  for _ in range(7):
    actor.act(1.0, 1)
    wait(shards[0].sample())
  learner = jax.device_get(agent.learner.init(jax.random.PRNGKey(3)))
  state = messages.LearnerState(learner, 12, {"loss": 0.5})
  counts = messages.Counts(env_steps=30, episodes=6, starts={"learner": 1})
  processes = [_Process(shard, wait) for shard in shards]
  to = checkpoint.Checkpointer(directory, with_replay=True)
  checkpoints.save(to, run, counts, state, processes)

  found = checkpoints.newest(run, 1)
  assert found is not None and found.record["env_steps"] == 30
  kept = checkpoints.counts(found)
  assert (kept.env_steps, kept.updates, kept.metrics) == (30, 12, {"loss": 0.5})
  assert kept.starts == counts.starts
  start = checkpoints.learner(found, agent)
  jax.tree.map(np.testing.assert_array_equal, start, state)
  assert checkpoints.shard(found, CONFIG, 0) is None  # Of one shard.
  other = _shard(directory=directory, config=config)
  for _ in range(3):  # Its limiter has its minimum again.
    jax.tree.map(
      np.testing.assert_array_equal, wait(other.sample()), wait(shards[0].sample())
    )


@pytest.mark.reverb
def test_rows_in_chunks_reach_reverb_and_windows_cross_no_episode():
  import reverb

  from explorax.agents.replay import reverb as reverb_replay
  from explorax.experiments.runners.distributed import reverb_shard

  agent = _agent()
  server = reverb.Server([reverb_replay.make_table(agent)])
  server_client = reverb.Client(f"localhost:{server.port}")
  client = reverb_shard.ReverbClient(agent, f"localhost:{server.port}")
  inserter = client.inserter("actor 0", 1)
  rows = adder.WindowAdder(agent, inserter.writer(0))
  rows.add_first(_first())

  def num_stored():
    return server_client.server_info()[reverb_replay.TABLE].current_size

  _act(rows, 0.0, 2)
  assert num_stored() == 0  # The chunk has room for more.
  for value in (0.0, 1.0, 2.0):  # The first episode resumes.
    if value:
      rows.add_first(_first())  # The episode before is broken off.
    _act(rows, value, 3)
  inserter.send(0)
  inserter.wait(1.0)
  until = time.monotonic() + 20
  while num_stored() < rows.num_windows and time.monotonic() < until:
    time.sleep(0.01)
  assert num_stored() == rows.num_windows > 0
  batches = reverb_replay.ReverbClient(agent, f"localhost:{server.port}").batches()
  rewards = np.concatenate([next(batches)[1].rows["reward"] for _ in range(10)])
  assert set(np.unique(rewards)) == {0.0, 1.0, 2.0}
  assert (rewards == rewards[:, :1]).all()  # No window crosses two episodes.
  server.stop()
