"""Grids of settings, and the choice of the best."""

import json
import math
import pathlib

import numpy as np
import pytest

from explorax.experiments import config, errors, presets, tuning
from explorax.experiments import settings as settings_lib
from explorax.experiments.reports import runs

TABLE3 = pathlib.Path(__file__).parents[2] / "papers/tdu/table3.flags"


def _settings(name: str) -> dict:
  preset, assignments = settings_lib.split_name(name)
  config = presets.PRESETS[preset].config_for("bsuite:deep_sea/0")
  return settings_lib.to_json(settings_lib.apply(config, assignments))


def test_table_3_is_paper_4s():
  sizes = {"qex": 9, "noisy_dqn": 5, "successor_uncertainties": 50, "tdu": 18}
  sizes |= {"dqn_rnd": 126, "dqn_counts": 9, "bootstrapped_dqn": 7}
  lines = [x for x in TABLE3.read_text().splitlines() if not x.startswith("#")]
  table, others = tuning.split([x.removeprefix("--set=") for x in lines], [*sizes])
  assert {*sizes} == {*table} and not others
  for agent, size in sizes.items():
    names = tuning.variants(table, [agent])
    assert len(names) == size
    identities = {json.dumps(_settings(name)) for name in names}
    assert len(identities) == size  # Each is read by the agent, and makes a difference.


def test_a_grid_of_the_command_line():
  settings = ["dqn.n_step=1,3", "dqn.hidden_sizes=(50,50),(20,)", "batch_size=8"]
  # Fields of groups are no agents.
  settings += ["exploration.epsilon=0.1", "tdu.beta=1,2"]
  grid, others = tuning.split(settings, ["dqn", "qex"])
  assert others == ["batch_size=8", "exploration.epsilon=0.1"]
  names = tuning.variants(grid, ["dqn", "qex"])
  assert len(names) == 5 and names[-1] == "qex"
  tried = [_settings(name) for name in names[:4]]
  assert [s["n_step"] for s in tried] == [1, 1, 3, 3]
  assert [s["hidden_sizes"] for s in tried] == [[50, 50], [20]] * 2
  with pytest.raises(errors.SetUpError, match="--agents=qex"):
    tuning.split(["tdu.beta=1,2"], ["qex"])


def test_the_best_mean_is_first_unless_a_seed_is_missing(monkeypatch):
  means = {"n_step=1": 0.25, "n_step=3": 0.75, "n_step=5": 0.55}
  done = {("n_step=3", 0), *((x, seed) for x in means for seed in (0, 1))}
  done -= {("n_step=3", 1)}
  configs = [
    config.RunConfig(
      agent="dqn", env="jax:chain/4", settings=(x,), num_seeds=2, steps=9, output=x
    )
    for x in means
  ]
  status = {f"{x}/seed{seed}": "finished" for x, seed in done}
  monkeypatch.setattr(
    runs, "read_summary", lambda path: {"status": status.get(str(path))}
  )
  returns = lambda path: means[path.parts[0]] + 0.1 * (path.name == "seed1") - 0.05  # noqa: E731
  monkeypatch.setattr(runs, "read", lambda path: _run([returns(path)]))
  rows = tuning.ranked(configs, "return")
  best, worse, incomplete = rows
  assert best.settings == "--set=n_step=5" and best[3:] == (
    pytest.approx(0.55),
    pytest.approx(0.05),
    2,
    2,
  )
  assert worse.settings == "--set=n_step=1"
  assert math.isnan(incomplete.mean) and incomplete.seeds_done == 1
  assert "best: --agent=dqn --set=n_step=5" in tuning.to_text(rows)
  assert "best: " not in tuning.to_text([incomplete])


def _run(returns, regret=None):
  log = None
  if regret is not None:
    log = {"episode": np.array([1.0, 10.0]), "total_regret": np.array([0.0, regret])}
  steps = np.arange(len(returns))
  values = np.array(returns, float)
  return runs.Run(pathlib.Path(), {}, {}, {}, steps, values, bsuite=log)


def test_scores_are_means_over_environments():
  found = {"gym:A": _run([1, 1, 4, 6]), "gym:B": _run([0, 0])}
  assert tuning.SCORES["return"](found) == (3 + 0) / 2
  # bsuite's of bandits is how much less regret there was than at random, 0.5.
  both = {"bsuite:bandit/0": _run([], 4.0), "bsuite:bandit_noise/0": _run([], 0.0)}
  assert tuning.SCORES["bsuite"](both) == pytest.approx((0.2 + 1.0) / 2)
