"""Places the processes of a run on Ray, listens to them, replaces and ends them."""

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from explorax.agents import types
from explorax.experiments.checkpoints import keeper
from explorax.experiments.distributed import (
  actor_process,
  archive,
  failures,
  launch,
  learner_process,
  messages,
  processes,
  replay_server,
)
from explorax.experiments.distributed import layout as layout_lib
from explorax.experiments.runners import core, errors

_SECONDS_BETWEEN_NEWS = 0.2
_SECONDS_BETWEEN_TRIES = 10.0  # To write a checkpoint.
_SECONDS_TO_END = 20.0  # For processes that were told that the run is over.


class Replacement(NamedTuple):
  """A process that died, and what has its place."""

  role: str  # `actor`, `learner`, `replay`, `evaluator` or `collector`.
  sentence: str


class Callbacks(NamedTuple):
  """Whom the driver tells what, as `core.Hooks` has it."""

  on_episode: Callable[[core.Episode], None]
  on_watched: Callable[[messages.Watched], None]
  on_env_failure: Callable[[core.Failure], None]
  on_stall: Callable[[str], None]
  on_processes: Callable[[Mapping[str, int]], None]  # Role → pid, whenever they change.
  on_replacement: Callable[[Replacement], None]
  stop: Callable[[], bool]


