"""A Ray cluster that cannot be used is refused."""

import pytest

from explorax.experiments import errors, processes


def test_an_address_where_nothing_listens_is_refused_at_once():
  with (
    pytest.raises(errors.SetUpError, match=r"--ray_address=127\.0\.0\.1:1 "),
    processes.connect("127.0.0.1:1", None),
  ):
    pass


def test_a_ray_that_was_imported_before_its_settings_is_not_started(monkeypatch):
  pytest.importorskip("ray")
  monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
  with (
    pytest.raises(errors.SetUpError, match="imported before"),
    processes.connect(None, 1),
  ):
    pass
