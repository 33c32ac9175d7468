"""What the processes of a run tell each other."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from explorax.experiments.distributed import replay_server
from explorax.experiments.distributed import weights as weights_lib
from explorax.experiments.runners import core

LEARNER, EVALUATOR = "the learner", "the evaluator"


def actor_name(number: int) -> str:
  return f"actor {number}"


def shard_name(number: int) -> str:
  return f"replay {number}"


class EndedEpisode(NamedTuple):
  """An episode of an actor."""

  steps_before: int  # Steps of its report until the episode's end, that one included.
  episode_return: float
  episode_length: int  # Environment steps.
  policy: str
  metrics: dict[str, float]  # Of acting and of the environment.
  totals: dict[str, float]  # What the environment counted since the last report.


class Report(NamedTuple):
  """What an actor did since its last one."""

  number: int = 0  # Of the process's reports.
  server: int = 0  # The `replay_server.Server.number` that the windows are in.
  steps: int = 0
  windows: int = 0
  episodes: tuple[EndedEpisode, ...] = ()
  failures: tuple[core.Failure, ...] = ()


class Grant(NamedTuple):
  """What an actor goes on with.

  Attributes:
    steps: environment steps that it may take; 0: the run is over.
    env_steps: of all actors so far.
    version: the newest weights.
    safe: the last of its reports that would outlast the collector.
    server: the number of its shard's process.
  """

  steps: int
  env_steps: int
  version: weights_lib.Version
  safe: int = -1
  server: int = 0


class Task(NamedTuple):
  """What the learner goes on with.

  Attributes:
    updates: that it is to make.
    filled: of each shard of replay, whether it can be sampled.
    over: whether the run is.
    saves: whether its state is wanted, for a checkpoint.
  """

  updates: int
  filled: tuple[bool, ...]
  over: bool = False
  saves: bool = False


class Saved(NamedTuple):
  """The learner's state.

  Attributes:
    updates: made until then.
    metrics: of the last of them.
    reference: a list of one, the `ray.ObjectRef` of the state.
  """

  updates: int
  metrics: dict[str, float]
  reference: list[Any]


class Summons(NamedTuple):
  """What to evaluate: the weights, after so many environment steps of training."""

  env_steps: int
  version: weights_lib.Version


class Watched(NamedTuple):
  """An evaluation, and what its watcher is to be shown."""

  evaluation: core.Evaluation
  tape: list[Any]


class News(NamedTuple):
  """What the driver has not been told yet, and what was counted so far.

  Attributes:
    rows: in their order: each a `core.Episode`, a `Watched` or a `core.Failure`.
    stalls: sentences on who waits for what for too long.
    state: what another collector goes on from, which JSON can hold.
    version: the newest weights, if there are any.
    learner: its state, if it was asked for one.
    active: who has done something → in which generation.
    hanging: in whose environment → (in which generation, what is wrong).
  """

  rows: list[core.Episode | Watched | core.Failure]
  stalls: list[str]
  env_steps: int
  episodes: int
  updates: int
  versions: int
  fetches: dict[int, int]  # Actor → versions given to it.
  steps_per_second: float
  state: dict[str, Any]
  version: weights_lib.Version | None
  learner: Saved | None
  active: dict[str, int]
  hanging: dict[str, tuple[int, str]]


class Situation(NamedTuple):
  """What the driver knows of the other processes when a collector begins.

  Attributes:
    servers: of each shard.
    windows: that were in each of these when it began.
    actors: of each that has not ended, its generation.
    learner: its generation.
    version: the newest weights, if there are any.
    stopped: whether the run is to end.
    learnt: whether the learner has come to its end.
    restarted: whether the actors may be under way with steps granted before.
  """

  servers: list[replay_server.Server]
  windows: list[int]
  actors: dict[int, int]
  learner: int = 0
  version: weights_lib.Version | None = None
  stopped: bool = False
  learnt: bool = False
  restarted: bool = False


def resumed(
  state: Mapping[str, Any], num_actors: int, windows: Sequence[int]
) -> dict[str, Any]:
  """A collector's state for a run that goes on with new processes.

  Args:
    state: that of a `News`.
    num_actors: how many there are now.
    windows: in each shard of replay now.
  """
  rates = {**state["rates"], "windows": list(windows)}
  if not any(windows):
    rates["start"], rates["emptied_at"] = None, rates["env_steps"]
    rates["base"] = rates["updates"]
  return {
    **state,
    "rates": rates,
    "reports": [-1] * num_actors,
    "generations": [0] * num_actors,
    "servers": [0] * len(windows),
  }
