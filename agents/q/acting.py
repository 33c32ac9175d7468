"""The actor: a rule on the members' values, and the acting half of a bonus."""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration, networks
from explorax.agents import types, updates
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.q import config as config_lib
from explorax.agents.q import mixture, td_errors
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


@dataclasses.dataclass(frozen=True, eq=False)
class Actor:
  """The three functions of an ActorCore, for one policy.

  While acting, noise is drawn in each step and an epinet's index for each episode;
  `behaviour_prob` is the probability of the action given both.

  Attributes:
    config: the settings.
    values: the members.
    bonus: built from the config's, of which the acting half is computed here; None
      without one.
    num_actions: A.
    stored: names of the extras that replay needs.
    rule: of exploration, or of evaluation.
    evaluation: whether this is the evaluation policy.
  """

  config: config_lib.QConfig
  values: values_lib.Values
  bonus: bonus_types.IntrinsicReward | None
  num_actions: int
  stored: Collection[str]
  rule: exploration.Rule
  evaluation: bool

  @property
  def acting_half(self) -> bonus_types.Acting | None:
    return None if self.bonus is None else self.bonus.acting

  @property
  def is_recurrent(self) -> bool:
    return self.config.lstm_size > 0

  def init(
    self, key: jax.Array, actor_id: jax.Array | int, num_actors: int
  ) -> ActorState:
    config = self.config
    actor = exploration.ActorIndex(actor_id, num_actors)
    # The numbers of keys, here and below, with which published results were made.
    num_keys = 3 if config.learns_from_transitions else 2
    key = jax.random.fold_in(key, actor_id)
    key, rule_key = jax.random.split(key, num_keys)[:2]
    zero = jnp.float32(0)
    core_state = jnp.zeros((self.values.state_size,), jnp.float32)
    values_shape = (config.ensemble_size, self.num_actions)
    atoms = config.target.atoms
    num_atoms = 0 if atoms is None else atoms.size
    previous = Previous(core_state, jnp.int32(-1), zero)
    return ActorState(
      key=key,
      index_key=jnp.zeros_like(key) if self.values.has_index else (),
      assignment=mixture.assign(config, actor, self.evaluation),
      previous=previous if self.is_recurrent else (),
      rule_state=self.rule.init(rule_key, *values_shape, actor),
      bonus_state=() if self.acting_half is None else self.acting_half.init(),
      extras=self._extras(
        zero,
        behaviour_prob=jnp.float32(1),
        policy=jnp.int32(0),
        starts_episode=zero,
        previous_action=jnp.int32(-1),
        previous_reward=zero,
        previous_r_int=zero,
        core_state=core_state,
        q=jnp.zeros(values_shape, jnp.float32),
        logits=jnp.zeros((*values_shape, num_atoms), jnp.float32),
        bootstrap_mask=jnp.zeros((config.ensemble_size,), jnp.float32),
      ),
    )

  def select_action(
    self, params: types.ActorParams, timestep: dm_env.TimeStep, state: ActorState
  ) -> tuple[jax.Array, ActorState]:
    key, begin_key, select_key, mask_key = jax.random.split(state.key, 4)
    first = timestep.step_type == dm_env.StepType.FIRST
    begun = self._begin_episode(begin_key, state, params.env_steps)
    rule_state = self.rule.observe(timestep.reward, state.rule_state)
    state = updates.select_tree(first, begun, state._replace(rule_state=rule_state))

    weights: values_lib.Weights = params.weights
    prediction, core_state = self._evaluate(weights, timestep, state)
    action, prob, rule_state = self._act(
      select_key, prediction, state, params.env_steps
    )
    bonus_state, value = state.bonus_state, jnp.float32(0)
    if self.acting_half is not None:
      last = timestep.step_type == dm_env.StepType.LAST
      value, bonus_state = self.acting_half.observe(
        weights.bonus, bonus_state, jnp.asarray(timestep.observation), action, last
      )
    extras = {
      "behaviour_prob": prob,
      "policy": self.rule.policy(rule_state),
      **prediction._asdict(),
    }
    if self.config.num_policies > 1:
      extras["policy"] = state.assignment.policy
    previous = state.previous
    if self.is_recurrent:
      extras |= {
        "starts_episode": jnp.asarray(first, jnp.float32),
        "previous_action": previous.action,
        "previous_reward": jnp.asarray(timestep.reward, jnp.float32),
        "previous_r_int": previous.r_int,
        "core_state": previous.core_state,
      }
      previous = Previous(core_state, action, value)
    if "bootstrap_mask" in self.stored:
      shape = (self.config.ensemble_size,)
      mask = jax.random.bernoulli(mask_key, self.config.mask_prob, shape)
      extras["bootstrap_mask"] = mask.astype(jnp.float32)
    return action, state._replace(
      key=key,
      previous=previous,
      rule_state=rule_state,
      bonus_state=bonus_state,
      extras=self._extras(value, **extras),
    )

  def q_values(
    self, params: types.ActorParams, timestep: dm_env.TimeStep, state: ActorState
  ) -> jax.Array:
    """The exploiters' mean."""
    _, begin_key, _, _ = jax.random.split(state.key, 4)
    first = timestep.step_type == dm_env.StepType.FIRST
    begun = self._begin_episode(begin_key, state, params.env_steps)
    state = updates.select_tree(first, begun, state)
    prediction, _ = self._evaluate(params.weights, timestep, state)
    q = prediction.q[: self.config.num_members]
    return jnp.mean(td_errors.tx_pair(self.config).apply_inv(q), axis=0)

  def _begin_episode(
    self, key: jax.Array, state: ActorState, env_steps: jax.Array
  ) -> ActorState:
    config, rule_key, policy_key = self.config, key, key
    if config.num_policies > 1 or not config.learns_from_transitions:
      rule_key, policy_key = jax.random.split(key)
    begun = state._replace(
      rule_state=self.rule.begin_episode(rule_key, state.rule_state, env_steps)
    )
    if self.values.has_index:
      begun = begun._replace(index_key=_noise_key(state.key))
    if config.num_policies > 1:
      assignment = mixture.begin_episode(
        policy_key, state.assignment, config.num_policies
      )
      begun = begun._replace(assignment=assignment)
    if self.is_recurrent:
      core_state = jnp.zeros_like(state.previous.core_state)
      empty = Previous(core_state, jnp.int32(-1), jnp.float32(0))
      begun = begun._replace(previous=empty)
    half = self.acting_half
    if half is not None and half.begin_episode is not None:
      begun = begun._replace(bonus_state=half.begin_episode(state.bonus_state))
    return begun

  def _evaluate(
    self, weights: values_lib.Weights, timestep: dm_env.TimeStep, state: ActorState
  ) -> tuple[values_lib.Prediction, jax.Array]:
    """The members' prediction `[M, A, ...]`, and the recurrent state after the step."""
    has_policies = self.config.num_policies > 1
    policy = state.assignment.policy if has_policies else jnp.int32(0)
    inputs = [jnp.asarray(timestep.observation), policy]
    core_state = jnp.zeros((0,), jnp.float32)
    if self.is_recurrent:
      previous: Previous = state.previous
      core_state = previous.core_state
      reward = jnp.asarray(timestep.reward, jnp.float32)
      inputs += [previous.action, reward, previous.r_int]
    noise_key = _noise_key(state.key) if self.values.is_noisy else None
    if self.values.has_index:
      noise_key = state.index_key
    return _make_step(self.values)(weights, inputs, core_state, noise_key)

  def _act(
    self,
    key: jax.Array,
    prediction: values_lib.Prediction,
    state: ActorState,
    env_steps: jax.Array,
  ) -> tuple[jax.Array, jax.Array, Any]:
    """The action, its probability, and the rule's state."""
    q = td_errors.tx_pair(self.config).apply_inv(prediction.q)
    chosen = self.rule.select(key, q, state.rule_state, env_steps)
    random_steps = self.config.random_steps
    if self.evaluation or not random_steps:
      return chosen
    uniform_key = jax.random.fold_in(state.key, 5)
    uniform = jax.random.randint(uniform_key, (), 0, self.num_actions, jnp.int32)
    return updates.select_tree(
      env_steps < random_steps,
      (uniform, jnp.float32(1 / self.num_actions), state.rule_state),
      chosen,
    )

  def _extras(self, value: jax.Array, **columns: Any) -> dict[str, jax.Array]:
    """Of these columns those that are stored, and the acting half's value."""
    if self.bonus is not None and self.acting_half is not None:
      columns[self.bonus.column] = value
    kept = {"behaviour_prob", "policy", *self.stored}
    return {name: column for name, column in columns.items() if name in kept}


def make_actor(
  config: config_lib.QConfig,
  values: values_lib.Values,
  bonus: bonus_types.IntrinsicReward | None,
  num_actions: int,
  stored: Collection[str],
  evaluation: bool,
) -> types.ActorCore:
  """The ActorCore of a config; the arguments are those of `Actor`.

  The evaluation policy is the config's, or greedy on the exploiters' mean, up to
  `evaluation_epsilon`; without the noise of noisy networks, on the base network of an
  epinet, and without the bonus, unless the network sees it.
  """
  rule: exploration.Rule = config.exploration
  if evaluation:
    values = values._replace(is_noisy=False, has_index=False)
    greedy = exploration.Greedy(config.num_members)
    rule = config.evaluation or exploration.EpsilonGreedy(
      config.evaluation_epsilon, of=greedy
    )
    bonus = bonus if values.sees_r_int else None
  actor = Actor(config, values, bonus, num_actions, stored, rule, evaluation)
  return types.ActorCore(
    actor.init, actor.select_action, lambda state: state.extras, actor.q_values
  )


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
