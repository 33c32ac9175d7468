"""Observations with a row of true state below the picture, and how it is used."""

from collections.abc import Callable

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import specs

# Another room or key has this distance in pixels. Distances are divided by their
# running mean, so only the ratio matters: within a room, typical squared distances are
# some pixels squared. 32² is hundreds of times that, beyond the reach of the kernel.
# But distances to a new room enter the mean, and a much larger scale would make all
# positions within a room look the same.
_PIXELS_PER_ROOM = 32.0

_ORACLE_SCALES = {
  "x": 1.0,
  "y": 1.0,
  "room": _PIXELS_PER_ROOM,
  "keys": _PIXELS_PER_ROOM,
}
ORACLE_SIZE = len(_ORACLE_SCALES)

ObservationFn = Callable[[jax.Array], jax.Array]


def make_network_view(
  observation_spec: dm_env.specs.Array,
) -> tuple[dm_env.specs.Array, ObservationFn]:
  """What networks see of observations: (its spec, observations → that part)."""
  if isinstance(observation_spec, specs.ImageWithState):
    return observation_spec.image_spec, observation_spec.image
  return observation_spec, lambda observation: observation


def make_oracle(observation_spec: dm_env.specs.Array) -> ObservationFn:
  """Oracle controllable states: observations `[..., H + 1, W, C]` → float32 `[..., 4]`.

  They are x and y in pixels, and the room and the number of keys, each with the weight
  of 32 pixels. Badia et al. (2020), appendix I, does not give the weights.

  Raises:
    ValueError: for observations without this row of state.
  """
  spec = observation_spec
  entries: tuple[str, ...] = getattr(spec, "entries", ())
  if not isinstance(spec, specs.ImageWithState) or not {*_ORACLE_SCALES} <= {*entries}:
    raise ValueError(
      f"NeverGiveUp.states is 'oracle', which reads {', '.join(_ORACLE_SCALES)} from a "
      f"row below the picture, but observations are {spec!r}; use "
      "atari:MontezumaRevenge/ngu,oracle=true, or another setting."
    )
  index = np.array([entries.index(name) for name in _ORACLE_SCALES])
  scales = np.array(list(_ORACLE_SCALES.values()), np.float32)

  def oracle(observation: jax.Array) -> jax.Array:
    state = jnp.take(spec.state(observation), index, axis=-1).astype(jnp.float32)
    return state * np.broadcast_to(scales, state.shape)

  return oracle
