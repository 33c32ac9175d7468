"""Compiled programs that later processes reuse: where, and the same results."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from explorax.experiments import checkpoint, command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="off elsewhere")

FOLDER = "JAX_COMPILATION_CACHE_DIR"
FLAGS = (command.Compiling,)


@pytest.fixture
def cache(tmp_path, monkeypatch) -> pathlib.Path:
  """The user's folder for caches; the tests' own is not named."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  monkeypatch.delenv(FOLDER, raising=False)
  return tmp_path / "cache"


def _folder_of_a_command(*argv: str) -> str | None:
  assert command.main(argv, FLAGS, lambda *_: 0, introduction="") == 0
  return os.environ.get(FOLDER)


def test_a_command_names_the_users_folder_unless_told_otherwise(cache, monkeypatch):
  assert _folder_of_a_command("--compilation_cache=false") is None
  assert not cache.exists()
  folder = cache / "explorax/jax"
  assert _folder_of_a_command() == str(folder)
  assert folder.stat().st_mode & 0o777 == 0o700
  monkeypatch.setenv(FOLDER, "another")
  assert _folder_of_a_command() == "another"


def test_a_folder_that_cannot_be_made_is_no_error(cache):
  cache.write_text("a file in its place")
  assert _folder_of_a_command() is None


def test_kept_programs_give_the_same_results_bit_for_bit(cache, tmp_path, monkeypatch):
  # All are kept: how long one compiles differs from run to run.
  monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

  def run(name: str) -> tuple[list[str], list[list[str]], dict[str, np.ndarray]]:
    flags = ["--agent=double_dqn", "--env=jax:chain/5", "--steps=40", "--seed=1"]
    flags += ["--set=min_replay_size=8", "--set=batch_size=4", "--eval_episodes=0"]
    script = [sys.executable, "-P", "-m", "explorax.experiments.run", *flags]
    subprocess.run([*script, f"--output={tmp_path / name}"], check=True)
    rows = (tmp_path / name / "metrics.csv").read_text().splitlines()
    timed = [i for i, x in enumerate(rows[0].split(",")) if "second" in x]
    kept = [[x for i, x in enumerate(r.split(",")) if i not in timed] for r in rows]
    with np.load(tmp_path / name / "checkpoints/final.npz") as weights:
      arrays = dict(weights)
    arrays.pop(checkpoint.EXTRA)
    return sorted(path.name for path in cache.rglob("*-cache")), kept, arrays

  programs, rows, weights = run("first")
  assert programs
  assert list(cache.rglob("*-atime"))  # JAX's own limit of the size is active.
  again, rows_again, weights_again = run("again")
  assert again == programs and rows_again == rows
  assert weights.keys() == weights_again.keys()
  for name, array in weights.items():
    np.testing.assert_array_equal(array, weights_again[name])