class Run:
  """The processes of one run, from their start to their end.

  One that dies is replaced by another, which goes on from what others know: an actor
  and the evaluator from the newest weights, the learner and replay from the newest
  checkpoint, the collector from what it had told. Whoever dies again and again is given
  up, and the run with it.
  """

  def __init__(
    self,
    agent: types.Agent,
    layout: layout_lib.Layout,
    *,
    seed: int,
    replay: str,
    make_environment: actor_process.MakeEnvironment,
    remakes: bool,
    max_env_failures: int,
    num_episodes: int | None,
    num_steps: int | None,
    evaluating: layout_lib.Evaluating | None,
    callbacks: Callbacks,
    checkpoints: keeper.Keeper | None = None,
  ):
    """Starts them all; Ray must be connected."""
    import ray

    self._ray = ray
    self._layout = layout
    self._callbacks = callbacks
    self._min_size = agent.replay.min_size
    self._limits = (num_episodes, num_steps)
    self._archive = None
    if checkpoints is not None:
      self._archive = archive.Archive(agent, replay, checkpoints)
    self._until: float | None = None  # When a run that was stopped ends in any case.
    self._learnt: learner_process.Learnt | None = None
    self._news: messages.News | None = None
    self._heard_at = time.monotonic()  # The last news.
    self._asking: Any = None  # The collector's answer under way.
    self._met: str | None = None  # The collector that was told how to begin.
    self._state_asked = False
    self._next_save = 0.0  # Not before this time.
    found = None if self._archive is None else self._archive.first()
    self._state: dict[str, Any] | None = None  # The collector's, as of the last news.
    self._kept = found  # From which replay begins.
    self._windows = [0] * layout.num_shards  # That each shard began with.
    start = None
    if found is not None and self._archive is not None:
      self._windows = self._archive.windows(found, layout.num_shards)
      state = found.record["counts"]["collector"]
      self._state = messages.resumed(state, layout.num_actors, self._windows)
      start = self._archive.learner(found)
    launcher = self._launcher = launch.Launcher(
      agent,
      layout,
      layout.limits(agent.replay, agent.actor_update_period, num_steps),
      seed=seed,
      replay=replay,
      make_environment=make_environment,
      remakes=remakes,
      max_env_failures=max_env_failures,
      num_episodes=num_episodes,
      evaluating=evaluating,
    )
    self._collector = launcher.collector
    self._collecting = processes.Role("the collector", lambda _: self._collector)
    self._stores = [
      processes.Role(messages.shard_name(i), functools.partial(self._start_server, i))
      for i in range(layout.num_shards)
    ]
    self._start_learner = lambda generation: launcher.learner(
      generation, self._servers, start
    )
    self._learning = processes.Role(
      messages.LEARNER, lambda generation: self._start_learner(generation)
    )
    self._actors = [
      processes.Role(messages.actor_name(i), functools.partial(self._start_actor, i))
      for i in range(layout.num_actors)
    ]
    self._workers = [self._learning, *self._actors]
    if evaluating is not None:
      self._workers.append(processes.Role(messages.EVALUATOR, launcher.evaluator))
    for role in self._workers:
      role.work()

  def wait(self) -> core.Result:
    """Listens until the run is over.

    Raises:
      errors.StoppedError: if a process failed for good, with one sentence.
    """
    while any(role.task is not None for role in self._workers):
      try:
        self._turn()
      except KeyboardInterrupt:
        self._stop()
      if self._until is not None and time.monotonic() > self._until:
        break
    return self._end()

  def close(self) -> None:
    """Ends all processes, at once; the collector last, whom the others ask."""
    others = [each for each in self._launcher.started if each is not self._collector]
    for actor in others:
      self._ray.kill(actor)
    time.sleep(_SECONDS_BETWEEN_NEWS)
    self._ray.kill(self._collector)

  def _turn(self) -> None:
    """Looks once at everything."""
    news = self._listen()
    if self._until is None and self._callbacks.stop():
      self._stop()
    tasks = [role.task for role in self._workers if role.task is not None]
    if tasks:
      self._ray.wait(tasks, timeout=_SECONDS_BETWEEN_NEWS)
    for role in self._workers:
      self._look_after(role)
    for shard, role in enumerate(self._stores):
      self._look_after_store(shard, role)
    self._tell_who_has_begun()
    if news is not None and self._archive is not None:
      self._save_if_due(news, self._archive)

  def _listen(self) -> messages.News | None:
    """Passes on what has come; None if the collector has not answered yet."""
    if self._asking is None:
      self._asking = self._collector.news.remote()
    if not self._ray.wait([self._asking], timeout=_SECONDS_BETWEEN_NEWS)[0]:
      return None
    answer, self._asking = self._asking, None
    try:
      news = self._ray.get(answer)
    except self._ray.exceptions.RayError as error:
      raise self._failure(self._collecting, error) from error
    if isinstance(news, str):
      self._meet_collector(news)
      return None
    self._news, self._state, self._heard_at = news, news.state, time.monotonic()
    for row in news.rows:
      if isinstance(row, core.Episode):
        self._callbacks.on_episode(row)
      elif isinstance(row, core.Failure):
        self._callbacks.on_env_failure(row)
      else:
        self._callbacks.on_watched(row)
    for sentence in news.stalls:
      self._callbacks.on_stall(sentence)
    self._end_hanging(news)
    return news

  def _end_hanging(self, news: messages.News) -> None:
    """Kills those whose environment does not answer; they are replaced as the dead."""
    for role in self._workers:
      generation, why = news.hanging.get(role.name, (-1, ""))
      if role.task is not None and generation == role.generation and not role.why:
        role.why = why
        self._ray.kill(role.handle)

  def _meet_collector(self, name: str) -> None:
    """Tells a collector that knows nothing where the one before it stood."""
    if name == self._met:
      return  # It is being told.
    restarted, self._met = self._met is not None, name
    if restarted:
      self._note_death(self._collecting, did_something=self._news is not None)
      remedy = "another goes on with what it had told"
      self._collecting.restarted(self._heard_at, remedy)
    self._state_asked = False
    version = self._news.version if self._news is not None else None
    if self._learnt is not None:
      version = self._learnt.version
    situation = messages.Situation(
      servers=self._servers,
      windows=self._windows,
      actors={
        number: role.generation
        for number, role in enumerate(self._actors)
        if role.task is not None or not restarted
      },
      learner=self._learning.generation,
      version=version,
      stopped=self._until is not None,
      learnt=self._learnt is not None,
      restarted=restarted,
    )
    self._collector.begin.remote(self._state, situation)

  def _look_after(self, role: processes.Role) -> None:
    """Takes what a process has come to, or replaces it."""
    if role.task is None or not self._ray.wait([role.task], timeout=0)[0]:
      return
    task, role.task = role.task, None
    try:
      value = self._ray.get(task)
    except self._ray.exceptions.RayError as error:
      if not failures.is_death(error):
        raise self._failure(role, error) from error
    else:
      if role is self._learning:
        self._learnt = value
        self._collector.publish.remote(value.version, True, role.generation)
      return
    if self._until is not None:
      return
    self._note_death(role)
    if role is self._learning:
      self._replace_learner()
    elif role in self._actors:
      number = self._actors.index(role)
      self._collector.replace_actor.remote(number, role.generation + 1)
      role.replace("another has its place, and its half episode is dropped")
    else:
      role.replace("another has its place, and makes the evaluation that is due")
    role.work()

  def _replace_learner(self) -> None:
    """Starts a learner from the newest checkpoint."""
    found = None if self._archive is None else self._archive.newest()
    start, remedy = None, "another begins anew, as there is no checkpoint yet"
    if found is not None and self._archive is not None:
      start = self._archive.learner(found)
      remedy = (
        "another goes on from the checkpoint of environment step "
        f"{found.record['env_steps']:,}, {start.updates:,} updates"
      )
    self._state_asked = False
    if self._news is not None:
      self._news = self._news._replace(version=None)
    self._start_learner = lambda generation: self._launcher.learner(
      generation, self._servers, start
    )
    updates = 0 if start is None else start.updates
    self._collector.replace_learner.remote(updates, self._learning.generation + 1)
    self._learning.replace(remedy)

  def _look_after_store(self, shard: int, role: processes.Role) -> None:
    """Sees whether a part of replay is there, and replaces it if not."""
    if role.task is None:
      role.task = role.handle.__ray_call__.remote(processes.pid)
      return
    if not self._ray.wait([role.task], timeout=0)[0]:
      return
    task, role.task = role.task, None
    try:
      self._ray.get(task)
      return
    except self._ray.exceptions.RayError as error:
      if not failures.is_death(error):
        raise self._failure(role, error) from error
    if self._until is not None or self._learnt is not None:
      return
    self._note_death(role)
    self._kept = None if self._archive is None else self._archive.newest()
    self._windows[shard] = 0
    if self._kept is not None and self._archive is not None:
      self._windows[shard] = self._archive.windows(self._kept, len(self._stores))[shard]
    if self._kept is not None and self._windows[shard]:
      steps = self._kept.record["env_steps"]
      remedy = f"another holds what was in the checkpoint of environment step {steps:,}"
    elif len(self._stores) > 1:
      remedy = "another begins empty"
    else:
      remedy = (
        "another begins empty, and learning waits until it has "
        f"{self._min_size:,} environment steps"
      )
    role.replace(remedy)
    server = replay_server.Server(role.generation, role.handle)
    self._collector.replace_server.remote(shard, server, self._windows[shard])

  def _note_death(
    self, role: processes.Role, did_something: bool | None = None
  ) -> None:
    """Counts it.

    Raises:
      errors.StoppedError: if there were too many.
    """
    if did_something is None:
      active = {} if self._news is None else self._news.active
      did_something = active.get(role.name) == role.generation
    if why := role.deaths.add(did_something):
      raise errors.StoppedError(
        f"{role.name} {why}, and is given up.", [self._newest_weights()]
      )

  def _tell_who_has_begun(self) -> None:
    """Says where a process is, and what it replaces."""
    has_changed = False
    roles = [self._collecting, *self._stores, *self._workers]
    for role in roles:
      if not role.has_begun():
        continue
      has_changed = True
      if sentence := role.replacement():
        kind = _short(role.name).split()[0]
        self._callbacks.on_replacement(Replacement(kind, sentence))
    if has_changed:
      pids = {_short(role.name): role.pid for role in roles if role.pid is not None}
      self._callbacks.on_processes({"driver": os.getpid(), **pids})

  def _save_if_due(self, news: messages.News, kept: archive.Archive) -> None:
    """Asks the learner for its state when a checkpoint is due; writes it later."""
    may_save = self._replay_is_there or not kept.with_replay
    if news.learner is None:
      may_ask = may_save and time.monotonic() >= self._next_save
      if may_ask and not self._state_asked and kept.is_due(news.env_steps):
        self._state_asked = True
        self._collector.ask_for_state.remote()
      return
    self._state_asked = False
    if not may_save:
      return
    handles = [role.handle for role in self._stores]
    try:
      kept.save(news.state, news.learner, handles, complete=False)
    except self._ray.exceptions.RayError as error:
      self._next_save = time.monotonic() + _SECONDS_BETWEEN_TRIES
      text = str(error).strip().splitlines()[-1]
      self._callbacks.on_stall(
        "a checkpoint was not written, and is tried again: a process that has part of "
        f"it could not give it ({text})"
      )

  def _stop(self) -> None:
    """Has all come to their end soon."""
    if self._until is None:
      self._until = time.monotonic() + _SECONDS_TO_END
    self._collector.stop.remote()

  def _end(self) -> core.Result:
    """What the run has come to; leaves a checkpoint of it."""
    until = time.monotonic() + _SECONDS_TO_END
    while (news := self._listen()) is None and time.monotonic() < until:
      continue
    news = news or self._news
    if news is None:
      raise errors.StoppedError("the run was ended before it had begun.", [None])
    learnt = self._learnt
    weights = self._newest_weights()
    if learnt is not None and self._archive is not None:
      handles = [role.handle for role in self._stores]
      complete = any(
        limit is not None and done >= limit
        for limit, done in zip(
          self._limits, (news.episodes, news.env_steps), strict=True
        )
      )
      if self._archive.with_replay and not (complete or self._replay_is_there):
        complete = True
        self._callbacks.on_stall(
          "the last checkpoint is without replay, which was being replaced"
        )
      try:
        self._archive.save(news.state, learnt.saved, handles, complete=complete)
      except self._ray.exceptions.RayError as error:
        text = str(error).strip().splitlines()[0]
        self._callbacks.on_stall(f"the last checkpoint could not be written ({text})")
    elif self._archive is not None:
      self._callbacks.on_stall(
        "the learner did not come to an end in time; what it has learnt since the last "
        "checkpoint is in no checkpoint"
      )
    return core.Result(
      weights=weights,
      env_steps=news.env_steps,
      episodes=news.episodes,
      learner_updates=news.updates if learnt is None else learnt.saved.updates,
      steps_per_second=news.steps_per_second,
      interrupted=self._until is not None,
    )

  def _failure(self, role: processes.Role, error: Exception) -> errors.StoppedError:
    return failures.sentence(role.name, error, [self._newest_weights()])

  @property
  def _replay_is_there(self) -> bool:
    """Whether no part of it is being replaced."""
    return all(role.pid is not None for role in self._stores)

  @property
  def _servers(self) -> list[replay_server.Server]:
    return [replay_server.Server(role.generation, role.handle) for role in self._stores]

  def _start_server(self, shard: int, generation: int) -> Any:
    del generation
    kept = None
    if self._windows[shard] and self._archive is not None and self._kept is not None:
      kept = self._archive.shard(self._kept, shard)
    return self._launcher.server(shard, kept)

  def _start_actor(self, number: int, generation: int) -> Any:
    server = self._servers[number % len(self._stores)]
    return self._launcher.actor(number, generation, server)

  def _newest_weights(self) -> types.Params:
    """The newest that were published; None if they are lost."""
    version = None if self._news is None else self._news.version
    if self._learnt is not None:
      version = self._learnt.version
    with contextlib.suppress(self._ray.exceptions.RayError):
      if version is not None:
        return jax.tree.map(np.array, self._ray.get(version.reference[0]))
    return None


@contextlib.contextmanager
def running(*arguments: Any, **named: Any) -> Iterator[Run]:
  """A `Run` whose processes end with the block."""
  with _quiet():
    run = Run(*arguments, **named)
    try:
      yield run
    finally:
      run.close()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  """Without Ray's own paragraphs on each death, which go to stdout."""
  from ray._private import worker

  before = worker._worker_logs_enabled
  worker._worker_logs_enabled = False
  try:
    yield
  finally:
    worker._worker_logs_enabled = before


def _short(name: str) -> str:
  return name.removeprefix("the ")
