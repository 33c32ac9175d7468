"""The table of all methods: the choice of settings, and ranks."""

import dataclasses

import numpy as np
import pytest

from explorax.experiments import presets
from explorax.experiments import settings as settings_lib
from explorax.papers import figures, scorecard

(FIGURE,) = scorecard.FIGURES


def completed(grids, of) -> figures.Table:
  """The tasks with the returns `of(settings)`."""
  tasks = [task for grid in grids for task in grid.tasks()]
  return figures.Table(
    figures.CompletedTask(
      x.settings,
      {"returns": np.full(len(x.settings["seeds"]), float(of(x.settings)))},
      1.0,
      {},
    )
    for x in tasks
  )


def test_the_setting_with_the_best_mean_score_is_used_and_ties_keep_the_presets():
  def of(settings):
    if settings["method"] == "UCB" and settings["problem"] == "Deep Sea 20":
      return settings["value"] == 100
    return scorecard.PROBLEMS[settings["problem"]].floor

  first = completed(FIGURE.runs, of)
  (grid,) = FIGURE.then(first)
  values = {task.settings["method"]: task.settings["value"] for task in grid.tasks()}
  assert values.pop("UCB") == 100 and set(values.values()) == {None}
  assert scorecard.tuning_scores(first)["UCB"][100.0] == pytest.approx(1 / 3)
  # UCB is the best of 17 in one of six tasks; the others tie.
  ranks = scorecard.ranked(completed([grid], of))
  assert ranks.pop("UCB") == pytest.approx((1 + 5 * 9) / 6)
  np.testing.assert_allclose([*ranks.values()], (9.5 + 5 * 9) / 6)


def test_agents_of_all_tasks_can_be_made():
  first = completed(FIGURE.runs, lambda settings: 0.0)
  for grid in (*FIGURE.runs, *FIGURE.then(first)):
    for task in grid.tasks():
      preset = presets.PRESETS[task.settings["agent"]]
      config = preset.config_for(task.settings["env"])
      changed = settings_lib.apply(config, task.settings["changes"])
      assert dataclasses.is_dataclass(changed)
