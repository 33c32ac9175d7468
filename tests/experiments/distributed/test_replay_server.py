"""Shards of replay, without Ray: which is sampled, and what each holds."""

from collections.abc import Iterator
from typing import Any

import dm_env
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.dqn import agent as dqn_agent
from explorax.agents.dqn import config as dqn_config
from explorax.agents.wiring import adder
from explorax.environments import factory, standard, testing
from explorax.experiments.distributed import replay_server


class _Client:
  """Says which shard its batches come from, and keeps what comes back."""

  def __init__(self, number: int):
    self._number = number
    self.updates: list[Any] = []

  def writer(self) -> Any:
    raise AssertionError("the learner does not write.")

  def batches(self) -> Iterator[Any]:
    while True:
      yield np.array([self._number]), None

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None:
    self.updates.append((keys.tolist(), priorities.tolist()))


def test_batches_come_from_filled_shards_in_turn_and_priorities_go_back():
  clients = [_Client(number) for number in range(3)]
  shards = replay_server.Shards(clients)
  shards.filled = (True, False, False)
  drawn = []
  for step in range(7):
    if step == 2:
      shards.filled = (True, False, True)
    if step == 4:
      shards.filled = (True, True, True)
    keys, _ = next(shards)
    shards.update_priorities(keys, np.array([float(step)]))
    drawn.append(int(keys[0]))
  assert drawn == [0, 0, 2, 0, 1, 2, 0]
  assert clients[2].updates == [([2], [2.0]), ([2], [5.0])]
  assert clients[1].updates == [([1], [4.0])]


class _Lost(_Client):
  """One whose server has died."""

  def batches(self) -> Iterator[Any]:
    raise replay_server.LostError
    yield


def test_a_shard_that_is_lost_is_named_and_left_out_until_it_is_filled_again():
  shards = replay_server.Shards([_Client(0), _Lost(1)])
  with pytest.raises(replay_server.LostError) as lost:
    next(shards)
  assert lost.value.shard is None  # None is filled.
  shards.filled = (True, True)
  assert int(next(shards)[0][0]) == 0
  with pytest.raises(replay_server.LostError) as lost:
    next(shards)
  assert lost.value.shard == 1
  shards.replace(1, _Client(7))
  assert [int(next(shards)[0][0]) for _ in range(2)] == [0, 0]
  shards.filled = (True, True)
  assert sorted(int(next(shards)[0][0]) for _ in range(2)) == [0, 7]


def _agent() -> types.Agent:
  environment = standard.StandardEnvironment(testing.FakeEnvironment())
  config = dqn_config.DQNConfig(replay_capacity=1000, min_replay_size=600, batch_size=8)
  return dqn_agent.make_agent(config, factory.spec(environment))


def test_a_shard_has_its_part_of_the_capacity():
  agent = _agent()
  part = replay_server.of_shard(agent, 3)
  assert part.replay.capacity == 334 and part.replay.min_size == 334
  assert replay_server.of_shard(agent, 1).replay == agent.replay


@pytest.mark.reverb
def test_clients_of_a_reverb_server_share_its_windows():
  """One writes, as an actor does; another samples, as the learner does."""
  from explorax.agents.wiring import reverb_replay

  agent = _agent()
  server = reverb_replay.ReverbReplay(agent, [reverb_replay.make_table(agent)])
  actor, learner = (
    reverb_replay.ReverbClient(agent, f"localhost:{server.port}") for _ in range(2)
  )
  writer = actor.writer()
  rows = adder.WindowAdder(agent, writer)
  rows.add_first(dm_env.restart(np.full(3, 7.0, np.float32)))
  end = dm_env.termination(reward=2.0, observation=np.zeros(3, np.float32))
  extras = {name: np.zeros(s.shape, s.dtype) for name, s in agent.extras_spec.items()}
  rows.add(1, end, extras)
  rows.add_last(extras)
  writer.flush()
  _, sample = next(learner.batches())
  np.testing.assert_array_equal(sample.rows["observation"][:, 0], np.full((8, 3), 7.0))
  np.testing.assert_array_equal(sample.rows["reward"][:, 0], np.full(8, 2.0))
  assert int(sample.population) == 1
  actor.close()
  server.close()
