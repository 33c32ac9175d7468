"""The versions, machine and commit in `config.json`."""

import platform
import subprocess
import sys

import numpy as np
import pytest

from explorax.experiments import versions


def git(directory, *arguments: str) -> str:
  identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
  command = ["git", "-C", str(directory), *identity, *arguments]
  return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path):
  git(tmp_path, "init", "-q")
  (tmp_path / "tracked.py").write_text("1")
  git(tmp_path, "add", "tracked.py")
  git(tmp_path, "commit", "-q", "-m", "one")
  return tmp_path


def test_the_commit_of_a_file_in_a_checkout(checkout):
  head = git(checkout, "rev-parse", "HEAD").strip()
  assert versions.git_commit(checkout / "tracked.py") == head
  (checkout / "tracked.py").write_text("2")
  assert versions.git_commit(checkout / "tracked.py") == head + "+"


def test_versions_devices_and_flags(monkeypatch):
  monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_use_thunk_runtime=false")
  found = versions.collect()
  assert found["python"] == platform.python_version()
  assert found["packages"]["numpy"] == np.__version__
  assert found["packages"]["jax"] == sys.modules["jax"].__version__
  assert found["jax_devices"]
  assert found["xla_flags"] == "--xla_cpu_use_thunk_runtime=false"
