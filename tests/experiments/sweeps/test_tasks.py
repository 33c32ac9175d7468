"""What is kept of a sweep's tasks: selection, markers, tables, the lock, the index."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from bsuite import sweep
from bsuite.logging import csv_load

from explorax.experiments import errors, output
from explorax.experiments.sweeps import index, lock, selection, tasks

ROWS = [
  {"steps": 10, "episode": 1, "total_return": -0.1, "total_bad_episodes": 1},
  {"steps": 20, "episode": 2, "total_return": 0.89, "total_bad_episodes": 1},
]
SETTINGS = {"class": "Config", "rate": 0.1, "rule": {"epsilon": 0.05}}


def _task(bsuite_id="deep_sea/0", seed=0, agent="dqn", episodes=2):
  return tasks.Task(agent, bsuite_id, seed, episodes)


def _store(path, cap=2, **agents):
  directory = output.RunDirectory.create(path)
  return tasks.Store(directory, agents or {"dqn": SETTINGS, "my:make": {}}, cap)


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
  assert selection.select(names) == tuple(dict.fromkeys(ids))


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("deep_see", "Did you mean deep_sea"),
    ("memry", "Did you mean memory"),
    ("deep_sea/21", r"deep_sea/0's kind end with deep_sea/20"),
    ("dep_sea/0", "Did you mean deep_sea/0"),
    ("", "--list shows"),
  ],
)
def test_unknown_names_are_refused(name, message):
  with pytest.raises(errors.SetUpError, match=message):
    selection.select(f"catch/0,{name}")


def test_listing_counts_the_ids():
  lines = selection.listing().splitlines()
  assert lines[0].split() == ["SWEEP", "468", "ids"]
  assert ["DEEP_SEA", "21", "ids"] in [line.split() for line in lines]


def test_a_cap_is_no_more_than_a_cap():
  assert _task(episodes=5).num_episodes == 5
  assert _task(episodes=None).num_episodes == 10_000
  assert _task("cartpole/0", episodes=10**6).num_episodes == 1000


def test_what_is_written_is_read_by_us_and_by_bsuite(tmp_path):
  store = _store(tmp_path)
  for task in (_task(), _task("deep_sea/1"), _task(seed=1), _task(agent="my:make")):
    assert store.read(task) is None
    store.write(task, ROWS, 1.5, "device")
    assert store.read(task)["seconds"] == 1.5
  frame, _ = csv_load.load_bsuite(str(tmp_path / "bsuite_csv/dqn/seed0"))
  assert list(frame.bsuite_id.unique()) in (
    ["deep_sea/0", "deep_sea/1"],
    ["deep_sea/1", "deep_sea/0"],
  )
  assert sorted(frame.total_return) == [-0.1, -0.1, 0.89, 0.89]
  lines = store.table().decode().splitlines()
  assert lines[0] == (
    "agent,bsuite_id,seed,steps,episode,total_return,total_bad_episodes"
  )
  assert len(lines) == len(set(lines)) == 1 + 4 * 2
  assert "my:make,deep_sea/0,0,20,2,0.89,1" in lines


@pytest.mark.parametrize("damage", ["cut", "gone", "marker"])
def test_what_is_damaged_is_not_done(tmp_path, damage):
  store = _store(tmp_path)
  store.write(_task(), ROWS, 1.0, "local")
  (table,) = tmp_path.glob("bsuite_csv/**/*.csv")
  (marker,) = tmp_path.glob("tasks/**/*.json")
  if damage == "cut":
    table.write_bytes(table.read_bytes()[:-3])
  elif damage == "gone":
    table.unlink()
  else:
    marker.write_text(marker.read_text()[:20])
  assert store.read(_task()) is None
  assert len(store.table().decode().split()) == 0
  store.check()
  store.write(_task(), ROWS, 1.0, "local")
  assert store.read(_task()) is not None


def test_a_marker_that_cannot_be_written_leaves_the_task_undone(tmp_path, monkeypatch):
  store = _store(tmp_path)
  real = output.RunDirectory.write

  def full(self, name, write):
    if name.endswith(".json"):
      raise errors.OutputError("the disk is full")
    real(self, name, write)

  monkeypatch.setattr(output.RunDirectory, "write", full)
  with pytest.raises(errors.OutputError):
    store.write(_task(), ROWS, 1.0, "local")
  assert store.read(_task()) is None and store.table() == b"\n"


def test_other_settings_are_refused(tmp_path):
  _store(tmp_path).write(_task(), ROWS, 1.0, "local")
  _store(tmp_path).check()
  _store(tmp_path, tdu=SETTINGS).check()  # Another agent beside it.
  with pytest.raises(errors.SetUpError, match=r"episodes=2 .* would be episodes=3"):
    _store(tmp_path, cap=3).check()
  other = {**SETTINGS, "rule": {"epsilon": 0.1}}
  with pytest.raises(errors.SetUpError, match=r"rule\.epsilon was 0\.05 and is 0\.1"):
    _store(tmp_path, dqn=other).check()


def test_another_version_is_refused(tmp_path, monkeypatch):
  _store(tmp_path).write(_task(), ROWS, 1.0, "local")
  monkeypatch.setattr(tasks, "REVISION", 99)
  with pytest.raises(errors.SetUpError, match=r"revision=1 .* would be revision=99"):
    _store(tmp_path).check()


def test_the_lock_names_its_owner_and_ends_with_it(tmp_path):
  code = (
    "import pathlib, sys\n"
    "from explorax.experiments.sweeps import lock\n"
    "with lock.hold(pathlib.Path(sys.argv[1])):\n"
    "  print('held', flush=True); sys.stdin.read()\n"
  )
  other = subprocess.Popen(
    [sys.executable, "-c", code, str(tmp_path)],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  assert other.stdout.readline() == "held\n"
  with (
    pytest.raises(errors.SetUpError, match=f"process {other.pid} on "),
    lock.hold(tmp_path),
  ):
    pass
  other.kill()
  other.communicate()
  with lock.hold(tmp_path):
    assert f"process {os.getpid()} on " in (tmp_path / "sweep.lock").read_text()


def _index(path, command):
  directory = output.RunDirectory.create(path)
  return index.Index(directory, _store(path), command=command)


def _entries(path: pathlib.Path) -> dict:
  content = json.loads((path / "sweep.json").read_text())
  return {**content, "tasks": {e["bsuite_id"]: e for e in content["tasks"]}}


def test_the_index_tells_of_all_tasks_ever_asked_for(tmp_path):
  _store(tmp_path).write(_task(), ROWS, 1.0, "local")
  first = _index(tmp_path, "one")
  assert first.done(_task()) and not first.done(_task("deep_sea/1"))
  first.missing(_task("mnist/0"), "no data")
  first.failed(_task("catch/0"), "it broke", "a traceback", 2)
  first.write()
  content = _entries(tmp_path)
  assert content["counts"] == {"done": 1, "failed": 1, "missing": 2}
  assert content["tasks"]["mnist/0"]["reason"] == "no data"
  assert content["tasks"]["catch/0"]["details"] == "a traceback"
  assert content["settings"] == {"dqn": SETTINGS}
  second = _index(tmp_path, "two")
  assert not second.done(_task("catch/0"))
  second.write()  # What is known of a failure is kept until its task is done.
  assert _entries(tmp_path)["tasks"]["catch/0"]["details"] == "a traceback"
  _store(tmp_path).write(_task("catch/0"), ROWS, 1.0, "local")
  assert second.done(_task("catch/0"))
  second.write()
  content = _entries(tmp_path)
  assert content["commands"] == ["one", "two"] and len(content["tasks"]) == 4
  assert content["counts"] == {"done": 2, "failed": 0, "missing": 2}
  (tmp_path / "sweep.json").write_text('{"tasks": [1]}')
  third = _index(tmp_path, "three")
  assert third.done(_task())
  third.write()
  assert _entries(tmp_path)["commands"] == ["three"]


def test_the_index_finds_what_a_killed_call_has_done(tmp_path):
  first = _index(tmp_path, "one")
  for bsuite_id in ("deep_sea/0", "deep_sea/1"):
    assert not first.done(_task(bsuite_id))
  first.write()
  _store(tmp_path).write(_task(), ROWS, 1.0, "local")  # And then it was killed.
  second = _index(tmp_path, "another agent's")
  second.write()
  content = _entries(tmp_path)
  assert content["counts"] == {"done": 1, "failed": 0, "missing": 1}
  (tmp_path / content["tasks"]["deep_sea/0"]["csv"]).unlink()
  _index(tmp_path, "one").write()
  assert _entries(tmp_path)["counts"] == {"done": 0, "failed": 0, "missing": 2}


def test_the_index_keeps_up_with_what_changes_alone(tmp_path, monkeypatch):
  table = _index(tmp_path, "one")
  table.keep_up()  # It was read a moment ago.
  assert not (tmp_path / "sweep.json").exists()
  monkeypatch.setattr(index, "PERIOD", -1.0)
  table.keep_up()
  assert _entries(tmp_path)["counts"]["missing"] == 0
  (tmp_path / "sweep.json").unlink()
  table.keep_up()
  assert not (tmp_path / "sweep.json").exists()
  table.missing(_task(), "no data")
  table.keep_up()
  assert _entries(tmp_path)["counts"]["missing"] == 1


def test_each_task_has_the_versions_that_it_was_done_with(tmp_path):
  store = _store(tmp_path)
  for number, bsuite_id in enumerate(("deep_sea/0", "deep_sea/1", "deep_sea/2")):
    store.versions = {"packages": {"jax": f"0.{number // 2}"}}
    store.write(_task(bsuite_id), ROWS, 1.0, "local")
  _index(tmp_path, "one").write()
  content = _entries(tmp_path)
  made_with = {
    name: content["versions"][entry["versions"]]["packages"]["jax"]
    for name, entry in content["tasks"].items()
  }
  assert made_with == {"deep_sea/0": "0.0", "deep_sea/1": "0.0", "deep_sea/2": "0.1"}
  assert len(content["versions"]) == 2
