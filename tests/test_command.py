"""The command `explorax`: it finds the other commands, and is light without one."""

import importlib
import pathlib
import subprocess
import sys
import tomllib

import pytest

from explorax import __main__ as main_lib

ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMANDS = ("run", "sweep", "report", "evaluate", "reproduce")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_is_that_of_the_module(name, capsys):
  package = "papers" if name == "reproduce" else "experiments"
  module = importlib.import_module(f"explorax.{package}.{name}")
  assert module.main(["--help"]) == 0
  expected = capsys.readouterr().out
  assert main_lib.main([name, "--help"]) == 0
  assert capsys.readouterr().out == expected


@pytest.mark.parametrize("argv", [[], ["--help"], ["help"]])
def test_lists_the_commands(argv, capsys):
  assert main_lib.main(argv) == 0
  text = capsys.readouterr().out
  assert all(f"explorax {name} " in text for name in (*COMMANDS, "demo"))


def test_suggests_a_command(capsys):
  assert main_lib.main(["sweeep"]) == 2
  assert "Did you mean sweep" in capsys.readouterr().err


def test_help_of_the_demo_says_what_it_runs(capsys):
  assert main_lib.main(["demo", "--help"]) == 0
  assert "explorax run --agent=tdu" in capsys.readouterr().out


def test_demo_runs_without_flags_and_takes_some(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  short = ["--episodes=2", "--set=num_members=2", "--set=num_explorers=2"]
  assert main_lib.main(["demo", *short]) == 0
  (run,) = pathlib.Path("results").iterdir()
  assert (run / "summary.json").exists()
  assert str(pathlib.Path("results", run.name)) in capsys.readouterr().out


def test_help_imports_nothing_heavy():
  code = (
    "import sys\n"
    "from explorax import __main__\n"
    "__main__.main(['run', '--help'])\n"
    "print(sorted({'jax', 'numpy', 'haiku'} & set(sys.modules)))\n"
  )
  command = [sys.executable, "-P", "-c", code]
  done = subprocess.run(command, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stderr
  assert done.stdout.splitlines()[-1] == "[]"


def test_the_script_is_installed():
  project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
  module, _, function = project["scripts"]["explorax"].partition(":")
  assert callable(getattr(importlib.import_module(module), function))
  assert all(url.startswith("https://") for url in project["urls"].values())
