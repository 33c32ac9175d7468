"""Pictures of environments: drawn by themselves, or made of their observations."""

import contextlib
import warnings
from typing import Any

import dm_env
import numpy as np

from explorax.environments import factory, specs, standard

# bsuite's classic tasks observe a few numbers as [1, n], which is no picture.
_LEAST_SIDE = 5  # Pixels.


def make(name: str, *, seed: int) -> standard.StandardEnvironment:
  """`factory.make`, but gymnasium's environments are made able to draw themselves.

  Where gymnasium cannot (`rgb_array` is none of its render modes), it is the
  ordinary environment.
  """
  kind, _, gym_id = name.partition(":")
  if kind == "gym":
    from explorax.environments import gymnasium_environments

    with warnings.catch_warnings(), contextlib.suppress(Exception):
      warnings.simplefilter("ignore")  # It warns of what is dealt with here.
      return gymnasium_environments.load(gym_id, seed=seed, render_mode="rgb_array")
  return factory.make(name, seed=seed)


def check(name: str, *, seed: int) -> None:
  """Refuses an environment of which there is no picture, after drawing a first one.

  Raises:
    ValueError: if it has none, or drawing fails.
  """
  environment = make(name, seed=seed)
  try:
    frame = picture(environment, environment.reset())
  except Exception as error:
    raise ValueError(
      f"'{name}' cannot be drawn ({type(error).__name__}: {error}); mend that, or "
      "record no video."
    ) from error
  finally:
    environment.close()
  if frame is None:
    raise ValueError(
      f"'{name}' has no picture: neither a method render() that returns uint8 "
      "[H, W, 3], nor images as observations; record no video of it."
    )


def picture(
  environment: dm_env.Environment, timestep: dm_env.TimeStep
) -> np.ndarray | None:
  """What `environment` looks like now, uint8 `[H, W, 3]`; None if it has no picture.

  It is what the environment's own `render()` returns, and where there is no such
  method, or it returns None or raises NotImplementedError, it is made of the
  observation, if that is an image: `[H, W]`, `[H, W, 1]`, RGB, or a stack of grey
  frames along the last axis (the last of them is drawn), of uint8, of a one-hot
  array, or of numbers between bounds in the environment's spec; with sides of at
  least 5.

  Args:
    environment: a `standard.StandardEnvironment`, or one of the user's.
    timestep: its latest.

  Raises:
    ValueError: if `render()` returns anything else than it should.
  """
  raw = standard.unwrap(environment)
  frame = None
  with contextlib.suppress(NotImplementedError):
    frame = raw.render() if hasattr(raw, "render") else None
  if frame is None:
    return _of_observation(
      environment.observation_spec(), raw.observation_spec(), timestep.observation
    )
  frame = np.asarray(frame)
  if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[-1] != 3:
    raise ValueError(
      f"render() returned {frame.dtype} of shape {frame.shape}; it must return a "
      "picture, uint8 [H, W, 3]."
    )
  return frame


def _of_observation(
  spec: dm_env.specs.Array, raw_spec: Any, observation: Any
) -> np.ndarray | None:
  bounds = _bounds(spec, raw_spec)
  if (
    bounds is None or len(spec.shape) not in (2, 3) or min(spec.shape[:2]) < _LEAST_SIDE
  ):
    return None
  low, high = bounds
  image = np.asarray(observation, np.float64)
  grey = np.clip((image - low) / (high - low) * 255, 0, 255).round().astype(np.uint8)
  if grey.ndim == 3 and grey.shape[-1] == 3:
    return grey
  if grey.ndim == 3:
    grey = grey[..., -1]
  return np.repeat(grey[..., None], 3, axis=-1)


def _bounds(spec: dm_env.specs.Array, raw_spec: Any) -> tuple[float, float] | None:
  """Black and white, or None where nothing says what they are."""
  if spec.dtype == np.uint8:
    return 0.0, 255.0
  if isinstance(spec, specs.OneHotArray):
    return 0.0, 1.0
  if isinstance(raw_spec, dm_env.specs.BoundedArray):
    low, high = float(np.min(raw_spec.minimum)), float(np.max(raw_spec.maximum))
    if np.isfinite([low, high]).all() and low < high:
      return low, high
  return None
