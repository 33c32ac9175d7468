"""Shards of replay, without Ray: their turns, their writers, and their checkpoints."""

import asyncio
import time
import types as types_lib
from typing import Any

import dm_env
import jax
import numpy as np
import pytest

from explorax.agents.dqn import agent as dqn_agent
from explorax.agents.dqn import config as dqn_config
from explorax.agents.replay import adder
from explorax.environments import factory, standard, testing
from explorax.experiments import config as config_lib
from explorax.experiments.checkpoints import checkpointer
from explorax.experiments.runners.distributed import messages, rate_limit, replay

ray = pytest.importorskip("ray")
LIMIT = rate_limit.RateLimit(1, 1.0, 1, 100.0)


class _Client:
  """Says which shard its batches come from, and keeps what comes back."""

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
    if step == 6:
      clients[1].died = True
    for client, waiting in zip(clients, batches._queues, strict=True):
      while waiting.empty() and not client.died:
        time.sleep(0.001)
    keys, _ = next(batches)
    batches.update_priorities(keys, np.array([float(step)]))
    drawn.append(int(keys[0]))
  assert drawn[:6] == [0, 1, 2, 0, 1, 2]
  # One batch of the shard that died was in its queue, and one may have waited for it.
  assert drawn[6:].count(1) <= 2
  assert [shard for shard in drawn[6:] if shard != 1][:10] == [0, 2] * 5
  assert clients[2].updates[0] == ([2], [2.0])
  clients[1].died = False  # Ray has started another.
  until = time.monotonic() + 20
  while next(batches)[0][0] != 1 and time.monotonic() < until:
    pass
  assert time.monotonic() < until


class _Process:
  """A stand-in for a Ray actor, whose methods return their results at once."""

  def __init__(self, process: Any):
    self._process = process

  def __getattr__(self, name: str) -> Any:
    method = getattr(self._process, name)

    def call(*arguments):
      return asyncio.run(method(*arguments))

    return types_lib.SimpleNamespace(remote=call)


@pytest.fixture
def memory(monkeypatch):
  """The module, and a function that makes a shard which starts from something."""
  from explorax.experiments.runners.distributed import board_client, memory_shard

  monkeypatch.setattr(ray, "get", lambda reference: reference)
  monkeypatch.setattr(ray, "wait", lambda calls, **_: (calls, []))

  def make(saved=None, seed=0, limit=LIMIT):
    monkeypatch.setattr(board_client, "register", lambda run, role: (0, saved))
    return memory_shard.MemoryShard(_agent(), limit, "run", "replay 0", seed)

  return memory_shard, make


def _agent():
  environment = standard.StandardEnvironment(testing.FakeEnvironment())
  config = dqn_config.DQNConfig(
    replay_capacity=40, min_replay_size=10, batch_size=8, hidden_sizes=(4,)
  )
  return dqn_agent.make_agent(config, factory.spec(environment))


def _act(rows: adder.WindowAdder, value: float, num_steps: int) -> None:
  agent = _agent()
  extras = {name: np.zeros(s.shape, s.dtype) for name, s in agent.extras_spec.items()}
  observation = np.full(3, value, np.float32)
  for _ in range(num_steps):
    rows.add(1, dm_env.transition(reward=value, observation=observation), extras)


def _first() -> dm_env.TimeStep:
  return dm_env.restart(np.zeros(3, np.float32))


def _writer(memory_shard, shard, incarnation=0):
  client = memory_shard.MemoryClient(_Process(shard))
  writer = client.writer("actor 0", incarnation)
  return adder.WindowAdder(_agent(), writer), writer


def _begin(rows: adder.WindowAdder, writer: Any, value: float, num_steps: int) -> bool:
  """Begins an episode, acts, and sends; returns whether the writer may continue."""
  rows.add_first(_first())
  _act(rows, value, num_steps)
  return writer.wait(0.0)


def test_half_an_episode_of_a_process_is_never_part_of_another(memory):
  memory_shard, make = memory
  shard = make()
  dead, dead_writer = _writer(memory_shard, shard)
  assert _begin(dead, dead_writer, 100.0, 3)
  rows, writer = _writer(memory_shard, shard, incarnation=1)
  _begin(rows, writer, 1.0, 3)
  _act(dead, 100.0, 1)  # Told late: nothing is taken from it any more.
  windows = shard._replay.num_windows
  dead_writer.wait(0.0)
  assert shard._replay.num_windows == windows
  for _ in range(20):
    rewards = shard._replay.sample()[1].rows["reward"]
    assert ((rewards == 1.0).all(axis=1) | (rewards == 100.0).all(axis=1)).all()


