"""Paper 1's figure 11: examples of the random gridworlds of appendix F."""

import dataclasses
from typing import Annotated, Any

import numpy as np

from explorax import ranges
from explorax.environments import grid_maps, gridworld
from explorax.papers import claims, layers, panels, types
from explorax.papers.ez import domains, runs

# Greys by figure 11's caption; those of positions in the order of grid_maps.OPEN,
# OBSTACLE and TRAP.
_CELLS = {"open": 1.0, "obstacle": 0.0, "trap": 0.6}
_ENDS = {"start": ("o", 0.85), "goal": ("*", 0.35)}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of figure 11. The densities are not in the paper's text: our own."""

  densities: types.Rising[ranges.NonNegativeFloat] = (0.1, 0.2, 0.3, 0.4, 0.5)
  size: Annotated[int, ranges.Range(ge=5)] = 20  # Rows and columns.
  num_seeds: ranges.PositiveInt = 30  # Measured worlds; the first one is drawn.


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


def compute(settings: types.Settings) -> types.Results:
  """The worlds: `cells` `[S, N, N]`, `start` and `goal` `[S, 2]`; and of each `[S]`:

  the shortest way's steps, −1 if there is none; how many positions can be reached; and
  the share of the filled ones.
  """
  maps = [
    domains.draw_map(settings["kind"], settings["density"], settings["size"], seed)
    for seed in settings["seeds"]
  ]
  distances = np.stack([path_lengths(world) for world in maps])
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


def path_lengths(world: grid_maps.Map) -> np.ndarray:
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


def _panels(config: Config) -> list[list[panels.Panel]]:
  return [
    [
      panels.Panel(
        _draw_world,
        where={"kind": kind, "density": density},
        grid=None,
        title=f"{kind}, {density:g}",
        xticks=[],
        yticks=[],
      )
      for density in config.densities
    ]
    for kind in domains.WORLDS
  ]


def _draw_world(axes: types.Axes, table: types.Table) -> None:
  """The first seed's world."""
  (task,) = table
  greys = np.array(list(_CELLS.values()))[task.results["cells"][0]]
  axes.spines[["top", "right"]].set_visible(True)
  axes.imshow(greys, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
  for name, grey in _CELLS.items():
    axes.plot([], [], "s", ms=8, mfc=str(grey), mec="black", label=name)
  # Marks, since one grey position among 400 is hard to see.
  for name, (marker, grey) in _ENDS.items():
    row, column = task.results[name][0]
    style: dict[str, Any] = {"ms": 8, "mfc": str(grey), "mec": "#D55E00"}
    axes.plot(column, row, marker, clip_on=False, label=name, **style)


def _all_solvable(table: types.Table) -> tuple[str, bool]:
  shortest = np.concatenate([task.results["shortest"] for task in table])
  return (
    f"{np.sum(shortest > 0)} of {len(shortest)} worlds, in {shortest.min()} to "
    f"{shortest.max()} steps"
  ), bool(np.all(shortest > 0))


def _densities_met(table: types.Table) -> tuple[str, bool]:
  """Within three standard errors of the share of independent coins."""
  densities, filled = layers.over("density", table, "filled")
  (size,), shares = table.values("size"), filled.mean(axis=0)
  variance = densities * (1 - densities) / (size**2 * len(filled))
  each = zip(shares, densities, strict=True)
  words = ", ".join(f"{share:.3f} for {density:g}" for share, density in each)
  return words, bool(np.all(np.abs(shares - densities) <= 3 * np.sqrt(variance)))


def _fewer_positions(table: types.Table) -> tuple[str, bool]:
  _, reachable = layers.over("density", table, "reachable")
  means = reachable.mean(axis=0)
  words = "on average " + ", ".join(f"{mean:.0f}" for mean in means)
  return words, bool(np.all(np.diff(means) < 0))


_CLAIMS = (
  claims.Check("a way leads from the start to the goal, in every world", _all_solvable),
  *(
    claims.Check(f"{kind}: {claim}", check, {"kind": kind})
    for kind in domains.WORLDS
    for claim, check in (
      ("the target densities are met (within three standard errors)", _densities_met),
      ("denser worlds have fewer positions to go to", _fewer_positions),
    )
  ),
)


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
    compute=compute,
    panels=_panels,
    claims=lambda config: _CLAIMS,
    caption="The worlds of the first seed. A seed's denser worlds contain all "
    "obstacles or traps of its sparser ones.",
    kind="formula",
    height=1.9,
  ),
)
