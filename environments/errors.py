"""Errors of environments."""

import difflib
import operator
import pathlib
import sys
import traceback
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


# Whose lines are not shown as the place of an error, if others are among its lines.
_OURS = {
  *("explorax", "jax", "jaxlib", "haiku", "numpy", "gymnasium", "dm_env", "chex"),
  *("optax", "ray", *sys.stdlib_module_names),
}


def place(error: BaseException) -> str:
  """`my_env.py:12`: the user's last line of an error's traceback, or its last line."""
  return users_line(error) or _line(traceback.extract_tb(error.__traceback__)[-1:])


def users_line(error: BaseException) -> str:
  """The last line that is in neither our code nor a library's; '' if there is none."""
  users: list[traceback.FrameSummary] = []
  for frame, line in traceback.walk_tb(error.__traceback__):
    spec = frame.f_globals.get("__spec__")  # Also of `python -m`, in `__main__`.
    module = str(spec.name if spec else frame.f_globals.get("__name__"))
    if module.partition(".")[0] not in _OURS:
      users = [traceback.FrameSummary(frame.f_code.co_filename, line, "")]
  return _line(users)


def _line(frames: list[traceback.FrameSummary]) -> str:
  return "".join(f"{pathlib.Path(x.filename).name}:{x.lineno}" for x in frames)


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
