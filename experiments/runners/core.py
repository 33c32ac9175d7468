"""What all runners share: records, hooks, episode tracking and the pace of updates."""

import dataclasses
import fractions
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import dm_env
import jax
import numpy as np

from explorax.agents import types
from explorax.environments import errors
from explorax.experiments import checkpoint as checkpoint_lib

TRAINING, EVALUATION = "training", "evaluation"  # The roles of environments.

# (role, number) → another environment of the run. The number distinguishes the
# environments of a role; a replacement's number is the count of failures so far.
MakeEnvironment = Callable[[str, int], dm_env.Environment]

# Updates after one environment step, between which a run cannot stop.
_MAX_UPDATES = 1000

# Separates the key of evaluations from all keys that training splits from its own.
_EVALUATION_KEY = 0x6576616C


# What a runner does, for the progress line.
FILLING, ACTING, EVALUATING = "filling replay", "acting", "evaluating"
COMPILING = "compiling"  # Before the name of what is compiled.


class Activity(NamedTuple):
  """What a runner does now.

  Attributes:
    name: one of the names above.
    env_steps: environment steps so far.
    filled: how many environment steps replay holds, and how many it needs before the
      first update; None once it has them.
  """

  name: str
  env_steps: int
  filled: tuple[int, int] | None = None

  @property
  def compiles(self) -> bool:
    return self.name.startswith(COMPILING)


def acting(env_steps: int, held: int, wanted: int) -> Activity:
  """Acting, as long as replay holds fewer steps than wanted to fill it."""
  if held < wanted:
    return Activity(FILLING, env_steps, (held, wanted))
  return Activity(ACTING, env_steps)


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


class LogClock:
  """When a row is due: whenever a multiple of `every` steps was passed."""

  def __init__(self, every: int, env_steps: int):
    """Args: every: steps between two rows; env_steps: at the start of the process."""
    self._every = every
    self._logged_at = env_steps

  def is_due(self, env_steps: int) -> bool:
    """Whether a row is due now; it is not due again."""
    is_due = env_steps // self._every > self._logged_at // self._every
    if is_due:
      self._logged_at = env_steps
    return is_due


def log_row(
  agent: types.Agent, learner_metrics: Mapping[str, float], **columns: Any
) -> LogRow:
  """A row of an agent, with the other columns by their names."""
  parameters = agent.parameters(columns["env_steps"], columns["learner_updates"])
  metrics = {name: x for name, x in learner_metrics.items() if name != "finite"}
  return LogRow(metrics={**parameters, **metrics}, **columns)


class EvaluationEpisode(NamedTuple):
  """One episode of an evaluation."""

  env_steps: int  # Environment steps of training before it.
  episode: int  # Its number in the evaluation, from 1.
  episode_return: float
  episode_length: int  # Environment steps; training does not count them.
  # The environment's, and `left` = 1 if the episode was left before its end.
  metrics: dict[str, float]
  seed: int = 0


class Evaluation(NamedTuple):
  """The episodes of one evaluation."""

  env_steps: int  # Environment steps of training before it.
  episodes: tuple[EvaluationEpisode, ...]
  seconds: float  # How long it took.
  seed: int = 0

  @property
  def mean_return(self) -> float:
    return float(np.mean([episode.episode_return for episode in self.episodes]))

  @property
  def mean_length(self) -> float:
    return float(np.mean([episode.episode_length for episode in self.episodes]))


class Failure(NamedTuple):
  """One crash of an environment.

  Attributes:
    role: of the environment, `TRAINING` or `EVALUATION`.
    error: what it raised.
    place: at which step or reset it crashed, in words.
    env_steps: environment steps of training taken so far.
    number: failures in a row so far, without a complete episode in between.
    limit: how many in a row are allowed.
  """

  role: str
  error: Exception
  place: str
  env_steps: int
  number: int
  limit: int

  def __str__(self) -> str:
    """One line: the exception, the line of code that raised it, and the place."""
    text = " ".join(f"{type(self.error).__name__}: {self.error}".split())
    if line := errors.place(self.error):
      text += f" ({line})"
    return (
      f"the environment of {self.role} failed {self.place}, at environment step "
      f"{self.env_steps}: {text}"
    )


class Result(NamedTuple):
  """What a runner returns."""

  weights: types.Params  # On the host.
  env_steps: int
  episodes: int
  learner_updates: int
  steps_per_second: float  # After compilation; NaN if nothing was learnt yet.
  interrupted: bool  # Whether it stopped before a limit or before the last evaluation.


