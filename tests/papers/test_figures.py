"""The stored results of each figure give its documented findings."""

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


# One for each way in which figures are computed that no other test here has.
QUICK = (
  *("ez/fig2", "ez/fig3_cartpole", "ez/fig11", "ez/fig15", "ngu/fig7"),
  *("tdu/proposition2", "ucb/small"),
)


@pytest.mark.parametrize("name", QUICK)
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
