"""Messages between the processes of a run and the board."""

from typing import Any, NamedTuple

from explorax.experiments.runners import core

BOARD, LEARNER, EVALUATOR = "board", "learner", "evaluator"

# The phases of a run, in order.
ACTING = 0  # Actors act, the learner learns.
LEARNING = 1  # A limit is reached: the remaining updates are made.
EVALUATING = 2  # The learner has finished.
STOPPED = 3  # Every process ends at once.


def handle(run: str, role: str) -> Any:
  """The Ray actor of a role, by its name.

  Handles are not passed to constructors: Ray warns about handles of restartable actors.
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
    updates: made before they were published.
    reference: a list of one `ray.ObjectRef`; Ray would dereference a bare one.
  """

  incarnation: int
  updates: int
  reference: list[Any]


class LearnerState(NamedTuple):
  """What a learner starts from.

  Attributes:
    updates: made so far.
    metrics: of the last update.
    reference: a list of one `ray.ObjectRef`, to the result of `Learner.save`.
  """

  updates: int
  metrics: dict[str, float]
  reference: list[Any]


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
  """A process of a role has started.

  Attributes:
    role: for example `actor 0`.
    incarnation: number of earlier processes with the role.
    pid: of the process.
    silence: seconds since the last message of the process before it; 0 if none.
    had_worked: whether that process had done any work.
    reason: why that process ended itself; '' if unknown.
  """

  role: str
  incarnation: int
  pid: int
  silence: float
  had_worked: bool
  reason: str


# The events for the driver, in order.
Event = EvaluationDone | Started | core.Episode | core.Failure


class Report(NamedTuple):
  """What a process did since its last report.

  Attributes:
    number: of the reports of this process, from 1; each is counted once.
    doing: what the process is blocked on, or ''.
    seconds: how long it has been blocked.
    steps: environment steps.
    events: episodes, failures, evaluations.
    version: new weights.
    updates: the learner's updates so far; None for other processes.
    metrics: of the learner's last update.
    state: the learner's state, if requested.
    is_last: whether the process has finished its work.
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
    num_acting: number of actors that have not finished.
    version: the newest weights; None before the first.
    wants_state: number of the newest request for the learner's state.
    evaluated_at: environment steps at the last evaluation.
  """

  phase: int = ACTING
  env_steps: int = 0
  num_acting: int = 1
  version: Version | None = None
  wants_state: int = 0
  evaluated_at: int = 0


class Poll(NamedTuple):
  """The board's news for the driver.

  Attributes:
    events: since the last poll.
    state: from which a new board can resume; `counts` has JSON's types.
    learner: the learner's state, if requested.
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
  """All counts of the board.

  Attributes:
    counts: the part that a checkpoint stores.
    members: role → (incarnation, number of its last report, whether it has finished).
    version: the newest weights.
    phase: of the run.
    remembered: role → the value that its processes have stored.
  """

  counts: dict[str, Any]
  members: dict[str, tuple[int, int, bool]]
  version: Version | None
  phase: int
  remembered: dict[str, Any]
