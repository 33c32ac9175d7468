"""A bonus around a vector of gymnasium environments.

from explorax.agents.bonuses import rnd
from explorax.agents.bonuses.wrappers import gymnasium_wrapper
envs = gymnasium_wrapper.BonusVectorWrapper(envs, rnd.RND(), beta=0.1)
"""

from typing import Any

import numpy as np
from gymnasium import vector

from explorax import exploration
from explorax.agents.bonuses import types
from explorax.agents.bonuses.wrappers import online


class BonusVectorWrapper(vector.VectorWrapper):
  """Adds β r_int to the reward of each step.

  `info` has the arrays `[N]` `extrinsic_reward`, the environments' without any bonus,
  and `intrinsic_reward`, r_int without β, with the masks `_extrinsic_reward` and
  `_intrinsic_reward`. A bonus of the destination (novelty) rewards the step that
  arrives there; one of the source or the transition, the step from there. `bonus` is
  the `online.OnlineBonus`, which says what the environments share, and can be saved
  and loaded. In the three modes of resets:

  - NEXT_STEP: the step after an episode's end, in which the action is ignored, has an
    r_int of 0, nothing is learnt from it, and it is masked in `info`.
  - SAME_STEP: the episode's last observation is read from `final_obs`.
  - DISABLED: `reset(options={"reset_mask": ...})` starts episodes in some environments.
  """

  def __init__(
    self,
    env: vector.VectorEnv,
    bonus: types.Bonus,
    beta: exploration.Setting,
    *,
    autoreset_mode: vector.AutoresetMode | str | None = None,
    **settings: Any,
  ):
    """Wraps a vector.

    Args:
      env: the vector.
      bonus, beta: as of `OnlineBonus`.
      autoreset_mode: of the vector, or its value; None: what its metadata say.
      **settings: of `OnlineBonus`, whose errors may also be raised.

    Raises:
      ValueError: if neither the argument nor the metadata say the mode.
    """
    super().__init__(env)
    mode = autoreset_mode or env.metadata.get("autoreset_mode")
    if mode is None:
      raise ValueError("the vector's metadata have no autoreset_mode: pass it.")
    mode = vector.AutoresetMode(mode)
    self._resets_in_step = mode is vector.AutoresetMode.SAME_STEP
    self.bonus = online.OnlineBonus(
      bonus,
      env.single_observation_space,
      env.single_action_space,
      env.num_envs,
      beta=beta,
      **settings,
    )

  def reset(
    self, *, seed: Any = None, options: dict[str, Any] | None = None
  ) -> tuple[Any, dict[str, Any]]:
    mask = (options or {}).get("reset_mask")  # The environment removes it.
    observations, info = self.env.reset(seed=seed, options=options)
    self.bonus.begin(observations, mask)
    return observations, info

  def step(
    self, actions: Any
  ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    valid = ~self.bonus.ended
    observations, rewards, terminated, truncated, info = self.env.step(actions)
    done, reached = np.logical_or(terminated, truncated), observations
    if self._resets_in_step and done.any():
      last = info.get("final_obs")
      if last is None:
        raise ValueError("the vector resets within a step, but info has no final_obs.")
      reached = [last[i] if ends else observations[i] for i, ends in enumerate(done)]
    added, r_int = self.bonus.step(actions, reached, done)
    if self._resets_in_step:
      self.bonus.begin(observations, done)
    info = info | {
      "extrinsic_reward": _extrinsic(rewards, info),
      "intrinsic_reward": r_int,
      "_extrinsic_reward": valid,
      "_intrinsic_reward": valid,
    }
    return observations, rewards + added, terminated, truncated, info


def _extrinsic(rewards: np.ndarray, info: dict[str, Any]) -> np.ndarray:
  """The environments' rewards, without those of a bonus that is wrapped."""
  own = np.array(rewards, np.float64)
  for inner in (info, info.get("final_info", {})):
    if "extrinsic_reward" in inner:
      own = np.where(inner["_extrinsic_reward"], inner["extrinsic_reward"], own)
  return own
