"""An agent that is small enough to be trained in many tests, by the local runner."""

import dataclasses
import types as types_lib
from collections.abc import Callable
from typing import Any

import dm_env
import jax
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import memory as memory_replay
from explorax.agents.replay import packing
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import factory, standard
from explorax.experiments import config as config_lib
from explorax.experiments.runners import common, local


def _train(
  environment: dm_env.Environment,
  *,
  seed: int = 0,
  replay: str = "memory",
  episodes: int | None = 4,
  change_agent: Callable[[types.Agent], types.Agent] = lambda agent: agent,
  dqn: dict[str, Any] | None = None,
  evaluation_environment: dm_env.Environment | None = None,
  **of_runner: Any,
) -> common.Result:
  """Runs a small DQN with the settings `dqn`, which learns with a `min_replay_size`.

  What is left over goes to the hooks, or to the run's config.
  """
  environment = standard.StandardEnvironment(environment)
  if evaluation_environment is None:
    of_runner.setdefault("eval_episodes", 0)
  else:
    evaluation_environment = standard.StandardEnvironment(evaluation_environment)
  spec = factory.spec(environment)
  sizes = {"replay_capacity": 40, "min_replay_size": 40, "batch_size": 4}
  settings: dict[str, Any] = {"hidden_sizes": (4,), **sizes, **(dqn or {})}
  agent = q_agent.make_agent(q_config.QConfig(**settings), spec)
  names = {field.name for field in dataclasses.fields(common.Hooks)}
  hooks = {name: of_runner.pop(name) for name in names & set(of_runner)}
  (result,) = local.run(
    change_agent(agent),
    environment,
    config_lib.RunConfig(seed=seed, replay=replay, episodes=episodes, **of_runner),
    common.Hooks(**hooks),
    evaluation_environment=evaluation_environment,
  )
  return result


@pytest.fixture
def train():
  return _train


@pytest.fixture
def bits():
  """Turns a tree of arrays into something that compares to the bit."""
  return lambda tree: [leaf.tobytes() for leaf in jax.tree.leaves(tree)]


@pytest.fixture
def act_locally():
  """Acts with Acme's actor and adder: (the replay that they fill, the actions)."""

  def act(agent, weights, key, environment, num_steps, **of_actor):
    memory, actions = memory_replay.MemoryReplay(agent, seed=0), []
    actor = actor_lib.Actor(
      agent,
      agent.actor(),
      types_lib.SimpleNamespace(get_variables=lambda names: [weights]),
      key,
      [adder_lib.WindowAdder(agent, memory.writer())],
      **of_actor,
    )
    timestep = None
    for _ in range(num_steps):
      if timestep is None or timestep.last():
        timestep = environment.reset()
        actor.observe_first(timestep)
      actions.append(actor.select_action(timestep.observation))
      timestep = environment.step(actions[-1])
      actor.observe(actions[-1], timestep)
    assert memory.num_rows > num_steps  # With the last rows of episodes.
    return memory, actions

  return act


@pytest.fixture
def same_rows():
  """Compares one environment's replay on the device with a replay in memory."""

  def check(replay, env: int, memory: memory_replay.MemoryReplay) -> None:
    num_rows = int(replay.num_rows[env])
    assert num_rows == memory.num_rows
    assert int(replay.num_windows[env]) == memory.num_windows
    rows = jax.tree.map(lambda words: np.asarray(words)[env, :num_rows], replay.rows)
    layouts, _ = packing.layouts(memory._agent)
    for name, column in packing.Rows(layouts, memory.save()[0]["words"]).items():
      np.testing.assert_allclose(
        rows[name], column[1 : num_rows + 1], rtol=1e-4, atol=1e-5, err_msg=name
      )

  return check
