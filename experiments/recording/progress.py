"""The progress of a run, one line at a time."""

import collections
import math
import time
from collections.abc import Callable

from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import curves, summary
from explorax.experiments.runners import common

# Seconds between updates on a terminal, and between lines in a pipe.
_PERIOD, _LINE_PERIOD = 1.0, 10.0
_SPEED_UPDATES = 60  # Over which the speed is estimated, for the time left.

# Metrics of an exploring agent's last episode: name → its label in the line.
_METRICS = {
  "intrinsic_return": "intrinsic",
  "coverage": "coverage",
  "rooms_so_far": "rooms",
}


class RunProgress:
  """Shows what a run does, how far it is, its speed and its returns.

  A terminal has a status line, which is replaced; a pipe gets a line now and then.
  """

  def __init__(
    self,
    console: console_lib.Console,
    *,
    num_episodes: int | None,
    num_steps: int | None,
    num_seeds: int = 1,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Starts the clock; each seed ends after so many episodes or steps."""
    self._console = console
    self._clock = clock
    self._period = _PERIOD if console.is_terminal else _LINE_PERIOD
    self._shown_at = clock()
    # (seconds, share done) at the newest updates.
    self._updates = collections.deque[tuple[float, float]](maxlen=_SPEED_UPDATES)
    self._num_episodes = num_episodes
    self._num_steps = num_steps
    self._num_seeds = num_seeds
    self._activity = common.Activity(common.ACTING, 0)
    self._env_steps = 0
    self._speed = math.nan  # Environment steps per second.
    self._ended: dict[int, int] = {}  # Seed → number of its finished episodes.
    self._episode: common.Episode | None = None  # The last one.
    self._returns = collections.deque[float](maxlen=curves.WINDOW)
    self._evaluation: float | None = None  # Mean return of the last evaluation.

  def on_activity(self, activity: common.Activity) -> None:
    """Shows what the runner does next: at once if it is new, else now and then.

    In a pipe only what it compiles is shown at once.
    """
    is_new = activity.name != self._activity.name
    self._activity, self._env_steps = activity, activity.env_steps
    is_urgent = self._console.is_terminal or activity.compiles
    self._update(at_once=is_new and is_urgent)

  def on_log(self, row: common.LogRow) -> None:
    """Takes the speed; an episode may last long."""
    self._speed = row.steps_per_second

  def on_episode(self, episode: common.Episode) -> None:
    """Shows the state after an episode, if enough time has passed."""
    self._episode, self._speed = episode, episode.steps_per_second
    self._returns.append(episode.episode_return)
    self._ended[episode.seed] = episode.episode
    self._env_steps = max(self._env_steps, episode.env_steps)
    self._update()

  def on_evaluation(self, evaluation: common.Evaluation) -> None:
    """Takes the mean return of an evaluation."""
    self._evaluation = evaluation.mean_return

  def close(self) -> None:
    """Removes the status line; the next update shows it again."""
    self._console.status("")

  def _update(self, *, at_once: bool = False) -> None:
    """Shows the state if enough time has passed, or at once."""
    now = self._clock()
    if not self._updates:
      self._updates.append((now, self._fraction()))
    if not at_once and now - self._shown_at < self._period:
      return
    self._shown_at, fraction = now, self._fraction()
    since, before = self._updates[0]
    self._updates.append((now, fraction))
    parts = [f"{fraction:4.0%}", *self._parts()]
    if fraction > before:
      seconds = (1 - fraction) * (now - since) / (fraction - before)
      parts.append(f"{summary.duration(seconds)} left")
    show = self._console.status if self._console.is_terminal else self._console.line
    show(" | ".join(parts))

  @property
  def _ended_each(self) -> int:
    return sum(self._ended.values()) // self._num_seeds

  def _fraction(self) -> float:
    """The share of the run that is done, in [0, 1]."""
    fractions = [0.0]
    if self._num_episodes is not None:
      fractions.append(self._ended_each / self._num_episodes)
    if self._num_steps is not None:
      fractions.append(self._env_steps / self._num_steps)
    return min(1.0, max(fractions))

  def _parts(self) -> list[str]:
    """The parts of the line between the share and the time left."""
    parts = [self._activity.name]
    if self._activity.filled is not None:
      parts[0] += " ({:,} of {:,} steps)".format(*self._activity.filled)
    parts.append(_count("episode", self._ended_each, self._num_episodes))
    parts.append(_count("step", self._env_steps, self._num_steps))
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
    return parts


def _count(noun: str, number: int, total: int | None) -> str:
  return f"{noun} {number:,}" + ("" if total is None else f"/{total:,}")
