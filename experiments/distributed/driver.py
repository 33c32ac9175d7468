"""Places the processes of a run on Ray, listens to them, and ends them."""

import contextlib
import dataclasses
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.experiments.distributed import (
  actor_process,
  collector,
  evaluator,
  learner_process,
  rates,
  replay_server,
)
from explorax.experiments.runners import errors, local, recovery

_SECONDS_BETWEEN_NEWS = 0.2
_SECONDS_TO_END = 20.0  # For processes that were told that the run is over.


@dataclasses.dataclass(frozen=True)
class Layout:
  """How a run is spread over processes.

  Attributes:
    num_actors: how many act.
    num_shards: parts of replay, each a process; actor i writes to the part i modulo it.
    pull_every: environment steps of an actor between two looks at the weights; None:
      as many as the agent says, and at least 10.
    rate_tolerance: environment steps that actors or the learner may be ahead by; None:
      what all actors take between two pulls, twice.
    learner_gpus: that the learner takes for itself; the other processes need none.
    patience: seconds after which it is said who waits for whom.
  """

  num_actors: int = 4
  num_shards: int = 1
  pull_every: int | None = None
  rate_tolerance: int | None = None
  learner_gpus: int = 0
  patience: float = 60.0

  def __post_init__(self):
    if self.num_actors < 1:
      raise ValueError(f"num_actors is {self.num_actors}; it must be at least 1.")
    if not 1 <= self.num_shards <= self.num_actors:
      raise ValueError(
        f"{self.num_shards} shards of replay for {self.num_actors} actors: each shard "
        "needs an actor that fills it, and there must be at least 1."
      )

  def limits(
    self, spec: types.ReplaySpec, period: int, num_steps: int | None
  ) -> rates.Limits:
    """The `rates.Limits` for a replay and an agent's own `period` of pulls.

    Raises:
      ValueError: if with them processes could wait for each other for ever.
    """
    pull_every = max(period, 10) if self.pull_every is None else self.pull_every
    tolerance = self.rate_tolerance
    if tolerance is None:
      tolerance = max(
        2 * self.num_actors * pull_every, rates.least_tolerance(spec.updates_per_step)
      )
    return rates.Limits(
      updates_per_step=spec.updates_per_step,
      min_size=spec.min_size,
      tolerance=tolerance,
      pull_every=pull_every,
      num_steps=num_steps,
    )

  def num_processes(self, evaluates: bool) -> int:
    """Those that take a CPU each: all but the collector."""
    return self.num_actors + self.num_shards + 1 + evaluates


class Callbacks(NamedTuple):
  """Whom the driver tells what, as in `local.run`."""

  on_episode: Callable[[local.Episode], None]
  on_watched: Callable[[collector.Watched], None]
  on_env_failure: Callable[[recovery.Failure], None]
  on_stall: Callable[[str], None]
  on_processes: Callable[[Mapping[str, int]], None]  # Role → pid, whenever they change.
  stop: Callable[[], bool]


class Evaluating(NamedTuple):
  """What the evaluator does."""

  every: int | None  # Environment steps; None: at the end of the run only.
  num_episodes: int
  draws: bool | None  # Whether a watcher wants pictures; None: there is none.


