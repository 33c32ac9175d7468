"""The learner: n-step TD errors of all members in one program."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from explorax import losses
from explorax.agents import bonuses, types
from explorax.agents import updates as updates_lib
from explorax.agents.dqn import config as config_lib
from explorax.agents.dqn import values as values_lib
from explorax.exploration import schedules


class LearnerState(NamedTuple):
  """All that learning keeps."""

  params: Any
  target_params: Any
  prior_params: Any
  target_prior_params: Any
  opt_state: Any
  bonus_state: Any
  num_updates: jax.Array
  noise_key: Any  # Of noisy networks; () where there is no noise.


class Transitions(NamedTuple):
  """A batch of n-step transitions, the returns composed from raw rows."""

  observation_tm1: jax.Array  # [B, ...]
  a_tm1: jax.Array  # [B]
  r_t: jax.Array  # [B], Σ_i γ^i r, up to n or the episode's end.
  discount_t: jax.Array  # [B], γ^n Π discounts.
  observation_t: jax.Array  # [B, ...], the one bootstrapped from.
  r_int: jax.Array  # [B], of bonuses computed by actors, composed as r_t is; or 0.
  mask: jax.Array  # [B, M], which members learn from it.


def n_step_transitions(
  sample: types.Sample,
  discount: float,
  ensemble_size: int,
  bonus_end: str,
  max_abs_reward: float | None = None,
) -> Transitions:
  """Composes transitions from windows of n + 1 raw rows.

  Where the episode ends before n rows, the return stops there, and bootstraps from
  the episode's last observation (with discount 0 if it terminated). Each reward is
  clipped to ± `max_abs_reward`; bonuses are not.
  """
  rows = sample.rows
  n = rows["reward"].shape[1] - 1
  batch = jnp.arange(rows["reward"].shape[0])
  real = rows["mask"][:, :n]
  # Padding neither discounts nor pays.
  discounts = jnp.where(real > 0, discount * rows["discount"][:, :n], 1.0)
  rewards = rows["reward"][:, :n]
  if max_abs_reward is not None:
    rewards = jnp.clip(rewards, -max_abs_reward, max_abs_reward)
  # before[:, i] discounts what comes after i rows; n is small, so the loop unrolls.
  products = [jnp.ones_like(discounts[:, 0])]
  for i in range(n):
    products.append(products[-1] * discounts[:, i])
  before = jnp.stack(products, axis=1)
  r_int = jnp.zeros_like(before[:, 0])
  if "r_int" in rows:
    aligned = types.align_intrinsic(jnp.moveaxis(rows["r_int"], 0, 1), bonus_end)
    r_int = jnp.sum(before[:, :n] * real * aligned.T, axis=1)
  if n == 1:
    observation_t = rows["observation"][:, 1]
  else:
    observation_t = rows["observation"][batch, jnp.sum(real, axis=1).astype(jnp.int32)]
  mask = jnp.broadcast_to(real[:, :1], (real.shape[0], ensemble_size))
  if "bootstrap_mask" in rows:
    mask = mask * rows["bootstrap_mask"][:, 0]
  return Transitions(
    observation_tm1=rows["observation"][:, 0],
    a_tm1=rows["action"][:, 0],
    r_t=jnp.sum(before[:, :n] * real * rewards, axis=1),
    discount_t=before[:, n],
    observation_t=observation_t,
    r_int=r_int,
    mask=mask,
  )


class Predictions(NamedTuple):
  """What the networks say of a batch."""

  tm1: values_lib.Prediction  # Online, of the sources.
  t: values_lib.Prediction  # The target network's, of what is bootstrapped from.
  q_t_selector: jax.Array  # [M, B, A], by which an action is chosen there.


def _td_errors(
  target: str, predictions: Predictions, batch: Transitions, rewards: jax.Array
) -> jax.Array:
  """TD errors `[M, B]` on the rewards `[M, B]`; of distributions, their means'."""
  over_batch = (0, 0, 0, 0, 0)
  over_members = (0, None, 0, None, 0)
  q_tm1, q_t = predictions.tm1.q, predictions.t.q
  arguments = (q_tm1, batch.a_tm1, rewards, batch.discount_t, q_t)
  if target == "q_learning":
    return jax.vmap(jax.vmap(losses.q_learning, over_batch), over_members)(*arguments)
  return jax.vmap(jax.vmap(losses.double_q, (*over_batch, 0)), (*over_members, 0))(
    *arguments, predictions.q_t_selector
  )


def _divergences(
  atoms: Any, predictions: Predictions, batch: Transitions, rewards: jax.Array
) -> jax.Array:
  """Divergences `[M, B]` of distributions, on the rewards `[M, B]`."""
  per_batch = jax.vmap(losses.categorical_double_q_kl, (None, 0, 0, 0, 0, None, 0, 0))
  per_member = jax.vmap(per_batch, (None, 0, None, 0, None, None, 0, 0))
  return per_member(
    atoms,
    predictions.tm1.logits,
    batch.a_tm1,
    rewards,
    batch.discount_t,
    atoms,
    predictions.t.logits,
    predictions.q_t_selector,
  )


def make_optimizer(config: config_lib.DQNConfig) -> optax.GradientTransformation:
  adam = optax.adam(config.learning_rate, b2=config.adam_b2, eps=config.adam_eps)
  if config.max_gradient_norm is None:
    return adam
  return optax.chain(optax.clip_by_global_norm(config.max_gradient_norm), adam)


