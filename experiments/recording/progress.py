"""The progress of a run, one line at a time."""

import collections
import math
import time
from collections.abc import Callable, Sequence

from explorax.experiments import config as config_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import curves, summary
from explorax.experiments.runners import common

# Seconds between updates on a terminal, and between lines in a pipe.
_PERIOD, _LINE_PERIOD = 1.0, 10.0


class Progress:
  """Shows what a run does, how far it is, its speed and its returns.

  A terminal has a status line, which is replaced; a pipe gets a line now and then.
  """

  def __init__(
    self,
    console: console_lib.Console,
    config: config_lib.RunConfig,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts the clock."""
    self._console, self._config, self._clock = console, config, clock
    self._period = _PERIOD if console.is_terminal else _LINE_PERIOD
    self._shown_at = clock()
    self._began: tuple[float, float] | None = None  # Seconds, and the share done.
    self._activity, self._env_steps = common.ACTING, 0
    self._ended: dict[int, int] = {}  # Seed → number of its finished episodes.
    self._row: common.Episode | common.LogRow | None = None  # The newest.
    self._returns = collections.deque[float](maxlen=curves.WINDOW)
    self._evaluation: float | None = None  # Mean return of the last evaluation.

  def on_activity(self, activity: str, env_steps: int) -> None:
    """Shows what the runner does next: at once if it is new, else now and then.

    In a pipe only what it compiles is shown at once.
    """
    is_new = activity != self._activity
    self._activity, self._env_steps = activity, env_steps
    now = self._clock()
    if self._began is None:
      self._began = now, self._fraction()
    compiles = activity.startswith(common.COMPILING)
    is_urgent = is_new and (self._console.is_terminal or compiles)
    if is_urgent or now - self._shown_at >= self._period:
      self._shown_at = now
      show = self._console.status if self._console.is_terminal else self._console.line
      show(" | ".join(self._parts(now, *self._began)))

  def on_log(self, row: common.LogRow) -> None:
    self._row = row

  def on_episodes(self, episodes: Sequence[common.Episode]) -> None:
    for episode in episodes:
      self._ended[episode.seed] = episode.episode
      self._returns.append(episode.episode_return)
    self._row = episodes[-1]

  def on_evaluation(self, evaluation: common.Evaluation) -> None:
    self._evaluation = evaluation.mean_return

  @property
  def _episodes(self) -> int:
    """Of each seed."""
    return sum(self._ended.values()) // self._config.num_seeds

  def _fraction(self) -> float:
    """The share of the run that is done, in [0, 1]."""
    episodes = self._episodes / (self._config.episodes or math.inf)
    return min(1.0, max(episodes, self._env_steps / (self._config.steps or math.inf)))

  def _parts(self, now: float, began: float, before: float) -> list[str]:
    fraction = self._fraction()
    parts = [
      f"{fraction:4.0%}",
      self._activity,
      _count("episode", self._episodes, self._config.episodes),
      _count("step", self._env_steps, self._config.steps),
    ]
    if self._row is not None and self._row.steps_per_second > 0:  # Not NaN.
      parts.append(f"{self._row.steps_per_second:,.0f} steps/s")
    if self._returns:
      mean = sum(self._returns) / len(self._returns)
      parts.append(f"return {self._returns[-1]:.3g} | mean {mean:.3g}")
    if self._evaluation is not None:
      parts.append(f"evaluation {self._evaluation:.3g}")
    if fraction > before:
      seconds = (1 - fraction) * (now - began) / (fraction - before)
      parts.append(f"{summary.duration(seconds)} left")
    return parts


def _count(noun: str, number: int, total: int | None) -> str:
  return f"{noun} {number:,}" + ("" if total is None else f"/{total:,}")
