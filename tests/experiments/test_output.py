"""Run directories: locks, atomic writes, and what is refused."""

import json
import math

import pytest

from explorax.experiments import errors, output


@pytest.fixture
def directory(tmp_path):
  return output.RunDirectory.create(tmp_path / "a" / "run")


def test_the_directory_of_a_run_that_did_not_start_is_removed(tmp_path):
  for name in ("new/run", "."):
    directory = output.RunDirectory.create(tmp_path / name)
    (tmp_path / "notes.txt").write_text("mine")
    directory.unlock()
  assert not (tmp_path / "new/run").exists() and (tmp_path / "notes.txt").exists()


def test_refuses_a_directory_that_holds_a_run(tmp_path):
  (tmp_path / "metrics.csv").touch()
  with pytest.raises(errors.OutputError, match=r"metrics\.csv"):
    output.RunDirectory.create(tmp_path)


def test_one_process_at_a_time(tmp_path):
  directory = output.RunDirectory.create(tmp_path)
  for _ in range(2):  # A refused process does not unlock it.
    with pytest.raises(errors.OutputError, match="in use"):
      output.RunDirectory.create(tmp_path)
  directory.unlock()
  output.RunDirectory.create(tmp_path).unlock()


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
