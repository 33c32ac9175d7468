"""What agents learn: runs, tables, and the pages that have them."""

import dataclasses

import pytest

from explorax.experiments.reports import markdown
from explorax.papers.learning import goals, page, runs, tables

# No update happens, so that little is compiled.
SMALL = ("hidden_sizes=8", "min_replay_size=1000")


def test_tables_are_those_of_the_files():
  texts = [path.read_text(encoding="utf-8") for path in page.PAGES]
  for text in texts:
    assert markdown.fill(text, page.tables()) == text, "run `make results`"
  for name in page.tables():
    assert any(name in markdown.names(text) for text in texts), name


def test_a_goal_is_reached_and_then_kept_or_not():
  def run(*returns: float) -> dict:
    return {"evaluations": [(10 * (i + 1), x) for i, x in enumerate(returns)]}

  assert goals.reached_at(run(1, 5, 3), 4) == 20
  assert goals.reached_at(run(1, 4), 4) is None
  assert goals.afterwards(run(1, 5, 3, 6), 4) == [False, True]
  assert goals.afterwards(run(1, 4), 4) == []


@pytest.mark.parametrize(
  ("name", "short", "column"),
  [
    ("distinct_priors", {"episodes": 3}, "solved_episode"),
    ("memory", {"steps": 40, "eval_every": 20, "eval_episodes": 2}, "evaluations"),
    ("sparse", {"steps": 40, "eval_every": None}, "rooms"),
  ],
)
def test_learning_is_measured_from_the_directories_of_runs(
  name, short, column, tmp_path
):
  cell = runs.cells([name], str(tmp_path))[0]
  config = dataclasses.replace(
    cell.config, agent="dqn", settings=SMALL, num_seeds=1, **short
  )
  cell = cell._replace(config=config)
  (row,), code = runs.compute([cell], str(tmp_path), workers=1)
  assert code == 0 and (row["env"], row["seed"]) == (cell.env, config.seed)
  assert column in row and cell.label in tables.table([row])
  assert name != "memory" or [steps for steps, _ in row["evaluations"]][-1] >= 40


def test_tables_of_learning_count_the_seeds_that_fail():
  same = {"label": "dqn", "env": "jax:catch"}
  solved = [{**same, "max_episodes": 20, "solved_episode": n} for n in (7, None, None)]
  shares = [
    {**same, "evaluations": [(1, r)], "training_last_100": r / 2} for r in (1.0, 0.0)
  ]
  rows = [{"seed": i, **row} for i, row in enumerate([*solved, *shares])]
  assert "| 1/3    | > 20 (7, > 20, > 20)" in tables.table(rows[:3])
  # Clopper and Pearson: 1 of 2 is in [1 - √0.975, √0.975].
  assert "0.5 [0.0126, 0.987] (1, 0)" in tables.table(rows[3:])
