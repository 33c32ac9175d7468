"""The report of the benchmarks: what is compared, refused, printed and written."""

import argparse
import json

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


def test_contestants_take_turns(bench):
  order = []
  contestants = {name: lambda name=name: order.append(name) or {} for name in "ab"}
  assert bench.in_turn(contestants, 2) == {"a": [{}, {}], "b": [{}, {}]}
  assert order == ["a", "b", "b", "a"]


def test_a_sample_is_a_fresh_process(bench):
  found = bench.sample("bench:peak_mib")
  assert 1 < found < 10_000
  with pytest.raises(RuntimeError, match="ended with code 1"):
    bench.sample("bench:nothing")


def test_report(load, bench, tmp_path, monkeypatch, capsys):
  run = load("run")
  fake = type("Module", (), {})
  fake.TABLES = (bench.Table("A title", lambda quick: [{"name": "x", "list": [1]}]),)
  monkeypatch.setattr(run.importlib, "import_module", lambda name: fake)
  run.measure(["fake"], True, tmp_path / "new" / "folder")
  report = json.loads((tmp_path / "new" / "folder" / "bench.json").read_text())
  assert report["tables"] == [
    {"section": "fake", "title": "A title", "rows": [{"name": "x", "list": [1]}]}
  ]
  assert report["machine"]["cpu"] and report["quick"] is True
  assert "| x    |" in capsys.readouterr().out
  assert run.parse_sections("novelty, losses") == ["novelty", "losses"]
  with pytest.raises(argparse.ArgumentTypeError, match="no section 'memroy'; choose"):
    run.parse_sections("memroy")
