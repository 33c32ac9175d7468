"""The one form in which agents see every environment."""

import math
import random
from typing import Any

import dm_env
import numpy as np
import tree

from explorax.environments import encodings, errors, specs

_FLOAT32_MAX = float(np.finfo(np.float32).max)


class StandardEnvironment(dm_env.Environment):
  """A dm_env environment with one convention for all agents.

  - Observations are one array: uint8 stays uint8, everything else becomes float32
    (integers beyond 2^24 lose precision there). A `DiscreteArray` observation
    becomes a one-hot vector, and its spec a `specs.OneHotArray`. Dicts and tuples of
    arrays become one vector (`specs.JoinedArrays`). Images become `[H, W, C]` where
    their shape shows which axis the channels are (`specs.to_image`).
  - Actions are discrete and their spec is int32; each action is converted to the
    environment's own dtype.
  - Rewards and discounts are float32 scalars; both are None at an episode's start.
  - Stepping after an episode's end, or before the first reset, starts an episode.
  - Observations are never written again: they are copied, once.

  A violation of the protocol or of the specs raises an error at once: observations of
  another shape, discounts outside [0, 1], a first timestep in mid-episode, and NaN or
  infinite rewards and observations (`errors.NonFiniteError`). The entries of a
  `OneHotArray` are not checked here: `encodings.OneHotIndex` checks them.
  """

  def __init__(
    self,
    environment: dm_env.Environment,
    observation_spec: dm_env.specs.Array | None = None,
  ):
    """Wraps an environment.

    Args:
      environment: the environment.
      observation_spec: a more specific spec than the environment's own, for example
        `specs.OneHotArray`; the environment's own by default.

    Raises:
      TypeError: if the actions are not discrete, or observations are not arrays of
        numbers.
    """
    self._environment = environment
    actions = environment.action_spec()
    if not isinstance(actions, dm_env.specs.DiscreteArray):
      raise TypeError(
        f"the environment's actions are {actions!r:.80}, but agents here choose one of "
        "a finite set, a dm_env.specs.DiscreteArray or gymnasium.spaces.Discrete: "
        "number the combinations of several choices, or some values of a continuous "
        "action, for instance with gymnasium.wrappers.TransformAction."
      )
    number = specs.number_of_values("actions", actions.num_values)
    self._action_type = actions.dtype.type
    self._action_spec = dm_env.specs.DiscreteArray(number, np.int32, actions.name)
    leaves = tree.flatten_with_path(observation_spec or environment.observation_spec())
    for path, leaf in leaves:
      specs.check_real(path, leaf)
    self._path: tuple[Any, ...]  # To the only array of a dict or tuple.
    self._path, spec = leaves[0] if len(leaves) == 1 else ((), specs.joined(leaves))
    self._observation_spec = _standard_spec(spec)
    is_one_hot = isinstance(self._observation_spec, specs.OneHotArray)
    self._check_finite = self._observation_spec.dtype == np.float32 and not is_one_hot
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
    self._episode += 1
    self._step = 0
    if not timestep.first():
      raise self._error(
        f"reset() returned a {timestep.step_type!r} timestep, and not a StepType.FIRST "
        "one (dm_env.restart)"
      )
    self._reset_next_step = False
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
      raise self._error(
        f"the environment returned {timestep!r:.60}, and not a dm_env.TimeStep",
        TypeError,
      )
    step_type, reward, discount, observation = timestep
    if step_type == dm_env.StepType.FIRST:
      raise self._error(
        "the environment began an episode before the last one had ended with a "
        "StepType.LAST timestep (dm_env.termination or dm_env.truncation)"
      )
    if step_type == dm_env.StepType.LAST:
      self._reset_next_step = True
    elif step_type != dm_env.StepType.MID:
      raise self._error(f"the environment returned the step type {step_type!r}")
    reward = self._number("reward", reward)
    discount = self._number("discount", discount)
    # Also false for NaN, and for values that float32 would round to infinity.
    if not -_FLOAT32_MAX <= reward <= _FLOAT32_MAX:
      # A whole number may be too large for a float, too.
      raise self._non_finite("reward", math.inf if isinstance(reward, int) else reward)
    if not 0.0 <= discount <= 1.0:
      raise self._error(
        f"the environment returned a discount of {discount}, which is not between 0 (a "
        "termination) and 1"
      )
    return dm_env.TimeStep(
      step_type, np.float32(reward), np.float32(discount), self._observe(observation)
    )

  def _error(self, text: str, kind: type[Exception] = ValueError) -> Exception:
    return kind(f"at step {self._step} of episode {self._episode}, {text}.")

  def _non_finite(self, quantity: str, value: Any) -> errors.NonFiniteError:
    return errors.NonFiniteError(
      f"the environment returned {value} in its {quantity} at step {self._step} of "
      f"episode {self._episode} (environment step {self._total_steps}); float32 cannot "
      "represent it as a finite number, so fix the environment or clip its values."
    )

  def _number(self, quantity: str, value: Any) -> Any:
    """A reward or a discount as one number."""
    if isinstance(value, float | int | np.floating):
      return value
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in specs.REAL:
      text = " ".join(repr(value).split())
      raise self._error(
        f"the environment returned {text:.60} as the {quantity}, and not a real number",
        TypeError,
      )
    return array.item()

  def _observe(self, observation: Any) -> np.ndarray:
    try:
      observation = specs.part(observation, self._path)
      array = encodings.to_array(self._observation_spec, observation)
      array = np.array(array, order="C")
    except (KeyError, TypeError, ValueError) as error:
      kind = TypeError if isinstance(error, TypeError) else ValueError
      raise self._error(str(error), kind) from error
    # If x has a NaN or an infinity, x·x is not finite; it takes a third of the time of
    # np.isfinite(x).all(). x·x may also overflow: only then does the second check run.
    if (
      self._check_finite
      and not math.isfinite(np.vdot(array, array))
      and not np.isfinite(array).all()
    ):
      raise self._non_finite("observation", array[~np.isfinite(array)][0])
    return array

  def observation_spec(self) -> dm_env.specs.Array:
    return self._observation_spec

  def action_spec(self) -> dm_env.specs.DiscreteArray:
    return self._action_spec

  def close(self) -> None:
    self._environment.close()


def episode_metrics(environment: dm_env.Environment) -> dict[str, float]:
  """The environment's own metrics; call it after an episode's last step.

  They come from the environment's method `episode_metrics()`, if it has one: a dict of
  numbers by name, such as the coverage of a maze. For bsuite's they are those of
  `bsuite_info()`, accumulated since the environment was made; Deep Sea has
  `total_bad_episodes` (those in which the agent went left on the way to the goal) and
  `denoised_return` (how often it found the treasure). Empty for all others.
  """
  raw = getattr(environment, "raw", environment)
  info = getattr(raw, "episode_metrics", None) or getattr(raw, "bsuite_info", None)
  return {key: float(value) for key, value in info().items()} if info else {}


def seed_global_generators(seed: int) -> None:
  """For environments that draw from them: the same seed, the same episodes."""
  random.seed(seed)
  np.random.seed(seed % 2**32)


def _standard_spec(spec: dm_env.specs.Array) -> dm_env.specs.Array:
  """The spec of observations that agents receive, for an environment's own spec."""
  if isinstance(spec, (specs.OneHotArray, *specs.JOINING)):
    return spec
  if isinstance(spec, dm_env.specs.DiscreteArray):
    number = specs.number_of_values("observations", spec.num_values)
    return specs.OneHotArray((number,), spec.name)
  return encodings.Dense(spec).spec
