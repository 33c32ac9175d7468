"""The stored results of each figure give its frozen verdicts."""

import json
import pathlib

import pytest

from explorax.experiments import output
from explorax.experiments import settings as settings_lib
from explorax.papers import (
  draw,
  figures,
  judge,
  registry,
  reproduce,
  store,
  types,
  verdicts,
)

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs" / "figures"
FIGURES = figures.every()


def kept(figure: figures.Figure) -> figures.Table:
  """The results of all the figure's tasks in the repository."""
  results = output.RunDirectory(ROOT / "results" / "figures")
  read = reproduce.Store(results, figure.file_name).read

  def complete(tasks):
    found = [done for task in tasks if (done := read(task)) is not None]
    assert len(found) == len(tasks)  # Nothing would be computed again.
    return figures.Table(found)

  return figure.stages({}, complete)


@pytest.mark.parametrize("name", FIGURES)
def test_kept_results_give_the_frozen_verdicts(name):
  figure = FIGURES[name]
  findings = judge.judge(figure.claims, kept(figure), figure.problem)
  rows = [reproduce.row_of(name, x) for x in findings]
  frozen = [row for row in reproduce.read_verdicts(DOCS) if row["figure"] == name]
  assert rows == frozen


# One for each way in which figures are computed that no other test here has.
@pytest.mark.parametrize("name", ["ngu/fig7", "ucb/small"])
def test_the_quick_version_of_a_figure_is_computed_and_drawn(name):
  figure = FIGURES[name]

  def complete(tasks):
    return figures.Table(
      figures.CompletedTask(x.settings, x.compute(x.settings), 1.0, {}) for x in tasks
    )

  table = figure.stages(figure.quick, complete)
  judge.judge(figure.claims, table, figure.problem)
  pytest.importorskip("matplotlib")
  assert draw.draw(figure.panels, table).startswith(b"\x89PNG")


# Figures that have not moved yet.
# Of large figures, perhaps only the quick versions have been computed.
RUN = [
  name
  for name, figure in registry.FIGURES.items()
  if not figure.large or (DOCS / f"{figure.file_name}.json").exists()
]


def stored(figure: types.Figure) -> types.Table:
  """The results of all the figure's tasks in the documentation."""
  results = store.Store(output.RunDirectory(DOCS), f"raw/{figure.file_name}")

  def completed(tasks: list[types.Task]) -> types.Table:
    found = [done for task in tasks if (done := results.read(task)) is not None]
    assert len(found) == len(tasks)  # Nothing would be computed again.
    return types.Table(found)

  table = completed(figure.tasks(figure.config))
  if figure.then is None:
    return table
  return types.Table([*table, *completed(figure.then(figure.config, table))])


@pytest.mark.parametrize("name", RUN)
def test_stored_results_give_the_frozen_verdicts(name):
  figure = registry.FIGURES[name]
  record = json.loads((DOCS / f"{figure.file_name}.json").read_text())
  config = json.loads(json.dumps(settings_lib.to_json(figure.config)))
  assert record["config"] == config
  findings = figure.judge(figure.config, stored(figure))
  rows = [verdicts.row(name, {**x._asdict(), "verdict": x.verdict}) for x in findings]
  assert rows == [row for row in verdicts.read() if row["figure"] == name]
