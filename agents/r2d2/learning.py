"""The learner: multi-step TD errors on windows, for all members in one program."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from explorax import exploration, losses, networks
from explorax.agents import engine, types, updates
from explorax.agents.bonuses import scaling
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.r2d2 import config as config_lib
from explorax.agents.r2d2 import sequences
from explorax.agents.targets import types as target_types
from explorax.exploration import schedules

_Batch = sequences.Sequences


class LearnerState(NamedTuple):
  """The state of the learner."""

  params: Any
  target_params: Any
  prior_params: Any
  opt_state: Any
  bonus_state: Any
  key: jax.Array
  num_updates: jax.Array
  max_abs_reward: jax.Array  # Of all updates so far, with the bonus, `[]`.


class Weights(NamedTuple):
  """An actor's weights: the trained parameters, the priors', and the bonus's."""

  params: Any
  prior_params: Any
  bonus: Any


def make_discounts(config: config_lib.R2D2Config) -> jax.Array:
  """γ of each policy of a mixture, `[N]`; without a mixture, the config's."""
  n = config.num_policies
  lowest = config.discount if config.min_discount is None else config.min_discount
  if n == 1 and config.beta == 0:
    lowest = config.discount  # A single policy without exploration has a long horizon.
  return exploration.mixture_discounts(n, config.discount, lowest)


def betas_at(config: config_lib.R2D2Config, num_updates: jax.Array) -> jax.Array:
  """β of each policy of a mixture after so many updates, `[N]`."""
  if isinstance(config.beta, schedules.Schedule):
    return config.beta(num_updates) * exploration.mixture_betas(
      config.num_policies, 1.0
    )
  return exploration.mixture_betas(config.num_policies, config.beta)


def make_optimizer(config: config_lib.R2D2Config) -> optax.GradientTransformation:
  rate = config.learning_rate
  if config.optimizer == "adam":
    optimizer = optax.adam(rate, eps=config.optimizer_eps)
  else:
    optimizer = optax.rmsprop(rate, decay=0.99, eps=config.optimizer_eps)
  return updates.clipped(optimizer, config.max_gradient_norm)


def relabel(
  key: jax.Array, policy: jax.Array, ratio: float, num_policies: int
) -> jax.Array:
  """Relabels the first `ratio` of a batch with policies drawn uniformly.

  Windows are drawn independently, so the first ones are a random choice.

  Args:
    key: a random key.
    policy: int32 `[B]`, the policies that acted.
    ratio: the cross mixture ratio (Badia et al., 2020, appendix F); the number of
      windows is rounded.
    num_policies: N; more than one unless the ratio is 0.
  """
  size = policy.shape[0]
  num_relabelled = round(ratio * size)
  if num_relabelled == 0:
    return policy
  step = jax.random.randint(key, (size,), 1, num_policies)
  other = (policy + step) % num_policies
  return jnp.where(jnp.arange(size) < num_relabelled, other, policy)


def tx_pair(config: config_lib.R2D2Config) -> losses.TxPair:
  """h and its inverse."""
  if config.transform_eps is None:
    return losses.identity_pair
  return losses.signed_hyperbolic_pair(config.transform_eps)


