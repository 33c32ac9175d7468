"""The one form in which agents see every environment."""

import math
from collections.abc import Mapping
from typing import Any

import dm_env
import numpy as np

from explorax.environments import errors, specs

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_NESTED = (Mapping, tuple, list)
# Specs that are already as agents take them.
_OURS = (
  specs.OneHotArray,
  specs.ImageWithState,
  specs.CategoricalImage,
  specs.Image,
  specs.JoinedArrays,
)
_REAL = "bifu"  # The kinds of numpy's dtypes for real numbers.
_REWARD_SPEC = dm_env.specs.Array((), np.float32, "reward")
_DISCOUNT_SPEC = dm_env.specs.BoundedArray((), np.float32, 0.0, 1.0, "discount")


class StandardEnvironment(dm_env.Environment):
  """A dm_env environment with one convention for all agents.

  - Observations are one array: uint8 stays uint8, everything else becomes float32
    (integers beyond 2^24 lose precision there). A `DiscreteArray` observation
    becomes a one-hot vector, and its spec a `specs.OneHotArray`. Dicts and tuples of
    arrays become one vector (`specs.JoinedArrays`). Images whose channels are not the
    last axis stay as they are (`specs.Image`); encodings turn them.
  - Actions are discrete and their spec is int32; each action is converted to the
    environment's own dtype.
  - Rewards and discounts are float32 scalars; both are None at an episode's start.
  - Stepping after an episode's end, or before the first reset, starts an episode.

  A violation of the protocol or of the specs raises an error at once: observations of
  another shape, discounts outside [0, 1], a first timestep in mid-episode, and NaN or
  infinite rewards and observations (`errors.NonFiniteError`). The entries of a
  `OneHotArray` are not checked here: `encodings.OneHotIndex` checks them.
  """

  def __init__(
    self,
    environment: dm_env.Environment,
    *,
    observation_spec: dm_env.specs.Array | None = None,
    layout: str | None = None,
    copy: bool = True,
  ):
    """Wraps an environment.

    Args:
      environment: the environment.
      observation_spec: a more specific spec than the environment's own, for example
        `specs.OneHotArray`; the environment's own by default.
      layout: the axes of images, see `specs.of_array`.
      copy: copy every observation, for environments that write the next one into
        the same array. Without it an observation is copied only to convert it.

    Raises:
      TypeError: if the actions are not discrete, or observations are not arrays of
        numbers.
      ValueError: if it is not clear how images are laid out.
    """
    actions = _discrete_actions(environment.action_spec())
    spec = observation_spec or environment.observation_spec()
    self._environment = environment
    self._action_type = actions.dtype.type
    self._action_spec = dm_env.specs.DiscreteArray(
      actions.num_values, np.int32, actions.name
    )
    parts = tuple(specs.parts(spec)) if isinstance(spec, _NESTED) else ()
    if parts:
      _check_parts(parts)
      spec = parts[0].spec if len(parts) == 1 else specs.JoinedArrays(parts)
    self._parts = parts
    self._observation_spec = _standard_observation_spec(spec, layout)
    self._index_spec = spec if isinstance(spec, dm_env.specs.DiscreteArray) else None
    is_discrete = self._index_spec is not None
    self._needed = "one whole number" if is_discrete else "one array of real numbers"
    self._to_array = np.array if copy else np.asarray
    self._shape = self._observation_spec.shape
    self._dtype = self._observation_spec.dtype
    self._check_finite = self._dtype == np.float32 and not isinstance(
      self._observation_spec, specs.OneHotArray
    )
    self._reset_next_step = True
    self._episode = 0
    self._step = 0
    self._total_steps = 0

  @property
  def raw(self) -> dm_env.Environment:
    """The wrapped environment."""
    return self._environment

  def reset(self) -> dm_env.TimeStep:
    timestep = self._environment.reset()
    if not timestep.first():
      raise ValueError(
        f"reset() returned a {timestep.step_type!r} timestep; an episode must begin "
        "with a StepType.FIRST one (dm_env.restart)."
      )
    self._reset_next_step = False
    self._episode += 1
    self._step = 0
    return dm_env.TimeStep(
      dm_env.StepType.FIRST, None, None, self._observe(timestep.observation)
    )

  def step(self, action: Any) -> dm_env.TimeStep:
    if self._reset_next_step:
      return self.reset()
    timestep = self._environment.step(self._action_type(action))
    self._step += 1
    self._total_steps += 1
    if not isinstance(timestep, dm_env.TimeStep):
      raise TypeError(
        f"the environment returned {timestep!r:.60} at {self._place()}; it must be a "
        "dm_env.TimeStep."
      )
    step_type, reward, discount, observation = timestep
    if step_type == dm_env.StepType.FIRST:
      raise ValueError(
        f"the environment began an episode at {self._place()}, before the last one "
        "had ended; it must return a StepType.LAST timestep first "
        "(dm_env.termination or dm_env.truncation)."
      )
    if step_type == dm_env.StepType.LAST:
      self._reset_next_step = True
    elif step_type != dm_env.StepType.MID:
      raise ValueError(
        f"the environment returned the step type {step_type!r} at {self._place()}; it "
        "must be a dm_env.StepType."
      )
    return dm_env.TimeStep(
      step_type,
      self._reward(reward),
      self._discount(discount),
      self._observe(observation),
    )

  def _place(self) -> str:
    return f"step {self._step} of episode {self._episode}"

  def _non_finite(self, quantity: str, value: float) -> errors.NonFiniteError:
    place = (self._episode, self._step, self._total_steps)
    return errors.NonFiniteError(quantity, value, *place)

  def _reward(self, reward: Any) -> np.float32:
    if not isinstance(reward, float | int | np.floating):
      reward = self._scalar("reward", reward)
    # Also false for NaN, and for values that float32 would round to infinity.
    if not -_FLOAT32_MAX <= reward <= _FLOAT32_MAX:
      too_large = isinstance(reward, int)  # Perhaps for a float, too.
      raise self._non_finite("reward", math.inf if too_large else float(reward))
    return np.float32(reward)

  def _discount(self, discount: Any) -> np.float32:
    if not isinstance(discount, float | int | np.floating):
      discount = self._scalar("discount", discount)
    if not 0.0 <= discount <= 1.0:
      raise ValueError(
        f"the environment returned a discount of {discount} at {self._place()}; "
        "it must lie between 0 (a termination) and 1."
      )
    return np.float32(discount)

  def _scalar(self, quantity: str, value: Any) -> float:
    """The slow path for rewards and discounts that are arrays or not numbers."""
    array = self._numbers(quantity, value, "one real number")
    if array.ndim:
      raise self._wrong(quantity, value, "one real number")
    return float(array)

  def _numbers(self, quantity: str, value: Any, needed: str) -> np.ndarray:
    """`value` as an array; no strings, dates, complex, masked or missing numbers."""
    try:
      array = value if type(value) is np.ndarray else np.asarray(value)
    except (TypeError, ValueError) as error:
      raise self._wrong(quantity, value, needed) from error
    if array.dtype.kind not in _REAL or isinstance(value, np.ma.MaskedArray):
      raise self._wrong(quantity, value, needed)
    return array

  def _wrong(self, quantity: str, value: Any, needed: str) -> TypeError:
    shown = " ".join(repr(value).split())
    return TypeError(
      f"the environment returned {shown:.60} as the {quantity} at {self._place()}; it "
      f"must be {needed}."
    )

  def _observe(self, observation: Any) -> np.ndarray:
    if self._parts:
      observation = self._joined(observation)
    given = self._numbers("observation", observation, self._needed)
    if self._index_spec is not None:
      return self._one_hot(given, self._index_spec)
    array = self._to_array(given, self._dtype)
    if array.shape != self._shape:
      raise ValueError(
        f"the environment returned an observation of shape {array.shape} at "
        f"{self._place()}, but its spec says {self._shape}."
      )
    if array.dtype == np.uint8 != given.dtype and (array != given).any():
      raise ValueError(
        f"the environment returned {given[given != array][0]} in the observation at "
        f"{self._place()}, but its spec says uint8, which cannot hold it."
      )
    # If x has a NaN or an infinity, x·x is not finite; it takes a third of the time of
    # np.isfinite(x).all(). x·x may also overflow: only then does the second check run.
    if (
      self._check_finite
      and not math.isfinite(np.vdot(array, array))
      and not np.isfinite(array).all()
    ):
      raise self._non_finite("observation", errors.first_non_finite(array))
    return array

  def _joined(self, observation: Any) -> Any:
    """The parts of an observation as one vector; a single part as it is."""
    vectors = []
    for part in self._parts:
      try:
        value = part.of(observation)
      except (KeyError, IndexError, TypeError) as error:
        raise ValueError(
          f"the environment returned an observation without {part} at {self._place()}, "
          "which its spec has."
        ) from error
      if len(self._parts) == 1:
        return value
      is_discrete = isinstance(part.spec, dm_env.specs.DiscreteArray)
      needed = "one whole number" if is_discrete else "an array of real numbers"
      given = self._numbers(f"observation{part}", value, needed)
      if is_discrete:
        vectors.append(self._one_hot(given, part.spec, str(part)))
        continue
      if given.shape != part.spec.shape:
        raise ValueError(
          f"the environment returned observation{part} of shape {given.shape} at "
          f"{self._place()}, but its spec says {part.spec.shape}."
        )
      vectors.append(part.vector(given))
    return np.concatenate(vectors)

  def _one_hot(
    self, given: np.ndarray, spec: dm_env.specs.DiscreteArray, part: str = ""
  ) -> np.ndarray:
    if given.size != 1 or not float(given.item()).is_integer():
      raise self._wrong(f"observation{part}", given.tolist(), "one whole number")
    number = int(given.item())
    if not spec.minimum <= number <= spec.maximum:
      raise ValueError(
        f"the environment returned observation{part} {number} at {self._place()}, but "
        f"its spec allows {spec.minimum} to {spec.maximum}."
      )
    array = np.zeros(spec.num_values, np.float32)
    array[number - int(spec.minimum)] = 1.0
    return array

  def observation_spec(self) -> dm_env.specs.Array:
    return self._observation_spec

  def action_spec(self) -> dm_env.specs.DiscreteArray:
    return self._action_spec

  def reward_spec(self) -> dm_env.specs.Array:
    return _REWARD_SPEC

  def discount_spec(self) -> dm_env.specs.BoundedArray:
    return _DISCOUNT_SPEC

  def close(self) -> None:
    self._environment.close()


