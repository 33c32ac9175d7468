"""Benchmarks: ratios of rounds, rows that are kept, and the soak test's checks."""

import json

import pytest

from explorax.experiments.reports import markdown


def test_medians_and_ratios_of_rounds(load):
  samples = {
    "ours": [{"steps/s": x} for x in (6.0, 90.0, 40.0)],
    "peer": [{"steps/s": x} for x in (3.0, 10.0, 20.0)],
  }
  ours, peer = load("bench")._lines({"columns": {"N": 10}, "samples": samples})
  assert ours["steps/s"] == "40 (6 to 90)"
  assert peer["first, times as fast"] == "2.00"  # Of 2, 9 and 2.


def test_what_is_measured_is_kept_and_not_measured_again(load, monkeypatch, tmp_path):
  bench, calls = load("bench"), []

  def take(call):
    if call.function == "bench:describe":
      return {"file": "here", "machine": "m", "commit": "c"}
    calls.append(call.function)
    if call.function == "fails" and calls.count("fails") < 2:
      raise RuntimeError("no memory")
    return {"steps/s": 1.0}

  monkeypatch.setattr(bench, "take", take)
  calls_of = {name: bench.Call(name, {}) for name in ("works", "fails")}
  rows = [
    bench.Row({"N": 1}, calls_of),
    bench.Row({"N": 2}, {"works": calls_of["works"]}),
  ]
  assert bench.complete({"table": rows}, 1, tmp_path) == 1
  assert bench.complete({"table": rows}, 1, tmp_path) == 0
  assert calls == ["works", "fails", "works", "works", "fails"]
  kept = json.loads((tmp_path / "here.json").read_text())
  assert [(row["columns"]["N"], *row["samples"]) for row in kept] == [
    (2, "works"),
    (1, "works", "fails"),
  ]


def test_a_sample_is_a_fresh_process(load):
  bench = load("bench")
  assert bench.take(bench.Call("bench:describe", {}))["machine"]
  with pytest.raises(RuntimeError, match="no attribute 'nothing'"):
    bench.take(bench.Call("bench:nothing", {}))


def test_every_row_names_a_function(load):
  made = load("tables").make(quick=True)
  for call in (
    x for rows in made.values() for row in rows for x in row.programs.values()
  ):
    module, _, name = call.function.partition(":")
    assert json.loads(json.dumps(call.arguments))
    assert module == "rlax_pairs" or callable(getattr(load(module), name))


def test_the_page_has_the_kept_rows(load):
  bench = load("bench")
  text, tables = bench.PAGE.read_text(encoding="utf-8"), bench.page_tables()
  assert markdown.fill(text, tables) == text, "run python benchmarks/bench.py --page"
  assert set(tables) <= set(markdown.names(text))


@pytest.mark.parametrize("episodes", [[1, 2, 3], [1, 2, 2, 3], [1, 3]])
def test_the_soak_test_finds_a_wrong_count(load, tmp_path, episodes):
  lines = [f"{number},{10 * number},10" for number in episodes]
  text = "\n".join(["episode,env_steps,episode_length", *lines, ""])
  (tmp_path / "metrics.csv").write_text(text)
  (tmp_path / "evaluation.csv").write_text("env_steps,episode,episode_return\n9,1,1\n")
  summary = {"status": "finished", "env_steps": 30, "episodes": len(episodes)}
  (tmp_path / "summary.json").write_text(json.dumps(summary))
  check = load("soak").check
  assert check(tmp_path, 0, 30)["episodes are counted once"] == (episodes == [1, 2, 3])
  assert not check(tmp_path, 1, 30)["the run finished"]