class Run:
  """The processes of one run, from their start to their end.

  Nothing of a process is lost with it but what is in its arguments, in replay and in
  the weights that were published: each can be started again from what it was given.
  """

  def __init__(
    self,
    agent: types.Agent,
    layout: Layout,
    *,
    seed: int,
    replay: str,
    make_environment: actor_process.MakeEnvironment,
    remakes: bool,
    max_env_failures: int,
    num_episodes: int | None,
    num_steps: int | None,
    evaluating: Evaluating | None,
    callbacks: Callbacks,
  ):
    """Starts them all; Ray must be connected."""
    import ray

    self._ray = ray
    self._callbacks = callbacks
    self._interrupted = False
    self._tasks: dict[Any, str] = {}  # What is under way → whose it is.
    self._actors: list[Any] = []
    self._pids: dict[str, int] = {"driver": os.getpid()}
    self._asked: dict[Any, str] = {}  # A process's answer under way → its role.
    limits = layout.limits(agent.replay, agent.actor_update_period, num_steps)
    self._collector = self._start(
      collector.Collector,
      limits,
      role="collector",
      cpus=0,
      num_actors=layout.num_actors,
      num_shards=layout.num_shards,
      num_episodes=num_episodes,
      eval_every=evaluating.every if evaluating else None,
      evaluates=evaluating is not None,
      patience=layout.patience,
    )
    part = replay_server.of_shard(agent, layout.num_shards)
    if replay == "memory":
      servers = [
        self._start(replay_server.MemoryServer, part, role=f"replay {i}", seed=seed + i)
        for i in range(layout.num_shards)
      ]
    else:
      servers = [
        self._start(replay_server.ReverbServer, part, role=f"replay {i}")
        for i in range(layout.num_shards)
      ]
    actor_key, learner_key = jax.random.split(jax.random.PRNGKey(seed))
    per_pull = math.floor(agent.replay.updates_per_step * limits.pull_every)
    of_environment: dict[str, Any] = {
      "make_environment": make_environment,
      "remakes": remakes,
      "max_env_failures": max_env_failures,
    }
    learner = self._start(
      learner_process.LearnerProcess,
      agent,
      np.asarray(learner_key),
      role="learner",
      gpus=layout.learner_gpus,
      servers=servers,
      publish_every=max(1, per_pull),
      replay=replay,
      collector=self._collector,
    )
    self._learning = self._begin(learner, collector.LEARNER)
    for i in range(layout.num_actors):
      actor = self._start(
        actor_process.ActorProcess,
        agent,
        np.asarray(jax.random.fold_in(actor_key, i)),
        role=f"actor {i}",
        actor_id=i,
        num_actors=layout.num_actors,
        server=servers[i % layout.num_shards],
        num_shards=layout.num_shards,
        pull_every=limits.pull_every,
        replay=replay,
        collector=self._collector,
        **of_environment,
      )
      self._begin(actor, collector.actor_name(i))
    if evaluating is not None:
      key = jax.random.fold_in(actor_key, local.EVALUATION_KEY)
      process = self._start(
        evaluator.EvaluatorProcess,
        agent,
        np.asarray(key),
        role="evaluator",
        every=evaluating.every,
        num_episodes=evaluating.num_episodes,
        draws=evaluating.draws,
        collector=self._collector,
        **of_environment,
      )
      self._begin(process, collector.EVALUATOR)

  def wait(self) -> local.Result:
    """Listens until the run is over.

    Raises:
      errors.StoppedError: if a process failed for good, with one sentence.
    """
    learnt: learner_process.Learnt | None = None
    until: float | None = None
    while self._tasks:
      try:
        ready, _ = self._ray.wait(list(self._tasks), timeout=_SECONDS_BETWEEN_NEWS)
        self._listen()
        if until is None and self._callbacks.stop():
          self._interrupted, until = True, time.monotonic() + _SECONDS_TO_END
          self._ray.get(self._collector.stop.remote())
      except KeyboardInterrupt:
        self._interrupted, until = True, time.monotonic() + _SECONDS_TO_END
        self._ray.get(self._collector.stop.remote())
        continue
      for reference in ready:
        name = self._tasks.pop(reference)
        try:
          value = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
          raise self._failure(name, error) from error
        if reference == self._learning:
          learnt = value
      if until is not None and time.monotonic() > until:
        break
    news = self._listen()
    weights = self._newest_weights() if learnt is None else learnt.weights
    return local.Result(
      weights=weights,
      env_steps=news.env_steps,
      episodes=news.episodes,
      learner_updates=news.updates if learnt is None else learnt.updates,
      steps_per_second=news.steps_per_second,
      interrupted=self._interrupted,
    )

  def news(self) -> collector.News:
    """What was counted; rows and sentences in it are told nobody else any more."""
    return self._ray.get(self._collector.news.remote())

  def close(self) -> None:
    """Ends all processes, at once."""
    for actor in self._actors:
      self._ray.kill(actor)

  def _start(
    self,
    process: type,
    *arguments: Any,
    role: str,
    cpus: int = 1,
    gpus: int = 0,
    **named: Any,
  ) -> Any:
    remote: Any = self._ray.remote(process).options(
      num_cpus=cpus, num_gpus=gpus, max_concurrency=1000 if cpus == 0 else 1
    )
    actor = remote.remote(*arguments, **named)
    self._actors.append(actor)
    self._asked[actor.__ray_call__.remote(_pid)] = role
    return actor

  def _begin(self, process: Any, name: str) -> Any:
    reference = process.run.remote()
    self._tasks[reference] = name
    return reference

  def _listen(self) -> collector.News:
    """Passes on what has come."""
    self._look_for_pids()
    try:
      news = self.news()
    except self._ray.exceptions.RayError as error:
      raise self._failure("the collector", error) from error
    for row in news.rows:
      if isinstance(row, local.Episode):
        self._callbacks.on_episode(row)
      elif isinstance(row, recovery.Failure):
        self._callbacks.on_env_failure(row)
      else:
        self._callbacks.on_watched(row)
    for sentence in news.stalls:
      self._callbacks.on_stall(sentence)
    return news

  def _look_for_pids(self) -> None:
    """Tells who is where, once another process has begun."""
    if not self._asked:
      return
    asked = list(self._asked)
    begun, _ = self._ray.wait(asked, num_returns=len(asked), timeout=0)
    for answer in begun:
      role = self._asked.pop(answer)
      with contextlib.suppress(self._ray.exceptions.RayError):
        self._pids[role] = self._ray.get(answer)
    if begun:
      self._callbacks.on_processes(dict(self._pids))

  def _newest_weights(self) -> types.Params:
    """The newest that were published; None if they are lost."""
    with contextlib.suppress(self._ray.exceptions.RayError):
      version = self._ray.get(self._collector.newest.remote())
      if version is not None:
        return jax.tree.map(np.array, self._ray.get(version.reference[0]))
    return None

  def _failure(self, name: str, error: Any) -> errors.StoppedError:
    """What has ended a process, in one sentence."""
    cause = getattr(error, "cause", None) or error
    weights = [self._newest_weights()]
    if isinstance(cause, self._ray.exceptions.RayActorError):
      # Who asked a process that died has raised what it was told.
      asked = isinstance(error, self._ray.exceptions.RayTaskError)
      return errors.StoppedError(death(name, str(cause), asked), weights)
    text = " ".join(str(cause).split())
    if isinstance(cause, FloatingPointError | environments.NonFiniteError):
      return errors.NonFiniteError(f"{name} stopped: {text}", weights)
    if isinstance(cause, recovery.GivenUpError):
      return errors.EnvironmentFailedError(f"{name} stopped: {text}", weights)
    return errors.StoppedError(
      f"{name} failed: {type(cause).__name__}: {text}", weights
    )


@contextlib.contextmanager
def running(*arguments: Any, **named: Any) -> Iterator[Run]:
  """A `Run` whose processes end with the block."""
  run = Run(*arguments, **named)
  try:
    yield run
  finally:
    run.close()


def _pid(process: Any) -> int:
  """Of the process that is asked."""
  del process
  return os.getpid()


def cores() -> int:
  """Of this machine, for this process."""
  return len(os.sched_getaffinity(0))


def death(name: str, told: str, asked: bool) -> str:
  """Ray's paragraph on a process that died, in one sentence.

  Args:
    name: whose work has ended by it.
    told: what Ray says.
    asked: whether that one is alive, and has asked another that is not.
  """
  found = re.search(r"class_name: (\w+)", told)
  if asked and found:
    owner = "the collector" if found[1] == collector.Collector.__name__ else "replay"
    name = f"{owner}, of which {name} asked something,"
  if "Traceback" in told:
    # It failed as it began; the last line says why.
    return f"the process of {name} failed: {told.strip().splitlines()[-1].strip()}"
  return (
    f"the process of {name} died unexpectedly: it was killed, ran out of memory or "
    "crashed."
  )
