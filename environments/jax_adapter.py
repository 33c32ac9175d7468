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
    """Wraps `environment`.

    Args:
      environment: hashable, see `jax_types.Environment`.
      params: of its functions; None: its defaults.
      seed: of all randomness in it, at least 0.
    """
    self._environment = environment
    params = environment.default_params() if params is None else params
    # On the device, with fixed dtypes: neither transferred nor compiled again.
    self._params = jax.tree.map(jax.numpy.asarray, params)
    self.seed_next_reset(seed)
    self._state: jax_types.State = None
    self._reset_next_step = True

  @property
  def pure(self) -> tuple[jax_types.Environment, jax_types.Params]:
    """The environment and its parameters, for programs that scan or vmap them."""
    return self._environment, self._params

  def seed_next_reset(self, seed: int) -> None:
    """Seeds the environment again, at its next reset."""
    # A key made directly from the seed would repeat for seeds 2³² apart.
    self._key = jax.random.PRNGKey(np.random.SeedSequence(seed).generate_state(1)[0])

  def reset(self) -> dm_env.TimeStep:
    self._key, self._state, timestep = _reset(
      self._environment, self._key, self._params
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
    self._key, self._state, timestep = _step(
      self._environment, self._key, self._state, np.int32(action), self._params
    )
    step_type, reward, discount, observation = jax.device_get(timestep)
    self._reset_next_step = bool(step_type == dm_env.StepType.LAST)
    return dm_env.TimeStep(
      dm_env.StepType(int(step_type)), reward[()], discount[()], observation
    )

  def episode_metrics(self) -> dict[str, float]:
    """The environment's `metrics` of the episode so far."""
    self._check_begun("measure")
    metrics = jax.device_get(_metrics(self._environment, self._state, self._params))
    return {name: float(value) for name, value in metrics.items()}

  def render(self) -> np.ndarray:
    """A picture of the current state: uint8 `[H, W, 3]`.

    Raises:
      NotImplementedError: if the environment has none.
    """
    if not isinstance(self._environment, jax_types.Drawable):
      raise NotImplementedError(
        f"{type(self._environment).__name__} has no picture of itself; give it a "
        "method render(state, params) that returns uint8 [H, W, 3]."
      )
    self._check_begun("draw")
    return np.array(_render(self._environment, self._state, self._params))

  def _check_begun(self, what: str) -> None:
    if self._state is None:
      raise ValueError(f"there is no episode to {what} yet; call reset() first.")

  def observation_spec(self) -> dm_env.specs.Array:
    return self._environment.observation_spec()

  def action_spec(self) -> dm_env.specs.DiscreteArray:
    return dm_env.specs.DiscreteArray(self._environment.num_actions, np.int32, "action")


@functools.partial(jax.jit, static_argnums=0)
def _reset(
  environment: jax_types.Environment, key: jax.Array, params: jax_types.Params
) -> tuple[jax.Array, jax_types.State, dm_env.TimeStep]:
  key, reset_key = jax.random.split(key)
  return key, *environment.reset(reset_key, params)


@functools.partial(jax.jit, static_argnums=0)
def _step(
  environment: jax_types.Environment,
  key: jax.Array,
  state: jax_types.State,
  action: Any,
  params: jax_types.Params,
) -> tuple[jax.Array, jax_types.State, dm_env.TimeStep]:
  key, step_key = jax.random.split(key)
  return key, *environment.step(step_key, state, action, params)


@functools.partial(jax.jit, static_argnums=0)
def _metrics(
  environment: jax_types.Environment, state: jax_types.State, params: jax_types.Params
) -> dict[str, jax.Array]:
  return environment.metrics(state, params)


@functools.partial(jax.jit, static_argnums=0)
def _render(
  environment: jax_types.Drawable, state: jax_types.State, params: jax_types.Params
) -> jax.Array:
  return environment.render(state, params)
