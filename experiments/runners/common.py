"""What all runners share: records, hooks, open episodes and the pace of updates."""

import contextlib
import dataclasses
import fractions
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types
from explorax.experiments import checkpoint

TRAINING, EVALUATION = "training", "evaluation"  # The roles of environments.

# (role, number) → another environment of the run. The number distinguishes the
# environments of a role.
MakeEnvironment = Callable[[str, int], dm_env.Environment]

# Updates after one environment step, between which a run cannot stop.
_MAX_UPDATES = 1000

# Separates the key of evaluations from all keys that training splits from its own.
_EVALUATION_KEY = 0x6576616C

# What a runner does, for the progress line; the first time, it may compile for long.
FILLING, ACTING, EVALUATING = "filling replay", "acting and learning", "evaluating"
COMPILING = "compiling: "


class Episode(NamedTuple):
  """The record of a finished episode."""

  episode: int  # Number of finished episodes, including this one.
  env_steps: int  # Environment steps so far.
  episode_return: float
  episode_length: int  # Environment steps.
  policy: str  # The group of the policy that acted; see `Agent.policy_names`.
  learner_updates: int
  steps_per_second: float  # Of the whole run, after compilation.
  wall_seconds: float  # Since the start of the run.
  # The learner's latest metrics, the environment's and, if acting computes an intrinsic
  # reward, its sum over the episode as `intrinsic_return`.
  metrics: dict[str, float]
  seed: int = 0


class LogRow(NamedTuple):
  """What a run logs every `log_every` environment steps, also within an episode."""

  env_steps: int  # Environment steps so far.
  learner_updates: int
  steps_per_second: float  # Of the whole run, after compilation.
  wall_seconds: float  # Since the start of the run.
  # The learner's of its last update, and `Agent.parameters`: ε, the learning rate.
  metrics: dict[str, float]
  seed: int = 0


class EvaluationEpisode(NamedTuple):
  """One episode of an evaluation."""

  env_steps: int  # Environment steps of training before it.
  episode: int  # Its number in the evaluation, from 1.
  episode_return: float
  episode_length: int  # Environment steps; training does not count them.
  # The environment's, and `left`: 1 if the episode was left before its end, else 0.
  metrics: dict[str, float]
  seed: int = 0


class Evaluation(NamedTuple):
  """The episodes of one evaluation."""

  env_steps: int  # Environment steps of training before it.
  episodes: tuple[EvaluationEpisode, ...]
  seed: int = 0

  @property
  def mean_return(self) -> float:
    return float(np.mean([episode.episode_return for episode in self.episodes]))

  @property
  def mean_length(self) -> float:
    return float(np.mean([episode.episode_length for episode in self.episodes]))


class Result(NamedTuple):
  """What a runner returns."""

  weights: types.Params  # On the host.
  env_steps: int
  episodes: int
  learner_updates: int
  steps_per_second: float  # After compilation; NaN if nothing was learnt yet.
  interrupted: bool  # Whether it stopped before a limit or before the last evaluation.


@dataclasses.dataclass(frozen=True)
class Hooks:
  """What a runner calls while it runs.

  Attributes:
    on_activity: with what the run does next, and the environment steps so far, before
      each piece of it.
    on_log: every `log_every` environment steps.
    on_episodes: with those that have ended, after the step or report.
    on_evaluation: after each of them.
    on_checkpoint: after each of them, with its directory and the environment steps.
    on_failure: when an exception ends the run, with the last good weights of each seed.
    stop: after each step, or report; True interrupts the run, after what it has begun.
    ended: then, too; True ends the run as a limit does.
    make_environment: makes further environments; None: there are none.
    checkpoints: receives the run's state when a checkpoint is due, and at its end; if
      it has found a checkpoint, the run resumes from it.
  """

  on_activity: Callable[[str, int], None] = lambda activity, env_steps: None
  on_log: Callable[[LogRow], None] = lambda row: None
  on_episodes: Callable[[Sequence[Episode]], None] = lambda episodes: None
  on_evaluation: Callable[[Evaluation], None] = lambda evaluation: None
  on_checkpoint: Callable[[pathlib.Path, int], None] = lambda path, env_steps: None
  on_failure: Callable[[list[types.Params]], None] = lambda weights: None
  stop: Callable[[], bool] = lambda: False
  ended: Callable[[], bool] = lambda: False
  make_environment: MakeEnvironment | None = None
  checkpoints: checkpoint.Checkpointer | None = None

  @property
  def restored(self) -> checkpoint.Checkpoint | None:
    """The checkpoint from which the run resumes."""
    return None if self.checkpoints is None else self.checkpoints.restored


NO_HOOKS = Hooks()


def has_passed(every: int | None, before: int, now: int) -> bool:
  """Whether the count has passed a multiple of `every` (None: never) since `before`."""
  return every is not None and now // every > before // every


