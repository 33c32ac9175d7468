"""An environment written in JAX as a dm_env one."""

import functools
from typing import Any

import dm_env
import jax
import numpy as np

from explorax.environments import jax_types


class JaxEnvironment(dm_env.Environment):
  """Steps a `jax_types.Environment`, with one call and one device fetch per step.

  Its functions are compiled once for all adapters of equal environments. Each reset and
  step uses a new key, split from the key of `seed`.
  """

  def __init__(
    self,
    environment: jax_types.Environment,
    params: jax_types.Params = None,
    *,
    seed: int,
  ):
    """Wraps `environment`; without `params`, with its default ones."""
    self._environment = environment
    params = environment.default_params() if params is None else params
    # On the device, with fixed dtypes: neither transferred nor compiled again.
    self._params = jax.tree.map(jax.numpy.asarray, params)
    # A key made directly from the seed would repeat for seeds 2³² apart.
    self._key = jax.random.PRNGKey(np.random.SeedSequence(seed).generate_state(1)[0])
    self._state: jax_types.State = None
    self._reset_next_step = True

  @property
  def pure(self) -> tuple[jax_types.Environment, jax_types.Params]:
    """The environment and its parameters, for programs that scan or vmap them."""
    return self._environment, self._params

  def reset(self) -> dm_env.TimeStep:
    self._key, self._state, timestep = _advance(
      self._environment, "reset", self._key, self._params
    )
    self._reset_next_step = False
    return dm_env.restart(jax.device_get(timestep.observation))

  def step(self, action: Any) -> dm_env.TimeStep:
    if self._reset_next_step:
      return self.reset()
    # A jitted function would clip an action out of range.
    if not 0 <= action < self._environment.num_actions:
      raise ValueError(
        f"the action is {action}; this environment's are 0 to "
        f"{self._environment.num_actions - 1}."
      )
    arguments = (self._key, self._state, np.int32(action), self._params)
    self._key, self._state, timestep = _advance(self._environment, "step", *arguments)
    step_type, reward, discount, observation = jax.device_get(timestep)
    self._reset_next_step = bool(step_type == dm_env.StepType.LAST)
    return dm_env.TimeStep(
      dm_env.StepType(int(step_type)), reward[()], discount[()], observation
    )

  def episode_metrics(self) -> dict[str, float]:
    """The environment's `metrics` of the episode so far."""
    metrics = jax.device_get(self._read("metrics"))
    return {name: float(value) for name, value in metrics.items()}

  def render(self) -> np.ndarray:
    """A picture of the current state, uint8 `[H, W, 3]`."""
    if not hasattr(self._environment, "render"):
      raise NotImplementedError
    return np.array(self._read("render"))

  def _read(self, method: str) -> Any:
    return _read(self._environment, method, self._state, self._params)

  def observation_spec(self) -> dm_env.specs.Array:
    return self._environment.observation_spec()

  def action_spec(self) -> dm_env.specs.DiscreteArray:
    return dm_env.specs.DiscreteArray(self._environment.num_actions, np.int32, "action")


@functools.partial(jax.jit, static_argnums=(0, 1))
def _advance(
  environment: jax_types.Environment, method: str, key: jax.Array, *arguments: Any
) -> tuple[jax.Array, jax_types.State, dm_env.TimeStep]:
  """The next key, and the result of `reset` or `step` with a key of its own."""
  key, own_key = jax.random.split(key)
  return key, *getattr(environment, method)(own_key, *arguments)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _read(environment: jax_types.Environment, method: str, *arguments: Any) -> Any:
  """The result of `metrics` or `render`."""
  return getattr(environment, method)(*arguments)
