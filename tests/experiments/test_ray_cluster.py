"""Joining a Ray cluster that cannot be used."""

import os

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


def test_a_ray_that_was_imported_before_its_settings_is_not_started(monkeypatch):
  pytest.importorskip("ray")
  monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
  with (
    pytest.raises(
      errors.SetUpError, match="imported before explorax could restrict it"
    ),
    ray_cluster.connect(None, 1),
  ):
    pass


def test_a_folder_that_others_can_enter_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(ray_cluster, "_PARENT", str(tmp_path))
  (tmp_path / f"explorax_{os.getuid()}").mkdir(mode=0o755)
  with (
    pytest.raises(errors.SetUpError, match="accessible to other users or not a folder"),
    ray_cluster._session_folder(),
  ):
    pass
