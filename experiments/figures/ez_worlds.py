"""Random gridworlds of paper 1's appendix F, and its figure 11, which shows some."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.environments import grid_maps, gridworld
from explorax.experiments.figures import ez_runs, types
from explorax.experiments.recording import drawing

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

KINDS = ("obstacles", "traps")  # A world has one kind or the other.
# Greys by figure 11's caption; those of positions in the order of grid_maps.OPEN,
# OBSTACLE and TRAP.
_CELLS = {"open": 1.0, "obstacle": 0.0, "trap": 0.6}
_ENDS = {"start": ("o", 0.85), "goal": ("*", 0.35)}


def draw_map(kind: str, density: float, size: int, seed: int) -> grid_maps.Map:
  """The world of a seed, the same for every agent: number seed + 1.

  Worlds of one seed belong together: a denser one has what fills the thinner one, and
  more.
  """
  densities = dict.fromkeys(KINDS, 0.0) | {kind: density}
  return grid_maps.draw(size, **densities, world=seed + 1)


def check_densities(densities: tuple[float, ...], size: int, num_seeds: int) -> None:
  """Refuses densities that are not in rising order, or leave a seed without a path.

  Raises:
    ValueError: a sentence that names them.
  """
  if len(densities) < 2 or list(densities) != sorted(set(densities)):
    raise ValueError(
      f"densities is {densities}; give two or more, each once, in rising order."
    )
  gridworld.GridWorld(size, obstacles=densities[0], world=1)  # Refuses one below 0.
  for seed in range(num_seeds):
    # Where the densest world of a seed has a path, the thinner ones have one too, and
    # so has the one of traps, which lie where the obstacles would.
    draw_map("obstacles", densities[-1], size, seed)


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of figure 11. The densities are not in the paper's text: our own."""

  densities: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
  size: int = 20  # Rows and columns.
  num_seeds: int = 30  # Worlds that are measured; the first of them is drawn.

  def __post_init__(self):
    ez_runs.check_at_least(self, size=5, num_seeds=1)
    check_densities(self.densities, self.size, self.num_seeds)


def _tasks(config: Config) -> list[types.Task]:
  return [
    types.Task(
      f"{kind}_{density}",
      {
        "kind": kind,
        "density": density,
        "size": config.size,
        "num_seeds": config.num_seeds,
      },
    )
    for kind in KINDS
    for density in config.densities
  ]


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  """The worlds: `cells` `[S, N, N]`, `start` and `goal` `[S, 2]`; and of each `[S]`:

  the shortest way's steps, −1 if there is none; how many positions can be reached; and
  the share of the filled ones.
  """
  del tick
  maps = [
    draw_map(settings["kind"], settings["density"], settings["size"], seed)
    for seed in range(settings["num_seeds"])
  ]
  distances = np.stack([_distances(world) for world in maps])
  goals = np.stack([world.goal for world in maps])
  cells = np.stack([world.cells for world in maps])
  return {
    "cells": cells,
    "start": np.stack([world.start for world in maps]),
    "goal": goals,
    "shortest": distances[np.arange(len(maps)), goals[:, 0], goals[:, 1]],
    "reachable": (distances >= 0).sum(axis=(1, 2)),
    "filled": (cells != grid_maps.OPEN).mean(axis=(1, 2)),
  }


def _distances(world: grid_maps.Map) -> np.ndarray:
  """Steps from the start to each position, int32 `[N, N]`; −1 if there is no way."""
  size = len(world.cells)
  distances = np.full((size + 2, size + 2), -1)
  inside = distances[1:-1, 1:-1]
  # The wall around is filled too.
  is_open = np.pad(world.cells == grid_maps.OPEN, 1)
  reached = np.zeros_like(is_open)
  reached[1 + world.start[0], 1 + world.start[1]] = True
  steps = 0
  while reached.any():
    distances[reached] = steps
    steps += 1
    moved = [np.roll(reached, move, axis=(0, 1)) for move in gridworld.MOVES]
    reached = np.any(moved, axis=0) & is_open & (distances < 0)
  return inside


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  from matplotlib import lines, patches

  columns = len(types.select(done, kind=KINDS[0]))
  fig, axes = drawing.new(len(KINDS), columns, width=2.2, height=2.4)
  # One position among 400 is hard to find by its grey alone.
  marks: dict[str, dict[str, Any]] = {
    name: {"marker": marker, "ms": 8, "mfc": str(grey), "mec": "#D55E00", "ls": ""}
    for name, (marker, grey) in _ENDS.items()
  }
  for ax, task in zip(axes.flat, done, strict=True):
    greys = np.array(list(_CELLS.values()))[task.results["cells"][0]]
    ax.imshow(greys, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    for name, mark in marks.items():
      row, column = task.results[name][0]
      ax.plot(column, row, clip_on=False, **mark)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(
      f"{task.settings['kind']}, {task.settings['density']:g}", fontsize="medium"
    )
  handles: list[Any] = [
    patches.Patch(facecolor=str(grey), edgecolor="black", label=name)
    for name, grey in _CELLS.items()
  ]
  handles += [lines.Line2D([], [], label=name, **mark) for name, mark in marks.items()]
  fig.legend(handles=handles, loc="outside right upper", fontsize="small")
  return fig


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  shortest = np.concatenate([task.results["shortest"] for task in done])
  findings = [
    types.Finding(
      "a way leads from the start to the goal, in every world",
      f"{np.sum(shortest > 0)} of {len(shortest)} worlds, in {shortest.min()} to "
      f"{shortest.max()} steps",
      bool(np.all(shortest > 0)),
    )
  ]
  for kind in KINDS:
    tasks = types.select(done, kind=kind)
    densities = np.array([task.settings["density"] for task in tasks])
    filled = np.array([task.results["filled"].mean() for task in tasks])
    cells = [
      task.results["cells"][0].size * task.settings["num_seeds"] for task in tasks
    ]
    # Three standard errors of the share of independent coins.
    error = 3 * np.sqrt(densities * (1 - densities) / np.array(cells))
    reachable = [task.results["reachable"].mean() for task in tasks]
    findings += [
      types.Finding(
        f"{kind}: the target densities are met (within three standard errors)",
        ", ".join(f"{a:.3f} for {b:g}" for a, b in zip(filled, densities, strict=True)),
        bool(np.all(np.abs(filled - densities) <= error)),
      ),
      types.Finding(
        f"{kind}: denser worlds have fewer positions to go to",
        "on average " + ", ".join(f"{value:.0f}" for value in reachable),
        bool(np.all(np.diff(reachable) < 0)),
      ),
    ]
  return findings


FIGURES = (
  types.Figure(
    name="ez/fig11",
    title="Gridworlds with obstacles or traps",
    source=f"{ez_runs.PAPER}, figure 11",
    claim="each position is filled with the probability of a target density, and the "
    "start and the goal are drawn from the largest connected component of open ones, "
    "so that all worlds can be solved; a greater density reduces the state space.",
    config=Config(),
    quick=Config(densities=(0.1, 0.3, 0.5), num_seeds=10),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
