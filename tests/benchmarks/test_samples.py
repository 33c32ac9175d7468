"""One smoke test of each benchmark that computes something itself."""

import sys

import pytest


def test_runs_take_turns_with_bsuite_s(load, monkeypatch):
  """Processes are left out: ours make four steps a second, bsuite's agent one."""
  deep_sea = load("deep_sea")
  asked, missing = [], 0

  def counts(steps, speed):
    return {
      "steps_per_s": speed,
      "env_steps": steps,
      "learner_updates": steps - 128 - missing,
    }

  def sample(function, size, steps):
    asked.append(size)
    return counts(steps, 1.0)

  def run_speed(flags, warm_up, platform="cpu"):
    (steps,) = (int(f.removeprefix("--steps=")) for f in flags if "--steps=" in f)
    return counts(steps, 4.0)

  monkeypatch.setattr(deep_sea.bench, "sample", sample)
  monkeypatch.setattr(deep_sea.bench, "run_speed", run_speed)
  rows = deep_sea.measure_speed()
  assert asked == [10, 10, 10, 50, 50, 50]  # Three rounds of each size.
  assert len({(row["N"], row["program"]) for row in rows}) == len(rows) == 12
  times = {row["program"]: row["explorax_times_as_fast"] for row in rows}
  assert times.pop("bsuite") == 4 and set(times.values()) == {1.0}
  missing = 100
  with pytest.raises(RuntimeError, match="one update per step"):
    deep_sea.measure_speed()


def test_a_peer_that_is_not_installed_is_named(load, monkeypatch):
  monkeypatch.setitem(sys.modules, "stable_baselines3", None)
  with pytest.raises(SystemExit, match="stable_baselines3 is not installed; run this"):
    load("expected_peers").run_sb3(seed=0, steps=10)
