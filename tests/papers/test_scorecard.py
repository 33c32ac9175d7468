"""The table of all methods: its statistics and tasks, what is drawn and written."""

import dataclasses
import io
import json

import numpy as np
import pytest

from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments.recording import drawing
from explorax.papers import panels, types
from explorax.papers.scorecard import runs, table

(FIGURE,) = table.FIGURES
QUICK = FIGURE.quick


def completed(tasks, of) -> types.Table:
  """The tasks with the returns `of(settings, seed)`."""
  return types.Table(
    types.CompletedTask(
      task.name,
      task.settings,
      {
        "returns": np.array(
          [of(task.settings, seed) for seed in task.settings["seeds"]]
        ),
        # Of the runs that measure costs: 1, 2 and 3 ms, and other tasks 4 ms.
        "seconds": np.full(
          len(task.settings["seeds"]), 1e-3 * (1 + task.settings.get("cost_run", 3))
        ),
      },
      1.0,
      {},
    )
    for task in tasks
  )


def made_up(config, of) -> types.Table:
  """Both stages of a figure."""
  first = completed(FIGURE.tasks(config), of)
  return types.Table([*first, *completed(FIGURE.then(config, first), of)])


def unmeasured(task):
  nothing = np.full_like(task.results["seconds"], np.nan)
  return task._replace(results={**task.results, "seconds": nothing})


def random_returns(settings, seed):
  """Of a score of at most 1; a uniform policy's is a tenth."""
  ceiling = runs.PROBLEMS[settings["problem"]].ceiling
  if settings["method"] == "uniform":
    return 0.1 * ceiling
  key = json.dumps([settings["method"], settings["problem"], seed, settings["value"]])
  return ceiling * np.random.default_rng([*key.encode()]).random()


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

  found = table.mean_ranks(scores)
  np.testing.assert_allclose(found.value, ranks(scores))
  draws = []
  for _ in range(2000):
    chosen = rng.integers(3, size=3)
    resampled = [[rng.choice(x, len(x)) for x in of] for of in scores]
    draws.append(ranks([[of[task] for task in chosen] for of in resampled]))
  low, high = np.percentile(draws, [2.5, 97.5], axis=0)
  np.testing.assert_allclose([found.low, found.high], [low, high], atol=0.2)


def test_scores_and_profiles_are_of_all_runs_of_a_method():
  results = made_up(QUICK, random_returns)
  chosen = results.where(method="RND", uniform=lambda x: x is not None)
  scores = np.zeros((QUICK.num_seeds, len(QUICK.problems)))
  for task in chosen:
    problem = task.settings["problem"]
    for seed, value in zip(
      task.settings["seeds"], task.results["returns"], strict=True
    ):
      share = value / runs.PROBLEMS[problem].ceiling
      row = seed - QUICK.first_seed
      scores[row, QUICK.problems.index(problem)] = (share - 0.1) / 0.9
  np.testing.assert_allclose(runs.scores(chosen), scores, atol=1e-9)
  share = table.profile(chosen).mean(axis=0)[24]  # τ = 0.5
  assert share == pytest.approx(np.mean(scores >= 0.5))


def test_a_cost_is_the_median_of_runs_of_all_methods_in_turn():
  results = made_up(FIGURE.config, random_returns)
  assert table.milliseconds(results, "RND") == pytest.approx(2.0)
  short = types.Table(unmeasured(task) for task in results)
  assert np.isnan(table.milliseconds(short, "RND"))
  tasks = FIGURE.tasks(FIGURE.config)
  measured = [task for task in tasks if "cost_run" in task.settings]
  assert [x.settings["method"] for x in measured] == 3 * [*runs.METHODS]
  assert len({x.weight for x in measured}) == 1
  assert measured[0].weight < min(x.weight for x in tasks if x not in measured)


