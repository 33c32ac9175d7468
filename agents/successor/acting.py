"""The actor: greedy in ψᵀw, where w is drawn from the posterior for each episode."""

from typing import NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax import exploration
from explorax.agents import types
from explorax.agents.successor import config as config_lib
from explorax.agents.successor import features as features_lib


class ActorState(NamedTuple):
  """The state between steps.

  Attributes:
    key: a random key.
    weights: w `[D]`, for this episode.
    extras: what replay may store with the last row.
  """

  key: jax.Array
  weights: jax.Array
  extras: dict[str, jax.Array]


def make_actor(
  config: config_lib.SuccessorConfig, features: features_lib.Features, evaluation: bool
) -> types.ActorCore:
  """The ActorCore of a config; for evaluation w is the posterior's mean.

  Args:
    config: the settings.
    features: the networks of φ and ψ.
    evaluation: whether this is the evaluation policy, which is ε-greedy with
      `evaluation_epsilon`.
  """
  epsilon = config.evaluation_epsilon if evaluation else 0.0
  rule = exploration.EpsilonGreedy(epsilon)

  def make_extras(prob: jax.Array) -> dict[str, jax.Array]:
    return {"behaviour_prob": prob, "policy": jnp.int32(0)}

  def init(key: jax.Array, actor_id: int, num_actors: int) -> ActorState:
    return ActorState(
      key=jax.random.fold_in(key, actor_id),
      weights=jnp.zeros((config.feature_size,), jnp.float32),
      extras=make_extras(jnp.float32(1)),
    )

  def select_action(
    params: types.ActorParams, timestep: dm_env.TimeStep, state: ActorState
  ) -> tuple[jax.Array, ActorState]:
    key, draw_key, select_key = jax.random.split(state.key, 3)
    psi_params, posterior = params.weights
    if evaluation:
      weights = posterior.mean
    else:
      first = timestep.step_type == dm_env.StepType.FIRST
      drawn = exploration.sample_weights(draw_key, posterior)
      weights = jnp.where(first, drawn, state.weights)
    psi = features.psi.apply(psi_params, jnp.asarray(timestep.observation)[None])
    q = psi @ weights
    # Its state is this actor's position on a ladder of ε, which is not used here.
    rule_state = rule.init(select_key, *q.shape)
    action, prob, _ = rule.select(select_key, q, rule_state, params.env_steps)
    return action, ActorState(key, weights, make_extras(prob))

  def q_values(
    params: types.ActorParams, timestep: dm_env.TimeStep, state: ActorState
  ) -> jax.Array:
    """ψᵀw for the posterior's mean."""
    psi_params, posterior = params.weights
    psi = features.psi.apply(psi_params, jnp.asarray(timestep.observation)[None])
    return (psi @ posterior.mean)[0]

  return types.ActorCore(init, select_action, lambda state: state.extras, q_values)
