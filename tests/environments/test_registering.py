"""Environments that other packages register with gymnasium."""

import subprocess
import sys

import pytest

# What such a package does when it is imported.
PACKAGE = """
import gymnasium


class Env(gymnasium.Env):
  action_space = gymnasium.spaces.Discrete(2)
  observation_space = gymnasium.spaces.Box(0, 1, (3,))

  def reset(self, *, seed=None, options=None):
    return self.observation_space.sample(), {}


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


@pytest.mark.parametrize(
  ("package", "name", "says"),
  [
    ("minigrid", "gym:MiniGrid-Room-v0", "2"),
    ("minigrid", "gym:MiniGrid-Hall-v0", "gymnasium has no environment"),
    ("maxigrid", "gym:MaxiGrid-Room-v0", "gym:MODULE:MaxiGrid-Room-v0"),
    ("maxigrid", "gym:maxigrid:MaxiGrid-Room-v0", "2"),
  ],
)
def test_packages_are_imported_if_named_or_known(
  package, name, says, tmp_path, monkeypatch
):
  monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
  code = PACKAGE.replace("MODULE", name.rpartition(":")[2].partition("-")[0])
  (tmp_path / f"{package}.py").write_text(code)
  done = subprocess.run(
    [sys.executable, "-c", MAKE, name], capture_output=True, text=True, check=True
  )
  assert says in done.stdout
