"""Pictures of states, drawn within jitted functions: uint8 `[H, W, 3]`."""

import jax
import jax.numpy as jnp

Colour = tuple[int, int, int]  # Red, green, blue, from 0 to 255.


def fill(shape: tuple[int, int], colour: Colour) -> jax.Array:
  """A picture of one colour."""
  return jnp.broadcast_to(jnp.asarray(colour, jnp.uint8), (*shape, 3))


def paint(image: jax.Array, where: jax.Array, colour: Colour) -> jax.Array:
  """`image` with `colour` where the mask, bool `[H, W]`, is true."""
  colours = jnp.asarray(colour, jnp.uint8)[None, None]
  return jnp.where(where[..., None], colours, image)


def dot(image: jax.Array, at: tuple, colour: Colour) -> jax.Array:
  """`image` with one pixel (or more: `at` is an index) coloured, if it is inside."""
  return image.at[at].set(jnp.asarray(colour, jnp.uint8), mode="drop")


def enlarge(image: jax.Array, pixels: int) -> jax.Array:
  """Each pixel as a square of `pixels` × `pixels`."""
  return image.repeat(pixels, axis=0).repeat(pixels, axis=1)
