"""ε-greedy that switches among several schedules of ε."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from explorax.exploration import rules, schedules

# Periods whose schedules are drawn; after the last one they come again.
_NUM_DRAWN = 4096


@dataclasses.dataclass(frozen=True)
class AlternatingEpsilonGreedy(rules.Dithering):
  """ε-greedy on the mean over the members, ε following one of several schedules.

  Each schedule falls linearly from `epsilon` to a value of its own. Which one is
  followed is drawn anew every `period_steps`, and one that is returned to goes on from
  where it was left. The defaults are those of Munos et al. (2016), appendix F, in agent
  steps of four frames. There each of sixteen threads drew for itself; here all actors
  follow one draw, so that ε is a function of the environment steps alone, which a
  learner can evaluate as well. It does not depend on the run's seed: give trials seeds
  of their own here.
  """

  epsilon: float = 1.0  # Probability of a uniform action, at first.
  final_epsilons: tuple[float, ...] = (0.5, 0.1, 0.01)  # Each schedule's, once decayed.
  probabilities: tuple[float, ...] = (0.3, 0.4, 0.3)  # With which each is drawn.
  decay_steps: int = 62_500  # Environment steps on a schedule until it has decayed.
  period_steps: int = 12_500  # Environment steps between two draws.
  seed: int = 0  # Of the draws.

  def __post_init__(self):
    for epsilon in (self.epsilon, *self.final_epsilons):
      schedules.check_epsilon("AlternatingEpsilonGreedy", epsilon)
    if not self.final_epsilons or len(self.final_epsilons) != len(self.probabilities):
      raise ValueError(
        f"AlternatingEpsilonGreedy has final_epsilons={self.final_epsilons} and "
        f"probabilities={self.probabilities}; each schedule needs one of both, and "
        "there must be one schedule at least."
      )
    if min(self.probabilities) < 0 or not math.isclose(sum(self.probabilities), 1.0):
      raise ValueError(
        f"AlternatingEpsilonGreedy.probabilities are {self.probabilities}; they must "
        "not be negative, and add up to 1."
      )
    for name in ("decay_steps", "period_steps"):
      if getattr(self, name) < 1:
        raise ValueError(
          f"AlternatingEpsilonGreedy.{name} is {getattr(self, name)} environment "
          "steps; use at least 1."
        )
    if self.seed < 0:
      raise ValueError(
        f"AlternatingEpsilonGreedy.seed is {self.seed}; it must not be negative."
      )

  def epsilon_at(self, env_steps: jax.Array) -> jax.Array:
    drawn, returns = map(jnp.asarray, _draw_schedules(self.probabilities, self.seed))
    period = env_steps // self.period_steps
    index = period % _NUM_DRAWN
    # How long the schedule was followed before; all have decayed when draws come again.
    earlier = jnp.where(period < _NUM_DRAWN, returns[index], _NUM_DRAWN)
    on_schedule = earlier * self.period_steps + env_steps % self.period_steps
    share = jnp.minimum(on_schedule / self.decay_steps, 1.0)
    final = jnp.asarray(self.final_epsilons, jnp.float32)[drawn[index]]
    return self.epsilon + share * (final - self.epsilon)


@functools.lru_cache
def _draw_schedules(
  probabilities: tuple[float, ...], seed: int
) -> tuple[np.ndarray, np.ndarray]:
  """Each period's schedule, and in how many periods before it that was followed."""
  rng = np.random.default_rng(seed)
  drawn = rng.choice(len(probabilities), size=_NUM_DRAWN, p=probabilities)
  followed = np.cumsum(drawn[:, None] == np.arange(len(probabilities)), axis=0)
  returns = followed[np.arange(_NUM_DRAWN), drawn] - 1
  return drawn.astype(np.int32), returns.astype(np.int32)