def make_learner(
  config: config_lib.R2D2Config,
  values: networks.SequenceQNetworks,
  bonus: bonus_types.LearnerBonus | bonus_types.ActorBonus | None,
) -> types.LearnerCore:
  """The LearnerCore of a config.

  The loss of a window is `Σ_t Σ_k m_k δ_{k,t}² / (2 M)` over the trained transitions
  (or its mean over time), weighted by importance and averaged over the batch. The
  reward is `r + β r_int` for the members that see the bonus: the explorers if there are
  any, else all members.
  """
  optimizer = make_optimizer(config)
  discounts = make_discounts(config)
  tx = tx_pair(config)
  size, num_exploiters = config.ensemble_size, config.num_members
  # A learner's bonus; an actor's comes with the sample.
  own = bonus if isinstance(bonus, bonus_types.LearnerBonus) else None
  training = bonus.training if isinstance(bonus, bonus_types.ActorBonus) else None
  sees_bonus = engine.sees_bonus(config)

  def init(key: jax.Array) -> LearnerState:
    keys = jax.random.split(key, 4)
    params = values.init(keys[0])
    trained: Any = ()
    if own is not None:
      trained = own.init(keys[2])
    elif training is not None:
      trained = training.init(keys[2])
    return LearnerState(
      params=params,
      target_params=params,
      prior_params=values.init_prior(keys[1]),
      opt_state=optimizer.init(params),
      bonus_state=trained,
      key=keys[3],
      num_updates=jnp.int32(0),
      max_abs_reward=jnp.float32(0.0),
    )

  def td_errors(
    q: jax.Array,
    target_q: jax.Array,
    batch: _Batch,
    r_t: jax.Array,
    gamma: jax.Array,
    exploration_epsilon: jax.Array | None,
  ) -> jax.Array:
    """TD errors `[M, B, T]`; q and target_q are `[M, B, R, A]`, r_t is `[M, B, T]`."""
    predictions = target_types.Predictions(
      q[:, :, :-1], target_q[:, :, 1:], jax.lax.stop_gradient(q[:, :, 1:])
    )
    stream = target_types.Stream(
      a_tm1=batch.action[:, :-1],
      a_t=batch.action[:, 1:],
      r_t=batch.reward,
      discount_t=gamma[:, None] * batch.discount,
      mu_t=batch.behaviour_prob[:, 1:],
      continues_t=batch.real[:, 1:],
    )
    return target_types.over_members(
      lambda predictions, stream: config.target.td_errors(predictions, stream, tx),
      predictions,
      stream,
      r_t,
      exploration_epsilon,
    )

  def compute_bonus(
    state: Any, td: jax.Array, q: jax.Array, batch: _Batch
  ) -> tuple[jax.Array, Any]:
    """Computed from the exploiters' values and errors, on the scale of rewards."""
    assert own is not None
    a_tm1 = batch.action[:, :-1]
    q_a = jnp.take_along_axis(q[:, :, :-1], a_tm1[None, ..., None], axis=-1)[..., 0]
    return bonus_types.compute_on_windows(
      own,
      state,
      tx.apply_inv(td + q_a) - tx.apply_inv(q_a),
      batch.action,
      tx.apply_inv(q[:, :, :-1]),
      tx.apply_inv(q[:, :, 1:]),
      batch.inputs.observation,
      batch.trained,
    )

  def loss(
    params: Any,
    state: LearnerState,
    batch: _Batch,
    policy: jax.Array,
    weights: jax.Array,
  ) -> tuple[jax.Array, tuple[jax.Array, jax.Array, Any, jax.Array, jax.Array]]:
    priors = state.prior_params
    q = sequences.unroll(values, params, priors, batch, config.burn_in)
    target_q = jax.lax.stop_gradient(
      sequences.unroll(values, state.target_params, priors, batch, config.burn_in)
    )
    gamma = discounts[policy]
    reward = config.reward_scale * clip(batch.reward, config.max_abs_reward)
    epsilon = updates.exploration_epsilon(config, state.num_updates)
    rewards = jnp.broadcast_to(reward, (size, *reward.shape))

    r_int, bonus_state = batch.r_int, state.bonus_state
    if own is not None:
      k = num_exploiters
      td = td_errors(q[:k], target_q[:k], batch, rewards[:k], gamma, epsilon)
      r_int, bonus_state = compute_bonus(bonus_state, td, q[:k], batch)
    if config.beta:
      beta = betas_at(config, state.num_updates)[policy]
      rewards += scaling.scaled_bonus(r_int, beta, sees_bonus)
    # Separately from the explorers, so that the exploiters' errors are computed once.
    split = num_exploiters if config.num_explorers else size
    td = jnp.concatenate(
      [
        td_errors(q[group], target_q[group], batch, rewards[group], gamma, epsilon)
        for group in (slice(0, split), slice(split, size))
        if group.start < group.stop
      ]
    )
    value = _loss(config, td, batch, weights)
    largest = jnp.maximum(state.max_abs_reward, jnp.max(jnp.abs(rewards)))
    return value, (td, r_int, bonus_state, q, largest)

  def update(
    state: LearnerState,
    sample: types.Sample,
    copied: Callable[[LearnerState], LearnerState],
  ) -> tuple[LearnerState, types.LearnerOutput]:
    end = "transition" if bonus is None else bonus.end
    batch = sequences.make_sequences(sample, config.burn_in, size, end)
    weights = updates.importance_weights(
      sample, schedules.at(config.importance_exponent, state.num_updates)
    )
    key, relabel_key = jax.random.split(state.key)
    policy = relabel(
      relabel_key,
      batch.inputs.policy[:, 0],
      config.cross_mixture_ratio,
      config.num_policies,
    )
    followed = jnp.broadcast_to(policy[:, None], batch.inputs.policy.shape)
    batch = batch._replace(inputs=batch.inputs._replace(policy=followed))
    step = updates.step(
      optimizer, loss, state.params, state.opt_state, state, batch, policy, weights
    )
    td, r_int, bonus_state, q, largest = step.aux
    bonus_metrics: dict[str, jax.Array] = {}
    if training is not None:
      observations = batch.inputs.observation
      num_real = jnp.sum(batch.real, axis=1).astype(jnp.int32)
      bonus_state, bonus_metrics = training.update(
        bonus_state, observations, batch.action, num_real
      )
    new = state._replace(
      params=step.params,
      opt_state=step.opt_state,
      bonus_state=bonus_state,
      key=key,
      num_updates=state.num_updates + 1,
      max_abs_reward=largest,
    )
    finite = jnp.isfinite(step.loss) & jnp.isfinite(optax.global_norm(step.gradients))
    finite &= jnp.all(jnp.isfinite(jnp.array([*bonus_metrics.values(), 0.0])))
    sizes = jnp.mean(jnp.abs(td), axis=0)
    priorities = jax.vmap(losses.sequence_priority, in_axes=(0, 0, None))(
      sizes, batch.trained, config.priority_eta
    )
    metrics = {
      "td_error": updates.masked_mean(sizes, batch.trained),
      "q": updates.masked_mean(jnp.mean(q[:, :, :-1], axis=(0, 3)), batch.trained),
      "r_int": updates.masked_mean(r_int, batch.trained),
      **bonus_metrics,
      **updates.q_bound(largest, config.discount, tx),
    }
    return updates.finish(finite, copied(new), state, step.loss, priorities, metrics)

  def params(state: LearnerState) -> Weights:
    trained = () if training is None else training.weights(state.bonus_state)
    return Weights(state.params, state.prior_params, trained)

  def copy(state: LearnerState) -> LearnerState:
    return state._replace(target_params=state.params)

  return updates.make_learner(init, update, copy, params, config.target_update_period)


def clip(x: jax.Array, bound: float | None) -> jax.Array:
  """Clips x to ± the bound; None: unchanged."""
  return x if bound is None else jnp.clip(x, -bound, bound)


def _loss(
  config: config_lib.R2D2Config, td: jax.Array, batch: _Batch, weights: jax.Array
) -> jax.Array:
  """The batch's loss, from TD errors `[M, B, T]`."""
  size, *shape = td.shape
  mask = jnp.reshape(batch.member_mask, (-1, size))
  flat = updates.ensemble_loss(jnp.reshape(td, (size, -1)), mask, config.max_abs_td)
  per_step = jnp.reshape(flat, shape)  # [B, T]
  per_window = jnp.sum(batch.trained * per_step, axis=1)
  if config.mean_over_time:
    per_window /= batch.trained.shape[1]
  return jnp.mean(weights * per_window)
