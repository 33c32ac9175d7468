"""Comparisons of benchmarks: medians, ratios and fresh processes."""

import pytest


@pytest.fixture(scope="module")
def bench(load):
  return load("bench")


def _samples(*speeds: float, learner_updates: int = 73) -> list[dict]:
  return [
    {"steps_per_s": speed, "env_steps": 200, "learner_updates": learner_updates}
    for speed in speeds
  ]


def test_medians_and_both_ratios(bench):
  row = bench.compare(_samples(6, 90, 40), _samples(3, 10, 20))
  assert row["explorax_steps_per_s"] == 40 and row["peer_steps_per_s"] == 10
  assert (row["min"], row["max"]) == (6, 90)
  assert (row["ratio_of_medians"], row["median_ratio"]) == (4.0, 2.0)  # Of 2, 9 and 2.
  with pytest.raises(RuntimeError, match="made 72 learner_updates and the peer 73"):
    bench.compare(_samples(40.0, learner_updates=72), _samples(10.0))


def test_a_speed_is_measured_after_the_warm_up(bench):
  # Reports at 1 s and 3 s have several episodes each.
  marks = [(10, 0, 0.5), (30, 0, 1.0), (40, 5, 1.0), (60, 20, 3.0), (80, 40, 3.0)]
  found = bench.speed([bench.Mark(*mark) for mark in marks], 20)
  assert found == {"steps_per_s": 20.0, "env_steps": 80, "learner_updates": 40}


def test_a_sample_is_a_fresh_process(bench):
  found = bench.sample("bench:status_mib", field="VmRSS")
  assert 1 < found < 10_000
  with pytest.raises(RuntimeError, match="ended with code 1"):
    bench.sample("bench:nothing")
