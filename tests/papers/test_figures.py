"""The stored results of each figure give its frozen verdicts."""

import pathlib

import pytest

from explorax.experiments import output
from explorax.papers import draw, figures, judge, reproduce

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
