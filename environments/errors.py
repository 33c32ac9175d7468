"""What goes wrong with environments, named so that callers can tell it apart."""

import difflib
from collections.abc import Iterable
from typing import Any

import numpy as np


class NonFiniteError(FloatingPointError):
  """An environment returned a NaN or an infinity, or a value beyond float32.

  Attributes:
    quantity: `reward` or `observation`.
    value: the offending number (the first one, of an observation).
    episode: in which episode, counted from 1.
    step: after how many steps of that episode (0: at its reset).
    total_steps: after how many steps of this environment altogether.
  """

  def __init__(
    self, quantity: str, value: float, *, episode: int, step: int, total_steps: int
  ):
    super().__init__(
      f"the environment returned {value} in its {quantity} at step {step} of episode "
      f"{episode} (environment step {total_steps}); float32 cannot hold it as a "
      "finite number, so repair the environment or clip what it returns."
    )
    self.quantity = quantity
    self.value = value
    self.episode = episode
    self.step = step
    self.total_steps = total_steps

  def __reduce__(self) -> tuple[Any, ...]:
    # An exception with keyword arguments does not cross processes by itself.
    place = (self.episode, self.step, self.total_steps)
    return _rebuild_non_finite, (self.quantity, self.value, *place)


def _rebuild_non_finite(
  quantity: str, value: float, episode: int, step: int, total_steps: int
) -> NonFiniteError:
  return NonFiniteError(
    quantity, value, episode=episode, step=step, total_steps=total_steps
  )


def first_non_finite(array: np.ndarray) -> float:
  """The first NaN or infinity of `array` in row-major order."""
  flat = np.ravel(array)
  return float(flat[np.argmin(np.isfinite(flat))])


def did_you_mean(name: str, known: Iterable[str], otherwise: str = ".") -> str:
  """Ends a sentence: `; did you mean 'a' or 'b'?`, or `otherwise` if none is near."""
  near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
  return f"; did you mean {' or '.join(map(repr, near))}?" if near else otherwise