def test_the_setting_with_the_best_mean_score_is_used_and_ties_keep_the_presets():
  config = FIGURE.config

  def returns(settings, seed):
    good = settings["method"] == "RND" and settings["value"] == 1.0
    share = 0.5 if good and settings["problem"] == config.tuning_problems[1] else 0.1
    return share * runs.PROBLEMS[settings["problem"]].ceiling

  results = made_up(config, returns)
  final = results.where(uniform=lambda x: x is not None)
  assert final.where(method="RND").values("value") == [1.0]
  assert final.where(method="counts").values("value") == [None]
  assert len(final) == 17 * 6
  tuned = [set(x.settings["seeds"]) for x in results.where(uniform=None, cost_run=None)]
  assert not set.union(*tuned) & {s for x in final for s in x.settings["seeds"]}


def test_the_best_group_has_what_is_not_significantly_worse():
  config = FIGURE.config

  def returns(settings, seed):
    best = settings["method"] in ("TDU", "epinet") and settings["num_steps"] > 1000
    score = seed % 4 / 10 + (0.6 if best else 0.1)
    return score * runs.PROBLEMS[settings["problem"]].ceiling

  results = made_up(config, returns)
  group, means = table.best_group(results, runs.FREQUENT)
  assert set(group) == {"TDU", "epinet"} and len(means) == len(runs.METHODS)
  assert "- frequent rewards (CartPole, Catch): TDU (" in FIGURE.text(config, results)
  findings = {finding.claim: finding for finding in FIGURE.judge(config, results)}
  assert len(findings) == 2 * 16
  found = findings["TDU scores more than double DQN where rewards are rare"]
  assert found.held and "Holm's correction of 16" in found.test


def test_intervals_of_shares_are_exact_and_equal_scores_have_none():
  config = FIGURE.config

  def returns(settings, seed):
    if settings["method"] == "uniform":
      return 0.2
    return float(seed != config.first_seed or settings["problem"] == "Catch")

  results = made_up(config, returns)
  chosen = {
    "method": "RND",
    "problem": "Deep Sea 20",
    "uniform": lambda x: x is not None,
  }
  # Clopper and Pearson's of 7 of 8, where 0.2 has a score of 0.
  exact = (np.array([7 / 8, 0.4735, 0.9968]) - 0.2) / 0.8
  np.testing.assert_allclose(table._interval(results.where(**chosen)), exact, atol=1e-4)
  chosen["problem"] = "Catch"  # A miss has a return of −1: this is no share.
  assert table._words(table._interval(results.where(**chosen))) == "1.00"


def test_the_table_is_drawn_and_written_by_rank():
  pytest.importorskip("matplotlib")
  results = made_up(QUICK, random_returns)
  methods, ranks = table.ranked(results)
  assert sorted(ranks.value) == list(ranks.value) and len(methods) == 17
  scores, *_ = panels.draw(FIGURE.panels(QUICK), results, FIGURE.height).axes
  assert [label.get_text() for label in scores.get_yticklabels()] == methods
  chosen = results.where(method=methods[0], uniform=lambda x: x is not None)
  assert scores.texts[0].get_text() == f"{runs.scores(chosen)[:, 0].mean():.2f}"
  short = types.Table(unmeasured(task) for task in results)
  drawing.save(io.BytesIO(), panels.draw(FIGURE.panels(QUICK), short, FIGURE.height))
  first = FIGURE.text(QUICK, results).splitlines()[2]
  assert first.split()[1] == methods[0].split()[0]


def test_agents_of_all_tasks_can_be_made():
  every = dataclasses.replace(FIGURE.config, problems=tuple(runs.PROBLEMS))
  for config in (every, QUICK):
    seen = set()
    for task in made_up(config, random_returns):
      agent, env = task.settings["agent"], task.settings["env"]
      changes = tuple(task.settings["changes"])
      if (agent, env, changes) not in seen:
        seen.add((agent, env, changes))
        parts_lib.resolve(config_lib.RunConfig(agent=agent, env=env, settings=changes))
    assert len(seen) >= len(config.methods) * len(config.problems)
