"""The actor: a recurrent network, an exploration rule on its values, and a bonus."""

from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration, networks
from explorax.agents import engine, types, updates
from explorax.agents.bonuses import scaling
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.r2d2 import config as config_lib
from explorax.agents.r2d2 import learning


class ActorState(NamedTuple):
  """The state between steps.

  Attributes:
    key: a random key.
    actor: which of the actors this is.
    core_state: `[S]`, of the network.
    previous_action, previous_r_int: a_{t−1} and r^i_{t−1}; −1 and 0 at an episode's
      start.
    previous_q: `[M]`, Q_m(x_{t−1}, a_{t−1}).
    policy: int32 `[]`, the index of the policy in a mixture.
    rule_state: of the exploration rule.
    bonus_state: of an actor's bonus.
    extras: what replay stores with the last row.
  """

  key: jax.Array
  actor: exploration.ActorIndex
  core_state: jax.Array
  previous_action: jax.Array
  previous_r_int: jax.Array
  previous_q: jax.Array
  policy: jax.Array
  rule_state: Any
  bonus_state: Any
  extras: dict[str, jax.Array]


def make_actor(
  config: config_lib.R2D2Config,
  values: networks.SequenceQNetworks,
  bonus: bonus_types.LearnerBonus | bonus_types.ActorBonus | None,
  num_actions: int,
  evaluation: bool,
) -> types.ActorCore:
  """The ActorCore of a config.

  Actor j follows policy j mod N of a mixture; with fewer actors than policies, each
  actor draws one per episode. For evaluation, it is `evaluation_policy`.
  """
  rule: exploration.Rule = config.exploration
  if evaluation:
    rule = config.evaluation or exploration.EpsilonGreedy(
      config.evaluation_epsilon, of=exploration.Greedy(config.num_members)
    )
  # A bonus that is an input of the network is also computed in evaluation.
  own = bonus if isinstance(bonus, bonus_types.ActorBonus) else None
  tx = learning.tx_pair(config)
  betas = learning.betas_at(config, jnp.int32(0))
  discounts = learning.make_discounts(config)
  stores_td = config.priority_exponent > 0

  def draw_policy(key: jax.Array, actor: exploration.ActorIndex) -> jax.Array:
    if evaluation:
      return jnp.int32(config.evaluation_policy % config.num_policies)
    drawn = jax.random.randint(key, (), 0, config.num_policies)
    assigned = jnp.asarray(actor.actor_id, jnp.int32) % config.num_policies
    return jnp.where(actor.num_actors >= config.num_policies, assigned, drawn)

  def init(key: jax.Array, actor_id: int, num_actors: int) -> ActorState:
    key, rule_key = jax.random.split(jax.random.fold_in(key, actor_id))
    actor = exploration.ActorIndex(jnp.int32(actor_id), jnp.int32(num_actors))
    zero = jnp.float32(0)
    core_state = jnp.zeros((values.state_size,), jnp.float32)
    extras = {
      "behaviour_prob": jnp.float32(1),
      "policy": jnp.int32(0),
      "starts_episode": zero,
      "previous_action": jnp.int32(-1),
      "previous_reward": zero,
      "previous_r_int": zero,
      "core_state": core_state,
    }
    if own is not None:
      extras["r_int"] = zero
    if stores_td:
      extras["td_error"] = zero
    mask = jnp.ones((config.ensemble_size,), jnp.float32)
    if config.mask_prob < 1:
      extras["bootstrap_mask"] = mask
    return ActorState(
      key=key,
      actor=actor,
      core_state=core_state,
      previous_action=jnp.int32(-1),
      previous_r_int=zero,
      previous_q=jnp.zeros((config.ensemble_size,), jnp.float32),
      policy=jnp.int32(0),
      rule_state=rule.init(rule_key, config.ensemble_size, num_actions, actor),
      bonus_state=() if own is None else own.init(),
      extras=extras,
    )

  def begin_episode(
    key: jax.Array, state: ActorState, env_steps: jax.Array
  ) -> ActorState:
    rule_key, policy_key = jax.random.split(key)
    return state._replace(
      core_state=jnp.zeros_like(state.core_state),
      previous_action=jnp.int32(-1),
      previous_r_int=jnp.float32(0),
      policy=draw_policy(policy_key, state.actor),
      rule_state=rule.begin_episode(rule_key, state.rule_state, env_steps),
      bonus_state=() if own is None else own.begin_episode(state.bonus_state),
    )

  def td_error(
    q: jax.Array, timestep: dm_env.TimeStep, state: ActorState, r_int: jax.Array
  ) -> jax.Array:
    """|δ| of the transition into x_t, one step, averaged over members: `[]`.

        δ = h(r + β r_int + γ discount_t max_a h⁻¹(Q(x_t, a))) − Q(x_{t−1}, a_{t−1})

    The learner's errors are multi-step, use the target network at x_t, and include the
    learner's bonuses; an actor uses these instead. If β is a schedule, its first value
    is used.
    """
    reward = config.reward_scale * learning.clip(timestep.reward, config.max_abs_reward)
    rewards = jnp.broadcast_to(reward, (config.ensemble_size,))
    if own is not None and config.beta:
      moved = r_int if own.end == "destination" else state.previous_r_int
      beta = betas[state.policy]
      rewards += scaling.scaled_bonus(moved, beta, engine.sees_bonus(config))
    value = jnp.max(tx.apply_inv(q), axis=-1)
    gamma = discounts[state.policy] * timestep.discount
    return jnp.mean(jnp.abs(tx.apply(rewards + gamma * value) - state.previous_q))

  def select_action(
    params: types.ActorParams, timestep: dm_env.TimeStep, state: ActorState
  ) -> tuple[jax.Array, ActorState]:
    key, begin_key, select_key, mask_key = jax.random.split(state.key, 4)
    first = timestep.step_type == dm_env.StepType.FIRST
    last = timestep.step_type == dm_env.StepType.LAST
    begun = begin_episode(begin_key, state, params.env_steps)
    resumed = state._replace(rule_state=rule.observe(timestep.reward, state.rule_state))
    state = updates.keep_if(first, begun, resumed)

    weights: learning.Weights = params.weights
    observation = jnp.asarray(timestep.observation)
    reward = jnp.asarray(timestep.reward, jnp.float32)
    inputs = networks.StepInputs(
      observation,
      state.previous_action,
      reward,
      state.previous_r_int,
      state.policy,
    )
    q, core_state = values.unroll(
      weights.params,
      weights.prior_params,
      jax.tree.map(lambda x: x[None, None], inputs),
      state.core_state[None],
    )
    action, prob, rule_state = rule.select(
      select_key, tx.apply_inv(q[:, 0, 0]), state.rule_state, params.env_steps
    )
    bonus_state, r_int = state.bonus_state, jnp.float32(0)
    if own is not None:
      r_int, bonus_state = own.observe(
        weights.bonus, bonus_state, observation, action, last
      )
    policy = state.policy if config.num_policies > 1 else rule.policy(rule_state)
    extras = {
      "behaviour_prob": prob,
      "policy": policy,
      "starts_episode": jnp.asarray(first, jnp.float32),
      "previous_action": state.previous_action,
      "previous_reward": reward,
      "previous_r_int": state.previous_r_int,
      "core_state": state.core_state,
    }
    if own is not None:
      extras["r_int"] = r_int
    if stores_td:
      extras["td_error"] = jnp.where(
        first, 0.0, td_error(q[:, 0, 0], timestep, state, r_int)
      )
    if config.mask_prob < 1:
      mask = jax.random.bernoulli(mask_key, config.mask_prob, (config.ensemble_size,))
      extras["bootstrap_mask"] = mask.astype(jnp.float32)
    return action, ActorState(
      key=key,
      actor=state.actor,
      core_state=core_state[0],
      previous_action=action,
      previous_r_int=r_int,
      previous_q=q[:, 0, 0, action],
      policy=state.policy,
      rule_state=rule_state,
      bonus_state=bonus_state,
      extras=extras,
    )

  return types.ActorCore(init, select_action, lambda state: state.extras)
