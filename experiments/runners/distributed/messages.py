"""What the processes of a run send to the board, and what it answers."""

from typing import Any, NamedTuple

from explorax.experiments.runners import core

BOARD, LEARNER, EVALUATOR = "board", "learner", "evaluator"

# The phases of a run, in their order.
ACTING = 0  # Actors act, the learner learns.
LEARNING = 1  # A limit is reached: the updates due are made.
EVALUATING = 2  # The learner has ended.
STOPPED = 3  # Every process ends at once.


def handle(run: str, role: str) -> Any:
  """The Ray actor of a role, by its name.

  Handles are not passed to constructors: Ray warns of those of actors that may restart.
  """
  import ray

  return ray.get_actor(f"{run} {role}")


def actor_role(number: int) -> str:
  return f"actor {number}"


def replay_role(shard: int) -> str:
  return f"replay {shard}"


class Version(NamedTuple):
  """Weights that the learner published.

  Attributes:
    incarnation: of the learner.
    updates: that it had made.
    reference: a list of one `ray.ObjectRef`; Ray would replace a bare one by its value.
  """

  incarnation: int
  updates: int
  reference: list[Any]


class LearnerState(NamedTuple):
  """What a learner starts from.

  Attributes:
    updates: made until then.
    metrics: of the last update.
    reference: a list of one `ray.ObjectRef`, of what `Learner.save` returned.
  """

  updates: int
  metrics: dict[str, float]
  reference: list[Any]


class EndedEpisode(NamedTuple):
  """An episode of an actor."""

  steps_after: int  # Of its report, taken after the end of the episode.
  episode_return: float
  episode_length: int  # Environment steps.
  policy: str
  metrics: dict[str, float]  # Of acting and of the environment.
  totals: dict[str, float]  # What the environment counted since the last report.


class EvaluationDone(NamedTuple):
  """An evaluation, and the calls that its observer receives."""

  evaluation: core.Evaluation
  calls: list[Any]


class Started(NamedTuple):
  """A process of a role has started.

  Attributes:
    role: as `actor 0`.
    incarnation: how many processes the role had before.
    pid: of the process.
    silence: seconds since the process before it was heard of; 0 if it never was.
    had_worked: whether that one had done anything.
    reason: why that one ended itself; '' if nobody knows.
  """

  role: str
  incarnation: int
  pid: int
  silence: float
  had_worked: bool
  reason: str


# What the driver is told, in order.
Event = EvaluationDone | Started | core.Episode | core.Failure


class Report(NamedTuple):
  """What a process did since its last report.

  Attributes:
    number: of the reports of this process, from 1; each is counted once.
    doing: what the process is blocked on, or ''.
    seconds: for how long.
    steps: environment steps.
    events: episodes, failures, evaluations.
    version: new weights.
    updates: the learner's updates so far; None of other processes.
    metrics: of the learner's last update.
    state: the learner's state, if it was asked for.
    is_last: whether the process has ended its work.
  """

  number: int
  doing: str = ""
  seconds: float = 0.0
  steps: int = 0
  events: tuple[EndedEpisode | core.Failure | EvaluationDone, ...] = ()
  version: Version | None = None
  updates: int | None = None
  metrics: dict[str, float] | None = None
  state: LearnerState | None = None
  is_last: bool = False


class BoardUpdate(NamedTuple):
  """The board's answer to a report.

  Attributes:
    phase: of the run.
    env_steps: of all actors so far.
    num_acting: actors that have not ended.
    version: the newest weights; None before the first.
    wants_state: the number of the newest request for the learner's state.
    evaluated_at: environment steps at the last evaluation.
  """

  phase: int = ACTING
  env_steps: int = 0
  num_acting: int = 1
  version: Version | None = None
  wants_state: int = 0
  evaluated_at: int = 0


class Poll(NamedTuple):
  """What the board tells the driver.

  Attributes:
    events: since the last poll.
    state: what another board resumes from; JSON can hold `counts`.
    learner: the learner's state, if it was asked for.
    starting: (role, incarnation) of processes that wait for what they start from.
    blocked: role → (what it is blocked on, seconds).
  """

  events: list[Event]
  state: "State"
  learner: LearnerState | None
  starting: list[tuple[str, int]]
  blocked: dict[str, tuple[str, float]]
  steps_per_second: float


class State(NamedTuple):
  """All that the board counts.

  Attributes:
    counts: what a checkpoint holds of it.
    members: role → (incarnation, the number of its last report, whether it has ended).
    version: the newest weights.
    phase: of the run.
    remembered: role → what its processes have had remembered.
  """

  counts: dict[str, Any]
  members: dict[str, tuple[int, int, bool]]
  version: Version | None
  phase: int
  remembered: dict[str, Any]
