"""The policy of a trained agent, for programs that do not train.

policy = explorax.load("results/cartpole")
policy.reset()
action = policy.act(observation)
"""

from collections.abc import Mapping
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import specs


class Policy:
  """An agent's evaluation policy, in one environment or in a batch of them.

  It acts as `python -m explorax.experiments.evaluate` does. What lasts between steps
  (the state of an LSTM, a random key) is carried from call to call in `state`; `reset`
  begins a new episode.

  Attributes:
    agent: its name.
    env: the name of the environment that it was trained in, `kind:name`.
    spec: of that environment: `spec.observations` and `spec.actions`.
    settings: of the run, as in its `config.json`.
    config: all settings of the agent, a frozen dataclass.
    weights: a pytree of arrays.
    state: between two steps, a pytree of arrays; None before the first step. A state
      that was read may be assigned again, to continue from it.
  """

  def __init__(self, agent: types.Agent, weights: types.Params, record: Any, seed: int):
    self.agent: str = record["agent"]
    self.env: str = record["env"]
    self.spec = agent.spec
    self.settings: dict[str, Any] = record
    self.config = agent.config
    self.weights = weights
    self.state: types.State | None = None
    self._encode = agent.encoding
    self._core = core = agent.actor(evaluation=True)
    # Schedules have reached their end.
    env_steps = np.int32(actor_lib.MAX_ENV_STEPS)
    self._params = types.ActorParams(jax.tree.map(jnp.asarray, weights), env_steps)
    self._key = jax.random.PRNGKey(seed)
    self._episode = 1
    self._batch_size: int | None = None  # Of `state`; None: a single environment.
    axes = (types.ActorParams(None, None), 0, 0)
    self._act = jax.jit(core.select_action)
    self._act_batch = jax.jit(jax.vmap(core.select_action, axes))
    if core.q_values is not None:
      self._q = jax.jit(core.q_values)
      self._q_batch = jax.jit(jax.vmap(core.q_values, axes))

  def __repr__(self) -> str:
    return f"<explorax.Policy of {self.agent} for {self.env}>"

  def reset(self) -> None:
    """Begins a new episode in each environment."""
    if self.state is not None:
      self.state = None
      self._episode += 1

  def act(
    self, observation: Any, reward: Any = 0.0, *, first: Any = None
  ) -> int | np.ndarray:
    """The action for an observation, or for a batch of them; advances `state`.

    Args:
      observation: as the environment returns it, of the shape of `spec.observations`;
        of a `Discrete` space, the number; of several arrays, the dict or tuple. Or a
        batch, with a leading axis `[B]`.
      reward: of the step before, or `[B]`, which networks with an LSTM see.
      first: whether an episode begins with the observation, or `[B]`; None: in the
        first call after `reset` or `load`.

    Returns:
      The number of the action, from 0; of a batch int32 `[B]`.

    Raises:
      ValueError: if the observation has another shape, or the batch another size than
        that of the last call.
    """
    timestep, state, batch_size = self._inputs(observation, reward, first)
    act = self._act if batch_size is None else self._act_batch
    action, self.state = act(self._params, timestep, state)
    self._batch_size = batch_size
    return int(action) if batch_size is None else np.asarray(action)

  def q_values(
    self, observation: Any, reward: Any = 0.0, *, first: Any = None
  ) -> np.ndarray:
    """The action values `[A]` for an observation, of a batch `[B, A]`.

    Of an ensemble it is the mean over its members; the greedy action maximises it.
    `state` stays: call it before `act`.

    Args:
      observation, reward, first: as for `act`.

    Raises:
      ValueError: as `act`.
      TypeError: if the agent has no action values.
    """
    if self._core.q_values is None:
      raise TypeError(f"the agent {self.agent} has no action values.")
    timestep, state, batch_size = self._inputs(observation, reward, first)
    q_values = self._q if batch_size is None else self._q_batch
    return np.asarray(q_values(self._params, timestep, state))

  def _inputs(
    self, observation: Any, reward: Any, first: Any
  ) -> tuple[dm_env.TimeStep, types.State, int | None]:
    """What the core takes, and the size of the batch."""
    spec = self.spec.observations
    has_parts = isinstance(spec, specs.JoinedArrays | specs.CategoricalImage)
    if has_parts and isinstance(observation, Mapping | tuple):
      observation = spec.join(observation)
    elif isinstance(observation, Mapping) and len(observation) == 1:
      (observation,) = observation.values()
    given = np.asarray(observation)
    if isinstance(spec, specs.OneHotArray) and given.ndim == 0:
      number, given = int(given), np.zeros(spec.shape, np.float32)
      if not 0 <= number - spec.start < given.size:
        raise ValueError(
          f"the observation is {number}; the agent of {self.env} takes {spec.start} to "
          f"{spec.start + given.size - 1}."
        )
      given.flat[number - spec.start] = 1.0
    is_batch = given.ndim == len(spec.shape) + 1
    if given.shape[is_batch:] != tuple(spec.shape):
      raise ValueError(
        f"the observation has the shape {given.shape}; the agent of {self.env} takes "
        f"{tuple(spec.shape)}, or a batch of such with a leading axis."
      )
    batch_size = len(given) if is_batch else None
    if self.state is not None and batch_size != self._batch_size:
      now, before = (
        "one observation" if size is None else f"a batch of {size}"
        for size in (batch_size, self._batch_size)
      )
      raise ValueError(
        f"this call has {now}, and the last one had {before}: call reset() first."
      )
    begins = self.state is None if first is None else first
    shape = () if batch_size is None else (batch_size,)
    begins = np.broadcast_to(np.asarray(begins, bool), shape)
    reward = np.broadcast_to(np.asarray(reward, np.float32), shape)
    encoded = (
      self._encode(given)
      if batch_size is None
      else np.stack([self._encode(each) for each in given])
    )
    first_type, mid_type = dm_env.StepType.FIRST, dm_env.StepType.MID
    timestep = dm_env.TimeStep(
      np.where(begins, np.int32(first_type), np.int32(mid_type)),
      np.where(begins, np.float32(0), reward),
      np.ones(shape, np.float32),
      encoded,
    )
    state = self._begun(batch_size) if self.state is None else self.state
    return timestep, state, batch_size

  def _begun(self, batch_size: int | None) -> types.State:
    """The state before the first step."""
    key = jax.random.fold_in(self._key, self._episode)
    if batch_size is None:
      return self._core.init(key, 0, 1)
    keys = jax.random.split(key, batch_size)
    return jax.vmap(lambda key: self._core.init(key, 0, 1))(keys)
