"""Pictures of states, drawn within jitted functions: uint8 `[H, W, 3]`."""

from typing import Any

import jax
import jax.numpy as jnp

# Red, green and blue, from 0 to 255.
LIGHT, GREY, DARK = (230, 230, 230), (130, 130, 130), (40, 40, 40)
BLUE, GREEN, GOLD, RED = (30, 60, 200), (40, 160, 60), (230, 180, 30), (200, 70, 60)


def paint(image: jax.Array, *layers: tuple[Any, Any]) -> jax.Array:
  """`image` with coloured layers on it.

  Args:
    image: `[H, W, 3]`.
    *layers: (where, colour) each, the lowest first. `where` is a mask, bool `[H, W]`,
      or a tuple that indexes pixels; pixels outside of the image are ignored.
  """
  for where, colour in layers:
    value = jnp.asarray(colour, jnp.uint8)
    if isinstance(where, tuple):
      image = image.at[where].set(value, mode="drop")
    else:
      image = jnp.where(where[..., None], value[None, None], image)
  return image


def picture(
  shape: tuple[int, int], background: Any, *layers: tuple[Any, Any], pixels: int = 12
) -> jax.Array:
  """Layers on a background, each cell a square of `pixels` × `pixels`."""
  image = jnp.broadcast_to(jnp.asarray(background, jnp.uint8), (*shape, 3))
  image = paint(image, *layers)
  return image.repeat(pixels, axis=0).repeat(pixels, axis=1)
