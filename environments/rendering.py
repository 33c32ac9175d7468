"""Pictures of environments: rendered by them, or made from their observations."""

import contextlib
import os
import warnings
from typing import Any

import dm_env
import numpy as np

from explorax.environments import factory, specs, standard

# bsuite's classic tasks observe a few numbers, as [1, n]: this is not a picture.
_LEAST_SIDE = 5  # Pixels.


def make(name: str, *, seed: int) -> standard.StandardEnvironment:
  """`factory.make`, with rendering enabled for gymnasium's environments.

  An environment of gymnasium without the render mode `rgb_array` is made without it.
  """
  if name.startswith("gym:"):
    from explorax.environments import gymnasium_environments  # noqa: PLC0415

    # pygame draws into an array; without it SDL looks for a display, and complains.
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    with warnings.catch_warnings(), contextlib.suppress(Exception):
      warnings.simplefilter("ignore")  # It warns about unsupported render modes.
      return gymnasium_environments.load(
        name.removeprefix("gym:"), seed=seed, render_mode="rgb_array"
      )
  return factory.make(name, seed=seed)


def check(name: str, *, seed: int) -> None:
  """Raises a ValueError for an environment without pictures."""
  with contextlib.closing(make(name, seed=seed)) as environment:
    frame = picture(environment, environment.reset())
  if frame is None:
    raise ValueError(
      f"'{name}' has no picture: neither a method render() that returns uint8 "
      "[H, W, 3], nor images as observations; record no video of it."
    )


def picture(
  environment: dm_env.Environment, timestep: dm_env.TimeStep
) -> np.ndarray | None:
  """A picture of `environment` at its newest timestep, uint8 `[H, W, 3]`, or None.

  It is the result of the environment's `render()`. Without this method, or if it
  returns None or raises NotImplementedError, it is the observation, if that is an
  image of bytes or a one-hot matrix: RGB, or the last channel in grey. Its sides must
  be at least 5. An invalid picture raises a ValueError.
  """
  raw = getattr(environment, "raw", environment)
  frame = None
  with contextlib.suppress(NotImplementedError):
    frame = raw.render() if hasattr(raw, "render") else None
  if frame is None:
    return _of_observation(environment.observation_spec(), timestep.observation)
  frame = np.asarray(frame)
  if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[-1] != 3:
    raise ValueError(
      f"render() returned {frame.dtype} of shape {frame.shape}; it must return a "
      "picture, uint8 [H, W, 3]."
    )
  return frame


def _of_observation(spec: dm_env.specs.Array, observation: Any) -> np.ndarray | None:
  is_one_hot = isinstance(spec, specs.OneHotArray)
  if spec.dtype != np.uint8 and not is_one_hot:
    return None
  if len(spec.shape) not in (2, 3) or min(spec.shape[:2]) < _LEAST_SIDE:
    return None
  image = np.asarray(observation * 255 if is_one_hot else observation, np.uint8)
  image = image.reshape(*image.shape[:2], -1)
  return image if image.shape[-1] == 3 else np.repeat(image[..., -1:], 3, axis=-1)
