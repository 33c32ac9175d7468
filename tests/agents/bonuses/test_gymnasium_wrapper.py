"""Bonuses around gymnasium's environments, stepped by a plain loop."""

import importlib.util
import sys
import types

import gymnasium
import numpy as np
import pytest
from gymnasium import vector

from explorax.agents.bonuses import counts, ngu, rnd
from explorax.agents.bonuses.wrappers import gymnasium_wrapper, online

SAME_STEP = vector.AutoresetMode.SAME_STEP


class Line(gymnasium.Env):
  """Action 1 moves right and 0 left; `start` is the least action and observation."""

  def __init__(self, start=0, *, dense=False, length=20):
    self.action_space = gymnasium.spaces.Discrete(2, start=start)
    self.observation_space = (
      gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
      if dense
      else gymnasium.spaces.Discrete(10, start=start)
    )
    self._start, self._dense, self._length = start, dense, length

  def _observe(self):
    if self._dense:
      return np.array([np.cos(self.place), np.sin(self.place)], np.float32)
    return self._start + self.place

  def reset(self, *, seed=None, options=None):
    super().reset(seed=seed)
    self.place = self._time = 0
    return self._observe(), {}

  def step(self, action):
    self.place = int(np.clip(self.place + 2 * (action - self._start) - 1, 0, 9))
    self._time += 1
    return (
      self._observe(),
      1.0,
      False,
      self._time == self._length,
      {"place": self.place},
    )


class VecEnvWrapper:
  """As much of Stable-Baselines3's as is used, where it is not installed."""

  def __init__(self, venv):
    self.venv, self.num_envs, self.unwrapped = venv, venv.num_envs, venv.unwrapped

  def __getattr__(self, name):
    return getattr(self.venv, name)

  def step(self, actions):
    self.step_async(actions)
    return self.step_wait()


@pytest.fixture(autouse=True)
def _compiled_once(monkeypatch, make_online):
  monkeypatch.setattr(online, "OnlineBonus", make_online)


@pytest.fixture
def sb3_wrapper(monkeypatch):
  if importlib.util.find_spec("stable_baselines3") is None:
    names = ("stable_baselines3", "stable_baselines3.common")
    for name in (*names, "stable_baselines3.common.vec_env"):
      monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    module = sys.modules["stable_baselines3.common"]
    module.vec_env = sys.modules["stable_baselines3.common.vec_env"]
    module.vec_env.VecEnvWrapper, module.vec_env.VecEnv = VecEnvWrapper, object
    monkeypatch.delitem(sys.modules, WRAPPER, raising=False)
  yield importlib.import_module(WRAPPER)
  sys.modules.pop(WRAPPER, None)


WRAPPER = "explorax.agents.bonuses.wrappers.sb3_wrapper"


class VecEnv:
  """A vector of Stable-Baselines3."""

  def __init__(self, envs):
    self._envs, self.num_envs, self.unwrapped = envs, len(envs), self
    self.observation_space = envs[0].observation_space
    self.action_space = envs[0].action_space

  def reset(self):
    return np.array([env.reset()[0] for env in self._envs])

  def step_async(self, actions):
    self._actions = actions

  def step_wait(self):
    observations, rewards, dones, infos = [], [], [], []
    for env, action in zip(self._envs, self._actions, strict=True):
      observation, reward, _, done, info = env.step(action)
      infos.append({**info, "TimeLimit.truncated": done})
      rewards.append(reward)
      if done:
        infos[-1]["terminal_observation"] = observation
        observation, _ = env.reset()
      observations.append(observation)
      dones.append(done)
    rewards = np.array(rewards, np.float32)
    return np.array(observations), rewards, np.array(dones), infos


def play_vector(envs, actions, mode):
  """r_int `[T, N]` of the steps that the environments took."""
  num_envs = envs.num_envs
  envs.reset()
  taken, r_int = np.zeros(num_envs, int), [[] for _ in range(num_envs)]
  done = np.zeros(num_envs, bool)
  while taken.min() < len(actions):
    ignored = done & (mode == vector.AutoresetMode.NEXT_STEP)
    action = actions[np.minimum(taken, len(actions) - 1), np.arange(num_envs)]
    if isinstance(mode, vector.AutoresetMode):
      _, rewards, _, done, info = envs.step(np.where(ignored, 1 - action, action))
      np.testing.assert_array_equal(info["_intrinsic_reward"], ~ignored)
      np.testing.assert_array_equal(info["extrinsic_reward"], 1.0 - ignored)
      values = info["intrinsic_reward"]
      assert not values[ignored].any()
    else:
      _, rewards, done, infos = envs.step(action)
      values = np.array([info["intrinsic_reward"] for info in infos])
      assert all(info["extrinsic_reward"] == 1.0 for info in infos)
    np.testing.assert_allclose(rewards, 1.0 - ignored + 0.5 * values, rtol=1e-6)
    for i in np.flatnonzero(~ignored):
      r_int[i].append(values[i])
    taken += ~ignored
    if mode == vector.AutoresetMode.DISABLED and done.any():
      envs.reset(options={"reset_mask": done})
  return np.array([values[: len(actions)] for values in r_int]).T


