"""Grids of settings, and the choice of the best."""

import csv
import json
import pathlib

import numpy as np
import pytest

from explorax.experiments import errors, grid, presets, tuning
from explorax.experiments import settings as settings_lib
from explorax.experiments.reports import runs

TABLE3 = pathlib.Path(__file__).parents[2] / "papers/tdu/table3.toml"


def _settings(name: str) -> dict:
  preset, assignments = settings_lib.split_name(name)
  config = presets.PRESETS[preset].config_for("bsuite:deep_sea/0")
  return settings_lib.to_json(settings_lib.apply(config, assignments))


def test_table_3_is_paper_4s():
  sizes = {"qex": 9, "noisy_dqn": 5, "successor_uncertainties": 50, "tdu": 18}
  sizes |= {"dqn_rnd": 126, "dqn_counts": 9, "bootstrapped_dqn": 7}
  table = tuning.load(str(TABLE3))
  assert {*sizes} == {*table}
  for agent, size in sizes.items():
    names = tuning.variants(table, [agent])
    assert len(names) == size
    identities = {json.dumps(_settings(name)) for name in names}
    assert len(identities) == size  # Each is read by the agent, and makes a difference.
  names = tuning.variants(table, ["noisy_dqn"])
  assert names[0] == "noisy_dqn@noisy_sigma=0.01"


def test_a_grid_of_a_file(tmp_path):
  path = tmp_path / "grid.toml"
  path.write_text(
    "[dqn]\nn_step = [1, 3]\nhidden_sizes = [[50, 50], [20], []]\nduelling = [false]"
  )
  names = tuning.variants(tuning.load(str(path)), ["dqn"])
  assert len(names) == 6
  assert names[0] == "dqn@n_step=1@hidden_sizes=50,50@duelling=false"
  settings = _settings(names[-1])
  assert (settings["n_step"], settings["hidden_sizes"]) == (3, [])
  # As they are named, they are read again.
  assert grid.agents(f"{names[0]},{names[1]}, tdu") == [*names[:2], "tdu"]


def test_a_grid_of_the_command_line():
  settings = ["dqn.n_step=1,3", "dqn.hidden_sizes=(50,50),(20,)", "batch_size=8"]
  found, others = tuning.from_settings(settings, ["dqn", "qex"])
  assert others == ["batch_size=8"]
  names = tuning.variants(found, ["dqn", "qex"])
  assert len(names) == 5 and names[-1] == "qex"
  tried = [_settings(name) for name in names[:4]]
  assert [s["n_step"] for s in tried] == [1, 1, 3, 3]
  assert [s["hidden_sizes"] for s in tried] == [[50, 50], [20]] * 2
  # Fields of groups are no agents.
  assert tuning.from_settings(["exploration.epsilon=0.1"], ["dqn"])[0] == {}
  for bad in (["dqn.n_step="], ["dqn.n_step=1", "dqn.n_step=3"]):
    with pytest.raises(errors.SetUpError, match=r"dqn\.n_step"):
      tuning.from_settings(bad, ["dqn"])


@pytest.mark.parametrize(
  ("content", "named"),
  [
    ("[dqm]\nbeta = [1]", "'dqm'.*dqn"),
    ("[dqn]", "dqn"),
    ("[dqn]\nbeta = 1", "beta.*1"),
    ("[dqn]\nbeta = []", "beta"),
    ("[dqn", "grid.toml"),
    (None, "grid.toml"),
  ],
)
def test_bad_grids_are_refused(tmp_path, content, named):
  path = tmp_path / "grid.toml"
  if content is not None:
    path.write_text(content)
  with pytest.raises(errors.SetUpError, match=named):
    tuning.load(str(path))


def _rows(means, spread=0.05, num_seeds=2, missing=()):
  """One row per mean, whose seeds lie around it; some have fewer seeds than asked."""
  rows = []
  for i, mean in enumerate(means, start=1):
    scores = tuple(mean + spread * (2 * s - num_seeds + 1) for s in range(num_seeds))
    scores = scores[1:] if i in missing else scores
    rows.append(tuning.Row("dqn", (f"n_step={i}",), scores, num_seeds, i == 1))
  return rows


def test_the_best_mean_wins_unless_it_is_incomplete():
  rows = _rows([0.25, 0.55, 0.75])
  assert [row.mean for row in rows] == pytest.approx([0.25, 0.55, 0.75])
  assert [row.error for row in rows] == pytest.approx([0.05] * 3)
  assert "--agent=dqn --set=n_step=3" in tuning.to_text(rows, "return")
  rows = _rows([0.25, 0.55, 0.75], missing=[3])
  assert "--agent=dqn --set=n_step=2" in tuning.to_text(rows, "return")
  table = [*csv.DictReader(tuning.to_csv(rows, "return").decode().splitlines())]
  assert [row["is_best"] for row in table] == ["False", "True", "False"]
  assert [row["seeds_done"] for row in table] == ["2", "2", "1"]
  assert "--set" not in tuning.to_text(_rows([0.1], missing=[1]), "return")


def _run(returns, regret=None):
  log = None
  if regret is not None:
    log = {"episode": np.array([1.0, 10.0]), "total_regret": np.array([0.0, regret])}
  steps = np.arange(len(returns))
  return runs.Run(pathlib.Path(), {}, {}, {}, steps, np.array(returns, float), log)


def test_scores_are_means_over_environments():
  found = {"gym:A": _run([1, 1, 4, 6]), "gym:B": _run([0, 0])}
  assert tuning.SCORES["return"](found) == (3 + 0) / 2
  assert tuning.SCORES["final_return"](found) == (5 + 0) / 2
  # bsuite's of bandits is how much less regret there was than at random, 0.5.
  both = {"bsuite:bandit/0": _run([], 4.0), "bsuite:bandit_noise/0": _run([], 0.0)}
  assert tuning.SCORES["bsuite"](both) == pytest.approx((0.2 + 1.0) / 2)
  with pytest.raises(errors.SetUpError, match="gym:A"):
    tuning.SCORES["bsuite"](found)
