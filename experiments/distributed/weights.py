"""Weights on their way from the learner to the actors: stored once per version."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from explorax.agents import types


class Version(NamedTuple):
  """Weights that the learner published.

  Attributes:
    number: the learner's updates until then.
    reference: a list of one, the `ray.ObjectRef`: Ray would replace a bare one by the
      weights themselves on the way.
  """

  number: int
  reference: list[Any]


def publish(number: int, weights: types.Params) -> Version:
  """Puts weights into Ray's object store, from which every actor reads them."""
  import ray

  return Version(number, [ray.put(jax.device_get(weights))])


class Held:
  """The weights that a process acts with; a variable source for an actor.

  Attributes:
    version: which ones they are; None before any was read.
  """

  def __init__(self):
    self._weights: types.Params = None
    self.version: Version | None = None

  def fetch(self, version: Version) -> bool:
    """Reads a version from the store; returns whether it was another than before.

    One that was lost with the learner that had published it is left out.
    """
    import ray

    if version == self.version:
      return False
    try:
      self._weights = jax.device_put(ray.get(version.reference[0]))
    except ray.exceptions.ObjectLostError:
      return False
    self.version = version
    return True

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    """`params` is all there is."""
    if list(names) != ["params"]:
      raise ValueError(f"there are the variables ['params'], not {list(names)}.")
    return [self._weights]
