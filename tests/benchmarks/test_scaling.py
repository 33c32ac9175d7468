"""Rows of speed and memory of a device: a hundredth of the sizes, and resuming."""

import json

import pytest


@pytest.fixture
def scaling(load):
  return load("scaling")


@pytest.fixture
def here(scaling, monkeypatch):
  """Measures in this process; returns the calls."""
  calls = []

  def sample(function, platform, **arguments):
    calls.append(arguments)
    return getattr(scaling, function.partition(":")[2])(**arguments)

  monkeypatch.setattr(scaling.bench, "sample", sample)
  return calls


def test_a_hundredth_of_the_sizes_runs(scaling, here):
  tables = scaling.tables(100)
  (run,) = tables["seeds"][1]
  run.arguments["settings"]["batch_size"] = 4
  update = tables["updates"][1][-1]
  for case in (run, update):
    measured = case.measure()
    assert all(value > 0 for value in measured.values()), measured
    assert not case.columns.keys() & measured.keys()
  assert here == [run.arguments, update.arguments]


def test_what_is_measured_is_not_measured_again(
  scaling, here, load, monkeypatch, tmp_path
):
  fails = {"ngu"}

  def measure(**arguments):
    if arguments["agent"] in fails:
      raise RuntimeError("`python …` ended with code 1:\n  Traceback\nno memory")
    return {"steps/s": 10_000.6 + len(here), "peak MiB": 7.0}

  monkeypatch.setattr(scaling, "measure_run", measure)
  number = len(scaling.tables(100)["acting"][1])
  missing = scaling.complete(["acting"], 100, tmp_path)
  assert missing and all(x.endswith("no memory") and "agent ngu" in x for x in missing)
  fails.clear()
  before = len(here)
  assert scaling.complete(["acting"], 100, tmp_path) == []
  assert len(here) - before == 1 + len(missing)  # The first asks for the device.
  (path,) = tmp_path.glob("*.json")
  table = json.loads(path.read_text())["acting"]
  assert len(table["rows"]) == number
  page = load("page")._of_device(table)
  assert "runner device" in page.splitlines()[0]
  assert "peak MiB 7" in page.splitlines()[0]
  assert sum(line.startswith("| ") for line in page.splitlines()) == number + 2