@pytest.mark.parametrize(
  ("bonus", "lengths", "modes"),
  [
    (
      ngu.NeverGiveUp(states="random", rnd=False, memory_capacity=50),
      (4, 7, 5),
      list(vector.AutoresetMode),
    ),
    # What is shared sees the same batches where the episodes end together.
    (
      rnd.RND((5,), 4, normalisation="deviation"),
      (6, 6, 6),
      [vector.AutoresetMode.NEXT_STEP],
    ),
  ],
  ids=["episodic", "shared"],
)
def test_all_modes_of_resets_give_the_same_bonus(bonus, lengths, modes, sb3_wrapper):
  actions = np.random.default_rng(0).integers(2, size=(20, len(lengths)))
  makers = [lambda n=n: Line(dense=True, length=n) for n in lengths]
  results = []
  for mode in modes:
    envs = vector.SyncVectorEnv(makers, autoreset_mode=mode)
    envs = gymnasium_wrapper.BonusVectorWrapper(envs, bonus, 0.5, update_period=3)
    results.append(play_vector(envs, actions, mode))
  envs = sb3_wrapper.BonusVecEnv(
    VecEnv([make() for make in makers]), bonus, 0.5, update_period=3
  )
  results.append(play_vector(envs, actions, None))
  assert np.isfinite(results[0]).all() and results[0].any()
  for other in results[1:]:
    np.testing.assert_array_equal(other, results[0])


def test_the_mode_of_resets_is_said_by_metadata_or_the_argument():
  actions = np.random.default_rng(0).integers(2, size=(20, 2))
  makers = [lambda n=n: Line(dense=True, length=n) for n in (4, 7)]
  results = []
  wrap = gymnasium_wrapper.BonusVectorWrapper
  for said, argument in ((SAME_STEP, None), (None, "SameStep")):
    envs = vector.SyncVectorEnv(makers, autoreset_mode=SAME_STEP)
    envs.metadata = {"autoreset_mode": said}
    envs = wrap(envs, counts.Counts(), 0.5, autoreset_mode=argument)
    results.append(play_vector(envs, actions, SAME_STEP))
  np.testing.assert_array_equal(*results)
  envs.env.metadata = {}
  with pytest.raises(ValueError, match="have no autoreset_mode"):
    wrap(envs.env, counts.Counts(), 0.5)
  wrong = wrap(
    vector.SyncVectorEnv(makers), counts.Counts(), 0.5, autoreset_mode="SameStep"
  )
  with pytest.raises(ValueError, match="no final_obs"):
    play_vector(wrong, actions, SAME_STEP)


@pytest.mark.parametrize("kind", [vector.AutoresetMode.NEXT_STEP, SAME_STEP, "sb3"])
def test_nested_bonuses_keep_the_environments_reward(kind, sb3_wrapper):
  settings = {"bonus": counts.Counts(), "beta": 0.5}
  make = lambda: Line(length=3)  # noqa: E731
  if kind == "sb3":
    wrap, envs = sb3_wrapper.BonusVecEnv, VecEnv([make(), make()])
  else:
    wrap = gymnasium_wrapper.BonusVectorWrapper
    envs = vector.SyncVectorEnv([make, make], autoreset_mode=kind)
  envs = wrap(wrap(envs, **settings), **settings)
  envs.reset()
  for step in range(8):
    _, rewards, *_, infos = envs.step(np.ones(2, int))
    is_step = kind != vector.AutoresetMode.NEXT_STEP or step % 4 != 3
    if kind == "sb3":
      extrinsic = [info["extrinsic_reward"] for info in infos]
    else:
      extrinsic = infos["extrinsic_reward"]
    np.testing.assert_array_equal(extrinsic, float(is_step))
    assert (rewards > 1.2 * is_step).all() or not is_step
