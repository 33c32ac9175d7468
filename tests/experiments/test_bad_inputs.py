"""Bad inputs end in one line that names the bad value."""

import contextlib
import functools
import os
import pathlib
import shutil
import sys
from typing import Any

import dm_env
import numpy as np
import pytest

from explorax.environments import testing
from explorax.experiments import export, run

RUN = ["--agent=dqn", "--replay=memory", "--max_env_failures=0", "--output=run"]
RUN += ["--steps=40", "--checkpoint_every=20", "--set=hidden_sizes=4"]
RUN += ["--set=batch_size=4", "--set=min_replay_size=20"]


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> pathlib.Path:
  """A finished run with two checkpoints, and its exported weights."""
  path = tmp_path_factory.mktemp("originals")
  with contextlib.chdir(path):
    assert run.main([*RUN, f"--env={__name__}:good"]) == 0
    assert export.main(["run", "--output=weights.npz"]) == 0
  return path


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)


@pytest.fixture
def refused(capsys):
  """Runs a command; checks its exit code, and that one line names the value."""

  def check(code: int, names: str, *argv: str, main: Any = run.main) -> None:
    assert main(argv) == code
    text = capsys.readouterr().err
    assert text.startswith("explorax: ") and text.count("\n") == 1, text
    assert names in text and "Traceback" not in text

  return check


@pytest.mark.parametrize(
  "flag",
  [
    *("--agent=DQN", "--steps=٣", "--seed=4294967296", "--stepz=5", "--video=maybe"),
    *("--output=/dev/null/x", "--eval_episodes=3", "--logger=nope", "--num_actors=2"),
    *("--env=gym:Pendulum-v1", "--env=os:path", "--env=jax:deep_sea/1e99"),
    "--set=exploration=__import__('os')",
    *("--set=learning_rate=nan", "--set=batch_size=1e12", "--set=discount.x=1"),
  ],
)
def test_flags_environments_and_settings(refused, flag):
  name, value = flag.removeprefix("--set=").lstrip("-").split("=", 1)
  names = value if name == "env" else name.partition(".")[0]
  refused(2, names, f"--env={__name__}:good", *RUN, flag)


# What a user's function makes → what the message must name.
good = functools.partial(testing.FakeEnvironment, episode_length=4)
MAKES: dict[str, tuple[Any, str]] = {
  "exits": (lambda: sys.exit(3), "SystemExit"),
  "continuous": (lambda: _Changed(actions=dm_env.specs.Array((2,), float)), "actions"),
}
# What the seventh step returns instead → what the message must name.
STEPS: dict[str, tuple[Any, str]] = {
  "nan": (lambda t: t._replace(observation=np.full(3, np.nan)), "observation"),
  "raises": (lambda t: {}["key"], "KeyError: 'key'"),
  "exits_later": (lambda t: sys.exit(3), "SystemExit"),
  "memory": (lambda t: (_ for _ in ()).throw(MemoryError()), "MemoryError"),
}


class _Changed(testing.FakeEnvironment):
  """A valid environment, except for its actions or for its seventh step."""

  def __init__(self, change: Any = lambda timestep: timestep, actions: Any = None):
    super().__init__(episode_length=4)
    self._change, self._left, self._actions = change, 7, actions

  def action_spec(self) -> Any:
    return self._actions or super().action_spec()

  def step(self, action: Any) -> Any:
    self._left -= 1
    timestep = super().step(action)
    return timestep if self._left else self._change(timestep)


globals().update({f"user_{name}": make for name, (make, _) in MAKES.items()})
for _name, (_change, _) in STEPS.items():
  globals()[f"user_{_name}"] = functools.partial(_Changed, _change)


@pytest.mark.parametrize("name", [*MAKES, *STEPS])
def test_environments_of_users(refused, name):
  code, names = (2, MAKES[name][1]) if name in MAKES else (1, STEPS[name][1])
  refused(code, names, *RUN, f"--env={__name__}:user_{name}")


METRICS, CONFIG = pathlib.Path("run/metrics.csv"), pathlib.Path("run/config.json")


def _newest(name: str) -> pathlib.Path:
  return max(pathlib.Path("run/checkpoints").glob("step_*")) / name


def _flipped(path: pathlib.Path) -> None:
  content = path.read_bytes()
  path.write_bytes(content[:9] + bytes([content[9] ^ 1]) + content[10:])


DAMAGE: list[tuple[Any, int, str]] = [
  (lambda: _flipped(_newest("record.json")), 0, "refused_"),
  (lambda: os.remove(_newest("state/_METADATA")), 0, "_METADATA"),
  (lambda: METRICS.write_bytes(METRICS.read_bytes()[:150]), 1, "metrics.csv"),
  (lambda: CONFIG.write_text("{"), 2, "config.json"),
  (CONFIG.unlink, 2, "holds a run"),
]


@pytest.mark.parametrize(("damage", "code", "names"), DAMAGE)
def test_damaged_runs(refused, originals, damage, code, names):
  shutil.copytree(originals / "run", "run")
  damage()
  refused(code, names, *RUN, f"--env={__name__}:good", "--steps=60")
