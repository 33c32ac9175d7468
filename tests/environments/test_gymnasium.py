"""gymnasium's environments: ends, seeds, spaces, and what else is given as one."""

import random

import gymnasium
import numpy as np
import pytest

from explorax import environments
from explorax.environments import specs

SPACES = gymnasium.spaces


class Scripted(gymnasium.Env):
  """Ends its second step as the arguments say."""

  def __init__(self, *, terminated=False, truncated=False, actions=None, space=None):
    self.action_space = actions or SPACES.Discrete(2)
    self.observation_space = space or SPACES.Box(-1, 1, (2,), np.float64)
    self._end = (terminated, truncated)
    self.seeds = []
    self.actions_seen = []

  def reset(self, *, seed=None, options=None):
    self.seeds.append(seed)
    self._time = 0
    return self._observe(), {}

  def step(self, action):
    self.actions_seen.append(action)
    self._time += 1
    end = self._end if self._time == 2 else (False, False)
    return self._observe(), np.float64(0.5), *end, {}

  def _observe(self):
    if isinstance(self.observation_space, SPACES.Discrete):
      return self.observation_space.start + self._time
    return np.full(self.observation_space.shape, self._time / 2)


@pytest.mark.parametrize(
  ("terminated", "truncated", "discount"),
  [(True, False, 0.0), (False, True, 1.0), (True, True, 0.0)],
)
def test_a_truncation_bootstraps_and_a_termination_does_not(
  terminated, truncated, discount
):
  raw = Scripted(terminated=terminated, truncated=truncated)
  environment = environments.wrap(raw, seed=9)
  assert environment.reset().first()
  mid, last, first = (environment.step(0) for _ in range(3))
  assert raw.seeds == [9, None]  # Only the first reset is seeded.
  assert mid.mid() and mid.discount == 1.0 and mid.reward == 0.5
  assert last.last() and last.discount == discount and last.reward == 0.5
  assert first.first()


@pytest.mark.parametrize("flag", ["False", float("nan"), None, [True], 2])
def test_a_flag_that_is_neither_true_nor_false_is_refused(flag):
  for name in ("terminated", "truncated"):
    environment = environments.wrap(Scripted(**{name: flag}), seed=0)
    environment.reset()
    environment.step(0)
    with pytest.raises(TypeError, match=name):
      environment.step(0)


@pytest.mark.parametrize("observation", [1.7, np.ma.masked, 6])
def test_a_discrete_observation_that_is_no_whole_number_is_refused(observation):
  class Odd(Scripted):
    def _observe(self):
      return observation if self._time else 1

  environment = environments.wrap(Odd(space=SPACES.Discrete(5, start=1)), seed=0)
  environment.reset()
  with pytest.raises(ValueError, match="whole number from 1 to 5"):
    environment.step(0)


def test_actions_and_observations_count_from_zero():
  raw = Scripted(
    actions=SPACES.Discrete(3, start=5), space=SPACES.Discrete(4, start=-1)
  )
  environment = environments.wrap(raw, seed=0)
  np.testing.assert_array_equal(environment.reset().observation, [1, 0, 0, 0])
  np.testing.assert_array_equal(environment.step(2).observation, [0, 1, 0, 0])
  assert raw.actions_seen == [7]
  assert environment.action_spec().num_values == 3
  assert isinstance(environment.observation_spec(), specs.OneHotArray)


@pytest.mark.parametrize(
  ("spaces", "name"),
  [
    ({"actions": SPACES.Box(-1, 1, (1,))}, "Box"),
    ({"actions": SPACES.MultiDiscrete([2, 2])}, "MultiDiscrete"),
    ({"space": SPACES.Tuple([SPACES.Text(2)])}, "Text"),
    ({"space": SPACES.Dict(a=SPACES.Sequence(SPACES.Discrete(2)))}, "Sequence"),
  ],
)
def test_other_spaces_are_refused(spaces, name):
  with pytest.raises(TypeError, match=name):
    environments.wrap(Scripted(**spaces), seed=0)


class FourValues(Scripted):
  def step(self, action):
    return (*super().step(action)[:3], {})


class OneValue(Scripted):
  def reset(self, *, seed=None, options=None):
    return super().reset()[0]


class Seedless(Scripted):
  def reset(self):
    return super().reset()


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (FourValues, r"FourValues.step \(test_gymnasium.py:\d+\) returned 4 values"),
    (
      lambda: gymnasium.wrappers.TimeLimit(FourValues(), 9),
      r"FourValues.step \(test_gymnasium.py:\d+\) .*expected 5, got 4",
    ),
    (OneValue, r"OneValue.reset \(test_gymnasium.py:\d+\) returned 1 value;"),
    (Seedless, r"Seedless.reset \(test_gymnasium.py:\d+\) does not take a seed"),
    (
      lambda: gymnasium.make_vec("CartPole-v1", num_envs=2),
      r"VectorEnv is a vector of 2 environments",
    ),
  ],
)
def test_other_protocols_are_refused_with_the_users_line(make, message):
  with pytest.raises(TypeError, match=message) as caught:
    environment = environments.wrap(make(), seed=0)
    environment.reset()
    environment.step(0)
  assert "\n" not in str(caught.value)


def test_arguments_follow_the_name():
  slippery, sure = (
    environments.make(f"gym:FrozenLake-v1/is_slippery={value},map_name=8x8", seed=0)
    for value in ("true", "False")
  )
  assert sure.observation_spec().shape == (64,)
  played = [
    [env.step(1).observation.argmax() for _ in range(4)] for env in (slippery, sure)
  ]
  assert played[1] == [0, 8, 16, 24] != played[0]
  with pytest.raises(ValueError, match="slipery"):
    environments.make("gym:FrozenLake-v1/is_slipery=true", seed=0)


def test_global_generators_follow_the_seed():
  class Global(Scripted):
    def _observe(self):
      return np.array([random.random(), np.random.random()])

  def play(seed):
    environment = environments.wrap(Global(), seed=seed)
    return [environment.reset().observation, environment.step(0).observation]

  np.testing.assert_array_equal(play(2), play(2))
  assert not np.array_equal(play(2), play(3))


def test_a_package_that_registers_environments_is_imported_if_named(
  tmp_path, monkeypatch
):
  entry = "gymnasium.envs.classic_control:CartPoleEnv"
  code = f"import gymnasium\ngymnasium.register('Zz-Hall-v0', {entry!r})"
  (tmp_path / "zz_halls.py").write_text(code)
  monkeypatch.syspath_prepend(tmp_path)
  with pytest.raises(ValueError, match="gymnasium has no environment"):
    environments.make("gym:Zz-Hall-v0", seed=0)
  made = environments.make("gym:zz_halls:Zz-Hall-v0", seed=0)
  assert made.action_spec().num_values == 2
  del gymnasium.envs.registration.registry["Zz-Hall-v0"]
