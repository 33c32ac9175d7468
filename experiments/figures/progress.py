"""How far a figure is: a bar on a terminal, now and then a plain line elsewhere."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence

from explorax.experiments import console as console_lib
from explorax.experiments import summary

_LIVE_PERIOD = 0.2  # Seconds.
_PLAIN_PERIOD = 20.0  # Seconds between plain lines.
_BAR = 24  # Characters.


class Progress:
  """Shows the share of the work that is done, and the time left."""

  def __init__(
    self,
    console: console_lib.Console,
    weights: Sequence[float],
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts the clock.

    Args:
      console: a terminal gets a live bar, everything else plain lines.
      weights: of the tasks to be computed.
      clock: seconds.
    """
    self._console = console
    self._weights = list(weights)
    self._clock = clock
    self._start = self._shown_at = clock()
    self._complete: set[int] = set()
    self._width = 0

  def finish(self, index: int) -> None:
    """The task of that index is done, one way or the other."""
    self._complete.add(index)
    self.update({})

  def update(self, shares: Mapping[int, float]) -> None:
    """Shows it, if it is time to; `shares` are of the tasks under way."""
    now = self._clock()
    period = _LIVE_PERIOD if self._console.is_terminal else _PLAIN_PERIOD
    if now - self._shown_at < period:
      return
    self._shown_at = now
    line = self._line(shares)
    if not self._console.is_terminal:
      self._console.line(line)
      return
    # A line that wraps could not be overwritten.
    line = line[: shutil.get_terminal_size().columns - 1]
    self._console.write("\r" + line.ljust(self._width))
    self._width = len(line)

  def left(self, shares: Mapping[int, float]) -> float | None:
    """Seconds until all is done, if it goes on as until now; None before a beginning.

    Args:
      shares: as for `update`.
    """
    share = self._share(shares)
    if not share:
      return None
    return (self._clock() - self._start) * (1 - share) / share

  def close(self) -> None:
    """Ends the live line, so that what follows starts on a line of its own."""
    if self._width:
      self._console.write("\r" + " " * self._width + "\r")
      self._width = 0

  def _share(self, shares: Mapping[int, float]) -> float:
    """How much of the whole is done."""
    under_way = {i: s for i, s in shares.items() if i not in self._complete}
    done = sum(self._weights[i] for i in self._complete)
    done += sum(self._weights[i] * min(1.0, s) for i, s in under_way.items())
    return done / sum(self._weights)

  def _line(self, shares: Mapping[int, float]) -> str:
    share = self._share(shares)
    bar = "█" * round(_BAR * share)
    parts = [
      f"[{bar:·<{_BAR}}] {share:4.0%}",
      f"{len(self._complete)} of {len(self._weights)} tasks",
    ]
    left = self.left(shares)
    if left is not None:
      parts.append(f"{summary.duration(left)} left")
    return " | ".join(parts)
