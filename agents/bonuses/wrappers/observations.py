"""Observations of N environments, as a bonus takes them: encoded, and finite."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dm_env
import gymnasium
import numpy as np

from explorax.environments import encodings, minigrid_views, specs

_ARRAYS = (
  gymnasium.spaces.Box,
  gymnasium.spaces.MultiBinary,
  gymnasium.spaces.MultiDiscrete,
)
_LARGEST_GRID = 35  # Images of bytes with greater sides are no cells of MiniGrid.


def make_encoding(
  space: gymnasium.Space,
  view: str | None,
  env: gymnasium.Env | None,
) -> tuple[dm_env.specs.Array, Callable[[Any], np.ndarray]]:
  """The spec of encoded observations, and the function that encodes one.

  `online.OnlineBonus` has the arguments and the errors.
  """
  cells = _find_cells(space, view, env)
  if cells is not None:
    return cells, encodings.Dense(cells)  # Also of a dict.
  if isinstance(space, gymnasium.spaces.Discrete):
    first = int(space.start)
    one_hot = specs.OneHotArray((int(space.n),))
    return encodings.OneHotIndex(one_hot).spec, lambda x: np.array(x - first, np.int32)
  if not isinstance(space, _ARRAYS):
    raise TypeError(
      f"the environment's observations are {space!r:.80}, but a bonus takes one array; "
      "join the parts into one, for instance with "
      "gymnasium.wrappers.FlattenObservation, or choose one of them with "
      "gymnasium.wrappers.TransformObservation."
    )
  dtype = np.uint8 if space.dtype == np.uint8 else np.float32
  dense = encodings.Dense(dm_env.specs.Array(space.shape, dtype))
  return dense.spec, dense


def _find_cells(
  space: gymnasium.Space, view: str | None, env: gymnasium.Env | None
) -> specs.CategoricalImage | None:
  """The spec of MiniGrid's cells; None if observations are no such cells."""
  if view not in (None, "minigrid", "array"):
    raise ValueError(f"view is {view!r}; it must be 'minigrid', 'array' or None.")
  cells = minigrid_views.of_space(space)
  if view == "array":
    return None
  if view is None and env is not None and env.observation_space == space:
    return minigrid_views.of_environment(env)
  if view is None and cells is not None and max(cells.shape) <= _LARGEST_GRID:
    raise ValueError(
      f"the observations {space!r:.60} may be a picture or MiniGrid's cells, whose "
      "numbers are names of kinds, and the environments are not in this process; pass "
      "view='minigrid' or view='array'."
    )
  if view == "minigrid" and cells is None:
    raise ValueError(f"view is 'minigrid', but observations are {space!r:.60}.")
  return cells if view == "minigrid" else None


def unbatched(observations: Any, num_envs: int) -> Sequence[Any]:
  """The observation of each environment; those of several parts are dicts of arrays."""
  if not isinstance(observations, Mapping):
    return observations
  parts = observations.items()
  return [{name: part[i] for name, part in parts} for i in range(num_envs)]


def check_finite(env: int, observation: np.ndarray) -> None:
  """Refuses an observation that is not finite in float32; `env` is its number."""
  finite = np.isfinite(observation)
  if not finite.all():
    raise ValueError(
      f"environment {env} returned an observation with {observation[~finite][0]}, and "
      "a bonus learns from finite numbers of float32 alone; correct the environment, "
      "or clip its observations."
    )
