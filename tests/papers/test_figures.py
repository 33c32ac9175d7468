"""What figures are made of; the stored results of each give its frozen verdicts."""

import pathlib

import numpy as np
import pytest

from explorax.papers import figures, judge, reproduce

pytestmark = pytest.mark.core

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs" / "figures"
FIGURES = figures.every()


@pytest.mark.parametrize("name", FIGURES)
def test_kept_results_give_the_frozen_verdicts(name):
  figure = FIGURES[name]
  kept = reproduce.read_results(ROOT / f"results/figures/{figure.file_name}.npz")

  def complete(tasks):  # A KeyError: a task would be computed again.
    return figures.Table(kept[figures.key(task)] for task in tasks)

  tasks = [task for grid in figure.runs for task in grid.tasks()]
  assert len({figures.key(task) for task in tasks}) == len(tasks) > 0
  findings = judge.judge(figure.claims, figure.stages({}, complete), figure.problem)
  rows = [reproduce.row_of(name, x) for x in findings]
  frozen = [row for row in reproduce.read_verdicts(DOCS) if row["figure"] == name]
  assert rows == frozen


def test_a_table_joins_the_seeds_of_a_problem_in_their_order():
  table = figures.Table(
    figures.CompletedTask(
      {"size": size, "seeds": seeds}, {"x": np.array(seeds) + size}, 1.0, {}
    )
    for size in (4, 2)
    for seeds in ([2, 3], [0, 1])
  )
  assert table.joined("x", size=4).tolist() == [4, 5, 6, 7]
  assert table.without_seed(2).joined("x", size=2).tolist() == [2, 3, 5]
  np.testing.assert_array_equal(table.scores("x"), [[s + 4, s + 2] for s in range(4)])
  with pytest.raises(ValueError, match="unpack"):
    table.joined("x")
