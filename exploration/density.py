"""Pseudo-counts of images, from a density model that is learnt online.

Each pixel of a small grey picture has a context tree, which predicts it from its
neighbours above and to the left: counts of the pixel's levels after the nearest
neighbour, the two nearest, and so on, mixed by how well each has predicted so far. All
pixels are predicted and learnt at once.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax.losses import checks

# Offsets (row, column) of the neighbours, the most informative one first.
_NEIGHBOURS = ((0, -1), (-1, 0), (-1, -1), (-1, 1))
MAX_DEPTH = len(_NEIGHBOURS)


class DensityModel(NamedTuple):
  """A density over pictures of P pixels with L levels, with contexts of depth D.

  Attributes:
    counts: int32 `[D + 1, P, N, L]`, how often each level followed a context of this
      many neighbours; if there are more contexts than N, rows are hashed.
    log_odds: float32 `[D + 1, P, N]`, log odds of predicting with this depth rather
      than with more neighbours, from their predictions in this context; 0 at depth D.
  """

  counts: jax.Array
  log_odds: jax.Array


def init_density(
  num_pixels: int, num_levels: int = 8, depth: int = MAX_DEPTH, num_buckets: int = 256
) -> DensityModel:
  """A model without data, which predicts all levels with equal probability.

  Args:
    num_pixels: P, of the picture.
    num_levels: L, at least 2.
    depth: D, of {0, ..., 4} neighbours; 0: pixels are independent.
    num_buckets: N, rows of the table for each depth and pixel; contexts in one row
      share their counts.

  Raises:
    ValueError: for a number outside these ranges.
  """
  if num_pixels < 1 or num_levels < 2 or num_buckets < 1:
    raise ValueError(
      f"a density of {num_pixels} pixels, {num_levels} levels and {num_buckets} rows "
      "is not possible: use at least 1, 2 and 1."
    )
  if not 0 <= depth <= MAX_DEPTH:
    raise ValueError(
      f"the contexts of a density are {depth} neighbours; use 0 to {MAX_DEPTH}."
    )
  shape = (depth + 1, num_pixels, num_buckets)
  return DensityModel(
    counts=jnp.zeros((*shape, num_levels), jnp.int32),
    log_odds=jnp.zeros(shape, jnp.float32),
  )


@checks.arguments(image="number [H, W, C]")
def shrink(image: jax.Array, side: int, num_levels: int) -> jax.Array:
  """The newest channel of an image as a small picture of few levels.

  uint8 `[H, W, C]` → int32 `[side, side]` in [0, num_levels): averages over the area of
  a pixel, rounded down to a level.
  """
  grey = image[:, :, -1].astype(jnp.float32)
  rows, columns = (_averages(size, side) for size in grey.shape)
  small = rows @ grey @ columns.T
  # The sum of rounded parts must not round to a lower level.
  level = jnp.floor(small * (num_levels / 256.0) + 1e-4)
  return jnp.clip(level, 0, num_levels - 1).astype(jnp.int32)


def observe_picture(
  model: DensityModel, picture: jax.Array
) -> tuple[jax.Array, DensityModel]:
  """Learns a picture, and returns the increase of its log probability.

  For each pixel and depth d, the estimator of Krichevsky & Trofimov with L levels,
  `(n(level) + 1/L) / (n + 1)`. From depth D upwards, a node predicts the mixture of its
  own estimator and of the next depth's prediction, weighted by how well each has
  predicted so far.

  Source: context tree weighting (Willems et al., 1995). Bellemare et al. (2016) use the
  related context tree switching, with a model for each pixel of 42×42 in 8 levels.

  Args:
    model: from `init_density`.
    picture: int `[H, W]`, H · W = P, its levels in [0, L).

  Returns:
    The prediction gain `log ρ'(x) − log ρ(x)`, float32 `[]`, and the model.
  """
  checks.check(
    "observe_picture",
    counts=(model.counts, "count [D, P, N, L]"),
    picture=(picture, "level [H, W]"),
  )
  if picture.size != model.counts.shape[1]:
    raise ValueError(
      f"observe_picture: picture has {picture.size} pixels, but the model has "
      f"{model.counts.shape[1]}; give init_density the same number."
    )
  nodes, level = _nodes(model, picture), jnp.ravel(picture)
  num_depths, num_pixels, _, num_levels = model.counts.shape
  index = (jnp.arange(num_depths)[:, None], jnp.arange(num_pixels)[None, :], nodes)
  seen = jax.nn.one_hot(level, num_levels, dtype=jnp.float32)[None]
  # Written first and read afterwards: reading the table before the write would copy all
  # of it at every step.
  new_counts = model.counts.at[(*index, level[None, :])].add(1)
  counts = new_counts[index].astype(jnp.float32)  # [D+1, P, L].
  log_odds = model.log_odds[index]  # [D+1, P].
  before, evidence = _log_probs(counts - seen, log_odds, level)
  after, _ = _log_probs(counts, log_odds + evidence, level)
  new_log_odds = model.log_odds.at[index].add(evidence)
  return jnp.sum(after - before), DensityModel(new_counts, new_log_odds)


def pseudo_count_bonus(gain: jax.Array) -> jax.Array:
  """`(N̂ + 0.01)^{−1/2}` of the pseudo-count `N̂ = 1 / (exp(gain) − 1)`.

  A gain that is not positive corresponds to an infinite count: its bonus is 0.

  Source: Bellemare et al. (2016), sections 3 and 5, N̂ by its approximation with the
  prediction gain.

  Args:
    gain: the prediction gain, float `[]`.

  Returns:
    float32 `[]`, in [0, 10).
  """
  # N̂ is 1/rise, infinite at 0. Beyond e^40 the bonus is 10 in float32.
  rise = jnp.expm1(jnp.clip(gain, 0.0, 40.0))
  return jnp.sqrt(rise / (1.0 + 0.01 * rise))


def _log_probs(
  counts: jax.Array, log_odds: jax.Array, level: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Of the level of each pixel.

  Returns:
    log ρ `[P]` of the root, and the evidence `[D + 1, P]` of this level for each
    depth's own estimator against the depths below it.
  """
  num_levels = counts.shape[-1]
  chosen = jnp.take_along_axis(counts, level[None, :, None], axis=-1)[..., 0]
  total = jnp.sum(counts, axis=-1)
  estimates = jnp.log(chosen + 1.0 / num_levels) - jnp.log(total + 1.0)
  below = estimates[-1]
  evidence = [jnp.zeros_like(below)]
  for d in range(counts.shape[0] - 2, -1, -1):
    evidence.append(estimates[d] - below)
    below = jnp.logaddexp(
      jax.nn.log_sigmoid(log_odds[d]) + estimates[d],
      jax.nn.log_sigmoid(-log_odds[d]) + below,
    )
  return below, jnp.stack(evidence[::-1])


