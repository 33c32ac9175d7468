"""Schedules: values that a numeric setting accepts in place of a number.

A schedule is a function of time, like optax's, so that an optimiser accepts one as its
learning rate. The setting defines the time: environment steps of all actors while
acting, or updates in a learner.
"""

import abc
import dataclasses
import functools
import math
import typing
from typing import Annotated, Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from explorax import ranges


class Schedule(ranges.Checked, abc.ABC):
  """A number that changes over time; subclasses are frozen dataclasses."""

  @abc.abstractmethod
  def __call__(self, time: chex.Numeric) -> jax.Array:
    """The number at a time (an int scalar), float32 `[]`."""

  @abc.abstractmethod
  def corners(self) -> tuple[float, ...]:
    """Values between whose minimum and maximum the schedule stays."""


# Types of fields that accept a schedule.
Setting = float | Schedule
NonNegative = Annotated[Setting, ranges.Range(ge=0)]
Positive = Annotated[Setting, ranges.Range(gt=0)]
Probability = Annotated[Setting, ranges.Range(ge=0, le=1)]
# A schedule may decrease to 0.
LearningRate = ranges.PositiveFloat | Annotated[Schedule, ranges.Range(ge=0)]


def current(settings: Any, time: int) -> dict[str, float]:
  """The values at a time of all fields of a dataclass that accept a schedule.

  A rule's values include the values of the rule that it wraps: `of.epsilon`, if that
  rule has an `epsilon`. Empty if `settings` is not a dataclass.
  """
  if not dataclasses.is_dataclass(settings):
    return {}
  kind: Any = type(settings)
  found = {
    name: float(at(getattr(settings, name), time))
    for name in _fields_of_time(kind)
    if getattr(settings, name) is not None
  }
  inner = current(getattr(settings, "of", None), time)
  return found | {f"of.{n}" if n in found else n: value for n, value in inner.items()}


@functools.lru_cache
def _fields_of_time(kind: type) -> tuple[str, ...]:
  """The fields whose type accepts a schedule."""
  return tuple(n for n, hint in typing.get_type_hints(kind).items() if _is_timed(hint))


def _is_timed(hint: Any) -> bool:
  return hint is Schedule or any(map(_is_timed, typing.get_args(hint)))


def at(setting: Setting, time: chex.Numeric) -> jax.Array | float:
  """The value of a setting at a time; a number is constant."""
  return setting(time) if isinstance(setting, Schedule) else setting


@dataclasses.dataclass(frozen=True)
class Linear(Schedule):
  """Changes linearly from one value to another, and then stays constant."""

  start: float  # Value until the time `begin`.
  end: float  # Value from the time `begin + steps` on.
  steps: ranges.PositiveInt  # Duration of the change.
  begin: ranges.NonNegativeInt = 0  # Start of the change.

  def __call__(self, time: chex.Numeric) -> jax.Array:
    elapsed = jnp.maximum(jnp.asarray(time, jnp.float32) - self.begin, 0.0)
    share = jnp.minimum(elapsed / self.steps, 1.0)
    return self.start + share * (self.end - self.start)

  def corners(self) -> tuple[float, ...]:
    return self.start, self.end


@dataclasses.dataclass(frozen=True)
class Piecewise(Schedule):
  """Changes linearly from each value to the next, and stays at the last."""

  values: tuple[float, ...]  # The first one is the value at time 0.
  # Times of the second, third, … value.
  steps: Annotated[tuple[ranges.PositiveInt, ...], ranges.Rising()]

  def __post_init__(self) -> None:
    super().__post_init__()
    if len(self.values) != len(self.steps) + 1:
      raise ValueError(
        f"Piecewise has values={self.values} and steps={self.steps}; it needs one "
        "value more than steps."
      )

  def __call__(self, time: chex.Numeric) -> jax.Array:
    return jnp.interp(
      jnp.asarray(time, jnp.float32),
      np.asarray((0, *self.steps), np.float32),
      np.asarray(self.values, np.float32),
    )

  def corners(self) -> tuple[float, ...]:
    return self.values


# Number of periods whose schedules are drawn; then they repeat.
_NUM_DRAWN = 4096


@dataclasses.dataclass(frozen=True)
class Alternating(Schedule):
  """Switches between several linear schedules with a common start.

  Every `period_steps` one of them is drawn; a schedule that is drawn again resumes
  where it stopped. The defaults are the ε of Munos et al. (2016), appendix F, where
  each of sixteen threads draws after every 50,000 of its frames, and anneals over
  250,000 of them. Here all actors share one draw, so that the value is a function of
  time only, which a learner can also compute. The time counts the agent steps of all
  actors, with four frames each, and therefore the steps of all sixteen threads. The
  draws do not depend on the run's seed: give each trial a different `seed` here.
  """

  start: float = 1.0  # Of all schedules.
  ends: tuple[float, ...] = (0.5, 0.1, 0.01)  # Of each.
  # Of drawing each one.
  probabilities: tuple[ranges.Probability, ...] = (0.3, 0.4, 0.3)
  # Time on a schedule until it reaches its end: 16 · 250,000 frames.
  decay_steps: ranges.PositiveInt = 1_000_000
  # The time between two draws: 16 · 50,000 frames.
  period_steps: ranges.PositiveInt = 200_000
  seed: ranges.NonNegativeInt = 0  # Of the draws.

  def __post_init__(self) -> None:
    super().__post_init__()
    if not self.ends or len(self.ends) != len(self.probabilities):
      raise ValueError(
        f"Alternating has ends={self.ends} and probabilities={self.probabilities}; "
        "give at least one schedule, and both for each."
      )
    if not math.isclose(sum(self.probabilities), 1.0):
      raise ValueError(
        f"Alternating.probabilities are {self.probabilities}; they must add up to 1."
      )

  def __call__(self, time: chex.Numeric) -> jax.Array:
    time = jnp.asarray(time, jnp.int32)
    drawn, returns = map(jnp.asarray, _draw_schedules(self.probabilities, self.seed))
    period = time // self.period_steps
    index = period % _NUM_DRAWN
    # Earlier time on the schedule; all have reached their end when draws repeat.
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
  """Each period's schedule, and the number of earlier periods with the same one."""
  rng = np.random.default_rng(seed)
  drawn = rng.choice(len(probabilities), size=_NUM_DRAWN, p=probabilities)
  followed = np.cumsum(drawn[:, None] == np.arange(len(probabilities)), axis=0)
  returns = followed[np.arange(_NUM_DRAWN), drawn] - 1
  return drawn.astype(np.int32), returns.astype(np.int32)
