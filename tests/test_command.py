"""The command `explorax`: it finds the other commands, and is light without one."""

import importlib
import pathlib
import subprocess
import sys

import pytest

from explorax import __main__ as main_lib

COMMANDS = ("run", "sweep", "report", "evaluate", "reproduce")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_that_of_the_module(name, capsys):
  package = "papers" if name == "reproduce" else "experiments"
  module = importlib.import_module(f"explorax.{package}.{name}")
  assert module.main(["--help"]) == main_lib.main([name, "--help"]) == 0
  text = capsys.readouterr().out
  assert text == 2 * text[: len(text) // 2]


def test_lists_the_commands_and_suggests_one(capsys):
  assert main_lib.main([]) == 0
  text = capsys.readouterr().out
  assert all(f"explorax {name} " in text for name in (*COMMANDS, "demo"))
  assert main_lib.main(["sweeep"]) == 2
  assert "Did you mean sweep" in capsys.readouterr().err


def test_demo_runs_without_flags_and_takes_some(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  short = ["--episodes=2", "--set=num_members=2", "--set=num_explorers=2"]
  assert main_lib.main(["demo", *short]) == 0
  (run,) = pathlib.Path("results").iterdir()
  assert (run / "summary.json").exists()


@pytest.mark.parametrize("argv", [["--help"], ["--agent=dqnn", "--env=jax:chain/5"]])
def test_help_and_mistyped_names_import_nothing_heavy(argv):
  code = (
    f"import sys; from explorax import __main__; __main__.main(['run', *{argv}])\n"
    "assert not {'jax', 'numpy', 'haiku'} & set(sys.modules)\n"
  )
  command = [sys.executable, "-P", "-c", code]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stderr
