"""An ActorCore as an `acme.core.Actor`."""

from collections.abc import Mapping
from typing import Any

import acme.core
import dm_env
import jax
import jax.numpy as jnp
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
    self._refresh = agent.refresh
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
    self._timestep = encoded(self._encode, timestep)
    if self._refresh is not None:
      self._weights = self._fetch()
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
    self._timestep = encoded(self._encode, next_timestep)
    self.env_steps += 1
    if self._adder is not None:
      self._adder.add(action, self._timestep, self._extras)
    if next_timestep.last():
      self._advance()  # There is nothing to do any more; what matters are the extras.
      if self._adder is not None:
        self._adder.add_last(self._extras)

  @property
  def timestep(self) -> dm_env.TimeStep | None:
    """The newest, its observation encoded; None before the first."""
    return self._timestep

  @property
  def extras(self) -> Mapping[str, Any]:
    """What the core said beside its last answer, that to a LAST timestep included."""
    return self._extras

  def forget_episode(self) -> None:
    """Ends the episode where it stands, of which the adder knows nothing."""
    self._timestep = None

  def break_off(self) -> None:
    """Ends the episode where it stands, its environment having failed in mid-episode.

    To replay this is a truncation: the last observation that came is the last row,
    real and with its extras, and the transition into it bootstraps from it. The step
    that failed leaves no trace. Without a transition there is nothing to keep.
    """
    if self._adder is not None and self._timestep is not None:
      if self._timestep.first():
        self._adder.reset()
      elif not self._timestep.last():
        self._adder.add_last(self._extras)
    self._timestep = None

  def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
    """All that it goes on from: (a pytree of arrays, what JSON can hold)."""
    arrays = {
      "state": self._state,
      "weights": () if self._weights is None else self._weights,
      "timestep": () if self._timestep is None else tuple(self._timestep),
      "extras": self._extras,
    }
    counts = {
      "env_steps": self.env_steps,
      "policy": self.policy,
      "has_weights": self._weights is not None,
      "has_timestep": self._timestep is not None,
      "extras": {n: (list(x.shape), x.dtype.name) for n, x in self._extras.items()},
    }
    # Copies: the state is donated to the next step.
    return jax.tree.map(np.array, jax.device_get(arrays)), counts

  def shapes(self, counts: Mapping[str, Any]) -> dict[str, Any]:
    """The shapes of the arrays that `save` returned along with `counts`."""
    number, spec = jax.ShapeDtypeStruct, self._encode.spec
    scalars = (number((), t) for t in (np.int32, np.float32, np.float32))
    timestep = (*scalars, number(spec.shape, spec.dtype))
    return {
      "state": jax.eval_shape(lambda: self._state),
      "weights": jax.eval_shape(self._fetch) if counts["has_weights"] else (),
      "timestep": timestep if counts["has_timestep"] else (),
      "extras": {n: number(tuple(s), d) for n, (s, d) in counts["extras"].items()},
    }

  def restore(self, arrays: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
    """Goes on from what `save` returned."""
    self._state = jax.tree.map(lambda x: jnp.array(x, copy=True), arrays["state"])
    weights = jax.tree.map(jnp.asarray, arrays["weights"])
    self._weights = weights if counts["has_weights"] else None
    timestep = arrays["timestep"]
    self._timestep = dm_env.TimeStep(*timestep) if counts["has_timestep"] else None
    self._extras = dict(arrays["extras"])
    self.env_steps, self.policy = counts["env_steps"], counts["policy"]

  def update(self, wait: bool = False) -> None:
    """Fetches the weights if it is time to, or at once if they are `wait`ed for."""
    if wait or self.env_steps % self._period == 0:
      fresh = self._fetch()
      if self._refresh is not None and self._weights is not None:
        fresh = self._refresh(self._weights, fresh)
      self._weights = fresh

  def _fetch(self) -> types.Params:
    return self._variables.get_variables(["params"])[0]

  def _advance(self) -> np.ndarray:
    if self._weights is None:
      self._weights = self._fetch()
    params = types.ActorParams(self._weights, np.int32(self.env_steps))
    action, extras, self._state = self._step(params, self._timestep, self._state)
    self._extras = {name: np.asarray(value) for name, value in extras.items()}
    return np.asarray(action)


def encoded(encode: types.Encoding, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
  """A timestep of arrays, whose dtypes never change and so never recompile."""
  reward = 0.0 if timestep.reward is None else timestep.reward
  discount = 1.0 if timestep.discount is None else timestep.discount
  return dm_env.TimeStep(
    np.int32(timestep.step_type),
    np.float32(reward),
    np.float32(discount),
    encode(timestep.observation),
  )
