"""Run directories: locks, and what is refused."""

import json
import math
import os

import pytest

from explorax.experiments import errors, output


def test_the_directory_of_a_run_that_did_not_start_is_removed(tmp_path):
  for name in ("new/run", "."):
    directory = output.RunDirectory.create(tmp_path / name)
    (tmp_path / "notes.txt").write_text("mine")
    directory.unlock()
  assert not (tmp_path / "new/run").exists() and (tmp_path / "notes.txt").exists()


def test_one_run_and_one_process_at_a_time(tmp_path):
  (tmp_path / "notes.txt").touch()  # Without it an unlocked directory is removed.
  directory = output.RunDirectory.create(tmp_path)
  for _ in range(2):  # A refused process does not unlock it.
    with pytest.raises(errors.OutputError, match="in use"):
      output.RunDirectory.create(tmp_path)
  directory.unlock()
  (tmp_path / "metrics.csv").touch()
  with pytest.raises(errors.OutputError, match=r"metrics\.csv"):
    output.RunDirectory.create(tmp_path)
  (tmp_path / "config.json").write_text("{")
  directory = output.RunDirectory.create(tmp_path)
  with pytest.raises(errors.OutputError, match=r"config\.json"):
    directory.read_settings()
  directory.unlock()


def test_json_is_written_there_with_null_for_nan_and_infinity(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  directory = output.RunDirectory.create("run")
  os.chdir("/")  # As an environment may.
  directory.write_json("a.json", {"x": math.nan, "y": [1.5, math.inf], "z": {"w": 1}})
  content = json.loads((tmp_path / "run/a.json").read_text())
  assert content == {"x": None, "y": [1.5, None], "z": {"w": 1}}
