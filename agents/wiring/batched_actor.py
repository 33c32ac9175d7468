"""An ActorCore in several environments at once: one inference for all of them."""

from collections.abc import Sequence
from typing import Any

import acme.core
import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types, updates
from explorax.agents.wiring import actor as actor_lib


class BatchedActor:
  """What `Actor` is in one environment, in E of them side by side.

  The environments may be at different places of their episodes; those that are not to
  act at a time are left as they are. It knows no adder: who steps the environments
  hands their rows on.

  Attributes:
    env_steps: those of the run, for the agent's schedules; set by whoever knows them.
  """

  def __init__(
    self,
    agent: types.Agent,
    core: types.ActorCore,
    variables: acme.core.VariableSource,
    key: jax.Array,
    actor_ids: Sequence[int],
    num_actors: int,
  ):
    """Begins in all environments.

    Args:
      agent: made for the environments' spec.
      core: of acting.
      variables: where the weights are.
      key: of the actors' random numbers.
      actor_ids: of each environment's actor, which a ladder of ε or a mixture of
        policies follows; E of them.
      num_actors: how many there are in all, these among them.
    """
    self._encode = agent.encoding
    self._refresh = None
    if agent.refresh is not None:
      self._refresh = jax.jit(jax.vmap(agent.refresh, (0, None)))
    self._variables = variables
    self._num_envs = len(actor_ids)
    self._state = jax.vmap(core.init, (0, 0, None))(
      jax.random.split(key, self._num_envs),
      jnp.asarray(actor_ids, jnp.int32),
      num_actors,
    )
    # What lasts for an episode makes the weights each environment's own, [E, ...].
    are_own = agent.refresh is not None
    select = jax.vmap(
      core.select_action, (types.ActorParams(0 if are_own else None, None), 0, 0)
    )
    keep_if = jax.vmap(updates.keep_if)

    def step(weights, own, env_steps, timesteps, acts, state):
      if are_own:
        begins = acts & (timesteps.step_type == dm_env.StepType.FIRST)
        own = jax.vmap(updates.keep_if, (0, None, 0))(begins, weights, own)
      params = types.ActorParams(own if are_own else weights, env_steps)
      action, new = select(params, timesteps, state)
      state = keep_if(acts, new, state)
      return action, jax.vmap(core.extras)(state), own, state

    self._step = jax.jit(step, donate_argnums=(1, 5))
    self._weights: Any = None
    self._own: types.Params = ()
    self.env_steps = 0

  def encoded(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    """A timestep of an environment, as `act` takes them."""
    return actor_lib.encoded(self._encode, timestep)

  def act(
    self, timesteps: Sequence[dm_env.TimeStep], acts: np.ndarray
  ) -> tuple[np.ndarray, list[dict[str, np.ndarray]]]:
    """Answers the newest timesteps of some environments.

    Args:
      timesteps: of all environments, encoded; E of them.
      acts: bool `[E]`, which of them are answered. A LAST timestep has to be shown once
        as well: there is nothing to do any more, but it has extras.

    Returns:
      The actions, int32 `[E]`, and each environment's extras; where it was not
      answered, the action means nothing, and the extras are those of its last answer.
    """
    if self._weights is None:
      self.update()
    stacked = jax.tree.map(lambda *each: np.stack(each), *timesteps)
    action, extras, self._own, self._state = self._step(
      self._weights, self._own, np.int32(self.env_steps), stacked, acts, self._state
    )
    extras = {name: np.asarray(values) for name, values in extras.items()}
    return np.asarray(action), [
      {name: values[env] for name, values in extras.items()}
      for env in range(self._num_envs)
    ]

  def update(self) -> None:
    """Takes newer weights; what lasts for an episode stays until it ends."""
    (fresh,) = self._variables.get_variables(["params"])
    if self._refresh is not None and self._weights is None:
      self._own = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (self._num_envs, *np.shape(x))), fresh
      )
    elif self._refresh is not None:
      self._own = self._refresh(self._own, fresh)
    self._weights = fresh