class Pace:
  """Which updates are due: `updates_per_step` for each environment step.

  Updates are due as soon as replay has its minimum size and a window; earlier steps
  are not made up for. The rate is a ratio of integers, so that no rounding error
  accumulates.
  """

  def __init__(self, spec: types.ReplaySpec):
    """Starts with an empty replay.

    Raises:
      ValueError: if the rate is too small or too large.
    """
    self._min_size = spec.min_size
    self._ratio = updates_per_step(spec, 1, 10**6)
    if self._ratio > _MAX_UPDATES:
      raise ValueError(
        f"updates_per_step is {spec.updates_per_step:g}; this runner makes at most "
        f"{_MAX_UPDATES:,} updates after a step: lower it."
      )
    self._due = 0  # In units of 1 / denominator of an update.
    self._empty_at = 0

  def step(self, env_steps: int, has_window: bool, num_steps: int = 1) -> int:
    """The number of updates due after the last `num_steps` of these `env_steps`."""
    if env_steps - self._empty_at < self._min_size or not has_window:
      return 0
    self._due += num_steps * self._ratio.numerator
    updates, self._due = divmod(self._due, self._ratio.denominator)
    return updates

  def is_filling(self, env_steps: int) -> bool:
    """Whether no update is due after the step that follows `env_steps`."""
    return env_steps - self._empty_at + 1 < self._min_size

  def begin_empty(self, env_steps: int) -> None:
    """Replay was emptied: updates wait until it is filled again."""
    self._empty_at, self._due = env_steps, 0

  def save(self) -> dict[str, int]:
    """The state for `restore`, in JSON's types."""
    return {"due": self._due, "empty_at": self._empty_at}

  def restore(self, saved: Mapping[str, int]) -> None:
    self._due, self._empty_at = saved["due"], saved["empty_at"]


def updates_per_step(
  spec: types.ReplaySpec, num_envs: int, max_steps: int, max_updates: float = math.inf
) -> fractions.Fraction:
  """Updates for a step of all E = `num_envs` environments, as a ratio of integers.

  The numerator and the denominator are at most `max_updates` and `max_steps`.

  Raises:
    ValueError: if the nearest such ratio is more than 1 % off.
  """
  wanted = spec.updates_per_step * num_envs
  if wanted > max_updates:
    raise ValueError(
      f"updates_per_step is {spec.updates_per_step:g}, {wanted:g} updates after a step "
      f"of all environments; this runner makes at most {max_updates:,}: lower it."
    )
  if wanted:
    max_steps = int(min(max_steps, max_updates / wanted))
  ratio = fractions.Fraction(wanted).limit_denominator(max_steps)
  if not math.isclose(ratio, wanted, rel_tol=0.01):
    raise ValueError(
      f"updates_per_step is {spec.updates_per_step}; the runner makes at least one "
      f"update in {max_steps} steps: raise updates_per_step."
    )
  return ratio


class EpisodeTracker:
  """Return, length, policy and intrinsic return of the current episode.

  Attributes:
    episode_return: the sum of rewards, in float64.
    length: environment steps.
    policy: the index of the policy since the first action; None before it.
    intrinsic_return: Σ r_int over the rows; None if acting computes none.
  """

  def __init__(self) -> None:
    self.episode_return = 0.0
    self.length = 0
    self.policy: int | None = None
    self.intrinsic_return: float | None = None

  def acted(self, extras: Mapping[str, Any]) -> None:
    """The actor has answered a timestep, possibly the last one, with these extras."""
    if self.policy is None:
      self.policy = int(extras["policy"])
    if "r_int" in extras:
      so_far = self.intrinsic_return or 0.0
      self.intrinsic_return = so_far + float(extras["r_int"])

  def stepped(self, reward: Any) -> None:
    """The environment has taken a step."""
    self.episode_return += float(reward)
    self.length += 1

  def metrics(self) -> dict[str, float]:
    """`intrinsic_return`, if acting computes one."""
    intrinsic = self.intrinsic_return
    return {} if intrinsic is None else {"intrinsic_return": intrinsic}


def close(environment: dm_env.Environment) -> None:
  """Closes an environment at the end; an error changes nothing, and is ignored."""
  with contextlib.suppress(Exception):
    environment.close()


def on_device(tree: Any) -> Any:
  """Copies the arrays of a tree, so that they may be donated."""
  return jax.tree.map(lambda x: jnp.array(x, copy=True), tree)


def evaluation_key(actor_key: jax.Array, resumed_at: int) -> jax.Array:
  """The key of the evaluation's actor, in a run that has resumed at this step or 0."""
  key = jax.random.fold_in(actor_key, _EVALUATION_KEY)
  return jax.random.fold_in(key, resumed_at) if resumed_at else key
