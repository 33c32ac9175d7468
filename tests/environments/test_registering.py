"""Environments that other packages register with gymnasium."""

import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.newest

# What such a package does when it is imported.
PACKAGE = """
import gymnasium


class Env(gymnasium.Env):
  action_space = gymnasium.spaces.Discrete(2)
  observation_space = gymnasium.spaces.Box(0, 1, (3,))

  def reset(self, *, seed=None, options=None):
    return self.observation_space.sample(), {}


def register_envs():
  gymnasium.register("MODULE-Room-v0", entry_point=Env)
"""
MAKE = """
import sys
from explorax import environments
try:
  print(environments.make(sys.argv[1], seed=0).action_spec().num_values)
except ValueError as error:
  print(error)
"""


def make(name: str) -> str:
  """What a new process says of an environment; the registry lasts as long as one."""
  done = subprocess.run(
    [sys.executable, "-c", MAKE, name], capture_output=True, text=True, check=True
  )
  return done.stdout


@pytest.mark.parametrize("calls", ["register_envs()", ""])
def test_a_package_that_we_know_is_imported(calls, tmp_path, monkeypatch):
  monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
  code = PACKAGE.replace("MODULE", "MiniGrid") + calls
  (tmp_path / "minigrid.py").write_text(code)
  assert make("gym:MiniGrid-Room-v0").split() == ["2"]
  assert "gymnasium has no environment" in make("gym:MiniGrid-Hall-v0")


def test_no_other_package_is_imported(tmp_path, monkeypatch):
  monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
  pathlib.Path(tmp_path / "maxigrid.py").write_text(
    PACKAGE.replace("MODULE", "MaxiGrid") + "register_envs()"
  )
  assert "gym:MODULE:MaxiGrid-Room-v0" in make("gym:MaxiGrid-Room-v0")
  assert make("gym:maxigrid:MaxiGrid-Room-v0").split() == ["2"]


def test_a_package_that_is_missing_is_named():
  said = make("gym:MiniWorld-Hallway-v0")
  assert "pip install miniworld" in said and said.count("\n") == 1
