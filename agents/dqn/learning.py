"""The learner: TD errors of all members on windows of n steps, in one program."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from explorax import losses
from explorax.agents import engine, types, updates
from explorax.agents.bonuses import scaling
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.dqn import config as config_lib
from explorax.agents.dqn import predictions as predictions_lib
from explorax.agents.dqn import values as values_lib
from explorax.agents.dqn import windows as windows_lib
from explorax.agents.targets import types as target_types
from explorax.exploration import schedules


class LearnerState(NamedTuple):
  """The state of the learner.

  Missing parts are `()`: target_prior_params are the target network's own priors if
  they are distinct, and noise_key is the key of noisy networks.
  """

  params: Any
  target_params: Any
  prior_params: Any
  target_prior_params: Any
  opt_state: Any
  bonus_state: Any
  num_updates: jax.Array
  max_abs_reward: jax.Array  # Of all updates so far, with the bonus, `[]`.
  noise_key: Any


def make_learner(
  config: config_lib.DQNConfig,
  values: values_lib.Values,
  bonus: bonus_types.LearnerBonus | bonus_types.ActorBonus | None,
) -> types.LearnerCore:
  """The LearnerCore of a config.

  The loss is `Σ_k m_k l_k / M` (paper 4, algorithm 2), averaged over the batch; with
  `sum_over_members` it is the sum without 1 / M (paper 3, section 2.4), and a shared
  torso's gradient is divided by M. l_k is δ_k² / 2, linear beyond `max_abs_td`, where
  δ_k is member k's TD error; or the divergence of member k's distribution from its
  target. Both use r + β r_int for the members that see the bonus: the explorers if
  there are any, else all members. Explorers that do not see the reward learn from
  β r_int. Priorities are |δ_k| or the divergence, averaged over the members.
  """
  optimizer = updates.clipped(
    optax.adam(config.learning_rate, b2=config.adam_b2, eps=config.adam_eps),
    config.max_gradient_norm,
  )
  size, num_exploiters = config.ensemble_size, config.num_members
  if config.sum_over_members and config.shared_torso:
    optimizer = updates.with_torso_divided(optimizer, size)
  loss_scale = size if config.sum_over_members else 1
  # A learner's bonus; an actor's comes with the sample.
  own = bonus if isinstance(bonus, bonus_types.LearnerBonus) else None
  target = config.target
  has_distinct_priors = config.target_prior == "distinct"
  sees_bonus = engine.sees_bonus(config)
  sees_reward = (jnp.arange(size) < num_exploiters) | config.explorers_see_reward

  def init(key: jax.Array) -> LearnerState:
    keys = jax.random.split(key, 4)
    params = values.init(keys[0])
    return LearnerState(
      params=params,
      target_params=params,
      prior_params=values.init_prior(keys[1]),
      target_prior_params=values.init_prior(keys[2]) if has_distinct_priors else (),
      opt_state=optimizer.init(params),
      bonus_state=() if own is None else own.init(keys[3]),
      num_updates=jnp.int32(0),
      max_abs_reward=jnp.float32(0.0),
      noise_key=jax.random.fold_in(key, 4) if values.is_noisy else (),
    )

  def loss(
    params: Any, state: LearnerState, windows: windows_lib.Windows, weights: jax.Array
  ) -> tuple[jax.Array, tuple[jax.Array, dict[str, jax.Array], Any, jax.Array]]:
    noise_key = None
    if values.is_noisy:  # Drawn for each update.
      noise_key = jax.random.fold_in(state.noise_key, state.num_updates)
    priors = state.prior_params
    target_priors = state.target_prior_params if has_distinct_priors else priors
    predictions = predictions_lib.predict(
      values,
      values_lib.Weights(params, priors),
      values_lib.Weights(state.target_params, target_priors),
      windows,
      every_row=target.is_multi_step or own is not None,
      noise_key=noise_key,
    )
    epsilon = updates.exploration_epsilon(config, state.num_updates)

    def apply_target(function: Any, transitions: Any, r_t: jax.Array) -> jax.Array:
      predictions, stream = transitions
      return target_types.over_members(function, predictions, stream, r_t, epsilon)

    def mean_td(predictions: Any, stream: Any) -> jax.Array:
      return target.td_errors(predictions, stream, losses.identity_pair)

    def td_errors(r_t: jax.Array) -> jax.Array:
      """TD errors of the window's first step. Rewards `[M, B, n]` → `[M, B]`."""
      if target.is_multi_step:
        each = predictions.each_transition(windows)
        return apply_target(mean_td, each, r_t)[..., 0]
      r_t = windows.n_step_return(r_t)[..., None]
      whole = predictions.n_step_transition(windows)
      return apply_target(mean_td, whole, r_t)[..., 0]

    rewards = jnp.where(sees_reward[:, None, None], windows.r_t[None], 0.0)  # [M, B, n]
    td = td_errors(rewards)
    r_int, bonus_state = windows.r_int, state.bonus_state
    if own is not None:
      each = predictions.each_transition(windows)
      extrinsic = td[..., None]
      if windows.n > 1:
        extrinsic = apply_target(mean_td, each, rewards)
      r_int, bonus_state = bonus_types.compute_on_windows(
        own,
        bonus_state,
        extrinsic[:num_exploiters],
        windows.action,
        each[0].q_tm1[:num_exploiters],
        each[0].q_t_selector[:num_exploiters],
        windows.observations(),
        windows.real[:, :-1],
      )
    if config.beta:
      beta = schedules.at(config.beta, state.num_updates)
      bonus_of_members = scaling.scaled_bonus(r_int, beta, sees_bonus)
      rewards += bonus_of_members
      if target.is_multi_step:
        td = td_errors(rewards)
      else:  # It is linear in the reward.
        td += windows.n_step_return(bonus_of_members)
    errors = jnp.abs(td)
    if target.atoms is not None:
      divergences = apply_target(
        target.divergences,
        predictions.n_step_transition(windows),
        windows.n_step_return(rewards)[..., None],
      )[..., 0]
      errors = jnp.maximum(divergences, 0.0)  # Negative only by rounding.
      per_window = updates.mean_over_members(divergences, windows.member_mask)
    else:
      per_window = updates.ensemble_loss(td, windows.member_mask, config.max_abs_td)
    metrics = {
      "td_error": jnp.mean(jnp.abs(td)),
      "q": jnp.mean(predictions.tm1.q),
      "r_int": updates.masked_mean(r_int, windows.real[:, :-1]),
    }
    largest = jnp.maximum(state.max_abs_reward, jnp.max(jnp.abs(rewards)))
    metrics |= updates.q_bound(largest, config.discount)
    priorities = jnp.mean(errors, axis=0)
    total = loss_scale * jnp.mean(weights * per_window)
    return total, (priorities, metrics, bonus_state, largest)

  def update(
    state: LearnerState,
    sample: types.Sample,
    copied: Callable[[LearnerState], LearnerState],
  ) -> tuple[LearnerState, types.LearnerOutput]:
    end = "transition" if bonus is None else bonus.end
    windows = windows_lib.make_windows(
      sample, config.discount, size, end, config.max_abs_reward
    )
    weights = updates.importance_weights(
      sample, schedules.at(config.importance_exponent, state.num_updates)
    )
    step = updates.step(
      optimizer, loss, state.params, state.opt_state, state, windows, weights
    )
    priorities, metrics, bonus_state, largest = step.aux
    new = state._replace(
      params=step.params,
      opt_state=step.opt_state,
      bonus_state=bonus_state,
      num_updates=state.num_updates + 1,
      max_abs_reward=largest,
    )
    # The gradient of a squared error is finite if the square is.
    finite = jnp.isfinite(step.loss)
    return updates.finish(finite, copied(new), state, step.loss, priorities, metrics)

  def params(state: LearnerState) -> values_lib.Weights:
    return values_lib.Weights(state.params, state.prior_params)

  def copy(state: LearnerState) -> LearnerState:
    return state._replace(target_params=state.params)

  return updates.make_learner(init, update, copy, params, config.target_update_period)
