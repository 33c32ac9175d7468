"""Parts of figures: curves with intervals, and maps."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax.experiments.recording import drawing
from explorax.papers import types

GREY = "#7F7F7F"


def curves(
  axes: types.Axes,
  x: Sequence[float] | np.ndarray,
  values: Mapping[str, np.ndarray],
  **options: Any,
) -> None:
  """Draws a line with its interval for each label: `[S, N]` at x `[N]`.

  The options are those of `drawing.curve`.
  """
  for index, (label, y) in enumerate(values.items()):
    drawing.curve(axes, x, y, label=label, index=index, **options)


def finish(
  axes: types.Axes,
  *,
  title: str = "",
  legend: str | Mapping[str, Any] | None = None,
  **labels: Any,
) -> None:
  """Adds a title, a legend and a grid; the labels are arguments of `axes.set`.

  The legend is a location or matplotlib's arguments; None for no legend.
  """
  axes.set(**labels)
  if title:
    axes.set_title(title, fontsize="medium")
  if legend is not None:
    options = {"loc": legend} if isinstance(legend, str) else legend
    axes.legend(**{"fontsize": "small", **options})
  axes.grid(alpha=0.3)


def maps(
  axes: np.ndarray, values: Sequence[np.ndarray], titles: Sequence[str], label: str
) -> None:
  """Draws maps `[H, W]` on one scale, with one colour bar."""
  scale = {"vmin": min(map(np.nanmin, values)), "vmax": max(map(np.nanmax, values))}
  image = None
  for ax, value, title in zip(axes.flat, values, titles, strict=True):
    image = ax.imshow(
      value, cmap="cividis", interpolation="nearest", aspect="auto", **scale
    )
    ax.set_title(title, fontsize="medium")
    ax.set(xticks=[], yticks=[])
  bar = axes.flat[0].figure.colorbar(image, ax=list(axes.flat), pad=0.01)
  bar.set_label(label, fontsize="small")
