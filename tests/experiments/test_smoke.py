"""Every preset is traced; one of each kind runs for a hundred steps by its command."""

import csv
import json
import pathlib

import jax
import numpy as np
import pytest

from explorax import environments
from explorax.experiments import presets, run
from explorax.experiments import settings as settings_lib

# One for each engine, and for each way in which its update differs.
RUN = (
  "dqn_e3b_rnd",
  "ngu",
  "rainbow_cts",
  "retrace_dqn",
  "successor_uncertainties",
  "tdu_r2d2",
)
NEWEST = ("ngu", "retrace_dqn", "tdu_r2d2")  # Of them, also on the newest Python.
ONE_HOT = "fakes:fake_one_hot"


def marked(names, newest):
  marks = {name: pytest.mark.newest if name in newest else () for name in names}
  return [pytest.param(name, marks=mark) for name, mark in marks.items()]


def check(name: str, out: pathlib.Path) -> None:
  """What is in the directory of its run of a hundred steps."""
  summary = json.loads((out / "summary.json").read_text())
  with open(out / "metrics.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  assert summary["status"] == "finished"
  assert (summary["env_steps"], summary["episodes"]) == (100, 20)
  assert summary["learner_updates"] == 11  # In steps 90 to 100.
  assert len(rows) == 20
  assert all(float(row["episode_return"]) == 5.0 for row in rows)
  assert np.isfinite(float(rows[-1]["loss"])) and float(rows[-1]["finite"]) == 1.0
  config = presets.PRESETS[name].config_for(ONE_HOT)
  has_bonus = getattr(config, "beta", 0.0) > 0
  assert (float(rows[-1].get("r_int", 0.0)) != 0.0) == has_bonus
  with np.load(out / "checkpoints/final.npz") as weights:
    assert all(np.isfinite(weights[key]).all() for key in weights.files)


@pytest.mark.parametrize("name", marked(RUN, NEWEST))
def test_preset_runs(name, trained_run):
  check(name, trained_run(name))


@pytest.mark.reverb
def test_through_reverb(trained_run):
  check("tdu", trained_run("tdu", "--replay=reverb"))


def test_double_precision(short_settings, tmp_path):
  """As with JAX_ENABLE_X64=1; the agents compute in single precision."""
  command = ["--agent=ngu", "--env=jax:deep_sea/4", "--runner=device"]
  command += [f"--set={x}" for x in short_settings("ngu")]
  jax.config.update("jax_enable_x64", True)
  try:
    assert run.main([*command, "--steps=120", f"--output={tmp_path}"]) == 0
  finally:
    jax.config.update("jax_enable_x64", False)
  summary = json.loads((tmp_path / "summary.json").read_text())
  assert summary["learner_updates"] > 0
  with np.load(tmp_path / "checkpoints/final.npz") as weights:
    assert not any(weights[key].dtype == np.float64 for key in weights.files)


@pytest.mark.parametrize("name", marked(presets.PRESETS, RUN))
def test_preset_keeps_the_contract(name, trace, short_settings):
  """Acting and learning trace, and states keep their shapes: they can be scanned."""
  preset = presets.PRESETS[name]
  spec = environments.spec(environments.make(ONE_HOT, seed=0))
  config = settings_lib.apply(preset.config_for(ONE_HOT), short_settings(name))
  agent = preset.make_agent(config, spec)
  before, after, actions, output = trace(agent)
  assert before == after
  num_policies = getattr(config, "num_policies", 1)
  assert len(agent.policy_names) == max(
    num_policies, getattr(config, "ensemble_size", 1)
  )
  assert all(x.shape == () and x.dtype == np.int32 for x in actions)
  assert output.priorities.shape == (agent.replay.batch_size,)
  # They are columns of a run's files from its first row.
  assert sorted(output.metrics) == sorted(agent.learner.metrics)
