"""The table of all methods: ranks, the choice of settings, and groups of the best."""

import dataclasses

import numpy as np
import pytest

from explorax.experiments import presets
from explorax.experiments import settings as settings_lib
from explorax.papers import figures, scorecard

(FIGURE,) = scorecard.FIGURES


def completed(grids, of) -> figures.Table:
  """The tasks with the returns `of(settings)`; a step takes 1, 2 and 3 ms, or 4."""
  tasks = [task for grid in grids for task in grid.tasks()]
  return figures.Table(
    figures.CompletedTask(
      x.settings,
      {
        "returns": np.full(len(x.settings["seeds"]), float(of(x.settings))),
        "seconds": np.full(
          len(x.settings["seeds"]), 1e-3 * (1 + x.settings.get("cost_run", 3))
        ),
      },
      1.0,
      {},
    )
    for x in tasks
  )


def test_mean_ranks_are_those_of_a_plain_bootstrap():
  rng = np.random.default_rng(3)
  scores = [[rng.normal(m / 2, 1.0, size=n) for n in (3, 5, 4)] for m in range(4)]
  scores[3][2] = scores[2][2]  # A tie.

  def ranks(drawn):
    each = np.zeros(4)
    for task in range(3):
      means = [np.mean(of[task]) for of in drawn]
      for i, mean in enumerate(means):
        above = sum(other > mean for other in means)
        equal = sum(other == mean for other in means)
        each[i] += (above + (equal + 1) / 2) / 3
    return each

  found = scorecard.mean_ranks(scores)
  np.testing.assert_allclose(found.value, ranks(scores))
  draws = []
  for _ in range(2000):
    chosen = rng.integers(3, size=3)
    resampled = [[rng.choice(x, len(x)) for x in of] for of in scores]
    draws.append(ranks([[of[task] for task in chosen] for of in resampled]))
  low, high = np.percentile(draws, [2.5, 97.5], axis=0)
  np.testing.assert_allclose([found.low, found.high], [low, high], atol=0.2)


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
  assert scorecard.milliseconds(first, "RND") == pytest.approx(2.0)


def test_agents_of_all_tasks_can_be_made():
  first = completed(FIGURE.runs, lambda settings: 0.0)
  for grid in (*FIGURE.runs, *FIGURE.then(first)):
    for task in grid.tasks():
      preset = presets.PRESETS[task.settings["agent"]]
      config = preset.config_for(task.settings["env"])
      changed = settings_lib.apply(config, task.settings["changes"])
      assert dataclasses.is_dataclass(changed)
