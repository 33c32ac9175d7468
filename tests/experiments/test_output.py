"""Run directories: locks, atomic writes, and what is refused."""

import json
import math
import os
import shutil

import pytest

from explorax.experiments import errors, output


@pytest.fixture
def directory(tmp_path):
  return output.RunDirectory.create(tmp_path / "a" / "run")


def test_an_existing_directory_without_a_run_is_used(tmp_path):
  (tmp_path / "notes.txt").write_text("mine")
  output.RunDirectory.create(tmp_path).discard()
  assert (tmp_path / "notes.txt").read_text() == "mine"


def test_discard_removes_the_directory_of_a_run_that_did_not_start(tmp_path):
  directory = output.RunDirectory.create(tmp_path / "a" / "run")
  (directory.path / "bsuite").mkdir()
  directory.discard()
  assert not directory.path.exists()


@pytest.mark.parametrize("name", ["config.json", "metrics.csv", "summary.json"])
def test_refuses_a_directory_that_holds_a_run(tmp_path, name):
  (tmp_path / name).touch()
  with pytest.raises(errors.OutputError, match=name):
    output.RunDirectory.create(tmp_path)


def test_one_process_at_a_time(tmp_path):
  path = tmp_path / "run"
  directory = output.RunDirectory.create(path, is_locked=True)
  for _ in range(2):  # A refused process does not unlock it.
    with pytest.raises(errors.OutputError, match=str(os.getpid())):
      output.RunDirectory.create(path, is_locked=True)
  directory.unlock()
  output.RunDirectory.create(path, is_locked=True).unlock()
  (path / ".lock").write_text("12345")  # Of a killed process.
  output.RunDirectory.create(path, is_locked=True).discard()


def test_json_has_null_for_nan_and_infinity(directory):
  directory.write_json("a.json", {"x": math.nan, "y": [1.5, math.inf], "z": {"w": 1}})
  content = json.loads((directory.path / "a.json").read_text())
  assert content == {"x": None, "y": [1.5, None], "z": {"w": 1}}


def test_a_file_is_replaced_whole_or_not_at_all(directory, small_disk):
  with small_disk(100):
    directory.write("folder/a", lambda file: file.write(b"old"))
    with pytest.raises(errors.OutputError, match="could not be written"):
      directory.write("folder/a", lambda file: file.write(b"n" * 1000))
    assert [p.name for p in (directory.path / "folder").iterdir()] == ["a"]
    assert (directory.path / "folder/a").read_bytes() == b"old"


def test_an_append_only_file_contains_whole_records(directory, small_disk):
  with small_disk(100):
    file = output.AppendOnlyFile(directory.path / "log")
    file.append(b"a" * 60)
    with pytest.raises(errors.OutputError, match="log could not be written"):
      file.append(b"b" * 60)
    assert (directory.path / "log").read_bytes() == b"a" * 60
    file.append(b"c" * 40)
    file.close()
    assert (directory.path / "log").read_bytes() == b"a" * 60 + b"c" * 40


def test_a_full_disk_is_the_reason(directory):
  full = output.AppendOnlyFile(output.pathlib.Path("/dev/full"))
  with pytest.raises(errors.OutputError, match="the disk is full"):
    full.append(b"a")
  full.close()


def test_links_and_devices_are_not_written_through(tmp_path):
  directory = output.RunDirectory.create(tmp_path / "run")
  precious = tmp_path / "precious"
  precious.write_text("kept")
  for name in (".summary.json.tmp", "metrics.csv", "config.json"):
    (directory.path / name).symlink_to(precious)
  directory.write_json("summary.json", {"a": 1})
  assert not (directory.path / "summary.json").is_symlink()
  with pytest.raises(errors.OutputError, match="metrics"):
    output.AppendOnlyFile(directory.path / "metrics.csv")
  os.mkfifo(directory.path / "pipe")
  for name in ("config.json", "pipe"):
    with pytest.raises(errors.OutputError, match=name):
      directory.write_json(name, {})
  (tmp_path / "locked").mkdir()
  (tmp_path / "locked/.lock").symlink_to(precious)
  with pytest.raises(errors.OutputError, match="locked"):
    output.RunDirectory.create(tmp_path / "locked", is_locked=True)
  assert precious.read_text() == "kept"


@pytest.mark.parametrize(
  "change",
  [
    lambda run: run.rename(run.with_name("elsewhere")),
    lambda run: os.truncate(run / "log", 1),
    lambda run: os.replace(shutil.copy(run / "log", run / "other"), run / "log"),
  ],
)
def test_a_file_that_another_program_changed_is_noticed(tmp_path, change):
  directory = output.RunDirectory.create(tmp_path / "run")
  file = output.AppendOnlyFile(directory.path / "log")
  file.append(b"1,2\n")
  file.sync()
  change(directory.path)
  with pytest.raises(errors.OutputError, match="log"):
    file.sync()


def test_a_change_of_the_current_directory_moves_no_file(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  directory = output.RunDirectory.create("run")
  (tmp_path / "elsewhere").mkdir()
  monkeypatch.chdir(tmp_path / "elsewhere")
  directory.write_json("summary.json", {})
  assert (tmp_path / "run/summary.json").exists() and str(directory.given) == "run"
