"""Comparisons of benchmarks: medians, ratios and fresh processes."""

import pytest


@pytest.fixture(scope="module")
def bench(load):
  return load("bench")


def test_medians_and_ratios_of_rounds(bench):
  ours, peers = iter([6.0, 90.0, 40.0]), iter([3.0, 10.0, 20.0])
  contestants = {
    "ours": lambda: {"steps_per_s": next(ours)},
    "peer": lambda: {"steps_per_s": next(peers)},
    "missing": lambda: {"note": "not there"},
  }
  first, second, missing = bench.side_by_side(contestants, quick=False)
  assert (first["steps_per_s"], first["min"], first["max"]) == (40, 6, 90)
  assert second["explorax_times_as_fast"] == 2.0  # Of 2, 9 and 2.
  assert missing["note"] == "not there" and "steps_per_s" not in missing


def test_a_speed_is_measured_after_the_warm_up(bench):
  # Reports at 1 s and 3 s have several episodes each.
  marks = [(10, 0, 0.5), (30, 0, 1.0), (40, 5, 1.0), (60, 20, 3.0), (80, 40, 3.0)]
  found = bench.speed([bench.Mark(*mark) for mark in marks], 20)
  assert found == {"steps_per_s": 20.0, "env_steps": 80, "learner_updates": 40}


def test_a_sample_is_a_fresh_process(bench):
  found = bench.sample("bench:peak_mib")
  assert 1 < found < 10_000
  with pytest.raises(RuntimeError, match="ended with code 1"):
    bench.sample("bench:nothing")
