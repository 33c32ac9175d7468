"""Observations of an environment, as a bonus takes them: encoded, and finite."""

from collections.abc import Callable
from typing import Any

import dm_env
import gymnasium
import numpy as np

from explorax.environments import encodings, minigrid_views, specs
from explorax.environments import gymnasium_environments as gymnasium_lib

_LARGEST_GRID = 35  # Images of bytes with greater sides are no cells of MiniGrid.


def make_encoding(
  space: gymnasium.Space, view: str | None
) -> tuple[dm_env.specs.Array, Callable[[Any], np.ndarray]]:
  """The spec of encoded observations, and the function that encodes one.

  `online.OnlineBonus` has the arguments and the errors.
  """
  if isinstance(space, gymnasium.spaces.Discrete):
    first = int(space.start)
    one_hot = specs.OneHotArray((int(space.n),))
    return encodings.OneHotIndex(one_hot).spec, lambda x: np.array(x - first, np.int32)
  if not isinstance(space, gymnasium_lib.ARRAYS):
    raise TypeError(
      f"the environment's observations are {space!r:.80}, but a bonus takes one array; "
      "join the parts into one, for instance with "
      "gymnasium.wrappers.FlattenObservation, or choose one of them with "
      "gymnasium.wrappers.TransformObservation."
    )
  cells = minigrid_views.of_space(space)
  if view is None and cells is not None and max(cells.shape) <= _LARGEST_GRID:
    raise ValueError(
      f"the observations {space!r:.60} may be a picture or MiniGrid's cells, whose "
      "numbers are names of kinds; pass view='minigrid' or view='array'."
    )
  if view not in (None, "minigrid", "array") or (view == "minigrid" and cells is None):
    raise ValueError(
      f"view is {view!r}, and observations are {space!r:.60}; it must be 'minigrid' "
      "for cells of MiniGrid, 'array' or None."
    )
  dtype = np.uint8 if space.dtype == np.uint8 else np.float32
  dense = encodings.Dense(
    cells if view == "minigrid" else dm_env.specs.Array(space.shape, dtype)
  )
  return dense.spec, dense
