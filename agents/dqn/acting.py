"""The actor: an exploration rule applied to the members' values."""

from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration
from explorax.agents import types, updates
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.dqn import config as config_lib
from explorax.agents.dqn import values as values_lib


class ActorState(NamedTuple):
  """The state between steps.

  index_key is the key of an epinet's index, and `()` if there is none.
  """

  key: jax.Array
  index_key: Any
  rule_state: Any
  bonus_state: Any
  extras: dict[str, jax.Array]


def make_actor(
  config: config_lib.DQNConfig,
  values: values_lib.Values,
  bonus: bonus_types.LearnerBonus | bonus_types.ActorBonus | None,
  num_actions: int,
  evaluation: bool,
) -> types.ActorCore:
  """The ActorCore of a config.

  The evaluation policy is greedy on the exploiters' mean, up to `evaluation_epsilon`,
  without the noise of noisy networks, and on the base network of an epinet. While
  acting, noise is drawn in each step and an epinet's index for each episode;
  `behaviour_prob` is the probability of the action given both.
  """
  rule: exploration.Rule = config.exploration
  if evaluation:
    greedy = exploration.Greedy(config.num_members)
    rule = exploration.EpsilonGreedy(config.evaluation_epsilon, of=greedy)
  random_steps = 0 if evaluation else config.random_steps
  is_noisy = values.is_noisy and not evaluation
  has_index = values.has_index and not evaluation
  # An actor's bonus; evaluation has none.
  own = bonus if isinstance(bonus, bonus_types.ActorBonus) and not evaluation else None

  def make_extras(
    key: jax.Array, prob: jax.Array, policy: jax.Array, r_int: jax.Array
  ) -> dict[str, jax.Array]:
    extras = {"behaviour_prob": prob, "policy": policy}
    if config.mask_prob < 1:
      shape = (config.ensemble_size,)
      mask = jax.random.bernoulli(key, config.mask_prob, shape)
      extras["bootstrap_mask"] = mask.astype(jnp.float32)
    if own is not None:
      extras["r_int"] = r_int
    return extras

  def init(key: jax.Array, actor_id: int, num_actors: int) -> ActorState:
    actor = exploration.ActorIndex(actor_id, num_actors)
    key, rule_key, mask_key = jax.random.split(jax.random.fold_in(key, actor_id), 3)
    return ActorState(
      key=key,
      index_key=jnp.zeros_like(key) if has_index else (),
      rule_state=rule.init(rule_key, config.ensemble_size, num_actions, actor),
      bonus_state=() if own is None else own.init(),
      extras=make_extras(mask_key, jnp.float32(1), jnp.int32(0), jnp.float32(0)),
    )

  def select_action(
    params: types.ActorParams, timestep: dm_env.TimeStep, state: ActorState
  ) -> tuple[jax.Array, ActorState]:
    key, begin_key, select_key, mask_key = jax.random.split(state.key, 4)
    first = timestep.step_type == dm_env.StepType.FIRST
    begun = rule.begin_episode(begin_key, state.rule_state, params.env_steps)
    observed = rule.observe(timestep.reward, state.rule_state)
    rule_state = updates.keep_if(first, begun, observed)

    weights = params.weights
    observation = jnp.asarray(timestep.observation)
    noise_key = jax.random.fold_in(state.key, 4) if is_noisy else None
    index_key = state.index_key
    if has_index:
      noise_key = index_key = updates.keep_if(first, noise_key, index_key)
    prediction = values.apply(
      weights.params, weights.prior_params, observation[None], noise_key
    )
    selected = rule.select(select_key, prediction.q[:, 0], rule_state, params.env_steps)
    if random_steps:
      uniform_key = jax.random.fold_in(state.key, 5)
      action = jax.random.randint(uniform_key, (), 0, num_actions, jnp.int32)
      drawn = (action, jnp.float32(1 / num_actions), rule_state)
      selected = updates.keep_if(params.env_steps < random_steps, drawn, selected)
    action, prob, rule_state = selected
    bonus_state, r_int = state.bonus_state, jnp.float32(0)
    if own is not None:
      last = timestep.step_type == dm_env.StepType.LAST
      begun_bonus = own.begin_episode(bonus_state)
      bonus_state = updates.keep_if(first, begun_bonus, bonus_state)
      r_int, bonus_state = own.observe((), bonus_state, observation, action, last)
    extras = make_extras(mask_key, prob, rule.policy(rule_state), r_int)
    return action, ActorState(key, index_key, rule_state, bonus_state, extras)

  return types.ActorCore(init, select_action, lambda state: state.extras)
