"""Which weights an actor of Never Give Up holds, and when it takes new ones."""

import dataclasses
from typing import Any

import dm_env
import jax
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.bonuses import ngu, ngu_training
from explorax.agents.q import agent as q_agent
from explorax.agents.q import values
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import specs
from explorax.experiments.presets import r2d2 as r2d2_presets

SPEC = specs.EnvironmentSpec(
  dm_env.specs.Array((2,), np.float32), dm_env.specs.DiscreteArray(3)
)


class Variables:
  """A learner's weights, each of which is the number of fetches so far."""

  def __init__(self):
    self.num_fetches = 0

  def get_variables(self, names: list[str]) -> list[Any]:
    assert names == ["params"]
    self.num_fetches += 1
    n = np.float32(self.num_fetches)
    return [values.Weights(n, n, ngu_training.Weights(n, n, n))]


def telling_core() -> types.ActorCore:
  """Its extras are the weights that it acted with."""

  def select_action(params, timestep, state):
    bonus = params.weights.bonus
    told = {
      "policy": np.int32(0),
      "q": params.weights.params,
      "f": bonus.embedding,
      "predictor": bonus.predictor,
    }
    return np.int32(0), told

  zero = np.float32(0)
  start = {"policy": np.int32(0), "q": zero, "f": zero, "predictor": zero}
  return types.ActorCore(lambda *args: start, select_action, lambda state: state)


@pytest.fixture(scope="module")
def agent() -> types.Agent:
  config = dataclasses.replace(
    r2d2_presets.ATARI,
    hidden_sizes=(2,),
    lstm_size=2,
    head_size=2,
    bonus=ngu.NeverGiveUp(hidden_sizes=(2,), memory_capacity=9),
    beta=0.3,
    actor_update_period=2,
  )
  return q_agent.make_agent(config, SPEC)


def play(actor, num_steps):
  """An episode as Acme's loop has it; (q, f, predictor) of all actions, LAST too."""
  told = []
  actor.observe_first(dm_env.restart(np.zeros(2)))
  for step in range(num_steps):
    action = actor.select_action(None)
    told.append(tuple(int(actor.extras[0][name]) for name in ("q", "f", "predictor")))
    ends = dm_env.termination if step == num_steps - 1 else dm_env.transition
    actor.observe(action, ends(0.0, np.zeros(2)))
    if step == num_steps - 1:
      told.append(tuple(int(actor.extras[0][name]) for name in ("q", "f", "predictor")))
    actor.update()
  return told


def make_actor(agent):
  return actor_lib.Actor(agent, telling_core(), Variables(), jax.random.PRNGKey(0))


def test_the_embedding_changes_only_between_episodes(agent):
  actor = make_actor(agent)
  # Fetched for the first observation, after steps 2 and 4.
  assert play(actor, 5) == [
    (1, 1, 1),
    (1, 1, 1),
    (2, 1, 2),
    (2, 1, 2),
    (3, 1, 3),
    (3, 1, 3),
  ]
  # At an episode's start, whenever the last fetch was; then after steps 6 and 8.
  assert play(actor, 3) == [(4, 4, 4), (5, 4, 5), (5, 4, 5), (5, 4, 5)]
  # Step 8 was the last one, and its fetch is followed by the episode's own.
  assert play(actor, 1) == [(7, 7, 7), (7, 7, 7)]


def test_other_agents_fetch_no_weights_at_an_episodes_start(agent):
  actor = make_actor(dataclasses.replace(agent, refresh=None))
  assert play(actor, 3) == [(1, 1, 1), (1, 1, 1), (2, 2, 2), (2, 2, 2)]
  assert play(actor, 1) == [(2, 2, 2), (2, 2, 2)]