def make_learner(
  config: config_lib.DQNConfig,
  values: values_lib.Values,
  bonus: bonuses.LearnerBonus | bonuses.ActorBonus,
) -> types.LearnerCore:
  """The LearnerCore of a config.

  The loss is `Σ_k m_k l_k / M`, averaged over the batch. l_k is δ_k² / 2 (paper 4,
  algorithm 2), linear beyond `max_abs_td`, δ_k being member k's TD error; or the
  divergence of member k's distribution from its target. Both are on r + β r_int for
  those that see the bonus: the explorers, where there are any, and all members where
  there are none. Explorers that do not see the reward learn from β r_int. Priorities
  are |δ_k| or the divergence, averaged over the members.
  """
  optimizer = make_optimizer(config)
  size, num_exploiters = config.ensemble_size, config.num_members
  # The bonus that is computed here: an actor's comes with the sample.
  own = bonus if isinstance(bonus, bonuses.LearnerBonus) else None
  sees_bonus = jnp.arange(size) >= (num_exploiters if config.num_explorers else 0)
  sees_reward = (jnp.arange(size) < num_exploiters) | config.explorers_see_reward

  def init(key: jax.Array) -> LearnerState:
    keys = jax.random.split(key, 4)
    params = values.init(keys[0])
    target_prior_key = keys[2] if config.target_prior == "distinct" else keys[1]
    return LearnerState(
      params=params,
      target_params=params,
      prior_params=values.init_prior(keys[1]),
      target_prior_params=values.init_prior(target_prior_key),
      opt_state=optimizer.init(params),
      bonus_state=() if own is None else own.init(keys[3]),
      num_updates=jnp.int32(0),
      noise_key=jax.random.fold_in(key, 4) if values.is_noisy else (),
    )

  def predict(params: Any, state: LearnerState, batch: Transitions) -> Predictions:
    # Each network has noise of its own, the online one twice (Fortunato et al., 2018,
    # section 3.1); it is drawn anew for each update.
    noise: list[Any] = [None] * 3
    if values.is_noisy:
      noise = list(
        jax.random.split(jax.random.fold_in(state.noise_key, state.num_updates), 3)
      )
    tm1 = values.apply(params, state.prior_params, batch.observation_tm1, noise[0])
    t = values.apply(
      state.target_params, state.target_prior_params, batch.observation_t, noise[1]
    )
    if config.target == "q_learning":
      return Predictions(tm1, t, t.q)
    selector = values.apply(params, state.prior_params, batch.observation_t, noise[2])
    return Predictions(tm1, t, selector.q)

  def compute_bonus(
    state: LearnerState, td: jax.Array, q_tm1: jax.Array, batch: Transitions
  ) -> tuple[jax.Array, Any]:
    if own is None:
      return batch.r_int, state.bonus_state
    inputs = bonuses.Inputs(
      td[:num_exploiters],
      q_tm1[:num_exploiters],
      batch.a_tm1,
      batch.observation_tm1,
      jnp.ones_like(batch.r_t),  # No window begins with padding.
    )
    return own.compute(state.bonus_state, jax.lax.stop_gradient(inputs))

  def loss(
    params: Any, state: LearnerState, batch: Transitions, weights: jax.Array
  ) -> tuple[jax.Array, tuple[jax.Array, dict[str, jax.Array], Any]]:
    predictions = predict(params, state, batch)
    rewards = jnp.where(sees_reward[:, None], batch.r_t[None, :], 0.0)
    td = _td_errors(config.target, predictions, batch, rewards)
    r_int, bonus_state = compute_bonus(state, td, predictions.tm1.q, batch)
    if config.beta > 0:
      scaled_bonus = config.beta * jnp.where(sees_bonus[:, None], r_int[None, :], 0.0)
      # A target is linear in its reward, so that β r_int adds to the TD error.
      td, rewards = td + scaled_bonus, rewards + scaled_bonus
    errors = jnp.abs(td)
    if values.atoms is not None:
      divergences = _divergences(values.atoms, predictions, batch, rewards)
      errors = jnp.maximum(divergences, 0.0)  # Below 0 by rounding only.
      per_transition = updates_lib.mean_over_members(divergences, batch.mask)
    else:
      per_transition = updates_lib.ensemble_loss(td, batch.mask, config.max_abs_td)
    metrics = {
      "td_error": jnp.mean(jnp.abs(td)),
      "q": jnp.mean(predictions.tm1.q),
      "r_int": jnp.mean(r_int),
    }
    priorities = jnp.mean(errors, axis=0)
    return jnp.mean(weights * per_transition), (priorities, metrics, bonus_state)

  def update(
    state: LearnerState, sample: types.Sample
  ) -> tuple[LearnerState, types.LearnerOutput]:
    batch = n_step_transitions(
      sample, config.discount, size, bonus.end, config.max_abs_reward
    )
    weights = updates_lib.importance_weights(
      sample, schedules.at(config.importance_exponent, state.num_updates)
    )
    (value, (priorities, metrics, bonus_state)), gradients = jax.value_and_grad(
      loss, has_aux=True
    )(state.params, state, batch, weights)
    updates, opt_state = optimizer.update(gradients, state.opt_state)
    params = optax.apply_updates(state.params, updates)
    num_updates = state.num_updates + 1
    target_params = updates_lib.copy_every(
      config.target_update_period, num_updates, params, state.target_params
    )
    new = state._replace(
      params=params,
      target_params=target_params,
      opt_state=opt_state,
      bonus_state=bonus_state,
      num_updates=num_updates,
    )
    # The gradient of a squared error is finite where its square is.
    finite = jnp.isfinite(value)
    state = updates_lib.keep_if(finite, new, state)
    metrics = {"loss": value, "finite": finite.astype(jnp.float32), **metrics}
    return state, types.LearnerOutput(priorities, metrics)

  def params(state: LearnerState) -> values_lib.Weights:
    return values_lib.Weights(state.params, state.prior_params)

  return types.LearnerCore(init, update, params)
