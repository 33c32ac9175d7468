"""The one process that counts: what was done, what may be done, what to tell."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

from explorax.experiments.distributed import rates as rates_lib
from explorax.experiments.distributed import weights as weights_lib
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import evaluation, local, recovery

LEARNER, EVALUATOR = "the learner", "the evaluator"

# As in the local runner: the first updates compile.
_WARM_UP_UPDATES = 2


def actor_name(number: int) -> str:
  return f"actor {number}"


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

  steps: int = 0
  windows: int = 0
  episodes: tuple[EndedEpisode, ...] = ()
  failures: tuple[recovery.Failure, ...] = ()


class Grant(NamedTuple):
  """What an actor goes on with.

  Attributes:
    steps: environment steps that it may take; 0: the run is over.
    env_steps: of all actors so far.
    version: the newest weights.
  """

  steps: int
  env_steps: int
  version: weights_lib.Version


class Task(NamedTuple):
  """What the learner goes on with.

  Attributes:
    updates: that it is to make; 0: the run is over.
    filled: of each shard of replay, whether it can be sampled.
  """

  updates: int
  filled: tuple[bool, ...]


class Summons(NamedTuple):
  """What to evaluate.

  Attributes:
    env_steps: of training so far.
    version: the weights.
    last: whether this is the end of the run.
  """

  env_steps: int
  version: weights_lib.Version
  last: bool


class Watched(NamedTuple):
  """An evaluation, and what its watcher is to be shown."""

  evaluation: evaluation.Evaluation
  tape: list[Any]


class News(NamedTuple):
  """What the driver has not been told yet, and what was counted so far.

  Attributes:
    rows: in their order: each a `local.Episode`, a `Watched` or a `recovery.Failure`.
    stalls: sentences on who waits for what for too long.
  """

  rows: list[local.Episode | Watched | recovery.Failure]
  stalls: list[str]
  env_steps: int
  episodes: int
  updates: int
  versions: int
  fetches: dict[int, int]  # Actor → versions given to it.
  steps_per_second: float


class Collector:
  """Runs as an asynchronous Ray actor: who has to wait, waits in its methods."""

  def __init__(
    self,
    limits: rates_lib.Limits,
    *,
    num_actors: int,
    num_shards: int,
    num_episodes: int | None,
    eval_every: int | None,
    evaluates: bool,
    patience: float,
  ):
    """Prepares to count.

    Args:
      limits: of steps and updates.
      num_actors: actor i writes to the shard i modulo `num_shards`.
      num_shards: parts of replay.
      num_episodes: after how many episodes the run ends; None: no such limit.
      eval_every: environment steps between evaluations; None: at the end only.
      evaluates: whether there is an evaluator.
      patience: seconds after which somebody who waits is spoken of.
    """
    self._rates = rates_lib.Rates(limits, num_shards)
    self._num_shards = num_shards
    self._num_episodes = num_episodes
    self._eval_every = eval_every
    self._patience = patience
    self._clock = clock_lib.Clock()
    self._changed = asyncio.Condition()
    self._version: weights_lib.Version | None = None
    self._versions = 0
    self._fetched: dict[int, tuple[int, int]] = {}  # Actor → (version, how many).
    self._metrics: dict[str, float] = {}  # The learner's latest.
    self._totals: dict[str, float] = {}  # Of all actors' environments.
    self._episodes = 0
    self._rows: list[local.Episode | Watched | recovery.Failure] = []
    self._stopped = False
    self._learnt = False
    names = [LEARNER, *(actor_name(i) for i in range(num_actors))]
    names += [EVALUATOR] if evaluates else []
    now = time.monotonic()
    # Who → (since when, what it does, for how long before it is spoken of again).
    self._doing: dict[str, _Doing] = {
      n: _Doing(now, _starting, patience) for n in names
    }

  async def pull(self, actor: int, report: Report) -> Grant:
    """An actor tells what it did, and waits for what it may do."""
    self._take(actor, report)
    await self._tell()
    steps = 0

    def may_go_on() -> bool:
      nonlocal steps
      if self._is_over or (self._rates.at_limit and self._version is not None):
        return True
      steps = 0 if self._version is None else self._rates.grant(actor)
      return steps > 0

    def why() -> str:
      if self._version is None:
        return "the learner has published no weights yet"
      return self._rates.why_actors_wait()

    name = actor_name(actor)
    async with self._waiting(name, why):
      await self._changed.wait_for(may_go_on)
    if self._version is None or not steps:
      self._doing.pop(name, None)
      return Grant(0, self._rates.env_steps, weights_lib.Version(-1, []))
    number, count = self._fetched.get(actor, (-1, 0))
    if number != self._version.number:
      self._fetched[actor] = self._version.number, count + 1
    return Grant(steps, self._rates.env_steps, self._version)

  async def learn(self, updates: int, metrics: dict[str, float]) -> Task:
    """The learner tells what it did, and waits for what it may do.

    The run is over for it once all updates are made that are due.
    """
    self._rates.updates = updates
    self._metrics = metrics
    if updates >= _WARM_UP_UPDATES:
      self._clock.mark_warm(self._rates.env_steps)
    await self._tell()

    def may_go_on() -> bool:
      if self._stopped or self._rates.updates_allowed() > 0:
        return True
      return self._all_is_acted

    async with self._waiting(LEARNER, self._rates.why_learner_waits):
      await self._changed.wait_for(may_go_on)
    updates = self._rates.updates_allowed()
    if self._stopped:
      updates = 0
    elif self._all_is_acted:
      updates = self._rates.updates_left()
    return Task(updates, self._rates.filled)

  async def publish(self, version: weights_lib.Version, last: bool) -> None:
    """Takes the newest weights, the `last` of the run maybe."""
    self._version = version
    self._versions += 1
    if last:
      self._learnt = True
      self._doing.pop(LEARNER, None)
    await self._tell()

  async def summons(self, done_at: int) -> Summons | None:
    """What to evaluate, once that is due; None when there is nothing more.

    Args:
      done_at: environment steps at the last evaluation.
    """
    every = self._eval_every

    def is_due() -> bool:
      passed = every and self._rates.env_steps // every > done_at // every
      return bool(self._stopped or self._learnt or (passed and self._version))

    self._doing.pop(EVALUATOR, None)
    async with self._changed:
      await self._changed.wait_for(is_due)
    if self._stopped or self._version is None:
      return None
    self._doing[EVALUATOR] = _Doing(time.monotonic(), _evaluating, self._patience)
    return Summons(self._rates.env_steps, self._version, self._learnt)

  async def add_evaluation(self, watched: Watched) -> None:
    self._rows.append(watched)

  async def add_failure(self, failure: recovery.Failure) -> None:
    self._rows.append(failure)

  async def newest(self) -> weights_lib.Version | None:
    return self._version

  async def stop(self) -> None:
    """Ends the run: whoever asks next is told so."""
    self._stopped = True
    await self._tell()

  async def stopped(self) -> None:
    """Returns when the run is stopped."""
    async with self._changed:
      await self._changed.wait_for(lambda: self._stopped)

  async def news(self) -> News:
    """What has come since the last call."""
    rows, self._rows = self._rows, []
    return News(
      rows=rows,
      stalls=self._stalls(),
      env_steps=self._rates.env_steps,
      episodes=self._episodes,
      updates=self._rates.updates,
      versions=self._versions,
      fetches={actor: count for actor, (_, count) in self._fetched.items()},
      steps_per_second=self._clock.steps_per_second(self._rates.env_steps),
    )

  @property
  def _is_over(self) -> bool:
    """Whether no actor is to go on."""
    limit = self._num_episodes
    return self._stopped or (limit is not None and self._episodes >= limit)

  @property
  def _all_is_acted(self) -> bool:
    """Whether a limit is reached, and no actor has steps to take."""
    return self._rates.all_reported and (self._is_over or self._rates.at_limit)

  async def _tell(self) -> None:
    async with self._changed:
      self._changed.notify_all()

  @contextlib.asynccontextmanager
  async def _waiting(self, name: str, why: Callable[[], str]) -> AsyncIterator[None]:
    """Holds the lock for waiting, and notes who waits; it is at work after that."""
    self._doing[name] = _Doing(
      time.monotonic(), lambda: f"waits: {why()}", self._patience
    )
    async with self._changed:
      yield
    self._doing[name] = _Doing(time.monotonic(), _working, self._patience)

  def _stalls(self) -> list[str]:
    now, sentences = time.monotonic(), []
    for name, doing in self._doing.items():
      if now - doing.since >= doing.patience:
        sentences.append(f"for {now - doing.since:.0f} s, {name} {doing.what()}")
        # Again after twice as long.
        self._doing[name] = doing._replace(patience=2 * doing.patience)
    return sentences

  def _take(self, actor: int, report: Report) -> None:
    before = self._rates.env_steps
    self._rates.report(actor, report.steps, actor % self._num_shards, report.windows)
    self._rows += report.failures
    for ended in report.episodes:
      for name, value in ended.totals.items():
        self._totals[name] = self._totals.get(name, 0.0) + value
      if self._is_over:
        continue
      self._episodes += 1
      steps = before + ended.steps_before
      self._rows.append(
        local.Episode(
          episode=self._episodes,
          env_steps=steps,
          episode_return=ended.episode_return,
          episode_length=ended.episode_length,
          policy=ended.policy,
          learner_updates=self._rates.updates,
          steps_per_second=self._clock.steps_per_second(steps),
          wall_seconds=time.monotonic() - self._clock.start,
          metrics={
            **self._metrics,
            **ended.metrics,
            **{name: self._totals[name] for name in ended.totals},
            "actor": float(actor),
          },
        )
      )


class _Doing(NamedTuple):
  since: float
  what: Callable[[], str]
  patience: float  # Seconds.


def _starting() -> str:
  return "has not begun: it is being started, or Ray has no CPU or GPU left for it"


def _working() -> str:
  return "has been at its work without a word"


def _evaluating() -> str:
  return "has been at one evaluation"
