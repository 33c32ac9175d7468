"""The elliptical episodic bonus, alone or times a lifelong one."""

import dataclasses
from typing import Any

import dm_env
import jax

from explorax import exploration, ranges
from explorax.agents.bonuses import dynamics, types


@dataclasses.dataclass(frozen=True)
class E3B(types.Bonus):
  """φ(x')ᵀ C⁻¹ φ(x') / σ, with C = λI + Σ φ φᵀ over the episode's earlier observations.

  φ is trained by inverse dynamics in the learner; an actor's φ changes only between
  episodes, because C is computed with one φ. The learner divides by σ, the bonus's
  deviation since the start; the mean is not subtracted. With another bonus as
  `lifelong`, r_int is the product (Henaff et al., 2023), and σ is its deviation: times
  RND, the ellipsoid takes the place of Never Give Up's memory.

  Source: Henaff et al. (2022), and its code (e3b, `minihack/torchbeast`), which rewards
  the transition out of x with the bonus of x, changes φ within an episode, and gives an
  episode's first observation 0. Here it has no bonus: no transition leads to it.
  """

  # 1024 features, learning rate 1e-4 (the code).
  model: dynamics.Dynamics = dataclasses.field(
    default_factory=lambda: dynamics.Dynamics(embedding_size=1024)
  )
  ridge: ranges.PositiveFloat = 0.1  # λ (the code).
  # A bonus without an acting half, as `rnd.RND(normalisation="none",
  # end="destination")`.
  lifelong: types.Bonus | None = None

  def build(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> types.IntrinsicReward:
    """The bonus; raises a ValueError if `lifelong` has an acting half."""
    models = self.model.build(observation_spec, num_actions)
    lifelong, end = self._build_lifelong(observation_spec, num_actions)

    def observe(
      weights: Any, root: jax.Array, observation: jax.Array, *_: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
      features = models.embed(weights, observation[None])[0]
      return exploration.elliptical_bonus(root, features)

    def new_ellipsoid() -> jax.Array:
      return exploration.init_ellipsoid(self.model.embedding_size, self.ridge)

    def init(key: jax.Array) -> tuple[exploration.Moments, Any]:
      inner = () if lifelong is None else lifelong.init(key)
      return exploration.init_moments(), inner

    def compute(
      state: tuple[exploration.Moments, Any], inputs: types.Inputs
    ) -> tuple[jax.Array, tuple[exploration.Moments, Any]]:
      moments, inner = state
      r_int = inputs.stored
      if lifelong is not None:
        value, inner = lifelong.compute(inner, inputs.at(end))
        r_int = r_int * value
      moments = exploration.update_moments(moments, r_int, inputs.mask)
      return exploration.over_deviation(moments, r_int), (moments, inner)

    acting = types.Acting(
      new_ellipsoid,
      begin_episode=lambda root: new_ellipsoid(),
      observe=observe,
      training=models.training,
      refresh=lambda held, fresh: held,
    )
    return types.IntrinsicReward("destination", acting, types.Learning(init, compute))

  def _build_lifelong(
    self, observation_spec: dm_env.specs.Array, num_actions: int
  ) -> tuple[types.Learning | None, str]:
    """The learning half of `lifelong`, and its end."""
    if self.lifelong is None:
      return None, "transition"
    built = self.lifelong.build(observation_spec, num_actions)
    learning = built.learning
    if built.acting is not None or learning is None or learning.needs_values_only:
      raise ValueError(
        f"E3B.lifelong is {self.lifelong}, but it has to be a bonus that the learner "
        "computes from observations alone; use rnd.RND or icm.ICM, for instance."
      )
    return learning, built.end
