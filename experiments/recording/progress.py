"""The progress of a run, a sweep or a figure: a live bar, or lines in a pipe."""

import collections
import contextlib
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import returns as returns_lib
from explorax.experiments.recording import summary

if TYPE_CHECKING:
  from rich import live as rich_live

  from explorax.experiments.runners import core

Clock = Callable[[], float]  # Seconds.

_LIVE_PERIOD = 0.1  # Seconds.
_PLAIN_PERIOD = 20.0  # Seconds between plain lines, unless a tenth passes sooner.
_PLAIN_MIN_PERIOD = 1.0  # Seconds between plain lines in any case.
_MIN_BAR, _MAX_BAR = 6, 24  # Width of the bar in characters.
_SPEED_SPAN = 30.0  # Seconds over which a run's speed and time left are measured.
_MIN_SPAN = 2.0  # Seconds; earlier estimates of a run's time left are unreliable.
# The time left of tasks is shown after this share of the work; earlier estimates are
# unreliable.
_MIN_SHARE = 0.05

# Metrics of an exploring agent's last episode: name → its label in the line.
_SHOWN_METRICS = {
  "intrinsic_return": "intrinsic",
  "coverage": "coverage",
  "rooms_so_far": "rooms",
}


class Display:
  """A bar and a text: live on a terminal, occasional lines in a pipe.

  On a terminal, other output appears above the bar.
  """

  def __init__(self, console: console_lib.Console, clock: Clock = time.monotonic):
    self._console = console
    self._clock = clock
    self._shown_at = clock()
    self._shown_fraction = 0.0
    self._live: rich_live.Live | None = None

  def update(
    self, fraction: float, text: Callable[[], str], *, at_once: bool = False
  ) -> None:
    """Shows the state if enough time has passed.

    Args:
      fraction: the share done, in [0, 1]; always 0 if there is no end.
      text: makes the text; called only if it is shown.
      at_once: on a terminal, shows it in any case.
    """
    now = self._clock()
    waited = now - self._shown_at
    if self._console.is_terminal:
      is_due = at_once or waited >= _LIVE_PERIOD or fraction >= 1
    else:
      tenth_passed = int(10 * fraction) > int(10 * self._shown_fraction)
      is_due = waited >= (_PLAIN_MIN_PERIOD if tenth_passed else _PLAIN_PERIOD)
    if not is_due:
      return
    self._shown_at, self._shown_fraction = now, fraction
    line = f"{fraction:4.0%} | {text()}" if fraction else text()
    if self._console.is_terminal:
      self._draw(fraction, line)
    else:
      self._console.line(line)

  def close(self) -> None:
    """Removes the bar; the next update draws it again."""
    if self._live is not None:
      self._live.stop()
      self._live = None

  def _draw(self, fraction: float, line: str) -> None:
    from rich import live, progress_bar, table, text

    if self._live is None:
      self._live = live.Live(
        console=self._console.rich,
        auto_refresh=False,
        transient=True,
        redirect_stderr=sys.stderr.isatty(),
      )
      self._live.start()
    cells: list[Any] = [text.Text(line, no_wrap=True, overflow="ellipsis")]
    width = min(_MAX_BAR, self._console.rich.width - len(line) - 1)
    if fraction and width >= _MIN_BAR:
      cells.insert(0, progress_bar.ProgressBar(1.0, fraction, width))
    grid = table.Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(*cells)
    self._live.update(grid, refresh=True)


@contextlib.contextmanager
def importing(console: console_lib.Console) -> Iterator[None]:
  """Shows on a terminal that the program is importing."""
  display = Display(console)
  display.update(0.0, lambda: "importing", at_once=True)
  try:
    yield
  finally:
    display.close()


