"""Observations that carry what is true below what is seen, and what is made of them."""

from collections.abc import Callable, Sequence

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.environments import specs

# A room or a key more is as far as this many pixels. Distances are divided by their
# running mean, so that this ratio is all that matters: within a room some pixels
# square are a typical distance, of which 32² is hundreds, and no kernel reaches that
# far; yet where a room is new its distances enter the mean, and much larger ones
# would make all places within a room the same.
_PIXELS_PER_ROOM = 32.0

POSITION = ("x", "y", "room")
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

  They are x and y in pixels, and the room and the number of keys, each of which counts
  as 32 pixels. Badia et al. (2020), appendix I, which does not say how it weighs them.

  Raises:
    ValueError: for observations that have no such row of state.
  """
  read = make_reader("states is 'oracle'", observation_spec, tuple(_ORACLE_SCALES))
  scales = np.array(list(_ORACLE_SCALES.values()), np.float32)

  def oracle(observation: jax.Array) -> jax.Array:
    state = read(observation).astype(jnp.float32)
    return state * np.broadcast_to(scales, state.shape)

  return oracle


def make_reader(
  setting: str, observation_spec: dm_env.specs.Array, names: Sequence[str]
) -> ObservationFn:
  """Observations → the named entries of their row of state, uint8 `[..., len(names)]`.

  Raises:
    ValueError: if they have not all of them, `setting` being what asks for them.
  """
  entries: tuple[str, ...] = getattr(observation_spec, "entries", ())
  if not isinstance(observation_spec, specs.ImageWithState) or any(
    name not in entries for name in names
  ):
    raise ValueError(
      f"NeverGiveUp.{setting}, which reads {', '.join(names)} from a row below the "
      f"picture, but observations are {observation_spec!r}; play "
      "atari:MontezumaRevenge/ngu,oracle=true, or do without it."
    )
  index = np.array([entries.index(name) for name in names])
  spec = observation_spec
  return lambda observation: jnp.take(spec.state(observation), index, axis=-1)
