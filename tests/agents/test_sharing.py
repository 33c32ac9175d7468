"""Equal settings make the same agent, whose programs are then compiled once."""

import dataclasses

import dm_env
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.environments import specs

CONFIG = q_config.QConfig(
  hidden_sizes=(3,), batch_size=4, min_replay_size=6, replay_capacity=50
)
SPEC = specs.EnvironmentSpec(
  dm_env.specs.Array((4,), np.float32), dm_env.specs.DiscreteArray(3)
)


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
