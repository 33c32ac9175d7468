"""Joining a Ray cluster that cannot be used."""

import fcntl

import pytest

from explorax.experiments import errors, ray_cluster


def test_a_cluster_without_cores_is_refused(monkeypatch):
  ray = pytest.importorskip("ray")
  left = []
  monkeypatch.setattr(ray_cluster, "check_reachable", lambda address: None)
  monkeypatch.setattr(ray, "is_initialized", lambda: False)
  monkeypatch.setattr(ray, "init", lambda **_: None)
  monkeypatch.setattr(ray, "shutdown", lambda: left.append(True))
  monkeypatch.setattr(ray, "cluster_resources", lambda: {"memory": 1e9})
  with (
    pytest.raises(errors.SetUpError, match="--ray_address=head:6379 has no cores"),
    ray_cluster.connect("head:6379", None),
  ):
    pass
  assert left == [True]


def test_an_address_where_nothing_listens_is_refused_at_once():
  with (
    pytest.raises(errors.SetUpError, match=r"--ray_address=127\.0\.0\.1:1 "),
    ray_cluster.connect("127.0.0.1:1", None),
  ):
    pass


def test_folders_of_processes_that_were_killed_are_removed(tmp_path, monkeypatch):
  monkeypatch.setattr(ray_cluster, "_PARENT", str(tmp_path))
  locks = [tmp_path / f"explorax_ray_{name}" / "lock" for name in ("old", "new")]
  for lock in locks:
    lock.parent.mkdir()
    lock.touch()
  with open(locks[1]) as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    ray_cluster._remove_leftovers()
  assert [lock.exists() for lock in locks] == [False, True]
