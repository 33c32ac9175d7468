"""What the processes of a run, its board and its driver send to each other."""

import dataclasses
import pathlib
from typing import Any, NamedTuple

import ray

from explorax.agents import types
from explorax.experiments import config as config_lib
from explorax.experiments.runners import core
from explorax.experiments.runners.distributed import rate_limit

BOARD, LEARNER, EVALUATOR = "board", "learner", "evaluator"

# The phases of a run, in order.
ACTING = 0  # Actors act, the learner learns.
LEARNING = 1  # A limit is reached: the remaining updates are made.
EVALUATING = 2  # The learner has finished.
STOPPED = 3  # Every process ends at once.


def actor_role(number: int) -> str:
  return f"actor {number}"


def replay_role(shard: int) -> str:
  return f"replay {shard}"


class Run(NamedTuple):
  """What every process knows of its run.

  Attributes:
    name: a prefix of the names of its Ray actors.
    config: its settings.
    limit: of each shard of replay.
    checkpoints: their directory; None if none are written.
  """

  name: str
  config: config_lib.RunConfig
  limit: rate_limit.RateLimit
  checkpoints: pathlib.Path | None

  def handle(self, role: str) -> Any:
    """The Ray actor of a role, by its name.

    Handles are not passed to constructors: Ray warns about handles of restartable
    actors.
    """
    return ray.get_actor(f"{self.name} {role}")


class Version(NamedTuple):
  """Weights that the learner published.

  Attributes:
    updates: made before they were published.
    metrics: of the last of these updates.
    reference: a list of one `ray.ObjectRef`; Ray would dereference a bare one.
  """

  updates: int
  metrics: dict[str, float]
  reference: list[Any]


class LearnerState(NamedTuple):
  """What a learner resumes from; the arguments of `Learner.restore`."""

  state: types.State
  updates: int
  metrics: dict[str, float]


class EndedEpisode(NamedTuple):
  """An episode of an actor."""

  steps_after: int  # Steps in its report that came after the end of the episode.
  episode_return: float
  episode_length: int  # Environment steps.
  policy: str
  metrics: dict[str, float]  # Of acting and of the environment.
  totals: dict[str, float]  # The environment's counts since the last report.


class EvaluationDone(NamedTuple):
  """An evaluation, and the calls that its observer receives."""

  evaluation: core.Evaluation
  calls: list[Any]


class Started(NamedTuple):
  """A process has started in a role, for example `actor 0`."""

  role: str
  pid: int


# The events for the driver, in order.
Event = EvaluationDone | Started | core.Episode | core.Failure


class Report(NamedTuple):
  """What a process did since its last report, and what it does now.

  Attributes:
    steps: environment steps.
    events: ended episodes, failures, evaluations.
    version: newly published weights.
    doing: the call that the process is in, if it may block; otherwise ''.
    seconds: since the beginning of this call.
  """

  steps: int = 0
  events: tuple[EndedEpisode | core.Failure | EvaluationDone, ...] = ()
  version: Version | None = None
  doing: str = ""
  seconds: float = 0.0


class BoardUpdate(NamedTuple):
  """The board's answer to a report.

  Attributes:
    phase: of the run.
    env_steps: of all actors so far.
    num_acting: number of actors that have not finished.
    version: the newest weights; None before the first.
    evaluated_at: environment steps at the last evaluation.
  """

  phase: int = ACTING
  env_steps: int = 0
  num_acting: int = 1
  version: Version | None = None
  evaluated_at: int = 0


@dataclasses.dataclass
class Counts:
  """The counts of a run, which a checkpoint stores; in JSON's types.

  Attributes:
    env_steps, episodes, updates: so far.
    evaluated_at: environment steps at the last evaluation.
    seconds: since the start of the run.
    totals: sums over all actors of what their environments count.
    metrics: of the learner's last published update.
    starts: role → how many processes have had it.
  """

  env_steps: int = 0
  episodes: int = 0
  updates: int = 0
  evaluated_at: int = 0
  seconds: float = 0.0
  totals: dict[str, float] = dataclasses.field(default_factory=dict)
  metrics: dict[str, float] = dataclasses.field(default_factory=dict)
  starts: dict[str, int] = dataclasses.field(default_factory=dict)


class Poll(NamedTuple):
  """The board's news for the driver.

  Attributes:
    events: since the last poll.
    counts: of the run.
    version: the newest weights; None before the first.
    blocked: role → (what its process does, for how many seconds).
    steps_per_second: of the run, after compilation.
  """

  events: list[Event]
  counts: Counts
  version: Version | None
  blocked: dict[str, tuple[str, float]]
  steps_per_second: float