class EvaluationObserver(Protocol):
  """Observes evaluation episodes while they run.

  Attributes:
    draws: whether it needs pictures.
  """

  draws: bool

  def begin(self) -> None:
    """An episode starts; an episode without an `end` was interrupted."""

  def row(self, frame: np.ndarray | None, r_int: float | None) -> None:
    """An observation: its picture, and its intrinsic reward if there is one."""

  def end(self, episode: EvaluationEpisode) -> None:
    """The episode has ended."""


def _ignore(*args: Any) -> None:
  """Does nothing."""


def _never() -> bool:
  return False


@dataclasses.dataclass(frozen=True)
class Hooks:
  """What a runner calls while it runs.

  Attributes:
    on_activity: called with what the run does next, before each piece of it.
    on_log: called every `log_every` environment steps.
    on_episode: called at the end of each episode.
    on_evaluation: called after each evaluation.
    on_env_failure: called with each crash of an environment that is recreated.
    on_message: called with one-sentence messages for the user.
    stop: called after each step, or report; True interrupts the run.
    ended: called then, too; True ends the run as a limit does.
    observer: observes the evaluation episodes; None for no observer.
    make_environment: makes further environments: replacements of crashed ones, and
      those of actor processes. None: the first crash ends the run.
    checkpoints: receives the run's state when a checkpoint is due, and at its end; if
      it has found a checkpoint, the run resumes from it.
  """

  on_activity: Callable[[Activity], None] = _ignore
  on_log: Callable[[LogRow], None] = _ignore
  on_episode: Callable[[Episode], None] = _ignore
  on_evaluation: Callable[[Evaluation], None] = _ignore
  on_env_failure: Callable[[Failure], None] = _ignore
  on_message: Callable[[str], None] = _ignore
  stop: Callable[[], bool] = _never
  ended: Callable[[], bool] = _never
  observer: EvaluationObserver | None = None
  make_environment: MakeEnvironment | None = None
  checkpoints: checkpoint_lib.Checkpointer | None = None


NO_HOOKS = Hooks()


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
    if spec.updates_per_step > _MAX_UPDATES:
      raise ValueError(
        f"updates_per_step is {spec.updates_per_step:g}; this runner makes at most "
        f"{_MAX_UPDATES:,} updates after a step: lower it."
      )
    self._min_size = spec.min_size
    self._ratio = updates_per_step(spec, 1, 10**6)
    self._due = 0  # In units of 1 / denominator of an update.
    self._empty_at = 0

  def step(self, env_steps: int, has_window: bool, num_steps: int = 1) -> int:
    """The number of updates due after `num_steps` more environment steps.

    Args:
      env_steps: taken so far, including these.
      has_window: whether replay has a window.
      num_steps: since the last call.
    """
    if env_steps - self._empty_at < self._min_size or not has_window:
      return 0
    self._due += num_steps * self._ratio.numerator
    updates, self._due = divmod(self._due, self._ratio.denominator)
    return updates

  def activity(self, env_steps: int) -> Activity:
    """Filling replay, or acting with updates, in the step after `env_steps`."""
    stored = env_steps - self._empty_at
    if stored + 1 < self._min_size:
      return Activity(FILLING, env_steps, (stored, self._min_size))
    return Activity(ACTING, env_steps)

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
  """Updates for a step of all environments, as a ratio of small numbers.

  Args:
    spec: whose `updates_per_step` are for one environment step.
    num_envs: E.
    max_steps: the largest denominator.
    max_updates: the largest numerator.

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
    self.begin()

  def begin(self) -> None:
    """A new episode."""
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

  def save(self) -> dict[str, Any]:
    """The state for `restore`, in JSON's types."""
    return {
      "episode_return": self.episode_return,
      "length": self.length,
      "policy": self.policy,
      "intrinsic_return": self.intrinsic_return,
    }

  def restore(self, saved: Mapping[str, Any]) -> None:
    self.episode_return = saved["episode_return"]
    self.length, self.policy = saved["length"], saved["policy"]
    self.intrinsic_return = saved["intrinsic_return"]


def physical_memory() -> int:
  """Bytes of memory of this machine."""
  return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def evaluation_key(actor_key: jax.Array) -> jax.Array:
  """The key of the evaluation's actor."""
  return jax.random.fold_in(actor_key, _EVALUATION_KEY)
