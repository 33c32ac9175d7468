"""`curve.png`, the learning curve of one run or of several seeds."""

import importlib.util
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from explorax import environments
from explorax.experiments import errors
from explorax.experiments.recording import curves, drawing, rows, statistics

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


def learning_curve(
  file: BinaryIO,
  seeds: Sequence[rows.Rows],
  *,
  title: str,
  evaluations: rows.Rows | None = None,
  solved: environments.SolvedRule | None = None,
) -> drawing.Figure:
  """Draws returns against environment steps, of one seed or of several, as PNG.

  One seed: a line for each policy group, the mean over the last tenth of the group's
  episodes, at most 100; the dots behind it are the episodes. Evaluations, if any, are a
  black line through the mean return of each.

  Several seeds: the mean of such lines with its 95 % interval. It starts when all
  seeds have ended an episode and ends with the first seed's last one.

  Args:
    file: where the PNG goes.
    seeds: the columns of `metrics.csv` of each seed, with at least one episode.
    title: above the axes.
    evaluations: the columns of `evaluation.csv` of one seed.
    solved: the rule for Deep Sea of one seed: a vertical line marks the episode at
      which bsuite's rule counts it as solved, with the share of episodes that found the
      treasure.
  """
  fig, ((axes,),) = drawing.new(width=7, height=4)
  if len(seeds) == 1:
    _draw_policies(axes, seeds[0])
    _draw_evaluations(axes, evaluations)
    _mark_solved(axes, seeds[0], solved)
  else:
    _draw_mean(axes, seeds)
  axes.set_title(title)
  axes.set_xlabel(f"environment steps{' of each seed' if len(seeds) > 1 else ''}")
  axes.set_ylabel("return per episode")
  drawing.shorten_numbers(axes.xaxis)
  axes.grid(alpha=0.3)
  window = f"lines: mean over a tenth of the episodes, at most {curves.WINDOW}"
  axes.legend(loc="best", fontsize="small", title=window, title_fontsize="small")
  drawing.save(file, fig)
  return fig


def _draw_policies(axes: drawing.Axes, episodes: rows.Rows) -> None:
  for index, policy in enumerate(np.unique(episodes["policy"])):
    of_policy = curves.of_policy(episodes, policy)
    steps, values = of_policy["env_steps"], of_policy["episode_return"]
    # Evenly spread, including both ends.
    points = np.linspace(0, len(values) - 1, min(len(values), _MAX_POINTS))
    drawn = np.unique(points.round().astype(int))
    color, linestyle, _ = drawing.style(index)
    axes.scatter(steps[drawn], values[drawn], s=4, c=color, alpha=0.25, linewidths=0)
    label = f"{policy} ({len(values):,} episodes)"
    mean = curves.smooth(values)[drawn]
    axes.plot(steps[drawn], mean, color=color, linestyle=linestyle, label=label)


def _draw_evaluations(axes: drawing.Axes, evaluations: rows.Rows | None) -> None:
  if evaluations and (returns := curves.evaluation_returns(evaluations)):
    steps, values = zip(*returns, strict=True)
    label = f"evaluation ({len(returns):,}, mean of each)"
    means = [np.mean(x) for x in values]
    axes.plot(steps, means, "o-", color="black", lw=1.2, ms=4, label=label)


def _mark_solved(
  axes: drawing.Axes,
  episodes: rows.Rows,
  solved: environments.SolvedRule | None,
) -> None:
  if solved and solved.solved_episode is not None:
    label = (
      f"solved in episode {solved.solved_episode} by bsuite's rule\n"
      f"(treasure in {solved.treasure_rate:.1%} of all episodes)"
    )
    step = episodes["env_steps"][solved.solved_episode - 1]
    axes.axvline(step, color="0.3", ls="--", lw=1, label=label)


def _draw_mean(axes: drawing.Axes, seeds: Sequence[rows.Rows]) -> None:
  grid, values = curves.on_grid(
    [(x["env_steps"], curves.smooth(x["episode_return"])) for x in seeds]
  )
  label = f"mean over {len(seeds)} seeds, 95 % interval"
  if len(seeds) == 2:
    label += " (of two: it says little)"
  interval = statistics.bootstrap(values)
  drawing.band(axes, grid, interval, label=label, style=drawing.style(0))
  single, *_ = axes.plot(grid, values.T, color="0.6", lw=0.5, zorder=1)
  single.set_label("single seeds")
