"""One smoke test of each benchmark that computes something itself."""

import sys

import dm_env
import numpy as np
import pytest


class _Episodes(dm_env.Environment):
  """Episodes of three steps, whose calls are noted."""

  def __init__(self):
    self.calls = ""

  def reset(self):
    self.calls += "|"
    self._left = 3
    return dm_env.restart(np.zeros(2, np.float32))

  def step(self, action):
    self.calls += str(action)
    self._left -= 1
    make = dm_env.transition if self._left else dm_env.termination
    return make(1.0, np.zeros(2, np.float32))

  def observation_spec(self):
    return dm_env.specs.Array((2,), np.float32)

  def action_spec(self):
    return dm_env.specs.DiscreteArray(2)


def test_a_loop_resumes_where_it_was(load):
  environment = _Episodes()
  begun, observed = [], []
  loop = load("loops").Loop(
    environment,
    begun.append,
    lambda timestep: int(timestep.first()),
    lambda action, timestep: observed.append((action, timestep.last())),
  )
  assert loop.run(4) > 0
  loop.run(3)
  assert environment.calls == "|100|100|1"
  assert len(begun) == 3 and all(timestep.first() for timestep in begun)
  assert observed == [(1, False), (0, False), (0, True)] * 2 + [(1, False)]


def test_a_transition_in_replay_is_measured(load):
  found = load("deep_sea").replay_memory("memory", 2000)
  assert found["transitions"] == 2000 and found["row_bytes"] > 0


@pytest.mark.parametrize(
  ("module", "measure", "columns"),
  [
    ("deep_sea", "measure_speed", ("N", "replay")),
    ("device", "measure", ("N", "seeds")),
  ],
)
def test_runs_take_turns_with_bsuite_s(load, monkeypatch, module, measure, columns):
  """Processes are left out: ours make four steps a second, bsuite's agent one."""
  loaded = load(module)
  bench, asked = loaded.bench, []

  def sample(function, **arguments):
    asked.append(arguments)
    return {"steps_per_s": 1.0, "env_steps": arguments["steps"], "learner_updates": 0}

  def run_speed(flags, warm_up, platform="cpu"):
    (steps,) = (int(f.removeprefix("--steps=")) for f in flags if "--steps=" in f)
    updates = steps - 127 if module == "device" else 0
    return {"steps_per_s": 4.0, "env_steps": steps, "learner_updates": updates}

  monkeypatch.setattr(bench, "sample", sample)
  monkeypatch.setattr(bench, "run_speed", run_speed)
  rows = getattr(loaded, measure)()
  found = [tuple(row[name] for name in columns) for row in rows]
  second = ("reverb", "memory") if module == "deep_sea" else (1, 8)
  assert found == [(size, each) for size in (10, 50) for each in second]
  assert len(asked) == 6  # Three rounds of each size.
  assert {row["ratio_of_medians"] for row in rows} == {4.0}
  assert rows[0]["goal"] > 3 and len(rows[0]["samples"]["explorax"]) == 3


def test_a_peer_that_is_not_installed_is_named(load, monkeypatch):
  monkeypatch.setitem(sys.modules, "stable_baselines3", None)
  with pytest.raises(SystemExit, match="stable_baselines3 is not installed; run this"):
    load("expected_peers").run_sb3(seed=0, steps=10)
