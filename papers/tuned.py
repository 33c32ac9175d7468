"""Tuning: the first runs of a figure try values of a setting, and the others the best.

A figure whose methods are tuned has the lines of `lines(methods)` in its `runs`, with
`tuning` among their settings, and in `then` those of `lines(methods, best(...))`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from explorax.experiments.reports import markdown
from explorax.papers import figures

# Method → value of its setting → score in the tuning.
Scores = Mapping[str, Mapping[Any, float]]


class Method(NamedTuple):
  """An agent, of which one setting is tuned.

  Attributes:
    agent: the preset.
    setting: that is tuned, a template of its value: `beta={:g}`.
    values: of it; None is the preset's.
    changes: other settings.
  """

  agent: str
  setting: str
  values: Sequence[float | None]
  changes: tuple[str, ...] = ()

  def line(self, label: str, value: float | None) -> dict[str, Any]:
    """The settings of a task with this value."""
    own = [] if value is None else [self.setting.format(value)]
    changes = [*self.changes, *own]
    return {"method": label, "agent": self.agent, "value": value, "changes": changes}


def lines(
  methods: Mapping[str, Method], best: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
  """The settings of each method with all its values, or with its best one."""
  return [
    {"tuning": best is None, **method.line(label, value)}
    for label, method in methods.items()
    if best is None or label in best
    for value in (method.values if best is None else [best[label]])
  ]


def scores(
  table: figures.Table, score: Callable[[figures.Table], float]
) -> dict[str, dict[Any, float]]:
  """The score of each method's tuning tasks, by the value."""
  tuning = table.where(tuning=True)
  return {
    label: {
      value: score(tuning.where(method=label, value=value))
      for value in tuning.where(method=label).values("value")
    }
    for label in tuning.values("method")
  }


def best(found: Scores) -> dict[str, Any]:
  """Each method's value with the greatest score, the first of equals."""
  return {label: max(each, key=each.__getitem__) for label, each in found.items()}


def table(found: Scores, settings: Mapping[str, str]) -> str:
  """A table of the tuning; `settings`: method → the name of what was tuned."""
  rows = []
  for label, each in found.items():
    columns = {
      f"value {i}": f"{'preset' if value is None else f'{value:g}'}: {score:.2f}"
      for i, (value, score) in enumerate(each.items(), start=1)
    }
    rows.append({"method": label, "setting": f"`{settings[label]}`", **columns})
  return markdown.table(rows)
