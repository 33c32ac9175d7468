"""What agents see of MiniGrid: cells of categories, and no text.

The view of the agent is uint8 `[7, 7, 3]`: what is in each cell, its colour and its
state (whether a door is locked). What the agent carries is in its own cell. These are
numbers of kinds, not levels of a colour. The direction in which the agent looks is a
fourth channel, the same in all cells; the mission is left out. navix's grids have the
same numbers.
"""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.environments import specs

if TYPE_CHECKING:
  import gymnasium

# Its `constants.STATE_TO_IDX` has three of doors, and an agent has four directions.
_NUM_DIRECTIONS = 4
_CHANNELS = (("object", 11), ("colour", 6), ("state", _NUM_DIRECTIONS))
_DIRECTION = ("direction", _NUM_DIRECTIONS)
# Wrappers whose images are pictures, or coordinates.
_OTHER_IMAGES = ("RGBImgObsWrapper", "RGBImgPartialObsWrapper", "SymbolicObsWrapper")


def of_shape(
  shape: tuple[int, ...], *, direction: bool = False
) -> specs.CategoricalImage:
  """The spec of a view or grid `[H, W, 3]`, with or without the direction."""
  channels = (*_CHANNELS, _DIRECTION) if direction else _CHANNELS
  return specs.CategoricalImage((*shape[:2], len(channels)), channels)


def of_environment(environment: "gymnasium.Env") -> specs.CategoricalImage | None:
  """The spec of a MiniGrid environment's observations; None of any other.

  Wrappers may change the size of the view (`ViewSizeWrapper`, `FullyObsWrapper`) or
  leave only the image (`ImgObsWrapper`). Other observations, for instance pictures
  (`RGBImgObsWrapper`), are not of this kind.
  """
  minigrid = sys.modules.get("minigrid.minigrid_env")
  raw = environment.unwrapped
  if minigrid is None or not isinstance(raw, minigrid.MiniGridEnv):
    return None
  layer: Any = environment
  while layer is not raw:
    if type(layer).__name__ in _OTHER_IMAGES:
      return None
    layer = layer.env
  return of_space(environment.observation_space)


def of_space(space: Any) -> specs.CategoricalImage | None:
  """The spec of observations in this space, if they are MiniGrid's; None of others.

  A picture of bytes with three channels looks the same.
  """
  spaces = getattr(space, "spaces", None)
  parts = dict(spaces) if isinstance(spaces, Mapping) else {"image": space}
  image, mission = parts.pop("image", None), parts.pop("mission", None)
  direction = parts.pop("direction", None)
  if parts or not (mission is None or type(mission).__name__ == "MissionSpace"):
    return None
  shape: tuple[int, ...] = getattr(image, "shape", None) or ()
  if len(shape) != 3 or shape[-1] != len(_CHANNELS) or image.dtype != np.uint8:
    return None
  return of_shape(shape, direction=direction is not None)
