"""The bonus of pseudo-counts, from a density model of the actors' observations."""

import dataclasses
from typing import Annotated

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration, networks, ranges
from explorax.agents.bonuses import types


@dataclasses.dataclass(frozen=True)
class PseudoCounts(types.Bonus):
  """(N̂(x) + 0.01)^{-1/2}, with N̂ the pseudo-count of the destination's observation.

  Images are counted as small grey pictures of their newest channel; one-hot
  observations are levels of a single pixel. Each actor has its own model.

  Source: Bellemare et al. (2016); see `exploration.density` for the model.
  """

  # Pixels, of the small picture (Bellemare et al., 2016).
  side: Annotated[int, ranges.Range(ge=1, le=256)] = 42
  # Of grey (Bellemare et al., 2016).
  num_levels: Annotated[int, ranges.Range(ge=2, le=256)] = 8
  # Neighbours above and to the left that predict a pixel; our choice.
  depth: Annotated[int, ranges.Range(ge=0, le=exploration.MAX_DEPTH)] = 4
  # Contexts distinguished per pixel and depth; our choice.
  num_buckets: ranges.PositiveInt = 256

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    """The bonus; raises a ValueError for observations of other kinds."""
    spec = networks.visible_spec(observation_spec)
    has_kinds = hasattr(spec, "num_categories")  # Their averages mean nothing.
    if len(spec.shape) == 3 and spec.dtype == np.uint8 and not has_kinds:
      height = spec.shape[0]

      def init() -> exploration.DensityModel:
        return exploration.init_density(
          self.side**2, self.num_levels, self.depth, self.num_buckets
        )

      def picture(observation: jax.Array) -> jax.Array:
        return exploration.shrink(observation[:height], self.side, self.num_levels)

    elif len(spec.shape) == 0 and networks.make_inputs(spec).is_index:
      # Also those that are always 0: their number is in the estimator's prior.
      num_values = networks.make_inputs(spec).num_features

      def init() -> exploration.DensityModel:
        return exploration.init_density(1, num_values + 1, depth=0, num_buckets=1)

      def picture(observation: jax.Array) -> jax.Array:
        return jnp.reshape(observation + 1, (1, 1))

    else:
      raise ValueError(
        f"PseudoCounts supports images [height, width, channels] of uint8 and one-hot "
        f"observations, but these are {np.dtype(spec.dtype).name} of shape "
        f"{spec.shape}; use another bonus."
      )

    def observe(
      weights: tuple[()],
      model: exploration.DensityModel,
      observation: jax.Array,
      *_: jax.Array,
    ) -> tuple[jax.Array, exploration.DensityModel]:
      gain, model = exploration.observe_picture(model, picture(observation))
      return exploration.pseudo_count_bonus(gain), model

    acting = types.Acting(init, begin_episode=None, observe=observe)
    return types.IntrinsicReward("destination", acting)
