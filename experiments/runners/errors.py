"""Errors that stop a run."""

from explorax.agents import types


class StoppedError(RuntimeError):
  """The run stops; its results so far are kept.

  Attributes:
    weights: the last good weights of each seed; empty if they are lost.
  """

  def __init__(self, message: str, weights: list[types.Params]):
    super().__init__(message)
    self.weights = weights


class NonFiniteError(StoppedError):
  """A reward, an observation or the loss is NaN or infinite."""


class EnvironmentFailedError(StoppedError):
  """The environment crashed too often, or could not be recreated."""
