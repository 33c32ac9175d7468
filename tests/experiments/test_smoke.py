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
  "epinet",
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


def settings(name: str) -> list[str]:
  """Few members, and eleven updates: enough to learn from, little to compile."""
  flags = ["hidden_sizes=8", "batch_size=4", "replay_capacity=95", "min_replay_size=90"]
  config = presets.PRESETS[name].config_for(ONE_HOT)
  if config.updates_per_step != 1:
    flags.append("updates_per_step=1")
  if getattr(config, "num_members", 1) > 1:
    flags.append("num_members=3")
  if getattr(config, "num_explorers", 0):
    flags.append("num_explorers=2")
  if getattr(config, "sequence_length", 1) > 1:
    flags += ["sequence_length=4", "sequence_period=2"]
    flags += ["lstm_size=6", "head_size=6"] if config.lstm_size else []
  if name.startswith("tdu_r2d2"):  # More than one head in a hundred steps.
    flags += ["exploration.of.period_steps=5"]
  if name.startswith("rainbow"):
    flags += ["target.num_atoms=5", "head_size=4"]
  if name in ("dqn_rnd", "r2d2_rnd"):
    flags += ["bonus.hidden_sizes=8", "bonus.output_size=4"]
  if name in ("ngu", "ngu_dqn"):
    flags += ["bonus.hidden_sizes=8", "bonus.memory_capacity=20"]
  return [f"--set={flag}" for flag in flags]


def launch(name: str, *argv: str) -> tuple[dict, list[dict[str, str]]]:
  """Runs a hundred steps; returns the summary and the rows of the metrics."""
  command = [f"--agent={name}", f"--env={ONE_HOT}", "--steps=100", "--output=out"]
  command += ["--eval_episodes=1"]
  assert run.main([*command, *settings(name), *argv]) == 0
  out = pathlib.Path("out")
  with open(out / "metrics.csv", newline="") as file:
    rows = list(csv.DictReader(file))
  return json.loads((out / "summary.json").read_text()), rows


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


def check(name: str, summary: dict, rows: list[dict[str, str]]) -> None:
  assert summary["status"] == "finished"
  assert (summary["env_steps"], summary["episodes"]) == (100, 20)
  assert summary["learner_updates"] == 11  # In steps 90 to 100.
  assert len(rows) == 20
  assert all(float(row["episode_return"]) == 5.0 for row in rows)
  assert np.isfinite(float(rows[-1]["loss"])) and float(rows[-1]["finite"]) == 1.0
  policies = {row["policy"] for row in rows}
  config = presets.PRESETS[name].config_for(ONE_HOT)
  if getattr(config, "num_policies", 1) > 1:
    assert len(policies) > 1  # Those that were drawn, of eight.
  else:
    explores = getattr(config, "num_explorers", 0) > 0
    assert policies == ({"exploiter", "explorer"} if explores else {"policy"})
  has_bonus = getattr(config, "beta", 0.0) > 0
  assert (float(rows[-1].get("r_int", 0.0)) != 0.0) == has_bonus
  with np.load("out/checkpoints/final.npz") as weights:
    assert all(np.isfinite(weights[key]).all() for key in weights.files)


@pytest.mark.parametrize("name", marked(RUN, NEWEST))
def test_preset_runs(name):
  check(name, *launch(name, "--replay=memory"))


@pytest.fixture
def _double_precision():
  jax.config.update("jax_enable_x64", True)
  yield
  jax.config.update("jax_enable_x64", False)


@pytest.mark.usefixtures("_double_precision")
@pytest.mark.parametrize("runner", ["local", "device"])
def test_double_precision(runner):
  """As with JAX_ENABLE_X64=1; the agents compute in single precision."""
  flags = (f"--runner={runner}", "--env=jax:deep_sea/4", "--num_envs=2")
  command = ["--agent=ngu", *settings("ngu"), *flags, "--steps=120", "--output=out"]
  assert run.main(command) == 0
  summary = json.loads(pathlib.Path("out/summary.json").read_text())
  assert summary["learner_updates"] > 0
  with np.load("out/checkpoints/final.npz") as weights:
    assert not any(weights[key].dtype == np.float64 for key in weights.files)


@pytest.mark.parametrize("name", marked(presets.PRESETS, RUN))
def test_preset_keeps_the_contract(name, trace):
  """Acting and learning trace, and states keep their shapes: they can be scanned."""
  preset = presets.PRESETS[name]
  flags = [flag.removeprefix("--set=") for flag in settings(name)]
  spec = environments.spec(environments.make(ONE_HOT, seed=0))
  agent = preset.make_agent(settings_lib.apply(preset.config_for(ONE_HOT), flags), spec)
  before, after, actions, output = trace(agent)
  assert before == after
  assert all(x.shape == () and x.dtype == np.int32 for x in actions)
  assert output.priorities.shape == (agent.replay.batch_size,)
  # They are columns of a run's files from its first row.
  assert sorted(output.metrics) == sorted(agent.learner.metrics)


@pytest.mark.reverb
def test_through_reverb():
  check("tdu", *launch("tdu", "--replay=reverb"))
