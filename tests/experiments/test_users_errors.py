"""Errors of users' code: their own line, and what was wrong."""

import pathlib
import re

import pytest

from explorax.experiments import run

# Lines with `# here` are those that an error should show.
CODE = """
import jax.numpy as jnp

import fakes


class Pure:
  num_actions = 2

  def reset(self, key):
    return jnp.zeros(2), jnp.int32(0)

  def step(self, key, time, action):
    return jnp.zeros(2), time + 1, self.reward(time), time == 5

  def reward(self, time):
    return 1.0


class Shapes(Pure):
  def reward(self, time):
    return (jnp.zeros(3) + jnp.zeros(2))[0]  # here


class NanReward(Pure):
  def reward(self, time):
    return jnp.where(time == 3, jnp.nan, 1.0)


class Crashing(fakes.FakeEnvironment):
  def step(self, action):
    jnp.zeros(3) + jnp.zeros(2)  # here
"""
TINY = (
  *("--agent=dqn", "--steps=120", "--set=hidden_sizes=4", "--set=batch_size=4"),
  *("--set=min_replay_size=20", "--output=out"),
)


@pytest.fixture(autouse=True)
def _code(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(str(tmp_path))
  pathlib.Path("my_failing_code.py").write_text(CODE)


@pytest.mark.parametrize("name", ["Shapes", "Crashing"])
def test_the_users_line_is_shown(name, capsys):
  assert run.main([*TINY, f"--env=my_failing_code:{name}"]) != 0
  err = capsys.readouterr().err
  lines = [i for i, x in enumerate(CODE.splitlines(), start=1) if "# here" in x]
  shown = {int(x) for x in re.findall(r"my_failing_code\.py:(\d+)", err)}
  assert shown & {*lines} and "gymnax_adapter" not in err, err


@pytest.mark.parametrize("runner", ["local", "device"])
def test_a_reward_that_is_not_finite_is_called_that(runner, capsys):
  flags = [f"--runner={runner}", "--env=my_failing_code:NanReward"]
  assert run.main([*TINY, *flags]) == 1
  err = capsys.readouterr().err
  assert "reward" in err and "learning rate" not in err
