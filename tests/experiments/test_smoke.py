"""Presets are traced; one of each kind runs for a hundred steps by its command."""

import csv
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from explorax import environments
from explorax.experiments import presets
from explorax.experiments import settings as settings_lib
from explorax.experiments.runners import device, device_program

# Sequences with a memory and a bonus, sequences without, and the other engine.
RUN = ("ngu", "retrace_dqn", "successor_uncertainties")
ONE_HOT = "fakes:fake_one_hot"


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


@pytest.mark.newest
@pytest.mark.parametrize("name", RUN)
def test_preset_runs(name, trained_run):
  check(name, trained_run(name))


@pytest.mark.reverb
def test_through_reverb(trained_run):
  check("retrace_dqn", trained_run("retrace_dqn", "--replay=reverb"))


def make_agent(name: str, env: Any, settings: list[str]) -> Any:
  preset = presets.PRESETS[name]
  config = settings_lib.apply(preset.config_for(ONE_HOT), settings)
  return preset.make_agent(config, environments.spec(env))


def test_double_precision(short_settings):
  """With JAX_ENABLE_X64=1 the agents compute in single precision."""
  jax.config.update("jax_enable_x64", True)
  try:
    env = environments.make("jax:deep_sea/4", seed=0)
    agent = make_agent("ngu", env, short_settings("ngu"))
    functions, params = device.pure(env)
    program = device_program.make_scanned(agent, functions, 1, 1)
    state = jax.eval_shape(program.init, jax.random.PRNGKey(0), params)
    after, *reports = jax.eval_shape(program.learn, state, 5)
  finally:
    jax.config.update("jax_enable_x64", False)
  assert jax.tree.leaves(after) == jax.tree.leaves(state)
  of_agent = after._replace(params=()), reports  # Without the environment's.
  assert not any(x.dtype == np.float64 for x in jax.tree.leaves(of_agent))


def parts(config: Any) -> set[tuple[Any, ...]]:
  """What a config is made of; of numbers, whether they are zero."""
  return {
    (name, cls, x if isinstance(x, str | None) else (type(x), bool(x)))
    for name, x, cls in settings_lib.walk(config)
  }


def presets_with_every_part() -> Iterator[Any]:
  """Few of them that have all parts which a preset has; those of `RUN` first."""
  left = {
    name: parts(preset.config_for(ONE_HOT)) for name, preset in presets.PRESETS.items()
  }
  names = list(RUN)
  while any(left.values()):
    name = names.pop(0) if names else max(left, key=lambda name: len(left[name]))
    yield pytest.param(name, marks=pytest.mark.newest if name in RUN else ())
    left = {other: left[other] - left[name] for other in left}


@pytest.mark.parametrize("name", [*presets_with_every_part()])
def test_preset_keeps_the_contract(name, trace, short_settings):
  """Acting and learning trace, and states keep their shapes: they can be scanned."""
  agent = make_agent(name, environments.make(ONE_HOT, seed=0), short_settings(name))
  before, after, actions, output = trace(agent)
  assert before == after
  sizes = (getattr(agent.config, x, 1) for x in ("num_policies", "ensemble_size"))
  assert len(agent.policy_names) == max(sizes)
  assert all(x.shape == () and x.dtype == np.int32 for x in actions)
  assert output.priorities.shape == (agent.replay.batch_size,)
  # They are columns of a run's files from its first row.
  assert sorted(output.metrics) == sorted(agent.learner.metrics)
