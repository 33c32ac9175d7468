"""The actor: a rule on the members' values, and the acting half of a bonus."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration, networks
from explorax.agents import types, updates
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.q import config as config_lib
from explorax.agents.q import errors, mixture
from explorax.agents.q import values as values_lib


class Previous(NamedTuple):
  """What recurrent networks need of the last step.

  Attributes:
    core_state: `[H]`, of the network.
    action, r_int: a_{t−1} and r^i_{t−1}; −1 and 0 at an episode's start. Of a bonus
      with a learning half, whose r_int no network sees, it is the stored value.
  """

  core_state: jax.Array
  action: jax.Array
  r_int: jax.Array


class ActorState(NamedTuple):
  """The state between steps; parts that an agent does not have are `()`.

  Attributes:
    key: a random key.
    index_key: of an epinet's index.
    assignment: of a policy of a mixture.
    previous: of the last step.
    rule_state: of the exploration rule.
    bonus_state: of the acting half of a bonus.
    extras: what replay stores with the last row.
  """

  key: jax.Array
  index_key: Any
  assignment: Any
  previous: Any
  rule_state: Any
  bonus_state: Any
  extras: dict[str, jax.Array]


def make_actor(
  config: config_lib.QConfig,
  values: values_lib.Values,
  bonus: bonus_types.IntrinsicReward | None,
  num_actions: int,
  stored: Collection[str],
  evaluation: bool,
) -> types.ActorCore:
  """The ActorCore of a config.

  The evaluation policy is the config's, or greedy on the exploiters' mean, up to
  `evaluation_epsilon`; without the noise of noisy networks, and on the base network of
  an epinet. While acting, noise is drawn in each step and an epinet's index for each
  episode; `behaviour_prob` is the probability of the action given both.

  Args:
    config: the settings.
    values: the members.
    bonus: built from the config's; its acting half is computed here.
    num_actions: A.
    stored: names of the extras that replay needs.
    evaluation: whether this is the evaluation policy.
  """
  rule: exploration.Rule = config.exploration
  if evaluation:
    greedy = exploration.Greedy(config.num_members)
    rule = config.evaluation or exploration.EpsilonGreedy(
      config.evaluation_epsilon, of=greedy
    )
  random_steps = 0 if evaluation else config.random_steps
  is_noisy = values.is_noisy and not evaluation
  has_index = values.has_index and not evaluation
  # Evaluation has no bonus, unless it is an input of the network.
  acting_bonus = None
  if bonus is not None and (values.sees_r_int or not evaluation):
    acting_bonus = bonus.acting
  is_recurrent = config.lstm_size > 0
  tx = errors.tx_pair(config)
  step_once = _make_step(values)

  def make_extras(value: jax.Array, **columns: Any) -> dict[str, jax.Array]:
    """Of these columns those that are stored, and the acting half's value."""
    if bonus is not None and acting_bonus is not None:
      columns[bonus.column] = value
    kept = {"behaviour_prob", "policy", *stored}
    return {name: column for name, column in columns.items() if name in kept}

  def draw_mask(key: jax.Array) -> jax.Array:
    mask = jax.random.bernoulli(key, config.mask_prob, (config.ensemble_size,))
    return mask.astype(jnp.float32)

  def init(key: jax.Array, actor_id: int, num_actors: int) -> ActorState:
    actor = exploration.ActorIndex(actor_id, num_actors)
    # The numbers of keys, here and below, with which published results were made.
    num_keys = 3 if config.has_single_rows else 2
    key = jax.random.fold_in(key, actor_id)
    key, rule_key = jax.random.split(key, num_keys)[:2]
    zero = jnp.float32(0)
    core_state = jnp.zeros((values.state_size,), jnp.float32)
    members = jnp.zeros((config.ensemble_size,), jnp.float32)
    values_shape = (config.ensemble_size, num_actions)
    atoms = config.target.atoms
    previous = Previous(core_state, jnp.int32(-1), zero)
    return ActorState(
      key=key,
      index_key=jnp.zeros_like(key) if has_index else (),
      assignment=mixture.assign(config, actor, evaluation),
      previous=previous if is_recurrent else (),
      rule_state=rule.init(rule_key, config.ensemble_size, num_actions, actor),
      bonus_state=() if acting_bonus is None else acting_bonus.init(),
      extras=make_extras(
        zero,
        behaviour_prob=jnp.float32(1),
        policy=jnp.int32(0),
        starts_episode=zero,
        previous_action=jnp.int32(-1),
        previous_reward=zero,
        previous_r_int=zero,
        core_state=core_state,
        q=jnp.zeros(values_shape, jnp.float32),
        logits=jnp.zeros(
          (*values_shape, 0 if atoms is None else atoms.size), jnp.float32
        ),
        bootstrap_mask=members,
      ),
    )

  def begin_episode(
    key: jax.Array, state: ActorState, env_steps: jax.Array
  ) -> ActorState:
    rule_key = policy_key = key
    if config.num_policies > 1 or not config.has_single_rows:
      rule_key, policy_key = jax.random.split(key)
    begun = state._replace(
      rule_state=rule.begin_episode(rule_key, state.rule_state, env_steps)
    )
    if has_index:
      begun = begun._replace(index_key=_noise_key(state.key))
    if config.num_policies > 1:
      assignment = mixture.begin_episode(
        policy_key, state.assignment, config.num_policies
      )
      begun = begun._replace(assignment=assignment)
    if is_recurrent:
      core_state = jnp.zeros_like(state.previous.core_state)
      empty = Previous(core_state, jnp.int32(-1), jnp.float32(0))
      begun = begun._replace(previous=empty)
    if acting_bonus is not None and acting_bonus.begin_episode is not None:
      begun = begun._replace(bonus_state=acting_bonus.begin_episode(state.bonus_state))
    return begun

  def evaluate(
    weights: values_lib.Weights, timestep: dm_env.TimeStep, state: ActorState
  ) -> tuple[values_lib.Prediction, jax.Array]:
    """The members' prediction `[M, A, ...]`, and the recurrent state after the step."""
    policy = state.assignment.policy if config.num_policies > 1 else jnp.int32(0)
    inputs = [jnp.asarray(timestep.observation), policy]
    core_state = jnp.zeros((0,), jnp.float32)
    if is_recurrent:
      previous: Previous = state.previous
      core_state = previous.core_state
      reward = jnp.asarray(timestep.reward, jnp.float32)
      inputs += [previous.action, reward, previous.r_int]
    noise_key = state.index_key if has_index else None
    if is_noisy and not has_index:
      noise_key = _noise_key(state.key)
    return step_once(weights, inputs, core_state, noise_key)

  def select_action(
    params: types.ActorParams, timestep: dm_env.TimeStep, state: ActorState
  ) -> tuple[jax.Array, ActorState]:
    key, begin_key, select_key, mask_key = jax.random.split(state.key, 4)
    first = timestep.step_type == dm_env.StepType.FIRST
    begun = begin_episode(begin_key, state, params.env_steps)
    rule_state = rule.observe(timestep.reward, state.rule_state)
    state = updates.keep_if(first, begun, state._replace(rule_state=rule_state))

    weights: values_lib.Weights = params.weights
    prediction, core_state = evaluate(weights, timestep, state)
    action, prob, rule_state = rule.select(
      select_key, tx.apply_inv(prediction.q), state.rule_state, params.env_steps
    )
    if random_steps:
      uniform_key = jax.random.fold_in(state.key, 5)
      uniform = jax.random.randint(uniform_key, (), 0, num_actions, jnp.int32)
      action, prob, rule_state = updates.keep_if(
        params.env_steps < random_steps,
        (uniform, jnp.float32(1 / num_actions), state.rule_state),
        (action, prob, rule_state),
      )
    bonus_state, value = state.bonus_state, jnp.float32(0)
    if acting_bonus is not None:
      last = timestep.step_type == dm_env.StepType.LAST
      value, bonus_state = acting_bonus.observe(
        weights.bonus, bonus_state, jnp.asarray(timestep.observation), action, last
      )
    extras = {
      "behaviour_prob": prob,
      "policy": rule.policy(rule_state),
      **prediction._asdict(),
    }
    if config.num_policies > 1:
      extras["policy"] = state.assignment.policy
    previous = state.previous
    if is_recurrent:
      extras |= {
        "starts_episode": jnp.asarray(first, jnp.float32),
        "previous_action": previous.action,
        "previous_reward": jnp.asarray(timestep.reward, jnp.float32),
        "previous_r_int": previous.r_int,
        "core_state": previous.core_state,
      }
      previous = Previous(core_state, action, value)
    if "bootstrap_mask" in stored:
      extras["bootstrap_mask"] = draw_mask(mask_key)
    return action, state._replace(
      key=key,
      previous=previous,
      rule_state=rule_state,
      bonus_state=bonus_state,
      extras=make_extras(value, **extras),
    )

  def q_values(
    params: types.ActorParams, timestep: dm_env.TimeStep, state: ActorState
  ) -> jax.Array:
    """The exploiters' mean."""
    _, begin_key, _, _ = jax.random.split(state.key, 4)
    first = timestep.step_type == dm_env.StepType.FIRST
    begun = begin_episode(begin_key, state, params.env_steps)
    state = updates.keep_if(first, begun, state)
    prediction, _ = evaluate(params.weights, timestep, state)
    return jnp.mean(tx.apply_inv(prediction.q[: config.num_members]), axis=0)

  return types.ActorCore(init, select_action, lambda state: state.extras, q_values)


