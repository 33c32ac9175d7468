"""The command `explorax`: it finds the other commands, and is light without one."""

import importlib
import os
import subprocess
import sys

import pytest

from explorax import __main__ as main_lib
from explorax.experiments import command, run

FOLDER, SIZE = "JAX_COMPILATION_CACHE_DIR", "JAX_COMPILATION_CACHE_MAX_SIZE"
COMMANDS = ("run", "sweep", "report", "evaluate", "reproduce")


def test_finds_the_commands_and_suggests_one(capsys):
  for name in COMMANDS:
    package = "papers" if name == "reproduce" else "experiments"
    module = importlib.import_module(f"explorax.{package}.{name}")
    assert module.main(["--help"]) == main_lib.main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text == 2 * text[: len(text) // 2]
  assert main_lib.main([]) == 0
  text = capsys.readouterr().out
  assert all(f"explorax {name} " in text for name in (*COMMANDS, "demo"))
  assert main_lib.main(["sweeep"]) == 2
  assert "Did you mean sweep" in capsys.readouterr().err


def test_demo_is_a_run_that_takes_flags(monkeypatch):
  asked: list[str] = []
  monkeypatch.setattr(run, "main", lambda argv: asked.extend(argv) or 0)
  assert main_lib.main(["demo", "--seed=5"]) == 0
  assert asked[0] == "--agent=tdu" and asked[-1] == "--seed=5"


def test_help_imports_nothing_heavy():
  code = (
    "import sys; from explorax import __main__\n"
    "assert __main__.main(['run', '--help']) == 0\n"
    "assert not {'jax', 'numpy', 'haiku'} & set(sys.modules)\n"
  )
  program = [sys.executable, "-P", "-c", code]
  done = subprocess.run(program, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stderr


def _folder_of_a_command(*argv: str) -> str | None:
  assert command.main(argv, [], lambda *_: 0, introduction="") == 0
  return os.environ.get(FOLDER)


@pytest.mark.skipif(sys.platform != "linux", reason="off elsewhere")
def test_a_command_names_the_users_folder_unless_told_otherwise(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  for name in (FOLDER, SIZE):
    monkeypatch.setenv(name, "")  # Restored at the end, whatever the command sets.
    monkeypatch.delenv(name)
  folder = tmp_path / "cache/explorax/jax"
  assert _folder_of_a_command() == str(folder)
  assert folder.stat().st_mode & 0o777 == 0o700 and int(os.environ[SIZE]) == 2**30
  monkeypatch.setenv(FOLDER, "another")
  assert _folder_of_a_command() == "another"