def test_another_shard_takes_no_half_episode(memory):
  memory_shard, make = memory
  rows, writer = _writer(memory_shard, make())
  _begin(rows, writer, 1.0, 3)
  writer._shard = _Process(shard := make())  # Ray has started it again.
  _act(rows, 2.0, 3)
  writer.wait(0.0)
  assert shard._replay.num_windows == 0
  _begin(rows, writer, 3.0, 4)
  rewards = shard._replay.sample()[1].rows["reward"]
  assert (rewards == 3.0).all()


def test_actors_wait_for_the_learner_only_where_there_is_a_window(memory):
  memory_shard, make = memory
  rows, writer = _writer(memory_shard, make())
  _begin(rows, writer, 1.0, 3)
  shard = make(limit=rate_limit.RateLimit(1, 1.0, 1, 2.0))
  writer._shard = _Process(shard)  # Drops the episode under way.

  async def insert():
    await asyncio.wait_for(shard.insert(), 0.1)

  for _ in range(10):
    _act(rows, 1.0, 1)
    writer.wait(0.0)
    asyncio.run(insert())
  _begin(rows, writer, 1.0, 3)
  with pytest.raises(asyncio.TimeoutError):
    asyncio.run(insert())
  asyncio.run(shard.sample())
  asyncio.run(insert())


def test_learner_counts_and_replay_come_back_from_a_checkpoint(memory, tmp_path):
  from explorax.experiments.runners.distributed import board, checkpoints

  memory_shard, make = memory
  agent = _agent()
  shards = [make(seed=i) for i in range(2)]
  rows, writer = _writer(memory_shard, shards[0])
  _begin(rows, writer, 1.0, 8)
  for _ in range(8):
    asyncio.run(shards[0].insert())
    asyncio.run(shards[0].sample())
  learner = agent.learner.init(jax.random.PRNGKey(3))
  state = messages.LearnerState(12, {"loss": 0.5}, [jax.device_get(learner)])
  counts = {**board.beginning(None).counts, "env_steps": 30, "episodes": 6}

  def make_checkpointer():
    return checkpoints.Checkpoints(
      agent,
      "memory",
      checkpointer.Checkpointer(tmp_path / "kept", "this", with_replay=True),
      LIMIT,
    )

  processes = [_Process(shard) for shard in shards]
  make_checkpointer().save(counts, state, processes, list, complete=False)
  again = make_checkpointer()
  found = again.checkpointer.found
  assert found is not None and found.record["env_steps"] == 30
  kept = board.beginning(found.record["counts"]["board"]).counts
  assert kept == {**counts, "updates": 12, "metrics": {"loss": 0.5}}
  start = again.learner(found)
  assert (start.updates, start.metrics) == (12, {"loss": 0.5})
  jax.tree.map(np.testing.assert_array_equal, start.state, jax.device_get(learner))
  assert again.shard(found, 0, num_shards=3) is None
  limit = rate_limit.RateLimit(2, 2.0, 5, 100.0)
  # Reverb's own checkpoint holds its limiter.
  for backend, num_shards, expected in (
    ("reverb", 2, LIMIT),
    ("reverb", 3, limit),
    ("memory", 2, limit),
  ):
    assert checkpoints.limit(found, backend, limit, num_shards) == expected
  # The limit may be another one: learning waits for the rest of its minimum.
  for min_inserts, inserts in ((2, 2), (5, 4)):
    limit = rate_limit.RateLimit(2, 2.0, min_inserts, 100.0)
    other = make(again.shard(found, 0, num_shards=2), seed=9, limit=limit)
    assert (other._limiter.inserts, other._limiter.samples) == (inserts, 0)
  for _ in range(3):
    ours, theirs = other._replay.sample(), shards[0]._replay.sample()
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
  # No writer holds rows of the open episode any more; windows alone do.
  held = sum(shards[0]._replay._holders) - sum(other._replay._holders)
  assert held == agent.replay.window_rows


