"""One builder for every agent: makes the five parts of Acme builders from an Agent."""

import importlib
import pathlib
import platform
import types as types_lib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import acme.core
import jax
import numpy as np

from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import memory as memory_replay
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import learner as learner_lib
from explorax.agents.wiring import threefry

# It has the methods, without being a subclass: exported agents act without Acme.
acme.core.Actor.register(actor_lib.Actor)


class Replay(Protocol):
  """The interface of a replay backend."""

  def writer(self) -> adder_lib.Writer: ...

  def batches(self) -> Iterator[tuple[np.ndarray, types.Sample]]: ...

  def update_priorities(self, keys: np.ndarray, priorities: np.ndarray) -> None: ...

  def close(self) -> None: ...


def import_reverb_replay() -> types_lib.ModuleType:
  """The module of the Reverb backend, imported only when it is needed.

  Raises:
    ImportError: if Reverb cannot be imported, with what to do about it.
  """
  try:
    return importlib.import_module("explorax.agents.replay.reverb")
  except ImportError as e:
    raise ImportError(
      f"Reverb cannot be imported ({e}): install explorax[reverb] under Python 3.11 "
      f"on Linux (this is Python {platform.python_version()}), or use the memory "
      "replay (--replay=memory)."
    ) from e


class Builder:
  """Makes the five parts of Acme's `ActorLearnerBuilder` from an Agent.

  The five methods have the names of Acme 0.2.4's and make an `acme.core.Actor`, an
  `acme.core.Learner` and an `acme.adders.Adder`. It is no subclass, because
  `acme.agents.jax.builders` cannot be imported with the versions of jax that are used
  here. The Agent contains the spec, the networks and the policy, so that these are no
  arguments. Replay is one object; the dataset yields (keys, Sample).
  """

  def __init__(self, agent: types.Agent):
    threefry.unroll_on_cpu()
    self._agent = agent

  def make_replay_tables(
    self,
    backend: str,
    seed: int,
    folder: pathlib.Path | None = None,
    max_steps: int | None = None,
  ) -> Replay:
    """The replay that the other pieces share.

    Args:
      backend: `reverb` (an in-process server, whose sampling cannot be seeded) or
        `memory` (seeded).
      seed: for sampling from memory.
      folder: written by Reverb's `save_to`, to resume from; None to start.
      max_steps: environment steps of the run, for the memory that is reserved.

    Raises:
      ImportError: see `import_reverb_replay`.
    """
    if backend == "memory":
      return memory_replay.MemoryReplay(self._agent, seed, max_steps)
    return import_reverb_replay().ReverbReplay(self._agent, folder)

  def make_dataset_iterator(
    self, replay: Replay
  ) -> Iterator[tuple[np.ndarray, types.Sample]]:
    return replay.batches()

  def make_adder(self, replay: Replay) -> adder_lib.WindowAdder:
    return adder_lib.WindowAdder(self._agent, replay.writer())

  def make_actor(
    self,
    key: jax.Array,
    variables: Any,
    adders: Sequence[adder_lib.WindowAdder] = (),
    *,
    evaluation: bool = False,
  ) -> actor_lib.Actor:
    """An actor in as many environments as there are adders; in one without them."""
    num_envs = max(1, len(adders))
    return actor_lib.Actor(
      self._agent,
      self._agent.actor(evaluation=evaluation),
      variables,
      key,
      adders,
      actor_ids=range(num_envs),
      num_actors=num_envs,
    )

  def make_learner(
    self,
    key: jax.Array,
    batches: Iterator[tuple[np.ndarray, types.Sample]],
    replay: Replay,
  ) -> learner_lib.Learner:
    return learner_lib.Learner(self._agent, batches, replay.update_priorities, key)
