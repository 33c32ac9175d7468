"""`curve.png`, the learning curve of one run or of several seeds, and `r_int.png`.

Each function writes a PNG and returns the figure.
"""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from explorax.experiments import errors, output
from explorax.experiments.recording import console, drawing, statistics
from explorax.experiments.recording import returns as returns_lib

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes
  from matplotlib import figure

  from explorax import environments

_MAX_POINTS = 4000  # Per line: more are indistinguishable and slow to draw.


def can_draw() -> bool:
  """Whether matplotlib is installed."""
  return importlib.util.find_spec("matplotlib") is not None


def check_can_draw() -> None:
  """Checks that pages and figures can be drawn.

  Raises:
    SetUpError: if matplotlib is not installed.
  """
  if not can_draw():
    raise errors.SetUpError(
      "matplotlib, which draws, is missing; install explorax[plots]."
    )


def write(
  directory: output.RunDirectory, name: str, draw: Callable[[BinaryIO], Any]
) -> None:
  """Writes a picture; if it cannot be drawn, for any reason, there is a warning.

  Raises:
    OutputError: if the file cannot be written.
  """
  try:
    directory.write(name, draw)
  except errors.OutputError:
    raise
  except Exception as error:
    console.print_error(f"{name} could not be drawn ({errors.describe(error)}).")


def learning_curve(
  file: BinaryIO,
  seeds: Sequence[returns_lib.Returns],
  *,
  title: str,
  solved: "environments.SolvedRule | None" = None,
) -> "figure.Figure":
  """Draws returns against environment steps, of one seed or of several, as PNG.

  One seed: a line for each policy group, the mean over the last tenth of the group's
  episodes, at most 100; the dots behind it are the episodes. Evaluations, if any, are a
  black line through the mean return of each.

  Several seeds: the mean of such lines with its 95 % interval. It starts when all
  seeds have ended an episode and ends with the first seed's last one.

  Args:
    file: where the PNG goes.
    seeds: the returns of each seed, with at least one episode.
    title: above the axes.
    solved: the rule for Deep Sea of one seed: a vertical line marks the episode at
      which bsuite's rule counts it as solved, with the share of episodes that found the
      treasure.
  """
  fig, ((axes,),) = drawing.new(width=7, height=4)
  if len(seeds) == 1:
    _draw_seed(axes, seeds[0], solved)
  else:
    _draw_mean(axes, seeds)
  axes.set_title(title)
  axes.set_xlabel("environment steps" + " of each seed" * (len(seeds) > 1))
  axes.set_ylabel("return per episode")
  drawing.shorten_numbers(axes.xaxis)
  axes.grid(alpha=0.3)
  window = f"lines: mean over a tenth of the episodes, at most {returns_lib.WINDOW}"
  axes.legend(loc="best", fontsize="small", title=window, title_fontsize="small")
  drawing.save(file, fig)
  return fig


def intrinsic_rewards(
  file: BinaryIO, episodes: Mapping[str, np.ndarray], *, title: str
) -> "figure.Figure":
  """Draws the intrinsic reward along episodes, one below the other, as PNG.

  Args:
    file: where the PNG goes.
    episodes: title of an episode → float `[T + 1]`, one for each observation.
    title: above all of them.
  """
  fig, panels = drawing.new(len(episodes), width=7, height=2.4)
  for axes, (name, r_int) in zip(panels[:, 0], episodes.items(), strict=True):
    axes.plot(np.arange(len(r_int)), r_int, lw=1)
    axes.set_title(name, fontsize="medium")
    axes.set_ylabel("intrinsic reward")
    axes.grid(alpha=0.3)
  panels[-1, 0].set_xlabel("step of the episode")
  drawing.save(file, fig, title=title)
  return fig


def _draw_seed(
  axes: "mpl_axes.Axes",
  returns: returns_lib.Returns,
  solved: "environments.SolvedRule | None",
) -> None:
  for index, policy in enumerate(returns.policies):
    steps, values = returns.env_steps(policy), returns.of(policy)
    # Evenly spread, including both ends.
    points = np.linspace(0, len(values) - 1, min(len(values), _MAX_POINTS))
    kept = np.unique(points.round().astype(int))
    color, linestyle, _ = drawing.style(index)
    axes.scatter(steps[kept], values[kept], s=4, c=color, alpha=0.25, linewidths=0)
    label = f"{policy} ({len(values):,} episodes)"
    mean = returns_lib.smooth(values)[kept]
    axes.plot(steps[kept], mean, color=color, linestyle=linestyle, label=label)
  if evaluations := returns.evaluations:
    label = f"evaluation ({len(evaluations):,}, mean of each)"
    steps = evaluations.env_steps
    axes.plot(steps, evaluations.means, "o-", color="black", lw=1.2, ms=4, label=label)
  if solved and solved.solved_episode is not None:
    step = int(returns.env_steps()[solved.solved_episode - 1])
    label = (
      f"solved in episode {solved.solved_episode} by bsuite's rule\n"
      f"(treasure in {solved.treasure_rate:.1%} of all episodes)"
    )
    axes.axvline(step, color="0.3", ls="--", lw=1, label=label)


def _draw_mean(axes: "mpl_axes.Axes", seeds: Sequence[returns_lib.Returns]) -> None:
  grid, values = returns_lib.on_grid(
    [(x.env_steps(), returns_lib.smooth(x.of())) for x in seeds]
  )
  label = f"mean over {len(seeds)} seeds, 95 % interval"
  label += " (of two: it says little)" * (len(seeds) == 2)
  interval = statistics.bootstrap(values)
  drawing.band(axes, grid, interval, label=label, style=drawing.style(0))
  each, *_ = axes.plot(grid, values.T, color="0.6", lw=0.5, zorder=1)
  each.set_label("single seeds")
