"""Bad inputs of every kind that was once a fault: one line names the bad value."""

import pathlib
import re

import pytest

from explorax.experiments import run

RUN = ["--agent=dqn", "--output=run", "--steps=40"]
RUN += ["--set=hidden_sizes=4", "--set=min_replay_size=20"]


@pytest.fixture(autouse=True)
def _empty_directory(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(str(tmp_path))


FLAGS = """
--agent=DQN | --agent=../dqn | --steps=0 | --steps=1.5 | --steps=1e400 | --steps=
--episodes=１０ | --seed=-1 | --seed=4294967296 | --runner=nope | --flagfile=x
--nosteps | --stepz=5 | --checkpoint_replay=perhaps | --callback=os:getcwd
--logger=nope | --output= | --output=~nosuchuser/x | --output=/dev/null/x | --set
--set=nothing | --video
"""
ENVIRONMENTS = """
nope | bsuite: | :x | gym:a:b:c | bsuite:deep_sea/99 | gym:Pendulum-v1
jax:deep_sea/1e99 | jax:deep_sea/5,x=1 | atari:Pong/nope | nomodule:make | os:path
os:getcwd | sys:exit
"""
SETTINGS = """
learning_rate=nan | replay_capacity=1e10 | hidden_sizes=4,,4 | discount=1O
target_update_period=99999999999999 | min_replay_size=1e9 | discount.x=1
exploration=__import__('os') | exploration=EzGreedy(0.1,of=Nope()) | bonus=os:getcwd
"""


def _cases() -> list[tuple[str, ...]]:
  """(the text that the message must contain, the arguments)."""
  flags, envs, settings = (
    [word.strip() for word in re.split(r"[|\n]", table) if word.strip()]
    for table in (FLAGS, ENVIRONMENTS, SETTINGS)
  )
  good = "--env=fakes:fake"
  return [
    *((flag.lstrip("-").partition("=")[0], good, flag) for flag in flags),
    *((re.split("[:,]", env)[0], f"--env={env}") for env in envs),
    *(
      (setting.partition("=")[0].rpartition(".")[2], good, "--set", setting)
      for setting in settings
    ),
  ]


@pytest.mark.parametrize("case", _cases(), ids=lambda case: case[-1])
def test_flags_environments_and_settings(capsys, case):
  """One line names the value."""
  assert run.main([*RUN, *case[1:]]) == 2
  text = capsys.readouterr().err
  assert text.startswith("explorax: ") and text.count("\n") == 1, text
  assert case[0] in text and "Traceback" not in text


# Lines with `# here` are those that an error should show.
CODE = """
import sys

import jax.numpy as jnp

import fakes


def broken():
  return {}["x"]  # here


class Raises(fakes.FakeEnvironment):
  def step(self, action):
    jnp.zeros(3) + jnp.zeros(2)  # here


class Exits(fakes.FakeEnvironment):
  def step(self, action):
    sys.exit(3)  # here


class Traced:
  num_actions = 2

  def reset(self, key):
    return jnp.zeros(2), jnp.int32(0)

  def step(self, key, time, action):
    return jnp.zeros(3) + jnp.zeros(2), time, 0.0, False  # here
"""


@pytest.mark.parametrize(
  ("env", "code", "text"),
  [
    ("broken", 2, "KeyError: 'x'"),
    ("Raises", 1, "TypeError"),
    ("Exits", 1, "SystemExit"),
    ("Traced", 2, "TypeError"),
  ],
)
def test_errors_of_environments_name_the_users_line(capsys, env, code, text):
  pathlib.Path("my_failing_code.py").write_text(CODE)
  assert run.main([*RUN, f"--env=my_failing_code:{env}"]) == code
  err = capsys.readouterr().err
  assert text in err and err.count("\n") == 1, err
  lines = [str(i) for i, x in enumerate(CODE.splitlines(), 1) if "# here" in x]
  shown = re.findall(r"my_failing_code\.py:(\d+)", err)
  assert {*shown} & {*lines}, err
