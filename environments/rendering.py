"""Pictures of environments: rendered by them, or made from their observations."""

import contextlib
import os
import warnings
from typing import Any

import dm_env
import numpy as np

from explorax import environments
from explorax.environments import factory, specs, standard

# bsuite's classic tasks observe a few numbers, as [1, n]: this is not a picture.
_LEAST_SIDE = 5  # Pixels.


def make(name: str, *, seed: int) -> standard.StandardEnvironment:
  """`factory.make`, with rendering enabled for gymnasium's environments.

  An environment of gymnasium without the render mode `rgb_array` is made without it.
  """
  kind, _, gym_id = name.partition(":")
  if kind == "gym":
    # pygame draws into an array; without it SDL looks for a display, and complains.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    with warnings.catch_warnings(), contextlib.suppress(Exception):
      warnings.simplefilter("ignore")  # It warns about unsupported render modes.
      return environments.gymnasium_environments.load(
        gym_id, seed=seed, render_mode="rgb_array"
      )
  return factory.make(name, seed=seed)


def check(name: str, *, seed: int) -> None:
  """Refuses an environment without pictures; renders a first one to find out.

  Raises:
    ValueError: if it has no picture, or rendering fails.
  """
  environment = make(name, seed=seed)
  try:
    frame = picture(environment, environment.reset())
  except Exception as error:
    is_missing = type(error).__name__ == "DependencyNotInstalled"  # gymnasium's.
    cure = "install explorax[video]" if is_missing else "fix this"
    raise ValueError(
      f"'{name}' cannot be rendered ({type(error).__name__}: {error}); {cure}, or "
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
  """A picture of `environment` now, uint8 `[H, W, 3]`; None if it has none.

  It is the result of the environment's `render()`. Without this method, or if it
  returns None or raises NotImplementedError, the picture is made from the observation
  if that is an image: `[H, W]`, `[H, W, 1]`, RGB, or a stack of grey frames along the
  last axis (of which the last is drawn). It may be uint8, a one-hot array, or numbers
  with bounds in the environment's spec; its sides must be at least 5.

  Args:
    environment: a `standard.StandardEnvironment`, or a user's environment.
    timestep: its latest.

  Raises:
    ValueError: if `render()` returns an invalid picture.
  """
  raw = standard.unwrap(environment)
  frame = None
  with contextlib.suppress(NotImplementedError):
    frame = raw.render() if hasattr(raw, "render") else None
  if frame is None:
    spec = environment.observation_spec()
    return _of_observation(spec, raw.observation_spec(), timestep.observation)
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
  """The values of black and white; None if they are unknown."""
  if spec.dtype == np.uint8:
    return 0.0, 255.0
  if isinstance(spec, specs.OneHotArray):
    return 0.0, 1.0
  if isinstance(raw_spec, dm_env.specs.BoundedArray):
    low, high = float(np.min(raw_spec.minimum)), float(np.max(raw_spec.maximum))
    if np.isfinite([low, high]).all() and low < high:
      return low, high
  return None
