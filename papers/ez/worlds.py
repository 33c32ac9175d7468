"""Paper 1's figure 11: examples of the random gridworlds of appendix F."""

import dataclasses
from typing import Any

import numpy as np

from explorax.agents import ranges
from explorax.environments import grid_maps, gridworld
from explorax.experiments.recording import drawing
from explorax.papers import types
from explorax.papers.ez import domains, runs

# Greys by figure 11's caption; those of positions in the order of grid_maps.OPEN,
# OBSTACLE and TRAP.
_CELLS = {"open": 1.0, "obstacle": 0.0, "trap": 0.6}
_ENDS = {"start": ("o", 0.85), "goal": ("*", 0.35)}


def check_densities(config: Any, size: int) -> None:
  """Refuses densities that do not rise, or that leave a seed's world without a path."""
  ranges.rising(config, 2, "densities")
  ranges.at_least(config, 1, "num_seeds")
  ranges.at_least(config, 0, "densities")
  for seed in range(config.num_seeds):
    # If a seed's densest world has a path, its sparser ones have one too, and so do its
    # worlds of traps, which have the obstacles' positions.
    domains.draw_map("obstacles", config.densities[-1], size, seed)


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of figure 11. The densities are not in the paper's text: our own."""

  densities: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5)
  size: int = 20  # Rows and columns.
  num_seeds: int = 30  # Measured worlds; the first one is drawn.

  def __post_init__(self) -> None:
    ranges.at_least(self, 5, "size")
    check_densities(self, self.size)


def _tasks(config: Config) -> list[types.Task]:
  seeds = list(range(config.num_seeds))
  return [
    types.Task(
      f"{kind}_{density}",
      {"kind": kind, "density": density, "size": config.size, "seeds": seeds},
    )
    for kind in domains.WORLDS
    for density in config.densities
  ]


def _run(settings: types.Settings, context: types.TaskContext) -> types.Results:
  """The worlds: `cells` `[S, N, N]`, `start` and `goal` `[S, 2]`; and of each `[S]`:

  the shortest way's steps, −1 if there is none; how many positions can be reached; and
  the share of the filled ones.
  """
  del context
  maps = [
    domains.draw_map(settings["kind"], settings["density"], settings["size"], seed)
    for seed in settings["seeds"]
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


def _draw(config: Config, table: types.Table) -> types.Drawing:
  from matplotlib import lines, patches

  shape = len(domains.WORLDS), len(config.densities)
  fig, axes = drawing.new(*shape, width=2.2, height=2.4)
  # Marks, since one grey position among 400 is hard to see.
  marks: dict[str, dict[str, Any]] = {
    name: {"marker": marker, "ms": 8, "mfc": str(grey), "mec": "#D55E00", "ls": ""}
    for name, (marker, grey) in _ENDS.items()
  }
  for ax, task in zip(axes.flat, table, strict=True):
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


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  shortest = np.concatenate([task.results["shortest"] for task in table])
  findings = [
    types.Finding(
      "a way leads from the start to the goal, in every world",
      f"{np.sum(shortest > 0)} of {len(shortest)} worlds, in {shortest.min()} to "
      f"{shortest.max()} steps",
      bool(np.all(shortest > 0)),
    )
  ]
  densities = np.array(config.densities)
  # Three standard errors of the share of independent coins.
  variance = densities * (1 - densities) / (config.size**2 * config.num_seeds)
  for kind in domains.WORLDS:
    filled, reachable = (
      table.per_seed(name, kind=kind).mean(axis=0) for name in ("filled", "reachable")
    )
    findings += [
      types.Finding(
        f"{kind}: the target densities are met (within three standard errors)",
        ", ".join(f"{a:.3f} for {b:g}" for a, b in zip(filled, densities, strict=True)),
        bool(np.all(np.abs(filled - densities) <= 3 * np.sqrt(variance))),
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
    source=f"{runs.PAPER}, figure 11",
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
