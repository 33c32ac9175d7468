"""Every figure: its stored results give its documented findings, and it is drawn."""

import json
import pathlib

import pytest

from explorax.experiments import output, overrides
from explorax.experiments.tasks import store
from explorax.papers import panels, registry, types

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "figures"


def stored(figure: types.Figure) -> types.Table:
  """The results of all the figure's tasks in the documentation."""
  made_by = {"figure": figure.name, "revision": figure.revision}
  results = store.Store(output.RunDirectory(DOCS), f"raw/{figure.file_name}", made_by)
  tasks = figure.tasks(figure.config)
  completed = [done for task in tasks if (done := results.read(task)) is not None]
  assert len(completed) == len(tasks)  # Nothing would be computed again.
  return types.Table(completed)


@pytest.mark.parametrize("name", registry.FIGURES)
def test_stored_results_give_the_documented_findings(name):
  figure = registry.FIGURES[name]
  record = json.loads((DOCS / f"{figure.file_name}.json").read_text())
  config = json.loads(json.dumps(overrides.to_dict(figure.config)))
  assert record["config"] == config
  findings = [
    finding._replace(num_seeds=finding.num_seeds or config["num_seeds"])
    for finding in figure.judge(figure.config, stored(figure))
  ]
  assert findings == [
    types.Finding(*(known[field] for field in types.Finding._fields))
    for known in record["findings"]
  ]


def few_seeds(task: types.CompletedTask) -> types.CompletedTask:
  """Three seeds at most, since intervals of many take long."""
  settings = task.settings
  seeds = settings.get("seeds") or list(range(settings["num_seeds"]))
  results = {
    name: x[:3] if len(x) == len(seeds) else x for name, x in task.results.items()
  }
  if "seeds" in settings:
    settings = {**settings, "seeds": seeds[:3]}
  return task._replace(settings=settings, results=results)


@pytest.mark.parametrize("name", registry.FIGURES)
def test_a_figure_has_axes_with_labels_or_titles(name):
  pytest.importorskip("matplotlib")
  figure = registry.FIGURES[name]
  table = types.Table(map(few_seeds, stored(figure)))
  fig = panels.draw(figure.panels(figure.config), table, figure.size)
  for axes in fig.axes:
    assert axes.get_xlabel() or axes.get_ylabel() or axes.get_title()
    assert axes.lines or axes.images or axes.patches or axes.collections


# Those that compile no network; the others take minutes.
SHORT = ("ez/fig11", "ez/fig15", "ngu/fig7", "tdu/proposition2")


@pytest.mark.parametrize(
  "name",
  [
    pytest.param(name, marks=() if name in SHORT else pytest.mark.slow)
    for name in registry.FIGURES
  ],
)
def test_the_quick_version_is_computed_and_judged(name):
  figure, shares = registry.FIGURES[name], []
  config = figure.quick
  table = types.Table(
    types.CompletedTask(
      task.name,
      task.settings,
      figure.compute(task.settings, types.TaskContext(shares.append)),
      1.0,
      {},
    )
    for task in figure.tasks(config)
  )
  assert all(0 <= share <= 1 for share in shares)
  assert all(f.claim and f.measured for f in figure.judge(config, table))
  pytest.importorskip("matplotlib")
  assert panels.draw(figure.panels(config), table, figure.size).axes
