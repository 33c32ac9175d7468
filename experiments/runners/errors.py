"""What can stop a run."""

from collections.abc import Mapping
from typing import Any

from explorax.agents import types


class StoppedError(RuntimeError):
  """The run ends, and what was learnt until then is kept.

  Attributes:
    weights: the last good ones of each seed; empty if they are lost.
    record: of the update that was not finite, where that is what happened: what
      `learner.NonFiniteUpdateError` holds, and on the device the seed.
  """

  def __init__(
    self,
    message: str,
    weights: list[types.Params],
    record: Mapping[str, Any] | None = None,
  ):
    super().__init__(message)
    self.weights = weights
    self.record = record


class NonFiniteError(StoppedError):
  """A NaN or an infinity: in a reward, an observation, or the loss."""


class EnvironmentFailedError(StoppedError):
  """The environment crashed, and could not be recreated, or crashed too often."""
