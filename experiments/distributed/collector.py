"""The one process that counts: what was done, what may be done, what to tell."""

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from explorax.experiments.distributed import messages, pulse, replay_server
from explorax.experiments.distributed import rates as rates_lib
from explorax.experiments.distributed import weights as weights_lib
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import core

# As in the local runner: the first updates compile.
_WARM_UP_UPDATES = 2


class Collector:
  """Runs as an asynchronous Ray actor: who has to wait, waits in its methods.

  Ray starts it again where it dies, and asks it again what it was asked. Nobody is
  answered before the driver has told it where the last one stood (`begin`); actors tell
  again what was not safe, and what was counted already is known by its number.
  """

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
    environment_timeout: float,
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
      environment_timeout: seconds after which an environment hangs.
    """
    self._name = secrets.token_hex(8)
    self._rates = rates_lib.Rates(limits, num_shards)
    self._num_shards = num_shards
    self._num_episodes = num_episodes
    self._eval_every = eval_every
    self._patience = patience
    self._environment_timeout = environment_timeout
    # Who has an environment → (generation, when it was heard of, seconds in there).
    self._beats: dict[str, tuple[int, float, float]] = {}
    self._clock = clock_lib.Clock()
    self._changed = asyncio.Condition()
    self._begun = asyncio.Event()
    self._servers: list[replay_server.Server] = []
    self._generations = [0] * num_actors
    self._learner_generation = 0
    self._unheard: set[int] = set()  # Actors that may be under way, unknown to it.
    self._version: weights_lib.Version | None = None
    self._versions = 0
    self._fetched: dict[int, tuple[Any, int]] = {}  # Actor → (version, how many).
    self._metrics: dict[str, float] = {}  # The learner's latest.
    self._totals: dict[str, float] = {}  # Of all actors' environments.
    self._episodes = 0
    self._evaluated_at = 0  # Environment steps.
    self._reports = [-1] * num_actors  # The last of each actor.
    self._told = self._safe = list(self._reports)  # Told the driver; known to be there.
    self._rows: list[core.Episode | messages.Watched | core.Failure] = []
    self._stopped = False
    self._learnt = False
    self._wants_state = False
    self._learner: messages.Saved | None = None
    self._active: dict[str, int] = {}
    names = [messages.LEARNER, *(messages.actor_name(i) for i in range(num_actors))]
    names += [messages.EVALUATOR] if evaluates else []
    now = time.monotonic()
    # Who → (since when, what it does, for how long before it is spoken of again).
    self._doing: dict[str, _Doing] = {
      n: _Doing(now, _starting, patience) for n in names
    }

  def begin(
    self, state: Mapping[str, Any] | None, situation: messages.Situation
  ) -> None:
    """Goes on where another one stood, or begins; nobody is answered before."""
    self._version, self._stopped = situation.version, situation.stopped
    self._learnt = situation.learnt
    self._learner_generation = situation.learner
    if situation.restarted:
      self._unheard = set(situation.actors)
    if state is not None:
      self._rates.restore(state["rates"])
      self._clock.resume(state["seconds"])
      self._episodes, self._evaluated_at = state["episodes"], state["evaluated_at"]
      self._totals, self._metrics = dict(state["totals"]), dict(state["metrics"])
      self._reports, self._generations = state["reports"], state["generations"]
      for shard, server in enumerate(situation.servers):
        if server.number > state["servers"][shard]:
          self._rates.replace(shard, situation.windows[shard])
    for actor, generation in situation.actors.items():
      if generation > self._generations[actor]:
        self._generations[actor], self._reports[actor] = generation, -1
    self._told = self._safe = list(self._reports)
    self._servers = situation.servers
    self._begun.set()

  async def pull(
    self, actor: int, reports: Sequence[messages.Report], generation: int = 0
  ) -> messages.Grant:
    """An actor tells what it did, and waits for what it may do.

    Args:
      actor: its number.
      reports: all that are not known to be safe.
      generation: how many processes it had before; one that was replaced in the
        meantime gets nothing.
    """
    await self._begun.wait()
    await self.replace_actor(actor, generation)
    if generation == self._generations[actor]:
      for report in reports:
        if report.number > self._reports[actor]:
          self._take(actor, generation, report)
          self._reports[actor] = report.number
      self._unheard.discard(actor)
    await self._tell()
    steps = 0

    def may_go_on() -> bool:
      nonlocal steps
      if generation != self._generations[actor] or self._is_over:
        return True
      if self._version is None or self._unheard:
        return False
      steps = self._rates.grant(actor)
      return steps > 0 or self._rates.at_limit

    def why() -> str:
      if self._version is None:
        return "the learner has published no weights yet"
      if self._unheard:
        return f"{messages.actor_name(min(self._unheard))} has not told yet what it did"
      return self._rates.why_actors_wait()

    def is_safe() -> bool:
      if generation != self._generations[actor]:
        return True
      return self._safe[actor] >= self._reports[actor]

    name = messages.actor_name(actor)
    async with self._waiting(name, why):
      await self._changed.wait_for(may_go_on)
      if not steps:
        # It ends, and could not tell again.
        await self._changed.wait_for(is_safe)
    safe = self._safe[actor]
    if self._version is None or not steps:
      self._doing.pop(name, None)
      return messages.Grant(0, self._rates.env_steps, weights_lib.Version(-1, []), safe)
    before, count = self._fetched.get(actor, (None, 0))
    if self._version != before:
      self._fetched[actor] = self._version, count + 1
    server = self._servers[actor % self._num_shards].number
    return messages.Grant(steps, self._rates.env_steps, self._version, safe, server)

  async def learn(
    self, updates: int, metrics: dict[str, float], generation: int = 0
  ) -> messages.Task:
    """The learner tells what it did, and waits for what it may do.

    The run is over for it once all updates are made that are due.

    Args:
      updates: that it has made.
      metrics: of the last of them.
      generation: how many processes it had before.
    """
    await self._begun.wait()
    if updates > self._rates.updates:
      self._active[messages.LEARNER] = generation
    self._rates.updates = updates
    self._metrics = metrics
    if updates >= _WARM_UP_UPDATES:
      self._clock.mark_warm(self._rates.env_steps)
    await self._tell()

    def may_go_on() -> bool:
      if self._stopped or self._wants_state or self._rates.updates_allowed() > 0:
        return True
      return self._all_is_acted

    async with self._waiting(messages.LEARNER, self._rates.why_learner_waits):
      await self._changed.wait_for(may_go_on)
    saves, self._wants_state = self._wants_state, False
    updates, over = self._rates.updates_allowed(), False
    if self._stopped:
      updates, over = 0, True
    elif self._all_is_acted:
      updates = self._rates.updates_left()
      over = not updates
    return messages.Task(updates, self._rates.filled, over, saves)

  async def ask_for_state(self) -> None:
    """Has the learner give its state when it next comes by."""
    await self._begun.wait()
    self._wants_state = True
    await self._tell()

  async def give_state(self, saved: messages.Saved) -> None:
    """Takes the learner's state, for the driver."""
    await self._begun.wait()
    self._learner = saved

  async def replace_actor(self, actor: int, generation: int) -> None:
    """Another process acts; what the last one did after its report is not counted."""
    await self._begun.wait()
    if generation <= self._generations[actor]:
      return
    self._generations[actor] = generation
    self._reports[actor] = self._told[actor] = self._safe[actor] = -1
    self._unheard.discard(actor)
    self._rates.drop(actor)
    name = messages.actor_name(actor)
    self._doing[name] = _Doing(time.monotonic(), _starting, self._patience)
    await self._tell()

  async def replace_learner(self, updates: int, generation: int) -> None:
    """Another process learns, from so many updates on; the weights are lost."""
    await self._begun.wait()
    if generation <= self._learner_generation:
      return
    self._learner_generation = generation
    self._version, self._learnt = None, False
    self._rates.updates = updates
    self._doing[messages.LEARNER] = _Doing(time.monotonic(), _starting, self._patience)
    await self._tell()

  async def replace_server(
    self, shard: int, server: replay_server.Server, windows: int
  ) -> None:
    """Another process holds a shard of replay, with so many windows in it."""
    await self._begun.wait()
    if server.number <= self._servers[shard].number:
      return
    self._servers[shard] = server
    self._rates.replace(shard, windows)
    await self._tell()

  async def server(self, shard: int, after: int) -> replay_server.Server:
    """The shard's process that has taken the place of number `after`."""
    await self._begun.wait()
    async with self._changed:
      await self._changed.wait_for(lambda: self._servers[shard].number > after)
    return self._servers[shard]

  async def publish(
    self, version: weights_lib.Version, last: bool, generation: int = 0
  ) -> None:
    """Takes the newest weights, the `last` of the run maybe."""
    await self._begun.wait()
    await self.replace_learner(version.number, generation)
    self._version = version
    self._versions += 1
    if last:
      self._learnt = True
      self._doing.pop(messages.LEARNER, None)
    await self._tell()

  async def summons(self) -> messages.Summons | None:
    """What to evaluate, once that is due; None when there is nothing more."""
    await self._begun.wait()
    every = self._eval_every

    def is_due() -> bool:
      if self._stopped:
        return True
      if self._version is None:
        return False
      steps, done_at = self._rates.env_steps, self._evaluated_at
      if self._learnt:
        # At the end, what was told last must have come to the driver.
        return steps > done_at or not self._rows
      return bool(every and steps // every > done_at // every)

    self._doing.pop(messages.EVALUATOR, None)
    async with self._changed:
      await self._changed.wait_for(is_due)
    if self._stopped or self._version is None:
      return None
    if self._rates.env_steps <= self._evaluated_at:
      return None
    self._doing[messages.EVALUATOR] = _Doing(
      time.monotonic(), _evaluating, self._patience
    )
    return messages.Summons(self._rates.env_steps, self._version)

  async def add_evaluation(
    self, watched: messages.Watched, generation: int = 0
  ) -> None:
    """Takes an evaluation, unless it has one that is as new."""
    await self._begun.wait()
    env_steps = watched.evaluation.env_steps
    if env_steps > self._evaluated_at:
      self._evaluated_at = env_steps
      self._active[messages.EVALUATOR] = generation
      self._rows.append(watched)

  async def beat(self, name: str, generation: int, seconds: float) -> None:
    """Hears of one that has an environment, and how long that has been asked."""
    if generation >= self._beats.get(name, (0, 0.0, 0.0))[0]:
      self._beats[name] = (generation, time.monotonic(), seconds)

  async def add_failure(self, failure: core.Failure) -> None:
    await self._begun.wait()
    self._rows.append(failure)

  async def newest(self) -> weights_lib.Version | None:
    await self._begun.wait()
    return self._version

  async def stop(self) -> None:
    """Ends the run: whoever asks next is told so."""
    await self._begun.wait()
    self._stopped = True
    await self._tell()

  async def stopped(self) -> None:
    """Returns when the run is stopped."""
    async with self._changed:
      await self._changed.wait_for(lambda: self._stopped)

  async def news(self) -> messages.News | str:
    """What has come since the last call; before `begin`, a name that no other has.

    Whoever asks has what was answered before.
    """
    if not self._begun.is_set():
      return self._name
    rows, self._rows = self._rows, []
    learner, self._learner = self._learner, None
    self._safe, self._told = self._told, list(self._reports)
    await self._tell()
    return messages.News(
      rows=rows,
      stalls=self._stalls(),
      env_steps=self._rates.env_steps,
      episodes=self._episodes,
      updates=self._rates.updates,
      versions=self._versions,
      fetches={actor: count for actor, (_, count) in self._fetched.items()},
      steps_per_second=self._clock.steps_per_second(self._rates.env_steps),
      state={
        "rates": self._rates.save(),
        "seconds": self._clock.seconds,
        "episodes": self._episodes,
        "evaluated_at": self._evaluated_at,
        "totals": dict(self._totals),
        "metrics": dict(self._metrics),
        "reports": list(self._reports),
        "generations": list(self._generations),
        "servers": [server.number for server in self._servers],
      },
      version=self._version,
      learner=learner,
      active=dict(self._active),
      hanging=self._hanging(),
    )

  @property
  def _is_over(self) -> bool:
    """Whether no actor is to go on."""
    limit = self._num_episodes
    return self._stopped or (limit is not None and self._episodes >= limit)

  @property
  def _all_is_acted(self) -> bool:
    """Whether a limit is reached, and no actor has steps to take."""
    if self._unheard or not self._rates.all_reported:
      return False
    return self._is_over or self._rates.at_limit

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

  def _hanging(self) -> dict[str, tuple[int, str]]:
    """Those whose environment does not answer."""
    timeout, now, hanging = self._environment_timeout, time.monotonic(), {}
    for name, (generation, heard_at, seconds) in self._beats.items():
      if seconds >= timeout:
        why = f"its environment has not answered for {seconds:.0f} s"
      elif pulse.is_silent(now - heard_at, timeout):
        why = f"it has not been heard of for {now - heard_at:.0f} s"
      else:
        continue
      hanging[name] = generation, f"was ended, as {why} (--environment_timeout)"
    return hanging

  def _take(self, actor: int, generation: int, report: messages.Report) -> None:
    before = self._rates.env_steps
    shard = actor % self._num_shards
    # What is in a server that has died is lost.
    is_there = report.server == self._servers[shard].number
    windows = report.windows if is_there else 0
    self._rates.report(actor, report.steps, shard, windows)
    if report.steps:
      self._active[messages.actor_name(actor)] = generation
    if windows:
      self._active[messages.shard_name(shard)] = report.server
    self._rows += report.failures
    for ended in report.episodes:
      for name, value in ended.totals.items():
        self._totals[name] = self._totals.get(name, 0.0) + value
      if self._is_over:
        continue
      self._episodes += 1
      steps = before + ended.steps_before
      self._rows.append(
        core.Episode(
          episode=self._episodes,
          env_steps=steps,
          episode_return=ended.episode_return,
          episode_length=ended.episode_length,
          policy=ended.policy,
          learner_updates=self._rates.updates,
          steps_per_second=self._clock.steps_per_second(steps),
          wall_seconds=self._clock.seconds,
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
