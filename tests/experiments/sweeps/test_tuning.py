"""Grids of settings, and the choice of the best."""

import json
import math

import numpy as np
import pytest

from explorax.experiments import errors
from explorax.experiments.sweeps import agents, grids, tuning


def test_table_3_is_paper_4s():
  sizes = {"qex": 9, "noisy_dqn": 5, "successor_uncertainties": 50, "tdu": 18}
  sizes |= {"dqn_rnd": 126, "dqn_counts": 9, "bootstrapped_dqn": 7}
  grid = grids.load("table3")
  assert {*sizes} == {*grid}
  for agent, size in sizes.items():
    names = grids.variants(grid, "table3", [agent])
    assert len(names) == size
    identities = {json.dumps(agents.identity(name)) for name in names}
    assert len(identities) == size  # Each is read by the agent, and makes a difference.
  names = grids.variants(grid, "table3", ["noisy_dqn"])
  assert names[0] == "noisy_dqn@noisy_sigma=0.01"


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_grid_of_a_file(tmp_path, suffix):
  path = tmp_path / f"grid{suffix}"
  path.write_text(
    "[dqn]\nn_step = [1, 3]\nhidden_sizes = [[50, 50], [20], []]\nduelling = [false]"
    if suffix == ".toml"
    else '{"dqn": {"n_step": [1, 3], "hidden_sizes": [[50, 50], [20], []], '
    '"duelling": [false]}}'
  )
  names = grids.variants(grids.load(str(path)), "it", ["dqn"])
  assert len(names) == 6
  assert names[0] == "dqn@n_step=1@hidden_sizes=50,50@duelling=false"
  settings = agents.identity(names[-1])
  assert (settings["n_step"], settings["hidden_sizes"]) == (3, [])
  # As they are named, they are read again.
  assert agents.split(f"{names[0]},{names[1]}, tdu") == [*names[:2], "tdu"]
  rule = "tdu@exploration=EzGreedy(Linear(1,end=0,steps=9),of=Thompson())"
  assert agents.split(f"{rule},dqn@hidden_sizes=8,8,qu") == [
    rule,
    "dqn@hidden_sizes=8,8",
    "qu",
  ]


@pytest.mark.parametrize(
  ("content", "message"),
  [
    ("", "contains no agent"),
    ("[dqm]\nbeta = [1]", "the unknown agent 'dqm'. Did you mean dqn"),
    ("[dqn]", "no settings for dqn"),
    ("[dqn]\nbeta = 1", "beta = 1 for dqn; write a list"),
    ("[dqn]\nbeta = []", "write a list"),
    ("[dqn", "cannot be read"),
  ],
)
def test_bad_grids_are_refused(tmp_path, content, message):
  path = tmp_path / "grid.toml"
  path.write_text(content)
  with pytest.raises(errors.SetUpError, match=message):
    grids.load(str(path))


def test_missing_grids_are_refused(tmp_path):
  with pytest.raises(errors.SetUpError, match="neither table3 nor a file"):
    grids.load("table4")
  with pytest.raises(errors.SetUpError, match="No such file"):
    grids.load(str(tmp_path / "none.json"))
  with pytest.raises(errors.SetUpError, match="no settings for the agent 'dqn'"):
    grids.variants(grids.load("table3"), "table3", ["dqn"])


def _log(per_episode):
  """Of bandit: the total return after each episode of 10, all of one value."""
  episode = np.arange(1, 11.0)
  return {
    "episode": episode,
    "total_return": np.cumsum(per_episode * np.ones(10)),
    "total_regret": np.cumsum((1 - per_episode) * np.ones(10)),
  }


IDS, SEEDS = ("bandit/0", "bandit/1"), (1_000_000, 1_000_001)
NAMES = ("dqn@n_step=1", "dqn@n_step=2", "dqn@n_step=3")


def _logs(means):
  return {
    (name, i, seed): _log(mean + 0.1 * (seed - SEEDS[0]))
    for name, mean in zip(NAMES, means, strict=True)
    for i in IDS
    for seed in SEEDS
  }


def test_the_best_mean_wins_and_what_is_incomplete_does_not():
  logs = _logs([0.2, 0.5, 0.7])
  rows = tuning.compare(logs, NAMES, IDS, SEEDS, "return")
  assert [row.mean for row in rows] == pytest.approx([0.25, 0.55, 0.75])
  assert [row.error for row in rows] == pytest.approx([0.05] * 3)
  assert [row.is_preset for row in rows] == [True, False, False]
  text = tuning.tell(rows, "return")
  assert "best: --agent=dqn --set=n_step=3" in text
  assert "in a sweep: --agents=dqn@n_step=3" in text
  assert "within one standard error" not in text

  del logs[NAMES[2], "bandit/1", SEEDS[0]]
  rows = tuning.compare(logs, NAMES, IDS, SEEDS, "return")
  text = tuning.tell(rows, "return")
  assert "best: --agent=dqn --set=n_step=2" in text
  assert "n_step=3       none (1 of 2 seeds have a score)" in text
  table = tuning.table(rows, "return")
  assert [row["is_best"] for row in table] == [False, True, False]
  assert [row["seeds_done"] for row in table] == [2, 2, 1]

  assert "so none is the best" in tuning.tell(
    tuning.compare({}, NAMES, IDS, SEEDS, "return"), "return"
  )


def test_others_as_good_are_counted():
  rows = tuning.compare(_logs([0.2, 0.66, 0.7]), NAMES, IDS, SEEDS, "return")
  assert "1 of the others are within one standard error" in tuning.tell(rows, "return")
  rows = tuning.compare(_logs([0.2, 0.7, 0.7]), NAMES, IDS, SEEDS[:1], "return")
  assert "within one" not in tuning.tell(rows, "return")  # One seed has no error.
  assert math.isnan(rows[0].error)


def test_the_scores():
  log = {"episode": np.array([1.0, 2, 4, 8]), "total_return": np.array([1.0, 1, 3, 13])}
  assert tuning.SCORES["return"]({"bandit/0": log}) == 13 / 8
  assert tuning.SCORES["final_return"]({"bandit/0": log}) == 10 / 4
  both = {"bandit/0": _log(0.4), "bandit_noise/0": _log(1.0)}
  # bsuite's of bandits is how much less regret there was than at random, 0.5.
  assert tuning.SCORES["bsuite"](both) == pytest.approx((0.0 + 1.0) / 2)
