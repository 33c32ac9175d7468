"""Convolutions without padding, which are also fast in loops on a CPU."""

import haiku as hk
import jax
import jax.numpy as jnp

# Elements of all patches of a batch, 4 MiB; larger convolutions are left to XLA, unless
# no two patches overlap.
MAX_PATCH_ELEMENTS = 2**20


class Convolution2D(hk.Module):
  """`hk.Conv2D` without padding: the same weights, drawn in the same way."""

  def __init__(self, filters: int, size: int, stride: int, name: str = "conv2_d"):
    """Makes the module.

    Args:
      filters: number of filters.
      size: the side of a filter, in pixels.
      stride: in pixels.
      name: of the Haiku module.
    """
    super().__init__(name)
    self._filters = filters
    self._size = size
    self._stride = stride

  def __call__(self, images: jax.Array) -> jax.Array:
    """Float32 `[N, H, W, C]` → `[N, H', W', filters]`."""
    fan_in = self._size * self._size * images.shape[-1]
    w = hk.get_parameter(
      "w",
      (self._size, self._size, images.shape[-1], self._filters),
      jnp.float32,
      hk.initializers.TruncatedNormal(fan_in**-0.5),
    )
    b = hk.get_parameter("b", (self._filters,), jnp.float32, jnp.zeros)
    return convolve(images, w, self._stride) + b[None, None, None]


def convolve(images: jax.Array, w: jax.Array, stride: int) -> jax.Array:
  """A convolution without padding.

  On a CPU, XLA's gradient of a convolution is slow inside a loop, as in the device
  runner (jax's issue 12868; for 32 images of 10×10 and the torso `small`, 23 ms instead
  of 1.8). There it is a matrix product with all patches (1.3 ms), if these have at most
  MAX_PATCH_ELEMENTS. If the stride is the filters' side, each pixel is in one patch,
  and the product is quicker at each size (an update of double DQN with 32 images of
  84×84 and the torso `data_efficient`: 11 ms, with XLA's convolution 26).

  Args:
    images: `[N, H, W, C]`.
    w: `[size, size, C, filters]`.
    stride: in pixels.

  Returns:
    `[N, H', W', filters]`, with H' = ⌊(H − size) / stride⌋ + 1, and the same for W'.
  """
  height, width = ((side - w.shape[0]) // stride + 1 for side in images.shape[1:3])
  elements = images.shape[0] * height * width * w[..., 0].size
  if stride != w.shape[0] and elements > MAX_PATCH_ELEMENTS:
    return _directly(images, w, stride)
  return jax.lax.platform_dependent(
    images,
    w,
    cpu=lambda images, w: by_patches(images, w, stride),
    default=lambda images, w: _directly(images, w, stride),
  )


def by_patches(images: jax.Array, w: jax.Array, stride: int) -> jax.Array:
  """`convolve`, as the product of all patches with the filters."""
  size, _, channels, filters = w.shape
  filters_of_patches = jnp.reshape(w, (size * size * channels, filters))
  if size == stride:
    rows, columns = (side // size for side in images.shape[1:3])
    tiles = jnp.reshape(
      images[:, : rows * size, : columns * size],
      (-1, rows, size, columns, size, channels),
    )
    patches = jnp.reshape(
      jnp.moveaxis(tiles, 3, 2), (-1, rows, columns, len(filters_of_patches))
    )
    return patches @ filters_of_patches
  number, height, width, _ = images.shape

  def pixels(i: int, j: int) -> jax.Array:
    """The pixel (i, j) of each patch; indexing with a stride would be a gather."""
    ends = (number, i + height - size + 1, j + width - size + 1, channels)
    return jax.lax.slice(images, (0, i, j, 0), ends, (1, stride, stride, 1))

  parts = [pixels(i, j) for i in range(size) for j in range(size)]
  return jnp.concatenate(parts, axis=-1) @ filters_of_patches


def _directly(images: jax.Array, w: jax.Array, stride: int) -> jax.Array:
  return jax.lax.conv_general_dilated(
    images, w, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
  )