class RunProgress:
  """Shows what a run does, how far it is, its speed, returns and time left."""

  def __init__(
    self,
    console: console_lib.Console,
    *,
    num_episodes: int | None,
    num_steps: int | None,
    episodes_before: int = 0,
    clock: Clock = time.monotonic,
  ):
    """Starts the clock.

    Args:
      console: for the display.
      num_episodes: at which the run ends; None for no such limit.
      num_steps: environment steps at which it ends; None for no such limit.
      episodes_before: number of episodes that a resumed run already has.
      clock: seconds.
    """
    self._display = Display(console, clock)
    self._num_episodes = num_episodes
    self._num_steps = num_steps
    self._clock = clock
    self._activity = "acting"
    self._filled: tuple[int, int] | None = None  # While replay is filled.
    self._env_steps = 0
    self._num_ended = episodes_before
    self._episode: core.Episode | None = None  # The last one of this process.
    self._returns: returns_lib.Returns | None = None
    self._evaluation: float | None = None  # Mean return of the last evaluation.
    # (seconds, environment steps, fraction done) of the last `_SPEED_SPAN` seconds, of
    # one activity: replay is filled faster than an agent learns.
    self._recent: collections.deque[tuple[float, int, float]] = collections.deque()

  def doing(self, activity: "core.Activity") -> None:
    """Shows what the runner does next: at once if it is new, else now and then."""
    is_new = activity.name != self._activity
    if is_new and "evaluating" not in (activity.name, self._activity):
      self._recent.clear()
    self._activity, self._env_steps = activity.name, activity.env_steps
    self._filled = activity.filled
    self._show(at_once=is_new)

  def update(self, episode: "core.Episode", returns: returns_lib.Returns) -> None:
    """Shows the state after `episode`, if enough time has passed."""
    if math.isnan(episode.steps_per_second):  # The time so far is mostly compilation.
      self._recent.clear()
    self._episode, self._returns = episode, returns
    self._num_ended = episode.episode
    self._env_steps = max(self._env_steps, episode.env_steps)
    self._show()

  def evaluated(self, evaluation: "core.Evaluation") -> None:
    """Takes an evaluation, whose time does not count for the training speed."""
    self._evaluation = evaluation.mean_return
    self._recent = collections.deque(
      (seconds + evaluation.seconds, steps, done)
      for seconds, steps, done in self._recent
    )

  def close(self) -> None:
    """Removes the live line; the next update draws it again."""
    self._display.close()

  def _show(self, *, at_once: bool = False) -> None:
    now = self._clock()
    fraction = self._fraction()
    if not self._recent or now - self._recent[-1][0] >= _LIVE_PERIOD:
      self._recent.append((now, self._env_steps, fraction))
    while len(self._recent) > 2 and now - self._recent[0][0] > _SPEED_SPAN:
      self._recent.popleft()
    self._display.update(fraction, self._text, at_once=at_once)

  def _fraction(self) -> float:
    """The share of the run that is done, in [0, 1]; always 0 without a limit."""
    fractions = [0.0]
    if self._num_episodes is not None:
      fractions.append(self._num_ended / self._num_episodes)
    if self._num_steps is not None:
      fractions.append(self._env_steps / self._num_steps)
    return min(1.0, max(fractions))

  def _text(self) -> str:
    parts = [self._activity]
    if self._filled is not None:
      parts[0] += " ({:,} of {:,} steps)".format(*self._filled)
    seconds, steps, done = (
      last - first
      for last, first in zip(self._recent[-1], self._recent[0], strict=True)
    )
    if self._activity == "acting" and done > 0 and seconds >= _MIN_SPAN:
      left = (1 - self._fraction()) * seconds / done
      parts.append(f"{summary.duration(left)} left")
    parts.append(_of("episode", self._num_ended, self._num_episodes))
    parts.append(_of("step", self._env_steps, self._num_steps))
    if seconds > 0 and steps > 0:
      parts.append(f"{steps / seconds:,.0f} steps/s")
    episode = self._episode
    if episode is not None and self._returns is not None:
      parts.append(f"return {episode.episode_return:.3g}")
      mean = self._returns.recent_mean()
      parts += [] if mean is None else [f"mean {mean:.3g}"]
    if self._evaluation is not None:
      parts.append(f"evaluation {self._evaluation:.3g}")
    if episode is not None:
      parts += [
        f"{label} {episode.metrics[name]:.3g}"
        for name, label in _SHOWN_METRICS.items()
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
    """Starts the clock.

    Args:
      console: for the display.
      weights: task index → its amount of work.
      clock: seconds.
    """
    self._display = Display(console, clock)
    self._weights = dict(weights)
    self._clock = clock
    self._began = clock()
    self._shares = dict.fromkeys(self._weights, 0.0)
    self._resumed: dict[int, float] = {}  # Shares done by earlier processes.
    self._finished: set[int] = set()

  def finish(self, index: int) -> None:
    """The task with this index is done, or has failed."""
    self._finished.add(index)
    self.update({index: 1.0})

  def update(self, shares: Mapping[int, float]) -> None:
    """Takes the shares done of running tasks, and shows them from time to time."""
    for index, share in shares.items():
      self._resumed.setdefault(index, 0.0 if index in self._finished else share)
      self._shares[index] = 1.0 if index in self._finished else min(1.0, share)
    self._display.update(self._fraction(self._shares), self._text)

  def left(self) -> float | None:
    """Seconds left at the current pace; None before a twentieth of the work is done."""
    fraction = self._fraction(self._shares)
    here = fraction - self._fraction(self._resumed)
    if here < _MIN_SHARE:
      return None
    return (self._clock() - self._began) * (1 - fraction) / here

  def close(self) -> None:
    """Removes the bar; the next update draws it again."""
    self._display.close()

  def _fraction(self, shares: Mapping[int, float]) -> float:
    done = sum(w * shares.get(index, 0.0) for index, w in self._weights.items())
    return done / sum(self._weights.values())

  def _text(self) -> str:
    text = f"{len(self._finished)} of {len(self._weights)} tasks"
    left = self.left()
    return text if left is None else f"{text} | {summary.duration(left)} left"


def _of(noun: str, number: int, total: int | None) -> str:
  return f"{noun} {number:,}" + ("" if total is None else f"/{total:,}")
