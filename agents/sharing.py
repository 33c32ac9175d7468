"""Equal agents are one agent, so that a process compiles their functions once.

JAX compiles a function once for as long as it is the same object. The functions of an
agent are closures; tasks of a sweep that differ in their seed alone, and the tests,
make the same agent again and again, and get the same closures here.
"""

import dataclasses
import functools
import pickle
from collections.abc import Callable
from typing import Any

from explorax.agents import types

# How many agents a process keeps, those least recently made being dropped first.
_MAX_AGENTS = 16

Make = Callable[[Any, types.EnvironmentSpec], types.Agent]


def shared(make_agent: Make) -> Make:
  """Makes `(config, spec) → Agent` return the same agent for equal arguments.

  They are equal if they pickle alike: 1 and 1.0 differ, which compare equal. What
  cannot be pickled makes an agent of its own. `make_agent.cache_clear()` forgets them.
  """

  @functools.lru_cache(_MAX_AGENTS)
  def made(pickled: bytes) -> types.Agent:
    return _with_one_core_each(make_agent(*pickle.loads(pickled)))

  @functools.wraps(make_agent)
  def make(config: Any, spec: types.EnvironmentSpec) -> types.Agent:
    try:
      pickled = pickle.dumps((config, spec))
    except (pickle.PicklingError, AttributeError, TypeError):
      return make_agent(config, spec)
    return made(pickled)

  make.cache_clear = made.cache_clear  # type: ignore[attr-defined]
  return make


def _with_one_core_each(agent: types.Agent) -> types.Agent:
  """The agent, whose `actor` makes each of its two cores once.

  Not by `functools.cache`, which cannot be sent to other processes.
  """
  cores: dict[bool, types.ActorCore] = {}

  def actor(evaluation: bool = False) -> types.ActorCore:
    if evaluation not in cores:
      cores[evaluation] = agent.actor(evaluation=evaluation)
    return cores[evaluation]

  return dataclasses.replace(agent, actor=actor)
