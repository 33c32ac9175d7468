"""The report of the benchmarks: what is compared, refused, printed and written."""

import argparse
import json
import os
import sys

import pytest


@pytest.fixture(scope="module")
def run(load):
  return load("run")


@pytest.fixture(scope="module")
def deep_sea(load):
  return load("deep_sea")


def samples(*speeds: float, learner_updates: int = 73) -> list[dict]:
  return [
    {
      "steps_per_second": speed,
      "compilations": 0,
      "env_steps": 200,
      "learner_updates": learner_updates,
    }
    for speed in speeds
  ]


def test_medians_and_both_ratios(deep_sea):
  row = deep_sea.compare(10, 3.0, "reverb", samples(6, 90, 40), samples(3, 10, 20))
  assert row["explorax_steps_per_s"] == 40 and row["bsuite_steps_per_s"] == 10
  assert (row["explorax_min"], row["explorax_max"]) == (6, 90)
  assert row["ratio_of_medians"] == 4.0
  assert row["median_ratio"] == 2.0  # Of 2, 9 and 2.
  assert row["goal"] == 3.0 and row["compilations"] == 0


def test_unequal_work_is_refused(deep_sea):
  with pytest.raises(RuntimeError, match="made 72 learner_updates and bsuite 73"):
    deep_sea.compare(
      10, 3.0, "reverb", samples(40.0, learner_updates=72), samples(10.0)
    )


def test_table(run):
  rows = [
    {"name": "a", "speed": 1234.56, "samples": [1, 2]},
    {"name": "longer", "speed": 0.123456, "only_here": 3},
  ]
  assert run.format_table(rows) == "\n".join(
    [
      "| name   | speed  | only_here |",
      "| ------ | ------ | --------- |",
      "| a      | 1235   | –         |",
      "| longer | 0.1235 | 3         |",
    ]
  )


def test_sections(run):
  assert run.parse_sections("memory, losses") == ["memory", "losses"]
  with pytest.raises(argparse.ArgumentTypeError, match="no section 'memroy'; choose"):
    run.parse_sections("memroy")


def test_report(run, tmp_path, monkeypatch, capsys):
  asked = []

  def measure(quick):
    asked.append(quick)
    return [{"name": "x", "samples": [1.0]}]

  monkeypatch.setitem(run.SECTIONS, "fake", lambda: [run.Table("A title", measure)])
  run.measure(["fake"], True, tmp_path / "new" / "folder")
  report = json.loads((tmp_path / "new" / "folder" / "bench.json").read_text())
  assert asked == [True] and report["quick"] is True
  assert report["tables"] == [
    {"section": "fake", "title": "A title", "rows": [{"name": "x", "samples": [1.0]}]}
  ]
  assert report["machine"]["cpu"] and report["machine"]["cpus"] >= 1
  assert {"python", "packages", "git_commit"} <= set(report["machine"])
  printed = capsys.readouterr().out
  assert "A title" in printed and "| x    |" in printed


@pytest.mark.parametrize(("own", "used"), [(None, "false"), ("true", "true")])
def test_samples_find_a_gpu_that_is_free(run, monkeypatch, tmp_path, own, used):
  """Unless the user has decided otherwise."""
  # Set first, so that it is as it was afterwards.
  monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", own or "")
  if own is None:
    monkeypatch.delenv("XLA_PYTHON_CLIENT_PREALLOCATE")
  seen = []

  def measure(*args):
    seen.append((args, os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"]))

  monkeypatch.setattr(run, "measure", measure)
  arguments = ["", "--only=sequences", "--quick", f"--output={tmp_path}"]
  monkeypatch.setattr(sys, "argv", arguments)
  run.main()
  assert seen == [((["sequences"], True, tmp_path), used)]


@pytest.mark.slow
@pytest.mark.reverb
@pytest.mark.parametrize(
  ("what", "flags", "expected"),
  [
    (
      "speed",
      {"agent": "bsuite", "warm_up": 140, "steps": 20},
      {"steps_per_second", "compilations", "env_steps", "learner_updates"},
    ),
    (
      "parts",
      {"warm_up": 140, "steps": 20},
      {"update", "sampling", "acting", "inserting", "environment", "all"},
    ),
    (
      "replay",
      {"steps": 20_000},
      {"transitions", "row_bytes", "bytes_per_transition"},
    ),
  ],
)
def test_samples_measure_something(deep_sea, what, flags, expected):
  result = deep_sea.sample(what, env="bsuite:deep_sea/0", **flags)
  assert set(result) == expected
  assert result.pop("compilations", 0) == 0
  assert all(value > 0 for value in result.values()), result
  if what == "speed":
    # Whole episodes of ten steps, up to the one after the measured steps; the first
    # 127 steps fill replay.
    assert (result["env_steps"], result["learner_updates"]) == (170, 43)
