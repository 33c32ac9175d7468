"""What can stop a run."""

from explorax.agents import types


class StoppedError(RuntimeError):
  """The run cannot go on, and what was learnt until then is kept.

  Attributes:
    weights: the last good ones of each seed.
  """

  def __init__(self, message: str, weights: list[types.Params]):
    super().__init__(message)
    self.weights = weights


class NonFiniteError(StoppedError):
  """A NaN or an infinity: in a reward, an observation, or the loss."""


class EnvironmentFailedError(StoppedError):
  """The environment crashed, and could not be made anew or crashed too often."""
