"""The one convention: dtypes, protocol, and what is refused."""

import dm_env
import fakes
import numpy as np
import pytest

from explorax import environments
from explorax.environments import standard


class Scripted(dm_env.Environment):
  """Returns the timesteps it is given, one after another."""

  def __init__(self, timesteps, spec=None, actions=None):
    self._timesteps = iter(timesteps)
    self._spec = spec or dm_env.specs.Array((2,), np.float64, "x")
    self._actions = actions or dm_env.specs.DiscreteArray(3, np.int64)
    self.actions_seen = []
    self.closed = False

  def reset(self):
    return next(self._timesteps)

  def step(self, action):
    self.actions_seen.append(action)
    return next(self._timesteps)

  def observation_spec(self):
    return self._spec

  def action_spec(self):
    return self._actions

  def close(self):
    self.closed = True


def _observation(value=0.0):
  return np.full((2,), value)


def test_dtypes_of_a_whole_episode():
  raw = Scripted(
    [
      dm_env.restart(_observation(0.5)),
      dm_env.transition(np.float64(0.1), _observation(1.5), discount=0.9),
      dm_env.termination(np.array(2), _observation(2.5)),
    ]
  )
  environment = standard.StandardEnvironment(raw)
  first, mid, last = environment.reset(), environment.step(2), environment.step(0)
  assert first.first() and first.reward is None and first.discount is None
  assert mid.mid() and mid.reward == np.float32(0.1) and mid.discount == np.float32(0.9)
  assert last.last() and last.reward == 2.0 and last.discount == 0.0
  for timestep in (mid, last):
    assert type(timestep.reward) is np.float32
    assert type(timestep.discount) is np.float32
  for timestep, value in ((first, 0.5), (mid, 1.5), (last, 2.5)):
    environment.observation_spec().validate(timestep.observation)
    np.testing.assert_array_equal(timestep.observation, [value, value])
  assert environment.action_spec() == dm_env.specs.DiscreteArray(3, np.int32)
  assert raw.actions_seen == [2, 0]
  raw.action_spec().validate(raw.actions_seen[0])  # In the environment's own dtype.
  assert environment.raw is raw
  environment.close()
  assert raw.closed


def test_stepping_after_an_end_or_before_a_reset_starts_an_episode():
  start = dm_env.restart(_observation())
  raw = Scripted([start, dm_env.termination(1.0, _observation()), start])
  environment = standard.StandardEnvironment(raw)
  assert environment.step(0).first()
  assert environment.step(1).last()
  assert environment.step(2).first()
  assert raw.actions_seen == [1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39, np.float32("nan")])
def test_non_finite_rewards_are_refused_with_their_place(value):
  rewards = [1.0, 1.0, value]
  raw = fakes.FakeEnvironment(episode_length=2, reward=lambda t, action: rewards.pop(0))
  environment = standard.StandardEnvironment(raw)
  environment.reset()
  environment.step(0)
  environment.step(0)
  environment.reset()
  message = r"in its reward at step 1 of episode 2 \(environment step 3\)"
  with pytest.raises(environments.NonFiniteError, match=message):
    environment.step(0)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at_reset", [True, False])
def test_non_finite_observations_are_refused(value, at_reset):
  bad = np.array([1.0, value])
  timesteps = [
    dm_env.restart(bad if at_reset else _observation()),
    dm_env.transition(0.0, bad),
  ]
  environment = standard.StandardEnvironment(Scripted(timesteps))
  message = f"{value} in its observation at step {0 if at_reset else 1}"
  with pytest.raises(environments.NonFiniteError, match=message):
    environment.reset()
    environment.step(0)


def _transition(reward=0.0, discount=1.0):
  return dm_env.transition(reward, _observation(), discount=discount)


@pytest.mark.parametrize(
  ("timestep", "kind", "value"),
  [
    (_transition(discount=-0.1), ValueError, "-0.1"),
    (_transition(discount=1.5), ValueError, "1.5"),
    (_transition(discount=np.nan), ValueError, "nan"),
    (_transition(discount=None), TypeError, "None as the discount"),
    (_transition(np.ones((1,))), TypeError, "reward"),
    (_transition(None), TypeError, "reward"),
    (_transition("1"), TypeError, "reward"),
    (dm_env.restart(_observation()), ValueError, "began an episode"),
    (dm_env.transition(0.0, np.zeros((2, 1))), ValueError, r"\(2, 1\)"),
    (dm_env.transition(0.0, "a word"), TypeError, "'a word'"),
    (_transition()._replace(step_type=7), ValueError, "step type 7"),
  ],
)
def test_timesteps_that_break_the_protocol_are_refused(timestep, kind, value):
  raw = Scripted([dm_env.restart(_observation()), timestep])
  environment = standard.StandardEnvironment(raw)
  environment.reset()
  with pytest.raises(kind, match=value) as caught:
    environment.step(0)
  assert "at step 1 of episode 1, " in str(caught.value)


def test_observations_that_their_dtype_cannot_hold_are_refused():
  spec = dm_env.specs.Array((2,), np.uint8, "x")
  timesteps = [dm_env.restart([3, 4]), dm_env.transition(0.0, [3.0, 0.5])]
  environment = standard.StandardEnvironment(Scripted(timesteps, spec))
  assert environment.reset().observation.tolist() == [3, 4]
  with pytest.raises(ValueError, match=r"at step 1 of episode 1.* uint8"):
    environment.step(0)


@pytest.mark.parametrize(
  "specs_of_it",
  [
    {"actions": dm_env.specs.BoundedArray((1,), np.float32, -1, 1)},
    {"actions": dm_env.specs.BoundedArray((), np.int32, 0, 3)},
    {"actions": {"a": dm_env.specs.DiscreteArray(2)}},
    {"spec": dm_env.specs.StringArray(())},
    {"spec": dm_env.specs.Array((2,), np.complex64)},
  ],
)
def test_other_actions_and_observations_are_refused(specs_of_it):
  with pytest.raises(TypeError):
    standard.StandardEnvironment(Scripted([], **specs_of_it))
