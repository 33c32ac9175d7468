"""Errors that stop a run."""

from collections.abc import Mapping
from typing import Any

from explorax.agents import types


class StoppedError(RuntimeError):
  """The run stops; its results so far are kept.

  Attributes:
    weights: the last good weights of each seed; empty if they are lost.
    record: details of the update if it was not finite, as in
      `learner.NonFiniteUpdateError`, and on the device the seed.
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
  """A reward, an observation or the loss is NaN or infinite."""


class EnvironmentFailedError(StoppedError):
  """The environment crashed too often, or could not be recreated."""
