"""A process compiles an agent's functions once, however often the agent is made."""

import contextlib
import dataclasses
from collections.abc import Iterator

import dm_env
import jax
import numpy as np
import pytest

from explorax import environments, exploration
from explorax.agents import types
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.environments import specs
from explorax.experiments import config as config_lib
from explorax.experiments.runners import device, local

CONFIG = q_config.QConfig(
  hidden_sizes=(3,), batch_size=4, min_replay_size=6, replay_capacity=50
)
SPEC = specs.EnvironmentSpec(
  dm_env.specs.Array((4,), np.float32), dm_env.specs.DiscreteArray(3)
)
_TRACING = "/jax/core/compile/jaxpr_trace_duration"


@contextlib.contextmanager
def traced() -> Iterator[list[str]]:
  """A list that gets an entry for each function that JAX traces."""
  events: list[str] = []
  is_open = True

  def listen(event: str, seconds: float, **_: object) -> None:
    if is_open and event == _TRACING:
      events.append(event)

  jax.monitoring.register_event_duration_secs_listener(listen)
  yield events
  is_open = False


def run(runner: str, seed: int) -> None:
  """A run from scratch, with an evaluation."""
  environment, other = (environments.make("jax:deep_sea/4", seed=i) for i in range(2))
  # What a command line gives is equal, and not the same.
  config = dataclasses.replace(CONFIG)
  agent = q_agent.make_agent(config, environments.spec(environment))
  settings = {"seed": seed, "runner": runner, "steps": 120}
  if runner == "local":
    settings["replay"] = "memory"
  train = {"local": local.run, "device": device.run}[runner]
  train(
    agent, environment, config_lib.RunConfig(**settings), evaluation_environment=other
  )


@pytest.mark.parametrize("runner", ["local", "device"])
def test_a_second_run_of_an_agent_traces_nothing(runner):
  with traced() as first:
    run(runner, seed=1)
  with traced() as second:
    run(runner, seed=2)
  assert len(first) > 3 and not second


def make(spec: types.EnvironmentSpec = SPEC, **changes) -> types.Agent:
  return q_agent.make_agent(dataclasses.replace(CONFIG, **changes), spec)


def test_equal_settings_and_specs_make_the_same_agent():
  agent = make()
  again = specs.EnvironmentSpec(
    dm_env.specs.Array((4,), np.float32), dm_env.specs.DiscreteArray(3)
  )
  assert make(again) is agent and agent.config == CONFIG
  assert agent.actor() is agent.actor(evaluation=False)
  assert agent.actor(evaluation=True) is agent.actor(True) is not agent.actor()


class Rule(exploration.EpsilonGreedy):
  """Another rule of the same fields."""


@pytest.mark.parametrize(
  "other",
  [
    {"batch_size": 5},
    {"exploration": Rule(CONFIG.exploration.epsilon)},
    # Equal by the rules of dm_env's specs, and encoded otherwise.
    {"spec": SPEC._replace(observations=specs.OneHotArray((4,)))},
  ],
)
def test_what_differs_makes_another_agent(other):
  assert make(**other) is not make()


def test_an_agent_is_sent_to_other_processes_after_its_cores_were_made():
  cloudpickle = pytest.importorskip("cloudpickle")  # What Ray uses.

  agent = q_agent.make_agent(CONFIG, SPEC)
  agent.actor()
  assert cloudpickle.loads(cloudpickle.dumps(agent)).actor().init is not None
