"""Schedules: values that a numeric setting may take in place of a number.

A schedule is a function of the time, as optax's are, so that an optimiser takes one for
its learning rate. What the time is, the setting says: environment steps of all actors
while acting, updates in a learner.
"""

import abc
import dataclasses
import functools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np


class Schedule(abc.ABC):
  """A number that changes over time; subclasses are frozen dataclasses."""

  @abc.abstractmethod
  def __call__(self, time: chex.Numeric) -> jax.Array:
    """The number at a time (an int scalar), float32 `[]`."""

  @abc.abstractmethod
  def corners(self) -> tuple[float, ...]:
    """Numbers between whose least and greatest the schedule stays."""


# What a field that a schedule may fill is declared as.
Setting = float | Schedule


def at(setting: Setting, time: chex.Numeric) -> jax.Array | float:
  """The value of a setting at a time: a number is its own."""
  return setting(time) if isinstance(setting, Schedule) else setting


def check(
  name: str, setting: Setting, high: float = math.inf, *, positive: bool = False
) -> None:
  """Refuses a setting that is negative, not finite or too great at some time.

  Args:
    name: of the setting, for the error.
    setting: a number or a schedule.
    high: the greatest value allowed, if finite.
    positive: whether 0 is refused as well.

  Raises:
    ValueError: naming the setting, its value, and the range.
  """
  corners = setting.corners() if isinstance(setting, Schedule) else (setting,)
  for value in corners:
    if not (0.0 <= value <= high and value < math.inf) or (positive and value == 0.0):
      least = "positive" if positive else "at least 0"
      most = f" and at most {high:g}" if high < math.inf else ""
      raise ValueError(f"{name} is {setting}; it must be finite, {least}{most}.")


def check_learning_rate(name: str, rate: Setting) -> None:
  """Refuses a rate that is not positive, or a schedule that is negative somewhere."""
  check(name, rate, positive=not isinstance(rate, Schedule))


@dataclasses.dataclass(frozen=True)
class Linear(Schedule):
  """Goes from one value to another at a steady rate, and stays there."""

  start: float  # Until the time `begin`.
  end: float  # From the time `begin + steps` on.
  steps: int  # The time from the one to the other.
  begin: int = 0  # When it begins to change.

  def __post_init__(self):
    if self.steps < 1 or self.begin < 0:
      raise ValueError(
        f"Linear has steps={self.steps} and begin={self.begin}; a schedule needs at "
        "least 1 step and begins at 0 or later (for a constant, give the number)."
      )

  def __call__(self, time: chex.Numeric) -> jax.Array:
    elapsed = jnp.maximum(jnp.asarray(time, jnp.float32) - self.begin, 0.0)
    share = jnp.minimum(elapsed / self.steps, 1.0)
    return self.start + share * (self.end - self.start)

  def corners(self) -> tuple[float, ...]:
    return self.start, self.end


@dataclasses.dataclass(frozen=True)
class Piecewise(Schedule):
  """Goes linearly from each value to the next, and stays at the last."""

  values: tuple[float, ...]  # The first one is that of time 0.
  steps: tuple[int, ...]  # Times when the second, third, … are reached.

  def __post_init__(self):
    if not self.steps or len(self.values) != len(self.steps) + 1:
      raise ValueError(
        f"Piecewise has values={self.values} and steps={self.steps}; it needs at least "
        "one step, and one value more than steps."
      )
    if any(b <= a for a, b in zip((0, *self.steps), self.steps, strict=False)):
      raise ValueError(
        f"Piecewise.steps are {self.steps}; they must be positive and increase."
      )

  def __call__(self, time: chex.Numeric) -> jax.Array:
    return jnp.interp(
      jnp.asarray(time, jnp.float32),
      np.asarray((0, *self.steps), np.float32),
      np.asarray(self.values, np.float32),
    )

  def corners(self) -> tuple[float, ...]:
    return self.values


# Periods whose schedules are drawn; after the last one they repeat.
_NUM_DRAWN = 4096


@dataclasses.dataclass(frozen=True)
class Alternating(Schedule):
  """Switches among several linear schedules with a common start.

  Which one is followed is drawn every `period_steps`; one that is returned to resumes
  where it was left. The defaults are the ε of Munos et al. (2016), appendix F: each of
  sixteen threads draws for itself after every 50,000 of its frames, and anneals over
  250,000 of them. Here all actors follow one draw, so that the value is a function of
  the time alone, which a learner can evaluate as well; the time is that of all actors,
  in agent steps of four frames, so that it has the sixteen threads' steps together.
  The draws do not depend on the run's seed: give each trial its own seed here.
  """

  start: float = 1.0  # Of all schedules.
  ends: tuple[float, ...] = (0.5, 0.1, 0.01)  # Of each.
  probabilities: tuple[float, ...] = (0.3, 0.4, 0.3)  # With which each is drawn.
  # The time on a schedule until it has reached its end: 16 · 250,000 frames.
  decay_steps: int = 1_000_000
  period_steps: int = 200_000  # The time between two draws: 16 · 50,000 frames.
  seed: int = 0  # Of the draws.

  def __post_init__(self):
    if not self.ends or len(self.ends) != len(self.probabilities):
      raise ValueError(
        f"Alternating has ends={self.ends} and probabilities={self.probabilities}; "
        "give at least one schedule, and both for each."
      )
    if min(self.probabilities) < 0 or not math.isclose(sum(self.probabilities), 1.0):
      raise ValueError(
        f"Alternating.probabilities are {self.probabilities}; they must not be "
        "negative, and add up to 1."
      )
    for name, least in (("decay_steps", 1), ("period_steps", 1), ("seed", 0)):
      if getattr(self, name) < least:
        raise ValueError(
          f"Alternating.{name} is {getattr(self, name)}; use at least {least}."
        )

  def __call__(self, time: chex.Numeric) -> jax.Array:
    time = jnp.asarray(time, jnp.int32)
    drawn, returns = map(jnp.asarray, _draw_schedules(self.probabilities, self.seed))
    period = time // self.period_steps
    index = period % _NUM_DRAWN
    # For how long the schedule was followed before; all have decayed when draws repeat.
    earlier = jnp.where(period < _NUM_DRAWN, returns[index], _NUM_DRAWN)
    on_schedule = earlier * self.period_steps + time % self.period_steps
    share = jnp.minimum(on_schedule / self.decay_steps, 1.0)
    end = jnp.asarray(self.ends, jnp.float32)[drawn[index]]
    return self.start + share * (end - self.start)

  def corners(self) -> tuple[float, ...]:
    return self.start, *self.ends


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
