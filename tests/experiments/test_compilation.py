"""Compiled programs that later processes reuse: where they are."""

import os
import pathlib
import subprocess
import sys

import pytest

from explorax.experiments import command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="off elsewhere")

FOLDER = "JAX_COMPILATION_CACHE_DIR"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> pathlib.Path:
  """The user's folder for caches; the tests' own is not named."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  monkeypatch.delenv(FOLDER, raising=False)
  return tmp_path / "cache"


def _folder_of_a_command(*argv: str) -> str | None:
  assert command.main(argv, [], lambda *_: 0, introduction="") == 0
  return os.environ.get(FOLDER)


def test_a_command_names_the_users_folder_unless_told_otherwise(cache, monkeypatch):
  assert _folder_of_a_command("--compilation_cache=false") is None
  assert not cache.exists()
  folder = cache / "explorax/jax"
  assert _folder_of_a_command() == str(folder)
  assert folder.stat().st_mode & 0o777 == 0o700
  monkeypatch.setenv(FOLDER, "another")
  assert _folder_of_a_command() == "another"


def test_programs_are_kept_within_a_limit(cache, tmp_path, monkeypatch):
  # All are kept: how long one compiles differs from run to run.
  monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
  flags = ["--agent=double_dqn", "--env=jax:chain/5", "--steps=5", "--eval_episodes=0"]
  script = [sys.executable, "-P", "-m", "explorax.experiments.run", *flags]
  subprocess.run([*script, f"--output={tmp_path / 'out'}"], check=True)
  assert list(cache.rglob("*-cache"))
  assert list(cache.rglob("*-atime"))  # JAX's own limit of the size is active.