def _make_step(values: values_lib.Values) -> Callable[..., Any]:
  """The members at one step of one environment, or of several under `vmap`.

  (weights, the fields of `StepInputs` without leading axes, core state `[H]`, noise
  key) → (prediction `[M, A, ...]`, core state). Under `vmap` over environments that
  share weights and noise, these are the rows of one batch: a single row costs a network
  as much as two (`networks.lift`).
  """

  def unroll(
    weights: values_lib.Weights, inputs: Any, core_state: jax.Array, key: Any
  ) -> tuple[values_lib.Prediction, jax.Array]:
    """Inputs `[E, ...]` and core states `[E, H]` → `[M, E, A, ...]` and `[E, H]`."""
    steps = networks.StepInputs(*(x[:, None] for x in inputs))
    prediction, core_state = values.unroll(weights, steps, core_state, key)
    return jax.tree.map(lambda x: x[:, :, 0], prediction), core_state

  @jax.custom_batching.custom_vmap
  def step(
    weights: values_lib.Weights, inputs: Any, core_state: jax.Array, key: Any
  ) -> tuple[values_lib.Prediction, jax.Array]:
    one, states = jax.tree.map(lambda x: x[None], (inputs, core_state))
    prediction, core_states = unroll(weights, one, states, key)
    return jax.tree.map(lambda x: x[:, 0], prediction), core_states[0]

  @step.def_vmap
  def step_many(
    size: int,
    is_batched: Any,
    weights: values_lib.Weights,
    inputs: Any,
    core_state: jax.Array,
    key: Any,
  ) -> Any:
    of_weights, of_inputs, of_state, of_key = is_batched
    if any(jax.tree.leaves((of_weights, of_key))):
      axes = jax.tree.map(lambda batched: 0 if batched else None, is_batched)
      result = jax.vmap(step.fun, axes)(weights, inputs, core_state, key)
      return result, jax.tree.map(lambda _: True, result)
    inputs, core_state = jax.tree.map(
      lambda batched, x: x if batched else jnp.broadcast_to(x, (size, *x.shape)),
      (of_inputs, of_state),
      (inputs, core_state),
    )
    prediction, core_states = unroll(weights, inputs, core_state, key)
    prediction = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0), prediction)
    result = prediction, core_states
    return result, jax.tree.map(lambda _: True, result)

  return step


def _noise_key(key: jax.Array) -> jax.Array:
  """The key of a step's noise; an epinet's index keeps an episode's first one."""
  return jax.random.fold_in(key, 4)
