"""An ActorCore as an `acme.core.Actor`."""

from typing import Any

import acme.core
import dm_env
import jax
import numpy as np

from explorax.agents import types
from explorax.agents.wiring import adder as adder_lib


class Actor(acme.core.Actor):
  """Acts with a core in one environment, and hands what it sees to an adder.

  Acme's loop gives `select_action` the observation alone; the core wants the whole
  timestep, so it is kept from `observe_first` and `observe`.
  """

  def __init__(
    self,
    agent: types.Agent,
    core: types.ActorCore,
    variables: acme.core.VariableSource,
    key: jax.Array,
    adder: adder_lib.WindowAdder | None = None,
    actor_id: int = 0,
    num_actors: int = 1,
  ):
    self._encode = agent.encoding
    self._period = agent.actor_update_period
    self._variables = variables
    self._adder = adder
    self._state = core.init(key, actor_id, num_actors)

    def step(params, timestep, state):
      action, state = core.select_action(params, timestep, state)
      return action, core.extras(state), state

    # The state may be large (a table of counts): it is updated in place.
    self._step = jax.jit(step, donate_argnums=2)
    self._timestep: dm_env.TimeStep | None = None
    self._extras: dict[str, Any] = {}
    self._weights: types.Params = None
    self.env_steps = 0
    self.policy = 0

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode."""
    self._timestep = self._encoded(timestep)
    if self._adder is not None:
      self._adder.add_first(self._timestep)

  def select_action(self, observation: Any) -> np.int32:
    """The action for the observation last given to `observe_first` or `observe`."""
    del observation  # The same as the kept timestep's.
    action = self._advance()
    self.policy = int(self._extras["policy"])
    return np.int32(action)

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    """Takes what the environment answered; a LAST timestep is shown to the core."""
    self._timestep = self._encoded(next_timestep)
    self.env_steps += 1
    if self._adder is not None:
      self._adder.add(action, self._timestep, self._extras)
    if next_timestep.last():
      self._advance()  # There is nothing to do any more; what matters are the extras.
      if self._adder is not None:
        self._adder.add_last(self._extras)

  def update(self, wait: bool = False) -> None:
    """Fetches the weights if it is time to."""
    del wait
    if self.env_steps % self._period == 0:
      self._fetch()

  def _fetch(self) -> None:
    (self._weights,) = self._variables.get_variables(["params"])

  def _advance(self) -> np.ndarray:
    if self._weights is None:
      self._fetch()
    params = types.ActorParams(self._weights, np.int32(self.env_steps))
    action, extras, self._state = self._step(params, self._timestep, self._state)
    self._extras = {name: np.asarray(value) for name, value in extras.items()}
    return np.asarray(action)

  def _encoded(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    """A timestep of arrays, whose dtypes never change and so never recompile."""
    reward = 0.0 if timestep.reward is None else timestep.reward
    discount = 1.0 if timestep.discount is None else timestep.discount
    return dm_env.TimeStep(
      np.int32(timestep.step_type),
      np.float32(reward),
      np.float32(discount),
      self._encode(timestep.observation),
    )
