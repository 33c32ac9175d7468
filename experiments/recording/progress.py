"""How far a run is: one live line on a terminal, now and then a plain one elsewhere."""

import collections
import math
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import returns as returns_lib
from explorax.experiments.recording import summary

if TYPE_CHECKING:
  from explorax.experiments.runners import evaluation as evaluation_lib
  from explorax.experiments.runners import local

_LIVE_PERIOD = 0.1  # Seconds.
_PLAIN_PERIOD = 10.0  # Seconds between plain lines, unless a tenth passes sooner.
_PLAIN_MIN_PERIOD = 1.0  # Seconds between plain lines in any case.
_SPEED_SPAN = 30.0  # Seconds over which speed and time left are measured.


# Of an exploring agent's last episode: name → what it is called in the line.
_SHOWN_METRICS = {
  "intrinsic_return": "intrinsic",
  "coverage": "coverage",
  "rooms_so_far": "rooms",
}


class Progress:
  """Reports episodes, steps per second, the last and the mean return, time left."""

  def __init__(
    self,
    console: console_lib.Console,
    *,
    num_episodes: int | None,
    num_steps: int | None,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts the clock.

    Args:
      console: a terminal gets a live line, everything else plain lines.
      num_episodes: after how many episodes the run ends; None for no such end.
      num_steps: after how many environment steps it ends; None for no such end.
      clock: seconds.
    """
    self._console = console
    self._live = console.is_terminal
    self._num_episodes = num_episodes
    self._num_steps = num_steps
    self._clock = clock
    self._shown_at = clock()
    self._shown_fraction = 0.0
    self._width = 0  # Of the live line on the screen.
    self._evaluation: float | None = None  # The mean return of the last one.
    # (seconds, environment steps, fraction done) of the last `_SPEED_SPAN` seconds.
    # It starts empty: the first episode's time is mostly compilation.
    self._recent: collections.deque[tuple[float, int, float]] = collections.deque()

  def update(self, episode: "local.Episode", returns: returns_lib.Returns) -> None:
    """Shows the state after `episode` (an `Episode`), if it is time to."""
    now = self._clock()
    fraction = self._fraction(episode)
    if math.isnan(episode.steps_per_second):  # What was is mostly compilation.
      self._recent.clear()
    self._recent.append((now, episode.env_steps, fraction))
    while len(self._recent) > 2 and now - self._recent[0][0] > _SPEED_SPAN:
      self._recent.popleft()
    if self._is_due(now, fraction):
      self._shown_at, self._shown_fraction = now, fraction
      self._show(self._line(episode, returns.recent_mean()))

  def evaluated(self, evaluation: "evaluation_lib.Evaluation") -> None:
    """Takes in an `Evaluation`, whose time is none of training's speed."""
    self._evaluation = evaluation.mean_return
    self._recent = collections.deque(
      (seconds + evaluation.seconds, steps, done)
      for seconds, steps, done in self._recent
    )

  def close(self) -> None:
    """Ends the live line, so that what follows starts on a line of its own."""
    if self._live and self._width:
      self._console.write("\n")
      self._width = 0

  def _is_due(self, now: float, fraction: float) -> bool:
    waited = now - self._shown_at
    if self._live:
      return waited >= _LIVE_PERIOD or fraction >= 1
    tenth_passed = int(10 * fraction) > int(10 * self._shown_fraction)
    return waited >= _PLAIN_PERIOD or (waited >= _PLAIN_MIN_PERIOD and tenth_passed)

  def _fraction(self, episode: "local.Episode") -> float:
    """How much of the run is done, in [0, 1]; 0 throughout if it has no end."""
    fractions = [0.0]
    if self._num_episodes is not None:
      fractions.append(episode.episode / self._num_episodes)
    if self._num_steps is not None:
      fractions.append(episode.env_steps / self._num_steps)
    return min(1.0, max(fractions))

  def _line(self, episode: "local.Episode", mean: float | None) -> str:
    fraction = self._fraction(episode)
    parts = [f"{fraction:4.0%}"] if fraction else []
    parts.append(_of("episode", episode.episode, self._num_episodes))
    parts.append(_of("step", episode.env_steps, self._num_steps))
    seconds, steps, done = (
      last - first
      for last, first in zip(self._recent[-1], self._recent[0], strict=True)
    )
    if seconds > 0:
      parts.append(f"{steps / seconds:,.0f} steps/s")
    parts.append(f"return {episode.episode_return:.3g}")
    if mean is not None:
      parts.append(f"mean {mean:.3g}")
    if done > 0 and seconds > 0:
      parts.append(f"{summary.duration((1 - fraction) * seconds / done)} left")
    if self._evaluation is not None:
      parts.append(f"evaluation {self._evaluation:.3g}")
    parts += [
      f"{label} {episode.metrics[name]:.3g}"
      for name, label in _SHOWN_METRICS.items()
      if name in episode.metrics
    ]
    return " | ".join(parts)

  def _show(self, line: str) -> None:
    if not self._live:
      self._console.line(line)
    else:
      # A line that wraps could not be overwritten.
      line = line[: shutil.get_terminal_size().columns - 1]
      self._console.write("\r" + line.ljust(self._width))
      self._width = len(line)


def _of(noun: str, number: int, total: int | None) -> str:
  return f"{noun} {number:,}" + ("" if total is None else f"/{total:,}")
