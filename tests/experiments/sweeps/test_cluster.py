"""What a sweep that was killed has left of Ray."""

import os
import pathlib
import subprocess
import sys

import pytest

from explorax.experiments import errors
from explorax.experiments.sweeps import cluster

OWNER = """
import sys
from explorax.experiments.sweeps import cluster
cluster._PARENT = sys.argv[1]
with cluster._folder() as folder:
  open(folder + "/socket", "w").close()
  print(folder, flush=True)
  sys.stdin.read()
"""


@pytest.fixture
def owner(tmp_path):
  process = subprocess.Popen(
    [sys.executable, "-c", OWNER, str(tmp_path)],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
  )
  yield process
  process.kill()
  process.communicate()


def test_folders_of_killed_sweeps_are_removed_and_others_are_not(
  owner, tmp_path, monkeypatch
):
  monkeypatch.setattr(cluster, "_PARENT", str(tmp_path))
  theirs = pathlib.Path(owner.stdout.readline().strip())
  foreign = tmp_path / "another"
  foreign.mkdir()
  for folder in (theirs, foreign):
    os.utime(folder, (0, 0))
  with cluster._folder() as own:
    assert {*tmp_path.iterdir()} == {theirs, foreign, pathlib.Path(own)}
  owner.kill()
  owner.wait()
  with cluster._folder() as own:
    assert {*tmp_path.iterdir()} == {foreign, pathlib.Path(own)}
    assert [*pathlib.Path(own).iterdir()] == []
  assert [*tmp_path.iterdir()] == [foreign]


def test_a_folder_that_is_being_made_is_left(tmp_path, monkeypatch):
  monkeypatch.setattr(cluster, "_PARENT", str(tmp_path))
  with cluster._folder() as first:
    pass
  pathlib.Path(first).mkdir()
  with cluster._folder():
    assert pathlib.Path(first).is_dir()


def test_a_cluster_without_cores_is_refused(monkeypatch):
  ray = pytest.importorskip("ray")
  left = []
  monkeypatch.setattr(cluster, "check_reachable", lambda address: None)
  monkeypatch.setattr(ray, "is_initialized", lambda: False)
  monkeypatch.setattr(ray, "init", lambda **_: None)
  monkeypatch.setattr(ray, "shutdown", lambda: left.append(True))
  monkeypatch.setattr(ray, "cluster_resources", lambda: {"memory": 1e9})
  with (
    pytest.raises(errors.SetUpError, match="--ray_address=head:6379 has no cores"),
    cluster.connect("head:6379", None),
  ):
    pass
  assert left == [True]
