"""The progress of a run, a sweep or a figure: rich's bar, or lines in a pipe."""

import collections
import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rich import progress

from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import returns, summary

if TYPE_CHECKING:
  from explorax.experiments.runners import core

Clock = Callable[[], float]  # Seconds.

# Seconds between updates on a terminal, and between plain lines.
_PERIOD, _LINE_PERIOD = 0.1, 10.0
_SPEED_SECONDS = 600.0  # Over which the speed is estimated, for the time left.

# Metrics of an exploring agent's last episode: name → its label in the line.
_METRICS = {
  "intrinsic_return": "intrinsic",
  "coverage": "coverage",
  "rooms_so_far": "rooms",
}


class Display:
  """A bar with the time left on a terminal; now and then a line in a pipe."""

  def __init__(self, console: console_lib.Console, clock: Clock):
    self._console = console
    self._clock = clock
    self._progress = progress.Progress(
      progress.TextColumn("{task.description}", markup=False),
      progress.BarColumn(bar_width=20),
      progress.TaskProgressColumn(),
      progress.TimeRemainingColumn(compact=True),
      console=console.rich if console.is_terminal else None,
      disable=not console.is_terminal,
      auto_refresh=False,
      transient=True,
      redirect_stderr=sys.stderr.isatty(),
      speed_estimate_period=_SPEED_SECONDS,
      get_time=clock,
    )
    self._progress.add_task("", total=1.0)
    (self._task,) = self._progress.tasks
    self._updated_at = clock()
    self._period = _PERIOD if console.is_terminal else _LINE_PERIOD

  def update(
    self, fraction: float, text: Callable[[], str], *, at_once: bool = False
  ) -> None:
    """Shows the state if enough time has passed.

    Args:
      fraction: the share done, in [0, 1].
      text: makes the text; called only if it is shown.
      at_once: shows it in any case.
    """
    now = self._clock()
    at_once |= self._console.is_terminal and fraction >= 1
    if not (at_once or now - self._updated_at >= self._period):
      return
    self._updated_at = now
    self._progress.update(self._task.id, completed=fraction)
    if self._console.is_terminal:
      self._progress.start()
      self._progress.update(self._task.id, description=text(), refresh=True)
      return
    parts = [f"{fraction:4.0%}", text()]
    if self._task.time_remaining is not None:
      parts.append(f"{summary.duration(self._task.time_remaining)} left")
    self._console.line(" | ".join(parts))

  def close(self) -> None:
    """Removes the bar; the next update draws it again."""
    self._progress.stop()


class RunProgress:
  """Shows what a run does, how far it is, its speed and its returns."""

  def __init__(
    self,
    console: console_lib.Console,
    *,
    num_episodes: int | None,
    num_steps: int | None,
    num_seeds: int = 1,
    episodes_before: int = 0,
    clock: Clock = time.monotonic,
  ):
    """Starts the clock.

    Args:
      console: for the display.
      num_episodes: at which each seed ends; None for no such limit.
      num_steps: environment steps at which each seed ends; None for no such limit.
      num_seeds: whose episodes are reported.
      episodes_before: number of episodes of all seeds that a resumed run already has.
      clock: seconds.
    """
    self._console = console
    self._display = Display(console, clock)
    self._num_episodes = num_episodes
    self._num_steps = num_steps
    self._num_seeds = num_seeds
    self._activity = "acting"
    self._filled: tuple[int, int] | None = None  # While replay is filled.
    self._env_steps = 0
    self._speed = math.nan  # Environment steps per second.
    self._num_ended = episodes_before
    self._episode: core.Episode | None = None  # The last one of this process.
    self._returns: collections.deque[float] = collections.deque(maxlen=returns.WINDOW)
    self._evaluation: float | None = None  # Mean return of the last evaluation.

  def on_activity(self, activity: "core.Activity") -> None:
    """Shows what the runner does next: at once if it is new, else now and then.

    In a pipe only what it compiles is shown at once.
    """
    is_new = activity.name != self._activity
    at_once = is_new and (self._console.is_terminal or activity.compiles)
    self._activity, self._env_steps = activity.name, activity.env_steps
    self._filled = activity.filled
    self._display.update(self._fraction(), self._text, at_once=at_once)

  def on_log(self, row: "core.LogRow") -> None:
    """Shows the speed from now on; an episode may last long."""
    self._speed = row.steps_per_second

  def on_episode(self, episode: "core.Episode") -> None:
    """Shows the state after an episode, if enough time has passed."""
    self._episode, self._speed = episode, episode.steps_per_second
    self._returns.append(episode.episode_return)
    self._num_ended += 1
    self._env_steps = max(self._env_steps, episode.env_steps)
    self._display.update(self._fraction(), self._text)

  def on_evaluation(self, evaluation: "core.Evaluation") -> None:
    """Shows the mean return of an evaluation from now on."""
    self._evaluation = evaluation.mean_return

  def close(self) -> None:
    """Removes the bar; the next update draws it again."""
    self._display.close()

  @property
  def _ended_each(self) -> int:
    return self._num_ended // self._num_seeds

  def _fraction(self) -> float:
    """The share of the run that is done, in [0, 1]."""
    fractions = [0.0]
    if self._num_episodes is not None:
      fractions.append(self._ended_each / self._num_episodes)
    if self._num_steps is not None:
      fractions.append(self._env_steps / self._num_steps)
    return min(1.0, max(fractions))

  def _text(self) -> str:
    parts = [self._activity]
    if self._filled is not None:
      parts[0] += " ({:,} of {:,} steps)".format(*self._filled)
    parts.append(_of("episode", self._ended_each, self._num_episodes))
    parts.append(_of("step", self._env_steps, self._num_steps))
    if self._speed > 0:  # Not NaN: it is known after compilation.
      parts.append(f"{self._speed:,.0f} steps/s")
    if (episode := self._episode) is not None:
      mean = sum(self._returns) / len(self._returns)
      parts += [f"return {episode.episode_return:.3g}", f"mean {mean:.3g}"]
    if self._evaluation is not None:
      parts.append(f"evaluation {self._evaluation:.3g}")
    if episode is not None:
      parts += [
        f"{label} {episode.metrics[name]:.3g}"
        for name, label in _METRICS.items()
        if name in episode.metrics
      ]
    return " | ".join(parts)


class TaskProgress:
  """Shows the share of the work of many tasks that is done, and the time left."""

  def __init__(
    self,
    console: console_lib.Console,
    weights: Mapping[int, float],
    clock: Clock = time.monotonic,
  ):
    """Args: weights: task index → its amount of work."""
    self._display = Display(console, clock)
    self._weights = weights
    self._shares = dict.fromkeys(weights, 0.0)
    self._finished: set[int] = set()

  def finish(self, index: int) -> None:
    """The task with this index is done, or has failed."""
    self._finished.add(index)
    self.update({})

  def update(self, shares: Mapping[int, float]) -> None:
    """Sets the shares done of running tasks, and shows them from time to time."""
    self._shares |= shares
    self._shares |= dict.fromkeys(self._finished, 1.0)
    done = sum(w * min(1.0, self._shares[index]) for index, w in self._weights.items())
    finished = f"{len(self._finished)} of {len(self._weights)} tasks are finished"
    text = f"{finished} (the percentage is of all their steps)"
    fraction = done / sum(self._weights.values()) if self._weights else 1.0
    self._display.update(fraction, lambda: text)

  def close(self) -> None:
    """Removes the bar; the next update draws it again."""
    self._display.close()


def _of(noun: str, number: int, total: int | None) -> str:
  return f"{noun} {number:,}" + ("" if total is None else f"/{total:,}")
