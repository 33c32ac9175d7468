"""The panels of a drawing: axes with layers, a title, labels and scales.

A layer draws what it selects from the table of results into matplotlib's axes: any
function (axes, table) → None, such as those of `layers.py`.

    Panel(
      layers.Curves("returns", {"TDU": {"agent": "tdu"}, "RND": {"agent": "dqn_rnd"}}),
      layers.horizontal(0.29, "near-optimal"),
      title="MountainCar",
      xlabel="episode",
      ylabel="return",
    )
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from explorax.experiments.recording import drawing
from explorax.papers import types

Layer = Callable[[types.Axes, types.Table], None]


class Panel:
  """Layers in axes of their own."""

  def __init__(
    self,
    *layers: Layer,
    where: types.Selection | None = None,
    legend: Mapping[str, Any] | str | None = "best",
    share_y: bool = False,
    grid: Literal["both", "x", "y"] | None = "both",
    **axes: Any,
  ):
    """Makes a panel.

    Args:
      *layers: drawn one after another.
      where: selects the tasks for all layers.
      legend: matplotlib's arguments or only its location; None for no legend.
      share_y: whether the panel has one y-axis with the others that share it.
      grid: lines at the ticks of both axes or of one, "x" or "y"; None for none.
      **axes: arguments of `Axes.set`, such as `title` and `xlabel`; `xscale` and
        `yscale` may be pairs of a name and a dictionary of its arguments.
    """
    self.share_y = share_y
    self._layers = layers
    self._where = where or {}
    self._legend = legend
    self._grid = grid
    self._axes = axes

  def draw(self, axes: types.Axes, table: types.Table) -> None:
    for layer in self._layers:
      layer(axes, table.where(**self._where))
    finish(axes, self._legend, self._grid, **self._axes)


def finish(
  axes: types.Axes,
  legend: Mapping[str, Any] | str | None = "best",
  grid: Literal["both", "x", "y"] | None = "both",
  **settings: Any,
) -> None:
  """Adds what is around the layers; see `Panel`."""
  for name, set_scale in (("xscale", axes.set_xscale), ("yscale", axes.set_yscale)):
    if isinstance(settings.get(name), tuple):
      scale, arguments = settings.pop(name)
      set_scale(scale, **arguments)
  axes.set(**settings)
  axes.title.set_fontsize("medium")
  if legend is not None and axes.get_legend_handles_labels()[1]:
    options = {"loc": legend} if isinstance(legend, str) else legend
    axes.legend(**{"fontsize": "small", **options})
  if grid is not None:
    axes.grid(axis=grid, alpha=0.3)


@dataclasses.dataclass(frozen=True)
class Maps:
  """Maps side by side on one scale with one colour bar, in place of a panel.

  Attributes:
    values: what a map shows: `[H, W]`.
    maps: title → the settings that select its tasks.
    label: of the colour bar.
    columns: maps in a row.
    where: selects the tasks for all maps.
    xlabel: of all maps.
    ylabel: of the first map of a row.
  """

  values: Callable[[types.Table], np.ndarray]
  maps: Mapping[str, types.Selection]
  label: str
  columns: int = 2
  where: types.Selection = dataclasses.field(default_factory=dict)
  xlabel: str = ""
  ylabel: str = ""

  share_y = False

  def draw(self, axes: types.Axes, table: types.Table) -> None:
    fig, spec = axes.figure, axes.get_subplotspec()
    assert spec is not None  # It is one of `draw`.
    axes.remove()
    chosen = table.where(**self.where)
    maps = {title: self.values(chosen.where(**x)) for title, x in self.maps.items()}
    scale = {
      "vmin": min(map(np.nanmin, maps.values())),
      "vmax": max(map(np.nanmax, maps.values())),
    }
    grid = spec.subgridspec(-(-len(maps) // self.columns), self.columns)
    parts: list[types.Axes] = []
    for (title, values), cell in zip(maps.items(), _cells(grid), strict=False):
      part = fig.add_subplot(cell)
      part.imshow(
        values, cmap="cividis", interpolation="nearest", aspect="auto", **scale
      )
      part.set_title(title, fontsize="medium")
      part.set(xticks=[], yticks=[])
      part.set_xlabel(self.xlabel, fontsize="small")
      if len(parts) % self.columns == 0:
        part.set_ylabel(self.ylabel, fontsize="small")
      parts.append(part)
    bar = fig.colorbar(parts[0].images[0], ax=parts, pad=0.01)
    bar.set_label(self.label, fontsize="small")


def _cells(grid: Any) -> Iterator[Any]:
  return (grid[i, j] for i in range(grid.nrows) for j in range(grid.ncols))


def draw(
  rows: Sequence[Sequence[Panel | Maps | None]],
  table: types.Table,
  size: tuple[float, float],
) -> types.Drawing:
  """Draws rows of panels; see `types.Figure`."""
  width, height = size
  fig, cells = drawing.new(len(rows), max(map(len, rows)), width=width, height=height)
  grid = cells[0, 0].get_gridspec()
  for axes in cells.flat:
    axes.remove()
  places: dict[int, tuple[Any, list[int], list[int]]] = {}
  for i, row in enumerate(rows):
    for j, panel in enumerate(row):
      if panel is not None:
        _, ys, xs = places.setdefault(id(panel), (panel, [], []))
        ys.append(i)
        xs.append(j)
  shared = None
  for panel, ys, xs in places.values():
    spec = grid[min(ys) : max(ys) + 1, min(xs) : max(xs) + 1]
    axes = fig.add_subplot(spec, sharey=shared if panel.share_y else None)
    shared = axes if panel.share_y and shared is None else shared
    panel.draw(axes, table)
  return fig