def unwrap(environment: dm_env.Environment) -> dm_env.Environment:
  """The environment within a `StandardEnvironment`, or the environment itself."""
  if isinstance(environment, StandardEnvironment):
    return environment.raw
  return environment


def _discrete_actions(spec: Any) -> dm_env.specs.DiscreteArray:
  if isinstance(spec, dm_env.specs.DiscreteArray):
    errors.number_of_values("actions", spec.num_values)
    return spec
  raise TypeError(
    f"the environment's actions are {spec!r:.80}, but agents here choose one of a "
    "finite set, a dm_env.specs.DiscreteArray or gymnasium.spaces.Discrete: number the "
    "combinations of several choices, or some values of a continuous action, for "
    "instance with gymnasium.wrappers.TransformAction."
  )


def _check_parts(parts: tuple[specs.Part, ...]) -> None:
  """Refuses parts of observations that are not numbers."""
  fitting = [part for part in parts if isinstance(part.spec, dm_env.specs.Array)]
  fitting = [part for part in fitting if part.spec.dtype.kind in _REAL]
  if wrong := [part for part in parts if part not in fitting]:
    keys = sorted({part.path[0] for part in parts} - {part.path[0] for part in wrong})
    raise TypeError(
      f"the part {wrong[0]} of observations is a {type(wrong[0].spec).__name__}, but "
      "agents here take arrays of real numbers: leave it out"
      + (
        f", for instance in a function of yours that returns "
        f"gymnasium.wrappers.FilterObservation(env, {keys})."
        if keys and isinstance(keys[0], str)
        else ", or encode it as such."
      )
    )
  for part in parts:
    if isinstance(part.spec, dm_env.specs.DiscreteArray):
      errors.number_of_values("observations", part.spec.num_values)


def _standard_observation_spec(spec: Any, layout: str | None) -> dm_env.specs.Array:
  if isinstance(spec, _OURS):
    return spec
  if isinstance(spec, dm_env.specs.DiscreteArray):
    number = errors.number_of_values("observations", spec.num_values)
    return specs.OneHotArray((number,), spec.name, start=int(spec.minimum))
  if not isinstance(spec, dm_env.specs.Array):
    raise TypeError(
      f"the environment's observations are {spec!r}, but agents here take arrays of "
      "real numbers: encode them as such."
    )
  if spec.dtype.kind not in _REAL:
    raise TypeError(
      f"the environment's observations have dtype {spec.dtype}; agents here take "
      "arrays of real numbers: encode them as such."
    )
  dtype = np.uint8 if spec.dtype == np.uint8 else np.float32
  if isinstance(spec, specs.StackedFrames):
    return spec.replace(dtype=dtype)
  return specs.of_array(spec.shape, dtype, spec.name, layout)
