"""Bad inputs of every kind that was once a fault: one line names the bad value."""

import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import sys
from typing import Any

import dm_env
import fakes
import numpy as np
import pytest

from explorax.experiments import evaluate, report, run, sweep
from explorax.papers import reproduce

RUN = ["--agent=dqn", "--replay=memory", "--output=run"]
RUN += ["--steps=40", "--checkpoint_every=20", "--set=hidden_sizes=4"]
RUN += ["--set=batch_size=4", "--set=min_replay_size=20", "--eval_episodes=0"]


@pytest.fixture(scope="module")
def originals(tmp_path_factory) -> pathlib.Path:
  """A finished run with two checkpoints, and its final weights."""
  path = tmp_path_factory.mktemp("originals")
  with contextlib.chdir(path):
    assert run.main([*RUN, f"--env={__name__}:good"]) == 0
    shutil.copy("run/checkpoints/final.npz", "weights.npz")
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


FLAGS = """
--agent= | --agent=DQN | --agent=../dqn | --steps=0 | --steps=1.5 | --steps=nan
--steps=1e400 | --steps= | --episodes=1/2 | --episodes=１０ | --seed=-1
--seed=4294967296 | --runner=nope | --runner=device | --flagfile=x
--nosteps | --stepz=5 | --checkpoint_replay=perhaps | --callback=nope:Nothing
--callback=os:getcwd | --num_actors=2 | --logger=nope | --output=
--output=~nosuchuser/x | --output=/dev/null/x | --set | --set=nothing
"""
ENVIRONMENTS = """
nope | bsuite: | :x | gym:a:b:c | bsuite:nope/0 | gym: | bsuite:deep_sea/99
gym:Pendulum-v1 | jax:nope | jax:deep_sea/0 | jax:deep_sea/1e99 | jax:deep_sea/5,x=1
jax:mountain_car,time_limit=nan | jax:mountain_car, | atari:Nope | atari:Pong/nope
nomodule:make | os:nothing | os:path | os:getcwd | sys:exit
"""
SETTINGS = """
learning_rate=nan | n_step=1.5 | replay_capacity=1e10 | hidden_sizes=a,b
hidden_sizes=4,,4 | target_update_period=99999999999999 | batch_size=0 | discount=1O
min_replay_size=1e9 | discount | discount.x=1 | exploration.epsilon=Linear(2,0,5)
exploration=Nope | exploration=__import__('os') | exploration=EzGreedy(0.1,of=Nope())
bonus=os:getcwd | bonus=Rnd(1,2,3,4,5,6) | target=5
"""


def _cases() -> list[tuple[str, ...]]:
  """(the text that the message must contain, the arguments)."""
  flags, envs, settings = (
    [word.strip() for word in re.split(r"[|\n]", table) if word.strip()]
    for table in (FLAGS, ENVIRONMENTS, SETTINGS)
  )
  good = f"--env={__name__}:good"
  return [
    *((flag.lstrip("-").partition("=")[0], good, flag) for flag in flags),
    *((re.split("[:,]", env)[0], f"--env={env}") for env in envs),
    *(
      (setting.partition("=")[0].rpartition(".")[2], good, "--set", setting)
      for setting in settings
    ),
  ]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case[-1])
def test_flags_environments_and_settings(refused, case):
  refused(2, case[0], *RUN, *case[1:])


@pytest.mark.parametrize(
  ("main", "argv", "names"),
  [
    (run.main, "--agent=ngu --env=jax:chain/9 --set num_policies=0", "num_policies"),
    (sweep.main, "--agents=nope --sweep=catch/0", "nope"),
    (evaluate.main, "nothing.npz", "nothing.npz"),
    (report.main, "nothing", "nothing"),
    (reproduce.main, "--figure=nope", "nope"),
  ],
)
def test_commands(refused, main, argv, names):
  refused(2, names, *argv.split(), main=main)