def _nodes(model: DensityModel, picture: jax.Array) -> jax.Array:
  """int32 `[D + 1, P]`: the row of each pixel's context, at every depth."""
  num_depths, _, num_buckets, num_levels = model.counts.shape
  # Pixels beyond the border have a separate level.
  padded = jnp.pad(picture, 1, constant_values=num_levels)
  height, width = picture.shape
  code = jnp.zeros(picture.shape, jnp.uint32)
  nodes = [code]
  for row, column in _NEIGHBOURS[: num_depths - 1]:
    neighbour = padded[1 + row : 1 + row + height, 1 + column : 1 + column + width]
    code = code * jnp.uint32(num_levels + 1) + neighbour.astype(jnp.uint32)
    if (num_levels + 1) ** len(nodes) <= num_buckets:
      nodes.append(code)
    else:
      # Multiplicative hashing (Knuth): the high bits are the mixed ones.
      mixed = (code * jnp.uint32(2654435761)) >> jnp.uint32(8)
      nodes.append(mixed % jnp.uint32(num_buckets))
  return jnp.stack([jnp.ravel(node) for node in nodes]).astype(jnp.int32)


def _averages(size: int, side: int) -> np.ndarray:
  """`[side, size]`: row i averages the i-th of `side` equal parts of `size` pixels."""
  edges = np.arange(side + 1) * (size / side)
  pixels = np.arange(size)
  low = np.maximum(edges[:-1, None], pixels[None, :])
  high = np.minimum(edges[1:, None], pixels[None, :] + 1)
  overlap = np.maximum(high - low, 0.0) / (size / side)
  return overlap.astype(np.float32)
