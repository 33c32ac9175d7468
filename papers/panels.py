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
_LABELS_IN_A_ROW = 100  # Letters.


class Panel:
  """Layers in axes of their own."""

  def __init__(
    self,
    *layers: Layer,
    where: types.Selection | None = None,
    legend: Literal["figure", "row", "panel", "direct"] | None = "figure",
    share_y: bool = False,
    grid: Literal["both", "x", "y"] | None = "both",
    **axes: Any,
  ):
    """Makes a panel.

    Args:
      *layers: drawn one after another.
      where: selects the tasks for all layers.
      legend: where lines are named: below all panels, below this row or this panel, or
        at their ends; None if another panel names them.
      share_y: whether the panel has one y-axis with the others that share it.
      grid: lines at the ticks of both axes or of one, "x" or "y"; None for none.
      **axes: arguments of `Axes.set`, such as `title` and `xlabel`; `xscale` and
        `yscale` may be pairs of a name and a dictionary of its arguments.
    """
    self.share_y = share_y
    self.legend = legend
    self._layers = layers
    self._where = where or {}
    self._grid = grid
    self._axes = axes

  def draw(self, axes: types.Axes, table: types.Table) -> None:
    for layer in self._layers:
      layer(axes, table.where(**self._where))
    finish(axes, self._grid, **self._axes)
    if self.legend == "direct":
      _label_ends(axes)
    elif self.legend == "panel":
      handles, labels = axes.get_legend_handles_labels()
      place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.22)}
      axes.legend(handles, labels, fontsize=8, ncols=1 + (len(labels) > 4), **place)


def finish(
  axes: types.Axes, grid: Literal["both", "x", "y"] | None = "both", **settings: Any
) -> None:
  """Adds what is around the layers; see `Panel`."""
  for name, set_scale in (("xscale", axes.set_xscale), ("yscale", axes.set_yscale)):
    if name in settings:
      scale = settings.pop(name)
      set_scale(scale) if isinstance(scale, str) else set_scale(scale[0], **scale[1])
  axes.set(**settings)
  for axis in (axes.xaxis, axes.yaxis):
    drawing.label_logarithmic(axis)
  if grid is not None:
    axes.grid(axis=grid, alpha=0.3)


def _label_ends(axes: types.Axes) -> None:
  """Names lines at their right ends, moved apart where they would overlap."""
  lines: Any
  lines, labels = axes.get_legend_handles_labels()
  (low, high), place = axes.get_ylim(), axes.transData + axes.transAxes.inverted()
  ends = [place.transform((h.get_xdata()[-1], h.get_ydata()[-1]))[1] for h in lines]
  at = -np.inf
  for i in np.argsort(ends):
    at = max(float(ends[i]), at + 0.07)
    color = lines[i].get_color()
    axes.text(
      *(1.01, at, labels[i]), color=color, va="center", transform=axes.transAxes
    )
  axes.set_ylim(low, high)


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
  legend = None

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
      part.set_title(title)
      part.set(xticks=[], yticks=[], xlabel=self.xlabel)
      part.spines[["top", "right"]].set_visible(True)
      if len(parts) % self.columns == 0:
        part.set_ylabel(self.ylabel)
      parts.append(part)
    fig.colorbar(parts[0].images[0], ax=parts, pad=0.01).set_label(self.label)


def _cells(grid: Any) -> Iterator[Any]:
  return (grid[i, j] for i in range(grid.nrows) for j in range(grid.ncols))


def draw(
  rows: Sequence[Sequence[Panel | Maps | None]],
  table: types.Table,
  height: float,
  title: str = "",
) -> types.Drawing:
  """Draws rows of panels; see `types.Figure`.

  Rows with different numbers of panels, or with lines of different names, are apart,
  and name their lines below themselves.
  """
  by_row = [[p for p in row if p is not None and p.legend == "row"] for row in rows]
  apart = any(by_row) or len({*map(len, rows)}) > 1
  with drawing.column(height * len(rows)) as fig:
    fig.suptitle(title, fontsize=11.5)
    if not apart:
      _draw_rows(fig, rows, table)
      return fig
    for part, row in zip(fig.subfigures(len(rows)), rows, strict=True):
      _draw_rows(part, [row], table)
  return fig


def _draw_rows(
  fig: Any, rows: Sequence[Sequence[Panel | Maps | None]], table: types.Table
) -> None:
  grid = fig.add_gridspec(len(rows), max(map(len, rows)))
  places: dict[int, tuple[Any, list[int], list[int]]] = {}
  for i, row in enumerate(rows):
    for j, panel in enumerate(row):
      if panel is not None:
        _, ys, xs = places.setdefault(id(panel), (panel, [], []))
        ys.append(i)
        xs.append(j)
  shared, named = None, dict[str, Any]()
  for panel, ys, xs in places.values():
    spec = grid[min(ys) : max(ys) + 1, min(xs) : max(xs) + 1]
    axes = fig.add_subplot(spec, sharey=shared if panel.share_y else None)
    shared = axes if panel.share_y and shared is None else shared
    panel.draw(axes, table)
    if panel.legend in ("figure", "row"):
      handles, labels = axes.get_legend_handles_labels()
      named = dict(zip(labels, handles, strict=True)) | named
  if named:
    letters = max(map(len, named)) + 6
    columns = max(1, min(len(named), _LABELS_IN_A_ROW // letters))
    place: Any = {"loc": "outside lower center", "ncols": columns}
    fig.legend([*named.values()], [*named], **place)
