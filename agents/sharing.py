"""Makes equal agents identical, so that a process compiles their functions once.

JAX's compilation cache compares functions by identity, and an agent's functions are
closures. Tasks of a sweep that differ only in their seed, and tests, make the same
agent repeatedly; here they get the same closures.
"""

import dataclasses
import functools
import io
import pickle
import types as pytypes
from collections.abc import Callable
from typing import Any

from explorax.agents import types

# The number of agents that a process keeps; the least recently made are dropped.
_MAX_AGENTS = 16

Make = Callable[[Any, types.EnvironmentSpec], types.Agent]


def shared(make_agent: Make) -> Make:
  """Makes `(config, spec) → Agent` return the same agent for equal arguments.

  Arguments are equal if their pickles, and the classes and functions in them, are
  equal: 1 and 1.0 differ, and so do values of a class that was redefined in a notebook.
  Arguments that cannot be pickled always make a new agent. `make_agent.cache_clear()`
  drops all of them.
  """

  @functools.lru_cache(_MAX_AGENTS)
  def made(arguments: _Arguments) -> types.Agent:
    return _with_one_core_each(make_agent(arguments.config, arguments.spec))

  @functools.wraps(make_agent)
  def make(config: Any, spec: types.EnvironmentSpec) -> types.Agent:
    try:
      key = _key((config, spec))
    except Exception:  # Pickling a user's object may raise anything.
      return make_agent(config, spec)
    return made(_Arguments(key, config, spec))

  make.cache_clear = made.cache_clear  # type: ignore[attr-defined]
  return make


@dataclasses.dataclass(frozen=True)
class _Arguments:
  """Arguments that compare by their key only."""

  key: tuple[Any, ...]
  config: Any = dataclasses.field(compare=False)
  spec: types.EnvironmentSpec = dataclasses.field(compare=False)


class _Pickler(pickle.Pickler):
  """Records the classes and functions that it pickles by name."""

  def __init__(self, file: io.BytesIO):
    super().__init__(file)
    self.named: list[Any] = []

  def reducer_override(self, obj: Any) -> Any:
    if isinstance(obj, type | pytypes.FunctionType):
      self.named.append(obj)
    return NotImplemented


def _key(value: Any) -> tuple[Any, ...]:
  """Its pickle, and the classes and functions in it."""
  file = io.BytesIO()
  pickler = _Pickler(file)
  pickler.dump(value)
  return file.getvalue(), *pickler.named


def _with_one_core_each(agent: types.Agent) -> types.Agent:
  """The agent with an `actor` that makes each of its two cores only once.

  `functools.cache` would prevent pickling.
  """
  cores: dict[bool, types.ActorCore] = {}

  def actor(evaluation: bool = False) -> types.ActorCore:
    if evaluation not in cores:
      cores[evaluation] = agent.actor(evaluation=evaluation)
    return cores[evaluation]

  return dataclasses.replace(agent, actor=actor)
