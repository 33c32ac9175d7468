"""Records of episodes, runs that several files read, agents of a user, interrupts."""

import contextlib
import functools
import pathlib
import signal
from collections.abc import Callable
from typing import Any

import pytest

from explorax.experiments import presets, run, signals
from explorax.experiments.runners import common


@pytest.fixture
def make_episode():
  """The record of an episode; explorers and exploiters take turns."""

  def make(number: int, **changes: Any) -> common.Episode:
    usual = common.Episode(
      episode=number,
      env_steps=10 * number,
      episode_return=float(number),
      episode_length=10,
      policy="explorer" if number % 2 else "exploiter",
      learner_updates=max(0, 10 * number - 20),
      steps_per_second=100.0,
      wall_seconds=0.1 * number,
      metrics={"loss": 1.0 / number} if number > 2 else {},
    )
    return usual._replace(**changes)

  return make


@pytest.fixture
def make_evaluation():
  """An evaluation after so many steps whose episodes have these returns."""

  def make(env_steps: int, returns: list[float]) -> common.Evaluation:
    episodes = [
      common.EvaluationEpisode(env_steps, number, value, 10, {})
      for number, value in enumerate(returns, start=1)
    ]
    return common.Evaluation(env_steps, tuple(episodes))

  return make


def _short_settings(name: str) -> list[str]:
  config = presets.PRESETS[name].config_for("fakes:fake_one_hot")
  short = ["hidden_sizes=8", "batch_size=4", "updates_per_step=1"]
  short += ["replay_capacity=95", "min_replay_size=90"]
  if getattr(config, "sequence_length", 1) > 1:
    short += ["sequence_length=4", "sequence_period=2"]
    short += ["lstm_size=6", "head_size=6"] if config.lstm_size else []
  if name == "ngu":
    short += ["bonus.hidden_sizes=8", "bonus.memory_capacity=20"]
  return short


@pytest.fixture(scope="session")
def short_settings() -> Callable[[str], list[str]]:
  """(preset) → settings of small networks and eleven updates in a hundred steps."""
  return _short_settings


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory) -> Callable[..., pathlib.Path]:
  """(preset, flags) → the directory of its run of a hundred steps, made once."""

  @functools.cache
  def train(name: str, *flags: str) -> pathlib.Path:
    path = tmp_path_factory.mktemp("trained") / name
    argv = [f"--agent={name}", "--env=fakes:fake_one_hot", "--steps=100"]
    argv += [f"--output={path}", "--eval_episodes=1", *flags]
    assert run.main([*argv, *(f"--set={x}" for x in _short_settings(name))]) == 0
    return path

  return train


AGENTS = """
import numpy as np


class Random:
  def __init__(self, observation_spec, action_spec, seed):
    self.rng = np.random.default_rng(seed)
    self.num_actions = action_spec.num_values

  def select_action(self, timestep):
    return self.rng.integers(self.num_actions)

  def update(self, timestep, action, new_timestep):
    pass


class Broken(Random):
  def update(self, timestep, action, new_timestep):
    raise RuntimeError("it broke")
"""


@pytest.fixture
def agents(tmp_path, monkeypatch) -> str:
  """The name of a module in the current directory with agents that act at random."""
  name = f"agents_in_{tmp_path.name.replace('-', '_')}"
  (tmp_path / f"{name}.py").write_text(AGENTS)
  monkeypatch.chdir(tmp_path)
  return name


@pytest.fixture
def interrupted(monkeypatch):
  """Runs a command that receives SIGTERM after it has checked `asked` times for it."""

  def run_until(asked: int, *argv: str) -> int:
    class Request(signals.StopRequest):
      left = asked

      def __call__(self) -> bool:
        self.left -= 1
        if self.left < 0:
          self.signal = signal.SIGTERM
        return super().__call__()

    with monkeypatch.context() as patch:
      stop = contextlib.nullcontext(Request())
      patch.setattr(signals, "stop_on_signals", lambda: stop)
      return run.main(argv)

  return run_until
