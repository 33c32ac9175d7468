"""An agent in environments written in JAX, as one program on the device.

The functions of the agent (`device_agent.py`) and of the environment are scanned over
time and vmapped over seeds. `device.py` is the host's part.
"""

import functools
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp

from explorax.agents import types, updates
from explorax.environments import jax_types
from explorax.experiments.runners import core, device_agent

# Bounds the denominator of updates per step, and with it the length of a round.
_MAX_STEPS_PER_ROUND = 1000


class Report(NamedTuple):
  """What the device reports after some rounds.

  Attributes:
    episodes: `[steps, (S,) E]`.
    update: the last of these rounds, counted from 1, `[(S), ...]`.
  """

  episodes: device_agent.Episodes
  update: device_agent.Update


# The compiled functions of this many programs are kept.
_MAX_PROGRAMS = 8


class Program:
  """An agent in an environment, as functions of the states of S seeds.

  A single seed has no axis of its own: a batch of one is slower on a CPU.
  `make_program` returns the same program for the same arguments.
  """

  def __init__(
    self,
    agent: types.Agent,
    environment: jax_types.Environment,
    num_envs: int,
    num_seeds: int,
    params_per_seed: bool = False,
  ):
    """Prepares the program; nothing is compiled yet.

    Args:
      agent: made for the environment's spec.
      environment: written in JAX.
      num_envs: E, environments of each seed, each with an actor.
      num_seeds: S.
      params_per_seed: whether each seed has its own parameters of the environment,
        with a leading axis of S > 1.
    """
    self._agent = device_agent.DeviceAgent(agent, num_envs)
    self._environment = environment
    self.num_envs = num_envs
    self._lift = jax.vmap if num_seeds > 1 else lambda function: function
    # A round: steps of each environment, then updates.
    ratio = core.updates_per_step(
      agent.replay, num_envs, _MAX_STEPS_PER_ROUND, device_agent.MAX_UPDATES
    )
    self.updates_per_round, self.steps_per_round = ratio.as_integer_ratio()
    init = self._init
    if num_seeds > 1:
      init = jax.vmap(init, (0, 0 if params_per_seed else None))
    # (key, or S > 1 keys `[S, ...]`; the environment's parameters) → the first state.
    self.init = jax.jit(init)
    self.act = jax.jit(self._act_only, static_argnums=1, donate_argnums=0)
    self.learn = jax.jit(self._rounds, static_argnums=1, donate_argnums=0)

  def _init(self, key: jax.Array, params: jax_types.Params) -> device_agent.State:
    """The state before the first step, of one seed."""
    learner_key, actor_key, reset_key, key = jax.random.split(key, 4)
    # The state is donated, and the parameters are the caller's.
    params = jax.tree.map(jnp.copy, params)
    environments, timesteps = self._reset(reset_key, params)
    metrics = self._metrics(environments, params)
    state = self._agent.init(learner_key, actor_key, key, timesteps, metrics)
    return state._replace(environments=environments, params=params)

  def _act_only(
    self, state: device_agent.State, num_steps: int
  ) -> tuple[device_agent.State, device_agent.Episodes]:
    """Steps without learning: (state, `Episodes` `[num_steps, ...]`)."""
    return jax.lax.scan(lambda s, _: self._step(s), state, length=num_steps)

  def _rounds(
    self, state: device_agent.State, num_rounds: int
  ) -> tuple[device_agent.State, Report]:
    """Rounds of steps and updates."""

    def one_round(carry: Any, _: None) -> tuple[Any, device_agent.Episodes]:
      state, update = carry
      state, episodes = self._act_only(state, self.steps_per_round)
      state, update = jax.lax.scan(
        lambda c, _: (self._lift(self._agent.update)(*c), None),
        (state, update),
        length=self.updates_per_round,
      )[0]
      state = self._lift(lambda s: self._agent.fetch(s, self.steps_per_round))(state)
      return (state, update), episodes

    carry = state, self._lift(self._agent.no_update)(state)
    (state, update), episodes = jax.lax.scan(one_round, carry, length=num_rounds)
    episodes = jax.tree.map(lambda x: jnp.reshape(x, (-1, *x.shape[2:])), episodes)
    return state, Report(episodes, update)

  def _step(
    self, state: device_agent.State
  ) -> tuple[device_agent.State, device_agent.Episodes]:
    """One step of all environments; ended episodes restart."""
    state = self._lift(self._act)(state)
    # Outside the functions of one seed: under vmap, both branches would be computed.
    return jax.lax.cond(
      jnp.any(state.episodes.ended),
      self._lift(self._end_episodes),
      lambda s: (s, s.episodes),
      state,
    )

  def _act(self, state: device_agent.State) -> device_agent.State:
    """Chooses actions, steps the environments, and stores the rows."""
    key, step_key = jax.random.split(state.key)
    action, state = self._agent.choose(state)
    environments, timesteps = jax.vmap(self._environment.step, (0, 0, 0, None))(
      jax.random.split(step_key, self.num_envs),
      state.environments,
      action,
      state.params,
    )
    state = state._replace(environments=environments, key=key)
    return self._agent.observe(state, action, self._agent.encoded(timesteps))

  def _end_episodes(
    self, state: device_agent.State
  ) -> tuple[device_agent.State, device_agent.Episodes]:
    """Resets the environments whose episodes have ended."""
    key, reset_key = jax.random.split(state.key)
    # A seed must not depend on the episodes of other seeds.
    key = updates.keep_if(jnp.any(state.episodes.ended), key, state.key)
    environments, first = self._reset(reset_key, state.params)
    metrics = self._metrics(state.environments, state.params)
    environments = jax.vmap(updates.keep_if)(
      state.episodes.ended, environments, state.environments
    )
    state, episodes = self._agent.end_episodes(state, first, metrics)
    return state._replace(environments=environments, key=key), episodes

  def _reset(
    self, key: jax.Array, params: jax_types.Params
  ) -> tuple[jax_types.State, dm_env.TimeStep]:
    reset = jax.vmap(self._environment.reset, (0, None))
    environments, timesteps = reset(jax.random.split(key, self.num_envs), params)
    return environments, self._agent.encoded(timesteps)

  def _metrics(
    self, environments: jax_types.State, params: jax_types.Params
  ) -> dict[str, jax.Array]:
    metrics = jax.vmap(self._environment.metrics, (0, None))
    return metrics(environments, params)


make_program = functools.lru_cache(_MAX_PROGRAMS)(Program)
