"""Paper 1's figure 11: examples of the random gridworlds of appendix F."""

from typing import Any

import numpy as np
import scipy  # It imports `ndimage` when it is first used.

from explorax.environments import grid_maps
from explorax.papers import draw, figures, judge
from explorax.papers.ez import comparisons, runs

_WORLDS = ("obstacles", "traps")
_DENSITIES = (0.1, 0.2, 0.3, 0.4, 0.5)  # Not in the paper's text.
# Greys by figure 11's caption; those of positions in the order of grid_maps.OPEN,
# OBSTACLE and TRAP.
_CELLS = {"open": 1.0, "obstacle": 0.0, "trap": 0.6}
_ENDS = {"start": ("o", 0.85), "goal": ("*", 0.35)}


def compute(settings: figures.Settings) -> figures.Results:
  """The worlds: `cells` `[S, N, N]`, `start` and `goal` `[S, 2]`; and of each `[S]`:

  the shortest way's steps, −1 if there is none; how many positions can be reached; and
  the share of the filled ones.
  """
  maps = [runs.draw_map(settings, seed) for seed in settings["seeds"]]
  distances = [path_lengths(world) for world in maps]
  return {
    **{name: np.stack([getattr(x, name) for x in maps]) for name in maps[0]._fields},
    "shortest": np.array([x[*y.goal] for x, y in zip(distances, maps, strict=True)]),
    "reachable": np.array([np.sum(x >= 0) for x in distances]),
    "filled": np.array([np.mean(x.cells != grid_maps.OPEN) for x in maps]),
  }


def path_lengths(world: grid_maps.Map) -> np.ndarray:
  """Steps from the start to each position, int64 `[N, N]`; −1 if there is no way."""
  distances, is_open = np.full(world.cells.shape, -1), world.cells == grid_maps.OPEN
  reached, steps = np.zeros_like(is_open), 0
  reached[*world.start] = True
  while np.any(reached & (distances < 0)):
    distances[reached & (distances < 0)] = steps
    steps += 1
    reached = scipy.ndimage.binary_dilation(reached, mask=is_open)
  return distances


def _draw_world(axes: draw.Axes, table: figures.Table) -> None:
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
    color: dict[str, Any] = {"mfc": str(grey), "mec": "#D55E00"}
    axes.plot(column, row, marker, ms=8, clip_on=False, label=name, **color)


def _all_solvable(table: figures.Table) -> tuple[bool, str, None]:
  shortest = np.concatenate([task.results["shortest"] for task in table])
  words = f"in {shortest.min()} to {shortest.max()} steps"
  return bool(np.all(shortest > 0)), words, None


def _densities_met(table: figures.Table) -> tuple[bool, str, None]:
  """Within three standard errors of the share of independent coins."""
  densities, filled = table.over("density", "filled")
  (size,), shares = table.values("size"), filled.mean(axis=0)
  variance = densities * (1 - densities) / (size**2 * len(filled))
  words = ", ".join(f"{share:.3f}" for share in shares)
  return bool(np.all(np.abs(shares - densities) <= 3 * np.sqrt(variance))), words, None


def _fewer_positions(table: figures.Table) -> tuple[bool, str, None]:
  means = table.over("density", "reachable")[1].mean(axis=0)
  return bool(np.all(np.diff(means) < 0)), ", ".join(f"{x:.0f}" for x in means), None


_OF_WORLD = {
  "the target densities are met (within three standard errors)": _densities_met,
  "denser worlds have fewer positions to go to": _fewer_positions,
}

FIGURES = (
  figures.Figure(
    name="ez/fig11",
    title="Gridworlds with obstacles or traps",
    source=f"{runs.PAPER}, figure 11",
    runs=[
      comparisons.grid(
        {"density": _DENSITIES, "size": 20},
        lines=[{"world": world} for world in _WORLDS],
        compute=compute,
      )
    ],
    quick={"num_seeds": 10},
    panels=[
      [
        draw.Panel(
          guides=[_draw_world],
          where={"world": world, "density": density},
          grid="",
          inches=1.6,
          axes={"title": f"{world}, {density:g}", "xticks": [], "yticks": []},
        )
        for density in _DENSITIES
      ]
      for world in _WORLDS
    ],
    claims=[
      judge.Check(
        "a way leads from the start to the goal, in every world", _all_solvable
      ),
      *(
        judge.Check(f"{world}: {claim}", check, {"world": world})
        for world in _WORLDS
        for claim, check in _OF_WORLD.items()
      ),
    ],
  ),
)
