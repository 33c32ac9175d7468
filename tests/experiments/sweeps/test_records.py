"""The files of a sweep: names, results, bsuite's CSVs, the table, the index."""

import json
import pathlib

import pytest
from bsuite import sweep
from bsuite.logging import csv_load

from explorax.experiments import errors, output
from explorax.experiments.sweeps import records, selection
from explorax.experiments.tasks import types

ROWS = [
  {"steps": 10, "episode": 1, "total_return": -0.1, "total_bad_episodes": 1},
  {"steps": 20, "episode": 2, "total_return": 0.89, "total_bad_episodes": 1},
]
SETTINGS = {"class": "Config", "rate": 0.1, "rule": {"epsilon": 0.05}}
IDENTITIES = {"dqn": SETTINGS, "my:make": {}}


def _task(bsuite_id="deep_sea/0", seed=0, agent="dqn", cap=2):
  run = records.Run(agent, bsuite_id, seed)
  return records.task(run, IDENTITIES[agent], cap, {})


def _write(path, *tasks, cap=2, versions=None):
  """Keeps results of the tasks, as a sweep that is killed right after it."""
  store = records.store(output.RunDirectory.create(path), cap)
  for task in tasks:
    results = {"rows": ROWS, "runner": "local"}
    done = types.CompletedTask(task.name, task.settings, results, 1.5, versions or {})
    store.write(task, done)


def _records(path, command="one", cap=2, **identities):
  directory = output.RunDirectory.create(path)
  store = records.store(directory, cap)
  return records.Records(directory, store, identities or IDENTITIES, command)


def _index(path: pathlib.Path) -> dict:
  content = json.loads((path / "sweep.json").read_text())
  return {**content, "tasks": {e["bsuite_id"]: e for e in content["tasks"]}}


@pytest.mark.parametrize(
  ("names", "ids"),
  [
    ("SWEEP", sweep.SWEEP),
    ("testing", sweep.TESTING),
    ("deep_sea", sweep.DEEP_SEA),
    ("Memory", sweep.TAGS["memory"]),
    ("catch/3", ("catch/3",)),
    ("bandit/1, catch/0,bandit/1", ("bandit/1", "catch/0")),
    ("deep_sea/4,exploration", ("deep_sea/4", *sweep.TAGS["exploration"])),
  ],
)
def test_names_stand_for_bsuites_ids(names, ids):
  assert selection.ids(names) == tuple(dict.fromkeys(ids))


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("deep_see", "Did you mean deep_sea"),
    ("memry", "Did you mean memory"),
    ("deep_sea/21", "the last one of its experiment is deep_sea/20"),
    ("dep_sea/0", "Did you mean deep_sea/0"),
    ("", "--list lists"),
  ],
)
def test_unknown_names_are_refused(name, message):
  with pytest.raises(errors.SetUpError, match=message):
    selection.ids(f"catch/0,{name}")


def test_listing_counts_the_ids():
  lines = selection.listing().splitlines()
  assert lines[0].split() == ["SWEEP", "468", "ids"]
  assert ["DEEP_SEA", "21", "ids"] in [line.split() for line in lines]


def test_a_cap_only_shortens_experiments():
  assert _task(cap=5).settings["num_episodes"] == 5
  assert _task(cap=None).settings["num_episodes"] == 10_000
  assert _task("cartpole/0", cap=10**6).settings["num_episodes"] == 1000


def test_what_is_done_is_read_by_bsuite_too(tmp_path):
  _write(tmp_path, _task(), _task("deep_sea/1"), _task(seed=1), _task(agent="my:make"))
  kept = _records(tmp_path)
  kept.write()
  assert len(kept.done) == 4
  frame, _ = csv_load.load_bsuite(str(tmp_path / "bsuite_csv/dqn/seed0"))
  assert sorted(frame.bsuite_id.unique()) == ["deep_sea/0", "deep_sea/1"]
  assert sorted(frame.total_return) == [-0.1, -0.1, 0.89, 0.89]
  lines = (tmp_path / "results.csv").read_text().splitlines()
  assert lines[0] == (
    "agent,bsuite_id,seed,steps,episode,total_return,total_bad_episodes"
  )
  assert len(lines) == len(set(lines)) == 1 + 4 * 2
  assert "my:make,deep_sea/0,0,20,2,0.89,1" in lines


def test_a_damaged_csv_is_written_again(tmp_path):
  _write(tmp_path, _task())
  _records(tmp_path)
  (path,) = tmp_path.glob("bsuite_csv/**/*.csv")
  content = path.read_bytes()
  path.write_bytes(content[:-3])
  _records(tmp_path)
  assert path.read_bytes() == content


def test_results_of_other_settings_are_refused(tmp_path, monkeypatch):
  _write(tmp_path, _task())
  _records(tmp_path, tdu=SETTINGS)  # Another agent beside it.
  with pytest.raises(errors.SetUpError, match=r"episodes was 2 and is 3"):
    _records(tmp_path, cap=3)
  other = {**SETTINGS, "rule": {"epsilon": 0.1}}
  with pytest.raises(errors.SetUpError, match=r"rule\.epsilon was 0\.05 and is 0\.1"):
    _records(tmp_path, dqn=other)
  monkeypatch.setattr(records, "REVISION", 99)
  with pytest.raises(errors.SetUpError, match=r"revision was \d+ and is 99"):
    _records(tmp_path)


def test_the_index_has_all_tasks_ever_asked_for(tmp_path):
  _write(tmp_path, _task())
  first = _records(tmp_path)
  store = records.store(output.RunDirectory.create(tmp_path), 2)
  store.write_failure(_task("catch/0"), "it broke", "a traceback")
  first.ask(_task("catch/0"))
  first.ask(_task("mnist/0"), "no data")
  first.write()
  content = _index(tmp_path)
  assert content["counts"] == {"done": 1, "failed": 1, "missing": 1}
  assert content["tasks"]["mnist/0"]["reason"] == "no data"
  assert content["tasks"]["catch/0"]["reason"] == "it broke"
  assert content["settings"] == {"dqn": SETTINGS}
  # A call that is killed leaves results of which the index does not know.
  _write(tmp_path, _task("catch/0"), _task("deep_sea/1"))
  second = _records(tmp_path, "two")
  second.write()
  content = _index(tmp_path)
  assert content["commands"] == ["one", "two"]
  assert content["counts"] == {"done": 3, "failed": 0, "missing": 1}
  next(tmp_path.rglob("catch-0-*.npz")).unlink()
  _records(tmp_path).write()
  assert _index(tmp_path)["tasks"]["catch/0"]["status"] == "missing"
  (tmp_path / "sweep.json").write_text('{"tasks": [1]}')
  _records(tmp_path, "three").write()
  assert _index(tmp_path)["commands"] == ["three"]


def test_each_task_has_the_versions_that_it_was_computed_with(tmp_path):
  for number, bsuite_id in enumerate(("deep_sea/0", "deep_sea/1", "deep_sea/2")):
    _write(tmp_path, _task(bsuite_id), versions={"jax": f"0.{number // 2}"})
  _records(tmp_path).write()
  content = _index(tmp_path)
  made_with = {
    name: content["versions"][entry["versions"]]["jax"]
    for name, entry in content["tasks"].items()
  }
  assert made_with == {"deep_sea/0": "0.0", "deep_sea/1": "0.0", "deep_sea/2": "0.1"}
  assert len(content["versions"]) == 2
