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


def test_the_best_mean_is_first_unless_a_run_is_missing(monkeypatch):
  """The mean is over environments, of which the second has returns that are higher."""
  means = {"n_step=1": 0.25, "n_step=3": 0.75, "n_step=5": 0.55}
  configs = [
    config.RunConfig(
      agent="dqn",
      env=f"jax:chain/{n}",
      settings=(x,),
      num_seeds=2,
      steps=9,
      output=f"{x}/{n}",
    )
    for x in means
    for n in (4, 5)
  ]

  def read(path):
    setting, env, seed = path.parts
    value = means[setting] + 0.1 * (seed == "seed1") + 2.0 * (env == "5")
    return runs.Run(path, {}, {}, {}, np.arange(1), np.array([value]))

  status = lambda path: "" if str(path) == "n_step=3/5/seed1" else "finished"  # noqa: E731
  monkeypatch.setattr(runs, "read_summary", lambda path: {"status": status(path)})
  monkeypatch.setattr(runs, "read", read)
  rows = tuning.ranked(configs, "return")
  best, worse, incomplete = rows
  assert best.settings == "--set=n_step=5"
  assert best[3:5] == pytest.approx((1.6, 0.05)) and best[5:] == (2, 2)
  assert worse.settings == "--set=n_step=1"
  assert math.isnan(incomplete.mean) and incomplete.seeds_done == 1
  assert "best: --agent=dqn --set=n_step=5" in tuning.to_text(rows)
  assert "best: " not in tuning.to_text([incomplete])
