"""The learner: n-step TD errors of all members in one program."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from explorax import losses, networks
from explorax.agents import bonuses, types
from explorax.agents import updates as updates_lib
from explorax.agents.dqn import config as config_lib
from explorax.agents.dqn import values as values_lib


class LearnerState(NamedTuple):
  """All that learning keeps."""

  params: Any
  target_params: Any
  prior_params: Any
  target_prior_params: Any
  opt_state: Any
  bonus_state: Any
  num_updates: jax.Array


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
  sample: types.Sample, discount: float, ensemble_size: int, bonus_end: str
) -> Transitions:
  """Composes transitions from windows of n + 1 raw rows.

  Where the episode ends before n rows, the return stops there, and bootstraps from
  the episode's last observation (with discount 0 if it terminated).
  """
  rows = sample.rows
  n = rows["reward"].shape[1] - 1
  batch = jnp.arange(rows["reward"].shape[0])
  real = rows["mask"][:, :n]
  # Padding neither discounts nor pays.
  discounts = jnp.where(real > 0, discount * rows["discount"][:, :n], 1.0)
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
    r_t=jnp.sum(before[:, :n] * real * rows["reward"][:, :n], axis=1),
    discount_t=before[:, n],
    observation_t=observation_t,
    r_int=r_int,
    mask=mask,
  )


def _td_errors(
  target: str,
  q_tm1: jax.Array,
  q_t: jax.Array,
  q_t_selector: jax.Array,
  batch: Transitions,
) -> jax.Array:
  """TD errors `[M, B]` on the extrinsic reward, from values `[M, B, A]`."""
  over_batch = (0, 0, 0, 0, 0)
  over_members = (0, None, None, None, 0)
  arguments = (q_tm1, batch.a_tm1, batch.r_t, batch.discount_t, q_t)
  if target == "q_learning":
    return jax.vmap(jax.vmap(losses.q_learning, over_batch), over_members)(*arguments)
  return jax.vmap(jax.vmap(losses.double_q, (*over_batch, 0)), (*over_members, 0))(
    *arguments, q_t_selector
  )


def make_optimizer(config: config_lib.DQNConfig) -> optax.GradientTransformation:
  adam = optax.adam(config.learning_rate, b2=config.adam_b2, eps=config.adam_eps)
  if config.max_gradient_norm is None:
    return adam
  return optax.chain(optax.clip_by_global_norm(config.max_gradient_norm), adam)


def make_learner(
  config: config_lib.DQNConfig,
  values: networks.PriorQNetworks,
  bonus: bonuses.LearnerBonus | bonuses.ActorBonus,
) -> types.LearnerCore:
  """The LearnerCore of a config.

  The loss is `Σ_k m_k δ_k² / (2 M)`, averaged over the batch (paper 4, algorithm 2):
  δ_k is member k's TD error, on r + β r_int for those that see the bonus: the
  explorers, where there are any, and all members where there are none.
  """
  optimizer = make_optimizer(config)
  size, num_exploiters = config.ensemble_size, config.num_members
  # The bonus that is computed here: an actor's comes with the sample.
  own = bonus if isinstance(bonus, bonuses.LearnerBonus) else None
  sees_bonus = jnp.arange(size) >= (num_exploiters if config.num_explorers else 0)

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
    )

  def loss(
    params: Any, state: LearnerState, batch: Transitions, weights: jax.Array
  ) -> tuple[jax.Array, tuple[jax.Array, jax.Array, Any, jax.Array]]:
    q_tm1 = values.apply(params, state.prior_params, batch.observation_tm1)
    q_t = values.apply(
      state.target_params, state.target_prior_params, batch.observation_t
    )
    q_t_selector = q_t
    if config.target == "double_q":
      q_t_selector = values.apply(params, state.prior_params, batch.observation_t)
    td = _td_errors(config.target, q_tm1, q_t, q_t_selector, batch)

    if own is not None:
      inputs = bonuses.Inputs(
        td[:num_exploiters],
        q_tm1[:num_exploiters],
        batch.a_tm1,
        batch.observation_tm1,
        jnp.ones_like(batch.r_t),  # No window begins with padding.
      )
      inputs = jax.lax.stop_gradient(inputs)
      r_int, bonus_state = own.compute(state.bonus_state, inputs)
    else:
      r_int, bonus_state = batch.r_int, state.bonus_state
    # A target is linear in its reward, so that β r_int adds to the TD error.
    if config.beta > 0:
      td = td + config.beta * jnp.where(sees_bonus[:, None], r_int[None, :], 0.0)

    per_transition = jax.vmap(losses.bootstrapped_td, (1, 0))(td, batch.mask)
    return jnp.mean(weights * per_transition), (td, r_int, bonus_state, q_tm1)

  def update(
    state: LearnerState, sample: types.Sample
  ) -> tuple[LearnerState, types.LearnerOutput]:
    batch = n_step_transitions(sample, config.discount, size, bonus.end)
    weights = updates_lib.importance_weights(sample, config.importance_exponent)
    (value, (td, r_int, bonus_state, q_tm1)), gradients = jax.value_and_grad(
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
    metrics = {
      "loss": value,
      "finite": finite.astype(jnp.float32),
      "td_error": jnp.mean(jnp.abs(td)),
      "q": jnp.mean(q_tm1),
      "r_int": jnp.mean(r_int),
    }
    return state, types.LearnerOutput(jnp.mean(jnp.abs(td), axis=0), metrics)

  def params(state: LearnerState) -> values_lib.Weights:
    return values_lib.Weights(state.params, state.prior_params)

  return types.LearnerCore(init, update, params)
