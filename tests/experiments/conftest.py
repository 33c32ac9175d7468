"""A stand-in agent and runner, so that the command line is tested without learning.

The runner here speaks the real one's protocol; what it does is told by the settings of
the stand-in agent, which arrive through `--set` as any other.
"""

import contextlib
import dataclasses
import math
import os
import resource
import signal
import time
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest


@dataclasses.dataclass(frozen=True)
class Rule:
  epsilon: float = 0.05
  period: int | None = None


@dataclasses.dataclass(frozen=True)
class Config:
  num_members: int = 2
  batch_size: int = 8
  capacity: int = 100
  hidden_sizes: tuple[int, ...] = (50, 50)
  exploration: Rule = dataclasses.field(default_factory=Rule)
  episode_seconds: float = 0.0
  nan_at_episode: int | None = None
  crash_at_episode: int | None = None
  signal_at_episode: int | None = None

  def __post_init__(self):
    if self.num_members < 1:
      raise ValueError(f"num_members is {self.num_members}; use at least 1.")
    if self.capacity < self.batch_size:
      raise ValueError(
        f"capacity is {self.capacity}, below the batch size of {self.batch_size}; "
        "raise it."
      )


class Episode(NamedTuple):
  episode: int
  env_steps: int
  episode_return: float
  episode_length: int
  policy: str
  learner_updates: int
  steps_per_second: float
  wall_seconds: float
  metrics: dict[str, float]


class Result(NamedTuple):
  weights: Any
  env_steps: int
  episodes: int
  learner_updates: int
  steps_per_second: float
  interrupted: bool


def episode(number: int, **changes: Any) -> Episode:
  """Episode `number` of a run in which explorers and exploiters take turns."""
  usual = Episode(
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


def _run(agent, environment, config, hooks, *, evaluation_environment) -> Result:
  from explorax import environments
  from explorax.experiments.runners import errors

  del evaluation_environment
  assert config.replay in ("reverb", "memory") and hooks.checkpoints.restored is None
  seed = config.seed
  weights = {"mlp/~/linear_0": {"w": np.full((2, 3), seed, np.float32)}}
  number, last = 0, episode(1, env_steps=0, learner_updates=0)
  while not (config.is_reached(last.env_steps, number) or hooks.stop()):
    number += 1
    timestep = environment.reset()
    while not timestep.last():
      timestep = environment.step(0)
    if number == agent.nan_at_episode:
      raise errors.NonFiniteError(
        f"the loss is nan at environment step {10 * number} (seed {seed}).",
        [weights],
      )
    if number == agent.crash_at_episode:
      raise RuntimeError("the environment broke")
    metrics = environments.episode_metrics(environment)
    last = episode(number)
    last = last._replace(metrics={**last.metrics, **metrics})
    hooks.on_episode(last)
    if number == agent.signal_at_episode:
      os.kill(os.getpid(), signal.SIGINT)
    time.sleep(agent.episode_seconds)
  speed = math.nan if number < 3 else 123.4
  interrupted = not config.is_reached(last.env_steps, number)
  return Result(
    weights, last.env_steps, number, last.learner_updates, speed, interrupted
  )


class Preset(NamedTuple):
  name: str
  summary: str
  paper: str
  config: Any
  make_agent: Any

  def config_for(self, environment_name: str) -> Any:
    del environment_name
    return self.config

  def environment_for(self, environment_name: str) -> str:
    return environment_name


def replacements() -> list[tuple[types.ModuleType, str, Any]]:
  """(module, name, its value in tests) of the presets and the local runner."""
  from explorax.experiments import presets
  from explorax.experiments.runners import local

  fakes = {
    name: Preset(name, "a stand-in", "no paper", Config(), lambda config, spec: config)
    for name in ("fake", "other")
  }
  return [
    (presets, "PRESETS", fakes),
    (local, "run", _run),
    (local, "check_memory", lambda agent, config: None),
  ]


@pytest.fixture
def stand_ins(monkeypatch, tmp_path):
  """Replaces presets and runner, and works in an empty directory."""
  for module, name, value in replacements():
    monkeypatch.setattr(module, name, value)
  monkeypatch.chdir(tmp_path)
  return tmp_path


class EvaluationEpisode(NamedTuple):
  env_steps: int
  episode: int
  episode_return: float
  episode_length: int
  metrics: dict[str, float]


class Evaluation(NamedTuple):
  env_steps: int
  episodes: tuple[EvaluationEpisode, ...]
  seconds: float

  @property
  def mean_return(self) -> float:
    return float(np.mean([episode.episode_return for episode in self.episodes]))

  mean_length = 10.0


@pytest.fixture
def make_episode():
  return episode


@pytest.fixture
def make_evaluation():
  """An evaluation after so many steps whose episodes have these returns."""

  def make(env_steps: int, returns: list[float], seconds: float = 1.0) -> Evaluation:
    episodes = [
      EvaluationEpisode(env_steps, number, value, 10, {})
      for number, value in enumerate(returns, start=1)
    ]
    return Evaluation(env_steps, tuple(episodes), seconds)

  return make


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
      patch.setattr(signals, "stop_on_signals", lambda announce: stop)
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
