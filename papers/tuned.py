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
  """An agent, of which one setting is tuned."""

  agent: str  # The preset.
  setting: str  # A template of the setting and its value: `beta={:g}`.
  values: Sequence[float | None]  # None is the preset's.
  changes: tuple[str, ...] = ()  # Other settings.


def lines(
  methods: Mapping[str, Method], best: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
  """The settings of each method with all its values, or with its best one."""
  lines = []
  for label in methods if best is None else best:
    agent, setting, values, changes = methods[label]
    for value in values if best is None else [best[label]]:
      own = [] if value is None else [setting.format(value)]
      line = {"method": label, "agent": agent, "value": value}
      lines.append({"tuning": best is None, **line, "changes": [*changes, *own]})
  return lines


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


def table(found: Scores, methods: Mapping[str, Method]) -> str:
  """A table of the tuning: the scores of each method's values."""
  rows = []
  for label, each in found.items():
    setting, _, _ = methods[label].setting.partition("=")
    columns = {
      f"value {i}": f"{'preset' if value is None else f'{value:g}'}: {score:.2f}"
      for i, (value, score) in enumerate(each.items(), start=1)
    }
    rows.append({"method": label, "setting": f"`{setting}`", **columns})
  return markdown.table(rows)