# What a user's function makes → what the message must name.
good = functools.partial(fakes.FakeEnvironment, episode_length=4)
MAKES: dict[str, tuple[Any, str]] = {
  "key_error": (lambda: {}["x"], "KeyError"),
  "exits": (lambda: sys.exit(3), "SystemExit"),
  "number": (3, "number"),
  "continuous": (lambda: _Changed(actions=dm_env.specs.Array((2,), float)), "actions"),
}
# What the seventh step returns instead → what the message must name.
STEPS: dict[str, tuple[Any, str]] = {
  "shape": (lambda t: t._replace(observation=np.zeros(5)), "shape"),
  "reward_nan": (lambda t: t._replace(reward=np.nan), "reward"),
  "tuple": (lambda t: (t.observation, 0.0, False, {}), "TimeStep"),
  "raises": (lambda t: {}["key"], "KeyError: 'key'"),
  "exits_later": (lambda t: sys.exit(3), "SystemExit"),
  "memory": (lambda t: (_ for _ in ()).throw(MemoryError()), "MemoryError"),
}


class _Changed(fakes.FakeEnvironment):
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


def _moves(timestep: dm_env.TimeStep) -> dm_env.TimeStep:
  pathlib.Path("elsewhere").mkdir()
  os.chdir("elsewhere")
  return timestep


user_moves = functools.partial(_Changed, _moves)


def test_an_environment_that_changes_the_directory(tmp_path):
  assert run.main([*RUN, f"--env={__name__}:user_moves"]) == 0
  out = tmp_path / "run"
  assert json.loads((out / "summary.json").read_text())["status"] == "finished"
  assert (out / "checkpoints/final.npz").exists() and not (out / "error.txt").exists()
  assert not (tmp_path / "elsewhere/run").exists()


CONFIG = pathlib.Path("run/config.json")


def _edited(**changes: Any) -> None:
  CONFIG.write_text(json.dumps(json.loads(CONFIG.read_text()) | changes))


def _newest(name: str) -> pathlib.Path:
  return max(pathlib.Path("run/checkpoints").glob("step_*")) / name


def _flipped(path: pathlib.Path) -> None:
  content = bytearray(path.read_bytes())
  content[len(content) // 2] ^= 1
  path.write_bytes(content)


DAMAGE: list[tuple[Any, int, str]] = [
  (lambda: _flipped(_newest("state.npz")), 0, "damaged_"),
  (lambda: CONFIG.write_text("{"), 2, "config.json"),
  (CONFIG.unlink, 2, "holds a run"),
  (lambda: _edited(seed=5), 2, "seed"),
]


@pytest.mark.parametrize(("damage", "code", "names"), DAMAGE)
def test_damaged_runs(refused, originals, damage, code, names):
  shutil.copytree(originals / "run", "run")
  damage()
  refused(code, names, *RUN, f"--env={__name__}:good", "--steps=60")


def _with_arrays(**changes: Any) -> None:
  with np.load("weights.npz") as file:
    np.savez("weights.npz", **{**file, **changes})


@pytest.mark.parametrize(
  "damage",
  [
    lambda: os.truncate("weights.npz", 99),
    lambda: _with_arrays(more=np.array([{}], object)),  # A pickle.
    lambda: _with_arrays(**{"explorax.json": np.frombuffer(b"[]", np.uint8)}),
  ],
)
def test_damaged_weights(refused, originals, damage):
  shutil.copy(originals / "weights.npz", "weights.npz")
  damage()
  refused(2, "weights.npz", "weights.npz", "--episodes=1", main=evaluate.main)


@pytest.mark.parametrize(
  ("damage", "names"),
  [
    (lambda: pathlib.Path("run/metrics.csv").write_bytes(b"\xff\n"), "metrics.csv"),
    (lambda: CONFIG.write_text("{"), "config.json"),
  ],
)
def test_damaged_runs_are_not_reported(refused, originals, damage, names):
  shutil.copytree(originals / "run", "run")
  damage()
  refused(2, names, "run", main=report.main)
