"""Loops over episodes: with replay, or with an actor."""

import time
from collections.abc import Callable
from typing import Any

import bench
import dm_env
import numpy as np

from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.agents.wiring import builder as builder_lib


class Loop:
  """Makes a given number of environment steps, over as many episodes as needed."""

  def __init__(
    self,
    environment: dm_env.Environment,
    begin: Callable[[dm_env.TimeStep], None],
    select: Callable[[dm_env.TimeStep], Any],
    observe: Callable[[Any, dm_env.TimeStep], None],
  ):
    self._environment = environment
    self._begin = begin
    self._select = select
    self._observe = observe
    self._timestep: dm_env.TimeStep | None = None

  def run(self, num_steps: int) -> float:
    """Makes `num_steps` environment steps; returns steps per second, with resets."""
    start = time.perf_counter()
    for _ in range(num_steps):
      if self._timestep is None or self._timestep.last():
        self._timestep = self._environment.reset()
        self._begin(self._timestep)
      action = self._select(self._timestep)
      self._timestep = self._environment.step(action)
      self._observe(action, self._timestep)
    return num_steps / (time.perf_counter() - start)


def growth_of_replay(
  environment: dm_env.Environment,
  agent: types.Agent,
  replay: str,
  steps: int,
  warm_up: int,
) -> float:
  """Bytes by which this process grows per step in replay.

  Actions are random. The `warm_up` steps are inserted first and not counted.
  """
  rng = np.random.default_rng(0)
  store = builder_lib.Builder(agent).make_replay_tables(replay, seed=0)
  writer = store.writer()
  loop = inserting(environment, agent, adder_lib.WindowAdder(agent, writer), rng)
  loop.run(warm_up)
  before = bench.status_mib("VmRSS")
  loop.run(steps)
  if replay == "reverb":
    writer.flush()
  grown = bench.status_mib("VmRSS") - before
  store.close()
  return grown * 2**20 / steps


def inserting(
  environment: dm_env.Environment,
  agent: types.Agent,
  adder: adder_lib.WindowAdder,
  rng: np.random.Generator,
) -> Loop:
  """Random actions, whose transitions are inserted into replay without extras."""

  def encoded(timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    return timestep._replace(observation=agent.encoding(timestep.observation))

  def observe(action: Any, timestep: dm_env.TimeStep) -> None:
    adder.add(action, encoded(timestep), {})
    if timestep.last():
      adder.add_last({})

  return Loop(
    environment,
    lambda timestep: adder.add_first(encoded(timestep)),
    lambda _: rng.integers(agent.spec.actions.num_values),
    observe,
  )