def test_the_learner_has_registered_before_anything_can_kill_it(monkeypatch):
  from explorax.experiments.runners.distributed import board_client, learner

  done = []
  monkeypatch.setattr(
    board_client, "BoardClient", lambda *_, **__: done.append("registered")
  )
  monkeypatch.setattr(messages, "handle", lambda *_: done.append("connects") or 1 / 0)
  config = config_lib.RunConfig(agent="dqn", env="bsuite:catch/0")
  with pytest.raises(ZeroDivisionError):
    learner.LearnerProcess(_agent(), config, jax.random.PRNGKey(0), "run")
  assert done == ["registered", "connects"]


def test_a_checkpoint_does_not_wait_for_a_shard_that_waits_for_the_driver(monkeypatch):
  from explorax.experiments.runners.distributed import board, driver

  served = board.Board(["replay 0"], None, None)
  asyncio.run(served.resume(board.beginning(None)))
  waiting = object.__new__(driver._Driver)
  waiting._ray, waiting._board = ray, _Process(served)
  turns = iter([["a", "b"], ["b"], []])  # The calls without an answer.
  monkeypatch.setattr(ray, "wait", lambda calls, **_: ([], next(turns)))
  monkeypatch.setattr(ray, "get", lambda reference: reference)
  assert waiting._gather(["a", "b"]) == ["a", "b"]

  monkeypatch.setattr(served, "needs_driver", lambda: asyncio.sleep(0, True))
  monkeypatch.setattr(ray, "wait", lambda calls, **_: ([], calls))
  with pytest.raises(ray.exceptions.RayError, match="a process has died"):
    waiting._gather(["a", "b"])


@pytest.mark.reverb
def test_rows_in_chunks_reach_reverb_and_windows_cross_no_episode():
  import reverb

  from explorax.agents.replay import reverb as reverb_replay
  from explorax.experiments.runners.distributed import reverb_shard

  agent = _agent()
  server = reverb.Server([reverb_replay.make_table(agent)])
  client = reverb_shard.ReverbClient(agent, f"localhost:{server.port}")
  writer = client.writer("actor 0", 0)
  rows = adder.WindowAdder(agent, writer)
  rows.add_first(_first())

  def num_stored():
    return client._client.server_info()[reverb_replay.TABLE].current_size

  _act(rows, 0.0, 2)
  assert num_stored() == 0  # The chunk has room for more.
  for value in (0.0, 1.0, 2.0):  # The first episode resumes.
    if value:
      rows.add_first(_first())  # The episode before is broken off.
    _act(rows, value, 3)
  writer.wait(1.0)
  until = time.monotonic() + 20
  while num_stored() < rows.num_windows and time.monotonic() < until:
    time.sleep(0.01)
  assert num_stored() == rows.num_windows > 0
  batches = client._windows.batches()
  rewards = np.concatenate([next(batches)[1].rows["reward"] for _ in range(10)])
  assert set(np.unique(rewards)) == {0.0, 1.0, 2.0}
  assert (rewards == rewards[:, :1]).all()  # No window crosses two episodes.
  server.stop()


@pytest.mark.reverb
def test_actors_wait_for_the_learner_only_where_reverb_has_a_window():
  import reverb

  from explorax.agents.replay import reverb as reverb_replay
  from explorax.experiments.runners.distributed import reverb_shard

  agent = _agent()
  limit = rate_limit.RateLimit(1, 1.0, 1, 2.0)
  tables = [reverb_replay.make_table(agent), reverb_shard._steps_table(limit)]
  server = reverb.Server(tables)
  client = reverb_shard.ReverbClient(agent, f"localhost:{server.port}")
  limiter = client.limiter()
  for _ in range(10):
    limiter.insert()
    assert limiter.wait(0.1)
  writer = client.writer("actor 0", 0)
  rows = adder.WindowAdder(agent, writer)
  rows.add_first(_first())
  _act(rows, 1.0, 4)
  while (
    not writer.wait(0.1) or not client._client.server_info()["windows"].current_size
  ):
    pass
  limiter.insert()
  assert not limiter.wait(0.1)
  batches = client.batches()
  for _ in range(10):  # The learner catches up.
    next(batches)
  assert limiter.wait(20.0)
  server.stop()
