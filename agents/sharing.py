"""Equal agents are one agent, so that a process compiles their functions once.

JAX compiles a function once for as long as it is the same object. The functions of an
agent are closures; tasks of a sweep that differ in their seed alone, and the tests,
make the same agent again and again, and get the same closures here.
"""

import dataclasses
import functools
import io
import pickle
import types as pytypes
from collections.abc import Callable
from typing import Any

from explorax.agents import types

# How many agents a process keeps, those least recently made being dropped first.
_MAX_AGENTS = 16

Make = Callable[[Any, types.EnvironmentSpec], types.Agent]


def shared(make_agent: Make) -> Make:
  """Makes `(config, spec) → Agent` return the same agent for equal arguments.

  They are equal if they pickle alike, with the same classes and functions in them: 1
  and 1.0 differ, which compare equal, and so do values of a class that a notebook has
  defined anew. What cannot be pickled makes an agent of its own.
  `make_agent.cache_clear()` forgets them all.
  """

  @functools.lru_cache(_MAX_AGENTS)
  def made(arguments: _Arguments) -> types.Agent:
    return _with_one_core_each(make_agent(arguments.config, arguments.spec))

  @functools.wraps(make_agent)
  def make(config: Any, spec: types.EnvironmentSpec) -> types.Agent:
    try:
      key = _key((config, spec))
    except Exception:  # Whatever pickling a user's object raises.
      return make_agent(config, spec)
    return made(_Arguments(key, config, spec))

  make.cache_clear = made.cache_clear  # type: ignore[attr-defined]
  return make


@dataclasses.dataclass(frozen=True)
class _Arguments:
  """Compared by their key alone."""

  key: tuple[Any, ...]
  config: Any = dataclasses.field(compare=False)
  spec: types.EnvironmentSpec = dataclasses.field(compare=False)


class _Pickler(pickle.Pickler):
  """Keeps the classes and functions that it writes as names."""

  def __init__(self, file: io.BytesIO):
    super().__init__(file)
    self.named: list[Any] = []

  def reducer_override(self, obj: Any) -> Any:
    if isinstance(obj, type | pytypes.FunctionType):
      self.named.append(obj)
    return NotImplemented


def _key(value: Any) -> tuple[Any, ...]:
  """What it pickles to, and the classes and functions in it."""
  file = io.BytesIO()
  pickler = _Pickler(file)
  pickler.dump(value)
  return file.getvalue(), *pickler.named


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
