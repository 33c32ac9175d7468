"""ε-greedy whose ε falls in several stages."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from explorax.exploration import rules, schedules


@dataclasses.dataclass(frozen=True)
class StagedEpsilonGreedy(rules.Dithering):
  """ε-greedy on the mean over the members, ε linear from each value to the next.

  It begins at the first of `epsilons`, has reached the others after the first, second
  and so on of `steps`, and stays at the last. Chen et al. (2017), table 1: 1 at
  first, 0.1 after 10⁶ steps, 0.01 after 5 · 10⁶.
  """

  epsilons: tuple[float, ...]  # Probabilities of a uniform action.
  steps: tuple[int, ...]  # Environment steps, of all actors, one less than epsilons.

  def __post_init__(self):
    for epsilon in self.epsilons:
      schedules.check_epsilon("StagedEpsilonGreedy", epsilon)
    if not self.steps or len(self.epsilons) != len(self.steps) + 1:
      raise ValueError(
        f"StagedEpsilonGreedy has epsilons={self.epsilons} and steps={self.steps}; "
        "there must be one step at least, and one epsilon more than steps."
      )
    if any(b <= a for a, b in zip((0, *self.steps), self.steps, strict=False)):
      raise ValueError(
        f"StagedEpsilonGreedy.steps are {self.steps}; they must be positive and "
        "increase."
      )

  def epsilon_at(self, env_steps: jax.Array) -> jax.Array:
    return jnp.interp(
      jnp.asarray(env_steps, jnp.float32),
      np.asarray((0, *self.steps), np.float32),
      np.asarray(self.epsilons, np.float32),
    )
