"""What a distributed run puts into checkpoints comes out of them again."""

import sys
import types as types_lib
from typing import Any

import dm_env
import jax
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.dqn import agent as dqn_agent
from explorax.agents.dqn import config as dqn_config
from explorax.agents.wiring import adder
from explorax.environments import factory, standard, testing
from explorax.experiments.checkpoints import keeper
from explorax.experiments.distributed import archive, messages, replay_server


class _Local:
  """A Ray actor that is none: what its methods return is there at once."""

  def __init__(self, process: Any):
    self._process = process

  def __getattr__(self, name: str) -> Any:
    return types_lib.SimpleNamespace(remote=getattr(self._process, name))


@pytest.fixture(autouse=True)
def no_ray(monkeypatch):
  ray: Any = types_lib.ModuleType("ray")
  ray.get = lambda reference: reference
  ray.exceptions = types_lib.SimpleNamespace(RayActorError=RuntimeError)
  monkeypatch.setitem(sys.modules, "ray", ray)


def _agent() -> types.Agent:
  environment = standard.StandardEnvironment(testing.FakeEnvironment())
  config = dqn_config.DQNConfig(
    replay_capacity=40, min_replay_size=10, batch_size=8, hidden_sizes=(4,)
  )
  return dqn_agent.make_agent(config, factory.spec(environment))


def _writer(agent: types.Agent, server: Any, generation: int) -> tuple[Any, Any]:
  writer = replay_server.MemoryClient(_Local(server), "actor 0", generation).writer()
  return adder.WindowAdder(agent, writer), writer


def _step(agent: types.Agent, rows: adder.WindowAdder, value: float) -> None:
  extras = {name: np.zeros(s.shape, s.dtype) for name, s in agent.extras_spec.items()}
  observation = np.full(3, value, np.float32)
  rows.add(1, dm_env.transition(reward=value, observation=observation), extras)


def _first(value: float) -> dm_env.TimeStep:
  return dm_env.restart(np.full(3, value, np.float32))


def _keeper(path: Any) -> keeper.Keeper:
  return keeper.Keeper(path / "checkpoints", "this", with_replay=True)


STATE = {
  "rates": {
    "env_steps": 30,
    "updates": 9,
    "windows": [7, 0],
    "start": 10,
    "emptied_at": 0,
    "base": 0,
  },
  "seconds": 4.0,
  "episodes": 6,
  "evaluated_at": 20,
  "totals": {},
  "metrics": {"loss": 0.5},
  "reports": [3],
  "generations": [1],
  "servers": [2, 0],
}


def test_learner_counts_and_both_shards_come_back(tmp_path):
  agent = _agent()
  servers = [replay_server.MemoryServer(agent, seed=i) for i in range(2)]
  rows, writer = _writer(agent, servers[0], 0)
  rows.add_first(_first(0.0))
  for step in range(8):
    _step(agent, rows, float(step))
  writer.flush()
  learner = agent.learner.init(jax.random.PRNGKey(3))
  saved = messages.Saved(12, {"loss": 0.5}, [jax.device_get(learner)])
  kept = archive.Archive(agent, "memory", _keeper(tmp_path))
  assert kept.save(STATE, saved, [_Local(s) for s in servers], complete=False)

  again = archive.Archive(agent, "memory", _keeper(tmp_path))
  found = again.first()
  assert found is not None and found.record["env_steps"] == 30
  start = again.learner(found)
  assert (start.updates, start.metrics) == (12, {"loss": 0.5})
  for new, old in zip(
    jax.tree.leaves(start.state), jax.tree.leaves(learner), strict=True
  ):
    np.testing.assert_array_equal(new, old)
  assert again.windows(found, 2) == [7, 0] and again.windows(found, 3) == [0, 0, 0]
  other = replay_server.MemoryServer(agent, seed=9, kept=again.shard(found, 0))
  for _ in range(3):
    (keys, sample), (old_keys, old_sample) = other.sample(), servers[0].sample()
    np.testing.assert_array_equal(keys, old_keys)
    jax.tree.map(np.testing.assert_array_equal, sample, old_sample)
  # The open episode is nobody's any more: windows alone hold its rows.
  number = agent.replay.window_rows
  assert sum(servers[0]._replay._holders) - sum(other._replay._holders) == number


def test_what_a_new_run_makes_of_the_counts():
  filled = messages.resumed(STATE, 3, [7, 0])
  assert filled["rates"] == {**STATE["rates"], "windows": [7, 0]}
  assert (filled["reports"], filled["generations"]) == ([-1] * 3, [0] * 3)
  empty = messages.resumed(STATE, 1, [0])
  assert empty["rates"]["start"] is None and empty["rates"]["emptied_at"] == 30
  assert empty["rates"]["base"] == 9 and empty["episodes"] == 6


def test_half_an_episode_of_a_dead_actor_is_never_part_of_another():
  agent = _agent()
  server = replay_server.MemoryServer(agent, seed=0)
  dead, dead_writer = _writer(agent, server, 0)
  dead.add_first(_first(100.0))
  for _ in range(3):
    _step(agent, dead, 100.0)
  dead_writer.flush()
  rows, writer = _writer(agent, server, 1)
  rows.add_first(_first(1.0))
  for _ in range(3):
    _step(agent, rows, 1.0)
  writer.flush()
  _step(agent, dead, 100.0)  # Told late: nothing is taken from it any more.
  windows = server._replay.num_windows
  dead_writer.flush()
  assert server._replay.num_windows == windows
  for _ in range(20):
    _, sample = server.sample()
    rewards = sample.rows["reward"]
    assert ((rewards == 1.0).all(axis=1) | (rewards == 100.0).all(axis=1)).all()
