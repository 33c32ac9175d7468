"""What can stop a run."""

from explorax.agents import types


class NonFiniteError(RuntimeError):
  """A NaN or an infinity: in a reward, an observation, or the loss.

  Attributes:
    weights: the last good ones, before the value that is not finite.
  """

  def __init__(self, message: str, weights: types.Params):
    super().__init__(message)
    self.weights = weights
