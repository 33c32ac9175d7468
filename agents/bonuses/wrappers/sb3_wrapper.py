"""A bonus around a vector of environments of Stable-Baselines3.

from explorax.agents.bonuses import rnd
from explorax.agents.bonuses.wrappers import sb3_wrapper
envs = sb3_wrapper.BonusVecEnv(envs, rnd.RND(), beta=0.1)
"""

from typing import Any

import numpy as np
from stable_baselines3.common import vec_env

from explorax import exploration
from explorax.agents.bonuses import types
from explorax.agents.bonuses.wrappers import online


class BonusVecEnv(vec_env.VecEnvWrapper):
  """Adds β r_int to the rewards of each step.

  Each step's infos have the `extrinsic_reward`, the environment's without any bonus,
  and the `intrinsic_reward`, r_int without β. An episode's last observation is read
  from `terminal_observation`; whether the episode was truncated (`TimeLimit.truncated`)
  changes nothing here: the agent bootstraps from the sum of both rewards. `bonus` is
  the `online.OnlineBonus`, which says what the environments share, and can be
  saved and loaded.
  """

  def __init__(
    self,
    venv: vec_env.VecEnv,
    bonus: types.Bonus | None,
    beta: exploration.Setting = 1.0,
    **settings: Any,
  ):
    """Wraps a vector; `OnlineBonus` describes `settings` and errors.

    Without a bonus (None), it changes nothing. `EvalCallback` needs the same wrappers
    around the environments of training and of evaluation.
    """
    super().__init__(venv)
    self.bonus: online.OnlineBonus | None = None
    if bonus is not None:
      self.bonus = online.OnlineBonus(
        bonus,
        venv.observation_space,
        venv.action_space,
        venv.num_envs,
        beta=beta,
        **settings,
      )
    self._actions: Any = None

  def reset(self) -> Any:
    observations = self.venv.reset()
    if self.bonus is not None:
      self.bonus.begin(observations)
    return observations

  def step_async(self, actions: np.ndarray) -> None:
    self._actions = actions
    self.venv.step_async(actions)

  def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
    observations, rewards, done, infos = self.venv.step_wait()
    if self.bonus is None:
      return observations, rewards, done, infos
    reached = [
      infos[i]["terminal_observation"] if ended else observations[i]
      for i, ended in enumerate(done)
    ]
    added, r_int = self.bonus.step(self._actions, reached, done)
    self.bonus.begin(observations, done)
    infos = [
      {"extrinsic_reward": float(reward), **info, "intrinsic_reward": float(value)}
      for info, reward, value in zip(infos, rewards, r_int, strict=True)
    ]
    return observations, rewards + added, done, infos
