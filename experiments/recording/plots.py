"""`curve.png`, the learning curve of a run, and `r_int.png`, within an episode."""

from collections.abc import Mapping, Sequence
from typing import BinaryIO

import numpy as np

from explorax.experiments.recording import drawing
from explorax.experiments.recording import evaluations as evaluations_lib
from explorax.experiments.recording import returns as returns_lib

_MAX_POINTS = 4000  # Per line: more cannot be told apart and slow the drawing down.


def learning_curve(
  file: BinaryIO,
  returns: returns_lib.Returns,
  *,
  title: str,
  evaluations: evaluations_lib.Evaluations,
  solved_episode: int | None = None,
) -> None:
  """Draws returns against environment steps, a line for each policy group, as PNG.

  The line is the mean over the last 100 episodes of the group, the dots behind it
  the episodes themselves. Evaluations, if there are any, are a black line through
  the mean return of each.

  Args:
    file: where the PNG goes.
    returns: of all episodes.
    title: above the axes.
    evaluations: of the run.
    solved_episode: marked by a vertical line if given (counted from 1).
  """
  # Drawn without pyplot, which would keep the figure and choose a window system.
  from matplotlib import figure

  fig = figure.Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
  axes = fig.add_subplot()
  for index, policy in enumerate(returns.policies):
    steps, values = returns.env_steps(policy), returns.of(policy)
    shown = _thinned(len(values))
    color = f"C{index}"
    axes.scatter(steps[shown], values[shown], s=4, c=color, alpha=0.25, linewidths=0)
    label = f"{policy} ({len(values):,} episodes)"
    mean = returns_lib.running_mean(values)[shown]
    axes.plot(steps[shown], mean, color=color, label=label)
  if len(evaluations):
    axes.plot(
      evaluations.env_steps,
      evaluations.means,
      color="black",
      lw=1.2,
      marker="o",
      ms=4,
      label=f"evaluation ({len(evaluations):,}, mean of each)",
    )
  if solved_episode is not None:
    step = int(returns.env_steps()[solved_episode - 1])
    label = f"solved in episode {solved_episode}"
    axes.axvline(step, color="0.3", ls="--", lw=1, label=label)
  axes.set_title(title)
  axes.set_xlabel("environment steps")
  axes.set_ylabel(f"return per episode\n(line: mean of the last {returns_lib.WINDOW})")
  axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
  axes.grid(alpha=0.3)
  if returns.policies or len(evaluations):
    axes.legend(loc="best", fontsize="small")
  fig.savefig(file, format="png")


def seeds_curve(
  file: BinaryIO, seeds: Sequence[returns_lib.Returns], *, title: str
) -> None:
  """Draws the mean return over seeds with its 95 % interval, as PNG.

  Each seed counts with the mean over its last 100 episodes at every point, from where
  all seeds have ended an episode up to where the first one has ended its last.

  Args:
    file: where the PNG goes.
    seeds: the returns of each, one episode at least.
    title: above the axes.
  """
  curves = [
    (returns.env_steps(), returns_lib.running_mean(returns.of())) for returns in seeds
  ]
  first = max(steps[0] for steps, _ in curves)
  last = max(first, min(steps[-1] for steps, _ in curves))
  grid = np.linspace(first, last, _MAX_POINTS // 10)
  values = np.stack(
    [means[np.searchsorted(steps, grid, side="right") - 1] for steps, means in curves]
  )
  fig, ((axes,),) = drawing.new(width=8, height=4.5)
  label = f"mean over {len(seeds)} seeds, 95 % interval"
  drawing.curve(axes, grid, values, label=label, index=0)
  axes.plot([], [], color="0.6", lw=0.5, label="each of them")
  axes.plot(grid, values.T, color="0.6", lw=0.5, zorder=1)
  axes.set_title(title)
  axes.set_xlabel("environment steps of each seed")
  axes.set_ylabel(f"return per episode\n(mean of the last {returns_lib.WINDOW})")
  axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
  axes.grid(alpha=0.3)
  axes.legend(loc="best", fontsize="small")
  fig.savefig(file, format="png")


def intrinsic_rewards(
  file: BinaryIO, episodes: Mapping[str, np.ndarray], *, title: str
) -> None:
  """Draws the intrinsic reward along episodes, one below the other, as PNG.

  Args:
    file: where the PNG goes.
    episodes: title of an episode → float `[T + 1]`, one for each observation.
    title: above all of them.
  """
  from matplotlib import figure

  fig = figure.Figure(figsize=(8, 2.6 * len(episodes)), dpi=120, layout="constrained")
  all_axes = fig.subplots(len(episodes), squeeze=False)[:, 0]
  for axes, (name, r_int) in zip(all_axes, episodes.items(), strict=True):
    axes.plot(np.arange(len(r_int)), r_int, lw=1)
    axes.set_title(name, fontsize="medium")
    axes.set_ylabel("intrinsic reward")
    axes.grid(alpha=0.3)
  all_axes[-1].set_xlabel("step of the episode")
  fig.suptitle(title)
  fig.savefig(file, format="png")


def _thinned(count: int) -> np.ndarray:
  """Indices of at most `_MAX_POINTS` points, evenly spread, both ends among them."""
  return np.unique(
    np.linspace(0, count - 1, min(count, _MAX_POINTS)).round().astype(int)
  )
