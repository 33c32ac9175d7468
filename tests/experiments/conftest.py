"""Records of episodes, agents of a user, interrupts, and a full disk."""

import contextlib
import resource
import signal
from collections.abc import Iterator
from typing import Any

import pytest

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


AGENTS = """
import os, signal, time
import numpy as np


class Random:
  signal_at, seconds = None, 0.0

  def __init__(self, observation_spec, action_spec, seed):
    self.rng = np.random.default_rng(seed)
    self.num_actions = action_spec.num_values
    self.seed, self.episodes = seed, 0

  def select_action(self, timestep):
    return self.rng.integers(self.num_actions)

  def update(self, timestep, action, new_timestep):
    self.episodes += new_timestep.last()
    if new_timestep.last() and self.episodes == self.signal_at:
      os.kill(os.getpid(), signal.SIGINT)
    time.sleep(self.seconds)


class Interrupting(Random):
  signal_at = 3


class Slow(Random):
  seconds = 0.005


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
  from explorax.experiments import run, signals

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


@contextlib.contextmanager
def _small_disk(num_bytes: int) -> Iterator[None]:
  limits = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, limits[1]))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.fixture
def small_disk():
  """A context in which no file grows beyond so many bytes, as on a full disk.

  To be left within the test: the limit holds for pytest's own output as well.
  """
  return _small_disk


@pytest.fixture
def ctrl_c() -> Iterator[None]:
  """SIGINT as in a terminal; what a shell has put into the background ignores it."""
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  yield
  signal.signal(signal.SIGINT, before)
