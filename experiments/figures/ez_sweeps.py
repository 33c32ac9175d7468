"""Learning against a property of the environment: paper 1's figures 7, 8, 12 and 13.

Their tasks are one for each rule and value of the property, and their settings hold
`rule`, the value under the property's name, and `shown`, whether it has a panel.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from explorax.experiments.figures import ez_runs, types
from explorax.experiments.recording import drawing

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure


def draw(done: Sequence[types.Done], name: str, label: str) -> "mpl_figure.Figure":
  """Mean returns against all values on the left, the curves of some on the right.

  Args:
    done: a task for each rule and value.
    name: of the property among the settings.
    label: of its axis.
  """
  shown = list(dict.fromkeys(t.settings[name] for t in done if t.settings["shown"]))
  columns = 1 + (len(shown) + 1) // 2
  fig, axes = drawing.new(2, columns, width=3.5, height=2.6)
  grid = axes[0, 0].get_gridspec()
  for ax in axes[:, 0]:
    ax.remove()
  summary = fig.add_subplot(grid[:, 0])
  for index, rule in enumerate(ez_runs.RULES):
    drawing.curve(
      summary,
      values(done, name),
      means(done, rule),
      label=ez_runs.LABELS[rule],
      index=index,
      markers=True,
    )
  summary.set(xlabel=label, ylabel="discounted return,\nmean over all episodes")
  summary.grid(alpha=0.3)
  summary.legend(fontsize="small")
  panels = list(axes[:, 1:].flat)
  for ax, value in zip(panels, shown, strict=False):
    tasks = types.select(done, **{name: value})
    ez_runs.curves(
      ax, {t.settings["rule"]: t.results["discounted_returns"] for t in tasks}
    )
    ax.set_title(f"{name} {value:g}", fontsize="medium")
  for ax in panels[len(shown) :]:
    ax.remove()
  return fig


def values(done: Sequence[types.Done], name: str) -> np.ndarray:
  """The property's values `[V]`."""
  rule = done[0].settings["rule"]
  return np.array([t.settings[name] for t in types.select(done, rule=rule)])


def means(done: Sequence[types.Done], rule: str) -> np.ndarray:
  """Each seed's discounted return, averaged over its episodes: `[S, V]`."""
  tasks = types.select(done, rule=rule)
  returns = [task.results["discounted_returns"].mean(axis=1) for task in tasks]
  return np.stack(returns, axis=1)
