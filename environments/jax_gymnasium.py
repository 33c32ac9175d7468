"""An environment written in JAX as a gymnasium one."""

from typing import Any

import dm_env
import gymnasium
import numpy as np

from explorax.environments import jax_adapter, jax_types


class JaxGymnasiumEnv(gymnasium.Env):
  """Shows a `jax_types.Environment` as a `gymnasium.Env`.

  Actions are `Discrete`, observations a `Box` with the spec's bounds: 0 and 1 for
  one-hot arrays, 0 and 255 for images, infinite for numbers without bounds. Rewards
  are floats. An episode that ends with discount 0 has terminated, with any other it
  was truncated. The info of its last step holds the environment's metrics; all
  others are empty.

  `reset(seed=…)` starts a new stream of episodes, which later resets continue; the
  first reset without a seed draws one.
  """

  metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012  # Read from the class.

  def __init__(
    self,
    environment: jax_types.Environment,
    params: jax_types.Params = None,
    *,
    render_mode: str | None = None,
  ):
    """Wraps `environment`.

    Args:
      environment: hashable, see `jax_types.Environment`.
      params: of its functions; its own defaults where None.
      render_mode: None, or `rgb_array` for one that draws itself.

    Raises:
      ValueError: if the render mode is another one.
      TypeError: if the environment has no picture of itself, or its observations are
        neither numbers nor images.
    """
    if render_mode not in (None, "rgb_array"):
      raise ValueError(
        f"the render mode is {render_mode!r}; it must be 'rgb_array' or None."
      )
    if render_mode is not None and not isinstance(environment, jax_types.Drawable):
      raise TypeError(
        f"{type(environment).__name__} has no picture of itself; leave the render mode "
        "out, or give it a method render(state, params) that returns uint8 [H, W, 3]."
      )
    self.render_mode = render_mode
    self.action_space = gymnasium.spaces.Discrete(environment.num_actions)
    self.observation_space = _observation_space(environment.observation_spec())
    self._environment = environment
    self._params = params
    self._adapter: jax_adapter.JaxEnvironment | None = None
    self._running = False

  def reset(
    self, *, seed: int | None = None, options: dict[str, Any] | None = None
  ) -> tuple[np.ndarray, dict[str, Any]]:
    """The next episode; the first of a new stream where `seed` is given.

    Raises:
      ValueError: if there are options, of which none is known.
    """
    super().reset(seed=seed)
    if options:
      raise ValueError(
        f"the options of reset are {options}; there are none here, set `params` when "
        "the environment is made."
      )
    if self._adapter is None or seed is not None:
      self._adapter = jax_adapter.JaxEnvironment(
        self._environment, self._params, seed=int(self.np_random.integers(2**63))
      )
    self._running = True
    return np.array(self._adapter.reset().observation), {}

  def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, float]]:
    """(observation, reward, terminated, truncated, info).

    Raises:
      gymnasium.error.ResetNeeded: if no episode has begun, or the last one has ended.
      ValueError: if there is no such action.
    """
    if self._adapter is None or not self._running:
      raise gymnasium.error.ResetNeeded("no episode has begun; call reset() first.")
    timestep = self._adapter.step(action)
    self._running = not timestep.last()
    terminated = timestep.last() and bool(timestep.discount == 0.0)
    return (
      np.array(timestep.observation),
      float(timestep.reward),
      terminated,
      timestep.last() and not terminated,
      self._adapter.episode_metrics() if timestep.last() else {},
    )

  def render(self) -> np.ndarray | None:
    """The present state, uint8 `[H, W, 3]`; None where there is no render mode.

    Raises:
      gymnasium.error.ResetNeeded: if no episode has begun.
    """
    if self.render_mode is None:
      return None
    if self._adapter is None:
      raise gymnasium.error.ResetNeeded("no episode has begun; call reset() first.")
    return self._adapter.render()


def _observation_space(spec: dm_env.specs.Array) -> gymnasium.spaces.Box:
  dtype = np.dtype(spec.dtype)
  if isinstance(spec, dm_env.specs.BoundedArray):
    low, high = spec.minimum, spec.maximum
  elif np.issubdtype(dtype, np.floating):
    low, high = -np.inf, np.inf
  elif np.issubdtype(dtype, np.integer):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
  else:
    raise TypeError(
      f"the environment's observations are of dtype {dtype}, of which gymnasium has no "
      "box; make them uint8 or float32."
    )
  return gymnasium.spaces.Box(
    np.broadcast_to(np.asarray(low, dtype), spec.shape),
    np.broadcast_to(np.asarray(high, dtype), spec.shape),
    spec.shape,
    dtype.type,
  )
