"""A target's errors on the predictions for windows, for every member."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from explorax import losses
from explorax.agents import updates
from explorax.agents.bonuses import scaling
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.q import config as config_lib
from explorax.agents.q import mixture
from explorax.agents.q import predictions as predictions_lib
from explorax.agents.q import windows as windows_lib
from explorax.agents.targets import types as target_types


def tx_pair(config: config_lib.QConfig) -> losses.TxPair:
  """h and its inverse."""
  if config.transform_eps is None:
    return losses.identity_pair
  return losses.signed_hyperbolic_pair(config.transform_eps)


class Rewards(NamedTuple):
  """The members' rewards `[M, B, T]`.

  Attributes:
    extrinsic: the environment's, for the members that see it.
    intrinsic: the scaled bonus, for the members that see it; None: there is none.
  """

  extrinsic: jax.Array
  intrinsic: jax.Array | None = None

  @property
  def total(self) -> jax.Array:
    """Their sum."""
    return self.extrinsic if self.intrinsic is None else self.extrinsic + self.intrinsic


class Learned(NamedTuple):
  """The errors of windows, and what they are made of.

  Attributes:
    td: TD errors `[M, B, S]`.
    deltas: `[M, B, S]`, of which losses and priorities are: TD errors, or divergences
      of distributions.
    rewards: the members'.
    r_int: `[B, T]`, the bonus.
    bonus_state: of its learning half.
  """

  td: jax.Array
  deltas: jax.Array
  rewards: Rewards
  r_int: jax.Array
  bonus_state: Any


class TdErrors(NamedTuple):
  """The errors of a config's target.

  Attributes:
    config: the settings.
    predictions: of both networks.
    windows: with S sources and T transitions.
    num_updates: int32 `[]`, the learner's so far, for schedules.
  """

  config: config_lib.QConfig
  predictions: predictions_lib.Predictions
  windows: windows_lib.Windows
  num_updates: jax.Array

  def learned(
    self, bonus: bonus_types.IntrinsicReward | None, bonus_state: Any
  ) -> Learned:
    """All errors, and the bonus: of its learning half, or the stored values."""
    config, windows = self.config, self.windows
    sees_reward = config.sees_reward[:, None, None]
    rewards = Rewards(jnp.where(sees_reward, windows.reward[None], 0.0))
    r_int = windows.stored
    if bonus is not None and bonus.learning is not None:
      r_int, bonus_state = self.r_int(bonus, bonus_state, rewards.extrinsic)
    if config.beta:
      beta = mixture.betas(config, self.num_updates)[windows.policy]
      intrinsic = scaling.scaled_bonus(r_int, beta, config.sees_bonus)
      rewards = rewards._replace(intrinsic=intrinsic)
    td = self.td(rewards)
    deltas = td if config.target.atoms is None else self.divergences(rewards)
    return Learned(td, deltas, rewards, r_int, bonus_state)

  def td(self, rewards: Rewards) -> jax.Array:
    """TD errors `[M, B, S]` of the sources."""
    if self.config.target.is_multi_step:
      return self._each(rewards.total)[..., : self.windows.num_sources]
    if rewards.intrinsic is None or self.config.transform_eps is not None:
      return self._n_step(rewards.total)
    # Linear in the reward, so that a learning half needs the errors only once.
    intrinsic = self.windows.n_step_return(rewards.intrinsic, self.config.n_step)
    return self._n_step(rewards.extrinsic) + intrinsic

  def divergences(self, rewards: Rewards) -> jax.Array:
    """The losses `[M, B, S]` of distributions."""
    n = self.config.n_step
    return self._over_members(
      self.config.target.divergences,
      self.predictions.n_step_transitions(self.windows, n),
      self.windows.n_step_return(rewards.total, n),
    )

  def r_int(
    self, bonus: bonus_types.IntrinsicReward, state: Any, extrinsic: jax.Array
  ) -> tuple[jax.Array, Any]:
    """r_int `[B, T]` and the learning half's state, from the exploiters' predictions.

    TD errors and values are on the scale of rewards.
    """
    k, tx, windows = self.config.num_members, tx_pair(self.config), self.windows
    predictions, _ = self.predictions.each_transition(windows)
    predictions = jax.tree.map(lambda x: x[:k], predictions)
    is_single = not self.config.target.is_multi_step and self.config.n_step == 1
    td = (self._n_step if is_single else self._each)(extrinsic)[:k]
    if self.config.transform_eps is not None:
      action = windows.action[None, :, :-1, None]
      q_a = jnp.take_along_axis(predictions.q_tm1, action, axis=-1)[..., 0]
      td = tx.apply_inv(td + q_a) - tx.apply_inv(q_a)
    return bonus_types.compute_on_windows(
      bonus,
      state,
      td,
      windows.action,
      tx.apply_inv(predictions.q_tm1),
      tx.apply_inv(predictions.q_t_selector),
      windows.observations(),
      windows.stored,
      windows.valid,
    )

  def _each(self, r_t: jax.Array) -> jax.Array:
    """TD errors `[M, B, T]` of each transition."""
    transitions = self.predictions.each_transition(self.windows)
    return self._over_members(self._td, transitions, r_t)

  def _n_step(self, r_t: jax.Array) -> jax.Array:
    """TD errors `[M, B, S]` of the sources' n-step returns."""
    n = self.config.n_step
    transitions = self.predictions.n_step_transitions(self.windows, n)
    return self._over_members(self._td, transitions, self.windows.n_step_return(r_t, n))

  def _td(
    self, predictions: target_types.Predictions, stream: target_types.Stream
  ) -> jax.Array:
    return self.config.target.td_errors(predictions, stream, tx_pair(self.config))

  def _over_members(
    self,
    function: Callable[[target_types.Predictions, target_types.Stream], jax.Array],
    transitions: predictions_lib.Transitions,
    r_t: jax.Array,
  ) -> jax.Array:
    epsilon = updates.exploration_epsilon(self.config, self.num_updates)
    return target_types.over_members(function, *transitions, r_t, epsilon)
