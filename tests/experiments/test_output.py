"""Run directories: locks, atomic writes, and what is refused."""

import json
import math

import jax
import pytest

from explorax.experiments import errors, output, versions


@pytest.fixture
def directory(tmp_path):
  return output.RunDirectory.create(tmp_path / "a" / "run")


def test_the_directory_of_a_run_that_did_not_start_is_removed(tmp_path):
  for name in ("new/run", "."):
    directory = output.RunDirectory.create(tmp_path / name, is_locked=True)
    (tmp_path / "notes.txt").write_text("mine")
    directory.unlock()
  assert not (tmp_path / "new/run").exists() and (tmp_path / "notes.txt").exists()


@pytest.mark.parametrize("name", ["config.json", "metrics.csv", "summary.json"])
def test_refuses_a_directory_that_holds_a_run(tmp_path, name):
  (tmp_path / name).touch()
  with pytest.raises(errors.OutputError, match=name):
    output.RunDirectory.create(tmp_path)


def test_one_process_at_a_time(tmp_path):
  directory = output.RunDirectory.create(tmp_path, is_locked=True)
  for _ in range(2):  # A refused process does not unlock it.
    with pytest.raises(errors.OutputError, match="in use"):
      output.RunDirectory.create(tmp_path, is_locked=True)
  directory.unlock()
  output.RunDirectory.create(tmp_path, is_locked=True).unlock()


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


def test_a_change_of_the_current_directory_moves_no_file(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  directory = output.RunDirectory.create("run")
  (tmp_path / "elsewhere").mkdir()
  monkeypatch.chdir(tmp_path / "elsewhere")
  directory.write_json("summary.json", {})
  assert (tmp_path / "run/summary.json").exists() and str(directory.given) == "run"


def test_versions():
  assert versions.collect()["packages"]["jax"] == jax.__version__
