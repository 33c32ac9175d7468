"""How far many tasks are: a bar on a terminal, now and then a plain line elsewhere."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence

from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import summary

_LIVE_PERIOD = 0.2  # Seconds.
_PLAIN_PERIOD = 20.0  # Seconds between plain lines.
_BAR = 24  # Characters.
# What the time left is told of: so much of the whole, or so many seconds of tasks that
# were seen at their work. The first moments of long tasks would be far off.
_SHARE_SEEN = 0.05
_SECONDS_SEEN = 10.0


class Progress:
  """Shows the share of the work that is done, and the time left."""

  def __init__(
    self,
    console: console_lib.Console,
    weights: Sequence[float],
    workers: int,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts the clock.

    Args:
      console: a terminal gets a live bar, everything else plain lines.
      weights: of the tasks to be computed: what each has to do once it is at it.
      workers: how many tasks are computed side by side.
      clock: seconds.
    """
    self._console = console
    self._weights = list(weights)
    self._clock = clock
    self._start = self._shown_at = clock()
    self._workers = min(workers, len(self._weights))
    self._complete: set[int] = set()
    # Of the tasks that were seen at it: (when their share last grew, the share).
    self._seen: dict[int, tuple[float, float]] = {}
    self._seconds = self._work = 0.0  # Of all of them: what took how long.
    self._width = 0

  def finish(self, index: int) -> None:
    """The task of that index is done, one way or the other."""
    if index in self._seen:
      self._see(index, 1.0)
    self._complete.add(index)
    self.update({})

  def update(self, shares: Mapping[int, float]) -> None:
    """Takes shares done of tasks under way, and shows them, if it is time to."""
    for index, share in shares.items():
      self._see(index, min(1.0, share))
    now = self._clock()
    period = _LIVE_PERIOD if self._console.is_terminal else _PLAIN_PERIOD
    if now - self._shown_at < period:
      return
    self._shown_at = now
    line = self._line()
    if not self._console.is_terminal:
      self._console.line(line)
      return
    # A line that wraps could not be overwritten.
    line = line[: shutil.get_terminal_size().columns - 1]
    self._console.write("\r" + line.ljust(self._width))
    self._width = len(line)

  def left(self) -> float | None:
    """Seconds until all is done, if it goes on as until now; None where few were seen.

    What a task needs before its share grows (to start, to compile) is not in proportion
    to its weight, and counts once for each that has not begun.
    """
    if self._share() < _SHARE_SEEN and self._seconds < _SECONDS_SEEN:
      return None
    now = self._clock()
    under_way = {i: x for i, x in self._seen.items() if i not in self._complete}
    begun = self._complete | under_way.keys()
    rest = self._workers * (now - self._start) - self._seconds
    rest -= sum(now - since for since, _ in under_way.values())
    if self._work:
      pace, before = self._seconds / self._work, max(0.0, rest) / len(begun)
    elif self._complete:  # No task tells of its share.
      pace, before = rest / sum(self._weights[i] for i in self._complete), 0.0
    else:
      return None
    seconds = []
    for i, weight in enumerate(self._weights):
      if i in under_way:
        since, share = under_way[i]
        seconds.append(max(0.0, pace * weight * (1 - share) - (now - since)))
      elif i not in begun:
        seconds.append(before + pace * weight)
    return max(sum(seconds) / self._workers, *seconds, 0.0)

  def close(self) -> None:
    """Ends the live line, so that what follows starts on a line of its own."""
    if self._width:
      self._console.write("\r" + " " * self._width + "\r")
      self._width = 0

  def _see(self, index: int, share: float) -> None:
    """Takes the share done of a task under way."""
    now = self._clock()
    since, before = self._seen.get(index, (now, share))
    if share > before:
      self._seconds += now - since
      self._work += self._weights[index] * (share - before)
    if share != before or (share and index not in self._seen):
      self._seen[index] = now, share  # It is less where it is tried again.

  def _share(self) -> float:
    """How much of the whole is done."""
    done = sum(self._weights[i] for i in self._complete)
    done += sum(
      self._weights[i] * share
      for i, (_, share) in self._seen.items()
      if i not in self._complete
    )
    return done / sum(self._weights)

  def _line(self) -> str:
    share = self._share()
    bar = "█" * round(_BAR * share)
    parts = [
      f"[{bar:·<{_BAR}}] {share:4.0%}",
      f"{len(self._complete)} of {len(self._weights)} tasks",
    ]
    left = self.left()
    if left is not None:
      parts.append(f"{summary.duration(left)} left")
    return " | ".join(parts)
