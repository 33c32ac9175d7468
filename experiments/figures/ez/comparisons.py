"""εz-greedy beside ε-greedy: curves, maps of first visits, and their claims.

Tasks are those of `domains.task`; where several domains or settings are in a figure,
the functions take the table of one of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax.experiments.figures import types
from explorax.experiments.figures.ez import domains, runs
from explorax.experiments.recording import drawing, statistics

_GREY = "#7F7F7F"


def blocks(values: np.ndarray, num: int = 50) -> tuple[np.ndarray, np.ndarray]:
  """Means over consecutive episodes, so that curves of many episodes can be read.

  Args:
    values: `[S, E]`.
    num: blocks; as many as there are episodes if those are fewer.

  Returns:
    The middle of each block, counting episodes from 1, and the means `[S, num]`.
  """
  parts = np.array_split(np.arange(values.shape[1]), min(num, values.shape[1]))
  x = np.array([part.mean() + 1 for part in parts])
  return x, np.stack([values[:, part].mean(axis=1) for part in parts], axis=1)


def draw_curves(
  axes: types.Axes, curves: Mapping[str, np.ndarray], ylabel: str
) -> None:
  """Draws learning curves: label → `[S, E]`."""
  for index, (label, returns) in enumerate(curves.items()):
    drawing.curve(axes, *blocks(returns), label=label, index=index)
  axes.set(xlabel="episode", ylabel=ylabel)
  axes.grid(alpha=0.3)


def draw_returns(axes: types.Axes, table: types.Table) -> None:
  """Draws the learning curve of each rule."""
  draw_curves(
    axes,
    {
      label: table.joined("discounted_returns", rule=rule)
      for rule, label in runs.LABELS.items()
    },
    "discounted return",
  )


def draw_maps(
  axes: np.ndarray, values: Sequence[np.ndarray], titles: Sequence[str], label: str
) -> None:
  """Draws maps `[H, W]` on one scale, whose bar is beside the last of them."""
  scale = {"vmin": min(map(np.nanmin, values)), "vmax": max(map(np.nanmax, values))}
  image = None
  for ax, value, title in zip(axes.flat, values, titles, strict=True):
    image = ax.imshow(
      value, cmap="cividis", interpolation="nearest", aspect="auto", **scale
    )
    ax.set_title(title, fontsize="medium")
    ax.set_xticks([])
    ax.set_yticks([])
  bar = axes.flat[0].figure.colorbar(image, ax=list(axes.flat), pad=0.01)
  bar.set_label(label, fontsize="small")


def draw_first_visits(axes: np.ndarray, table: types.Table) -> None:
  """Draws the maps of both rules in a domain into two axes."""
  domain = domains.of(table[0].settings)
  logarithmic = isinstance(domain, domains.DeepSea)
  draw_maps(
    axes,
    [
      domain.to_map(table.joined("first_visits", rule=rule).mean(axis=0))
      for rule in runs.RULES
    ],
    [f"{label}, ε = 1" for label in runs.LABELS.values()],
    "log(mean first visit + 1)" if logarithmic else "mean first visit (step)",
  )
  for ax in axes:
    ax.set_xlabel(domain.map_axes[0], fontsize="small")
  axes[0].set_ylabel(domain.map_axes[1], fontsize="small")


def earns_more(
  label: str, table: types.Table, name: str = "discounted_returns", spec: str = ".3f"
) -> types.Finding:
  """Whether εz-greedy earns more than ε-greedy by the result of that name."""
  a, b = (table.per_seed(name, rule=rule)[:, 0] for rule in ("ez", "epsilon"))
  gap = statistics.difference(a, b)
  what = name.replace("_", " ").removesuffix("s")
  return types.Finding(
    f"{label}: εz-greedy earns more, over all episodes",
    f"{what} {a.mean():{spec}} against {b.mean():{spec}}, {gap.words('+.3g')}",
    gap.is_above(),
  )


def visits_earlier(label: str, table: types.Table) -> types.Finding:
  """Whether εz-greedy visits the states of a map earlier.

  Of the cells that no trial of either rule ever got to, many cannot be reached at all:
  they are left out.
  """
  visited = [table.joined("visited", rule=rule) for rule in ("ez", "epsilon")]
  reached = np.concatenate(visited).any(axis=0)
  a, b = (
    table.joined("first_visits", rule=rule)[:, reached].mean(axis=1)
    for rule in ("ez", "epsilon")
  )
  shares = [x[:, reached].mean() for x in visited]
  gap = statistics.difference(a, b)
  return types.Finding(
    f"{label}: at ε = 1, εz-greedy visits states earlier",
    f"mean first visit {a.mean():.0f} against {b.mean():.0f} steps, "
    f"{gap.words('+.3g')}; {shares[0]:.1%} against {shares[1]:.1%} of the cells "
    "visited",
    gap.is_below(),
  )


# -- episodes to the first goal of the deep sea, against its size --------------------


def draw_deep_sea(axes: types.Axes, table: types.Table) -> None:
  """Draws the median of the episodes to the first goal against the size."""
  sizes, most = np.array(table.values("size")), table[0].settings["episodes"]
  for index, (rule, label) in enumerate(runs.LABELS.items()):
    drawing.curve(
      axes,
      sizes,
      table.per_seed("episodes", rule=rule),
      label=label,
      index=index,
      statistic=statistics.median_over_seeds,
      markers=True,
    )
  axes.plot(sizes, 2.0**sizes, color=_GREY, linewidth=1, label="$2^N$")
  axes.axhline(most, color=_GREY, linestyle=":", linewidth=1, label="given up")
  axes.set(xlabel="size N", ylabel="episodes to the first goal\n(median)", yscale="log")
  axes.set_ylim(1, 3 * most)
  axes.legend(fontsize="small", loc="lower right")
  axes.grid(alpha=0.3)


def deep_sea_medians(table: types.Table) -> str:
  """The medians over seeds of the episodes, for each rule, in words."""
  words = []
  for rule, label in runs.LABELS.items():
    medians = np.median(table.per_seed("episodes", rule=rule), axis=0)
    words.append(f"{label} {up_to(medians, table[0].settings['episodes'])}")
  sizes = ", ".join(map(str, table.values("size")))
  return f"medians at N = {sizes}: {'; '.join(words)}"


def up_to(numbers: np.ndarray, most: float) -> str:
  """Numbers in words, with `>` before those that ended at the limit."""
  return ", ".join(f"{'>' if x >= most else ''}{x:.0f}" for x in numbers)


# -- learning against a property of the domain ---------------------------------------


def draw_sweep(
  table: types.Table, name: str, label: str, shown: Sequence[float]
) -> types.Drawing:
  """Mean returns against all values on the left, the curves of some on the right.

  Args:
    table: of a domain.
    name: of the property among the settings.
    label: of its axis.
    shown: the values that have a panel.
  """
  fig, axes = drawing.new(2, 1 + (len(shown) + 1) // 2, width=3.5, height=2.6)
  grid = axes[0, 0].get_gridspec()
  for ax in axes[:, 0]:
    ax.remove()
  summary: Any = fig.add_subplot(grid[:, 0])
  for index, (rule, rule_label) in enumerate(runs.LABELS.items()):
    drawing.curve(
      summary,
      table.values(name),
      table.per_seed("discounted_returns", rule=rule),
      label=rule_label,
      index=index,
      markers=True,
    )
  summary.set(xlabel=label, ylabel="discounted return,\nmean over all episodes")
  summary.grid(alpha=0.3)
  summary.legend(fontsize="small")
  panels = list(axes[:, 1:].flat)
  for ax, value in zip(panels, shown, strict=False):
    draw_returns(ax, table.where(**{name: value}))
    ax.set_title(f"{name} {value:g}", fontsize="medium")
  for ax in panels[len(shown) :]:
    ax.remove()
  return fig
