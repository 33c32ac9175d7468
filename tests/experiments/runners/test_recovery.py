"""Environments that crash: what replay keeps, what is counted, when it ends."""

from typing import Any

import dm_env
import fakes
import jax
import numpy as np
import pytest

from explorax import environments
from explorax.environments import standard
from explorax.experiments.runners import core, errors

BACKENDS = ["memory", pytest.param("reverb", marks=pytest.mark.reverb)]


def crashing(**kwargs: Any) -> fakes.CrashingEnvironment:
  return fakes.CrashingEnvironment(**kwargs)


def remake(role: str, number: int) -> dm_env.Environment:
  del role, number
  return standard.StandardEnvironment(fakes.fake())


class EndsEarlyOnce(fakes.FakeEnvironment):
  """Truncates its second episode after two steps."""

  resets = 0

  def reset(self) -> dm_env.TimeStep:
    self.resets += 1
    return super().reset()

  def step(self, action: Any) -> dm_env.TimeStep:
    timestep = super().step(action)
    if self.resets == 2 and self._time == 2:
      return dm_env.truncation(timestep.reward, timestep.observation)
    return timestep


@pytest.mark.parametrize("n_step", [1, 3, 4])
def test_replay_stores_a_crash_as_a_truncation(train, bits, n_step):
  """The weights, which depend on every window that was drawn, are equal to the bit."""
  # No update before: one in the step before a crash has seen a window less.
  settings = {"seed": 3, "n_step": n_step, "min_size": 9}
  crashed = train(crashing(crash_at_step=8), make_environment=remake, **settings)
  truncated = train(EndsEarlyOnce(), episodes=5, **settings)
  assert bits(crashed.weights) == bits(truncated.weights)
  assert crashed.env_steps == truncated.env_steps == 22
  assert crashed.learner_updates == truncated.learner_updates
  assert (crashed.episodes, truncated.episodes) == (4, 5)


@pytest.mark.parametrize("replay", BACKENDS)
def test_steps_count_once_and_the_broken_episode_does_not(train, replay):
  episodes, failures, asked = [], [], []

  def remake_and_note(role: str, number: int) -> dm_env.Environment:
    asked.append((role, number))
    return remake(role, number)

  result = train(
    crashing(crash_at_step=8),
    episodes=3,
    replay=replay,
    on_episode=episodes.append,
    make_environment=remake_and_note,
    on_env_failure=failures.append,
  )
  assert [(e.episode, e.env_steps) for e in episodes] == [(1, 5), (2, 12), (3, 17)]
  assert [e.episode_length for e in episodes] == [5, 5, 5]
  assert (result.env_steps, result.episodes, result.interrupted) == (17, 3, False)
  assert result.learner_updates == 12  # From step 6 on, one for each.
  assert asked == [("training", 1)]
  (failure,) = failures
  assert "(fakes.py:" in str(failure)  # The line of code that raised it.
  assert (failure.env_steps, failure.number, failure.limit) == (7, 1, 3)


@pytest.mark.parametrize("where", ["crash_at_step", "crash_at_reset"])
def test_an_episode_without_a_transition_is_dropped(train, bits, where):
  at = {"crash_at_step": 6, "crash_at_reset": 2}[where]
  result = train(crashing(**{where: at}), episodes=2, n_step=3, make_environment=remake)
  assert (result.env_steps, result.episodes) == (10, 2)
  if where == "crash_at_reset":  # No action was drawn in vain.
    whole = train(fakes.fake(), episodes=2, n_step=3)
    assert bits(result.weights) == bits(whole.weights)


def test_too_many_failures_in_a_row_end_the_run(train):
  failures: list[core.Failure] = []
  made: list[int] = []

  def hopeless(role: str, number: int) -> dm_env.Environment:
    made.append(number)
    return standard.StandardEnvironment(fakes.fake_hopeless())

  with pytest.raises(errors.EnvironmentFailedError) as caught:
    train(
      fakes.fake_hopeless(),
      make_environment=hopeless,
      max_env_failures=2,
      on_env_failure=failures.append,
    )
  assert made == [1, 2] and [f.number for f in failures] == [1, 2]
  message = str(caught.value)
  assert "the emulator went away" in message and "\n" not in message
  assert "step 6" in message  # Two steps of each of three episodes.
  assert jax.tree.leaves(caught.value.weights)


def test_recreating_it_may_fail_as_well(train):
  def fails_once(role: str, number: int) -> dm_env.Environment:
    if number == 1:
      raise OSError("no such ROM")
    return remake(role, number)

  failures: list[core.Failure] = []
  result = train(
    crashing(crash_at_step=8),
    episodes=2,
    make_environment=fails_once,
    on_env_failure=failures.append,
  )
  assert result.episodes == 2 and [f.number for f in failures] == [1, 2]
  assert "OSError: no such ROM" in str(failures[1])


class Strange(fakes.FakeEnvironment):
  """Breaks its spec, or raises the same kind of error by itself."""

  def __init__(self, what: str):
    super().__init__()
    self._what = what

  def step(self, action: Any) -> dm_env.TimeStep:
    timestep = super().step(action)
    if self._what == "raises":
      raise ValueError("no such action today")
    if self._what == "shape":
      return timestep._replace(observation=np.zeros(7))
    if self._what == "discount":
      return timestep._replace(discount=2.0)
    if self._what == "no timestep":
      return None
    return timestep._replace(reward=np.nan)


@pytest.mark.parametrize(
  "what, error",
  [
    ("shape", ValueError),
    ("discount", ValueError),
    ("no timestep", TypeError),
    ("nan", environments.NonFiniteError),
  ],
)
def test_a_broken_spec_ends_the_run(train, what, error):
  with pytest.raises(errors.StoppedError, match="step 0, seed 0: the env") as caught:
    train(Strange(what), make_environment=remake)
  assert isinstance(caught.value.__cause__, error) and caught.value.weights


def test_an_error_of_the_agents_is_no_crash(train):
  def on_episode(episode):
    raise SystemExit("of ours")

  words = "stopped at environment step 5, seed 0: SystemExit: of ours"
  with pytest.raises(errors.StoppedError, match=words) as caught:
    train(fakes.fake(), make_environment=remake, on_episode=on_episode)
  assert len(caught.value.weights) == 1
