"""Errors of environments."""

import difflib
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

# An agent has an output for each action, and an input for each value of a discrete
# observation.
_MAX_VALUES = 2**20


class NonFiniteError(FloatingPointError):
  """An environment returned a NaN or an infinity, or a value beyond float32.

  Attributes:
    quantity: `reward` or `observation`.
    value: the offending number (for an observation, the first one).
    episode: of the error, counted from 1.
    step: steps taken in that episode (0: at its reset).
    total_steps: steps taken in this environment.
  """

  def __init__(
    self, quantity: str, value: float, episode: int, step: int, total_steps: int
  ):
    # Passed as arguments, so that the error can be pickled.
    super().__init__(quantity, value, episode, step, total_steps)
    self.quantity = quantity
    self.value = value
    self.episode = episode
    self.step = step
    self.total_steps = total_steps

  def __str__(self) -> str:
    return (
      f"the environment returned {self.value} in its {self.quantity} at step "
      f"{self.step} of episode {self.episode} (environment step {self.total_steps}); "
      "float32 cannot represent it as a finite number, so fix the environment or clip "
      "its values."
    )


def first_non_finite(array: np.ndarray) -> float:
  """The first NaN or infinity of `array` in row-major order."""
  flat = np.ravel(array)
  return float(flat[np.argmin(np.isfinite(flat))])


def number_of_values(quantity: str, number: Any) -> int:
  """The number of values of a discrete space.

  Raises:
    TypeError: if it is not a whole number from 1 to 2²⁰.
  """
  try:
    whole = operator.index(number)
  except TypeError:
    whole = 0
  if not 1 <= whole <= _MAX_VALUES:
    raise TypeError(
      f"the environment's {quantity} have {number!r} values; agents here have an input "
      f"or output for each: it must be a whole number from 1 to {_MAX_VALUES:,}."
    )
  return whole


def did_you_mean(
  name: str,
  known: Iterable[str],
  otherwise: str = ".",
  show: Callable[[str], str] = str,
) -> str:
  """Ends a sentence: `; did you mean 'a' or 'b'?`, or `otherwise` without a match.

  `show` converts a known name for display.
  """
  lower = {key.lower(): key for key in known}
  near = difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.6)
  meant = " or ".join(repr(show(lower[key])) for key in near)
  return f"; did you mean {meant}?" if near else otherwise
