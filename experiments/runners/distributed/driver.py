"""Polls the board of a run, writes its checkpoints, and ends its processes."""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import dm_env
import jax
import numpy as np

from explorax.agents import types
from explorax.experiments import config as config_lib
from explorax.experiments import ray_cluster, signals
from explorax.experiments.checkpoints import files
from explorax.experiments.runners import core, errors
from explorax.experiments.runners.distributed import board as board_lib
from explorax.experiments.runners.distributed import (
  checkpoints,
  evaluator,
  failures,
  messages,
  rate_limit,
)
from explorax.experiments.runners.distributed import processes as processes_lib

# Space for batches, rows in transit, and a few versions of the weights.
_OBJECT_STORE_BYTES = 256 * 2**20
_SECONDS_BETWEEN_POLLS = 0.2
_SECONDS_BETWEEN_TRIES = 10.0  # To write a checkpoint.
_SECONDS_TO_END = 20.0  # For processes that were told to stop.
_PATIENCE = 60.0  # Seconds after which a blocked process is logged.
# This many deaths of a role's processes end the run: within this many seconds, or in a
# row before the process did any work.
_MAX_DEATHS = 5
_SECONDS_OF_DEATHS = 60.0


class Replacement(NamedTuple):
  """A process that died was replaced."""

  role: str  # `actor`, `learner`, `replay`, `evaluator` or `board`.
  sentence: str


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  config: config_lib.RunConfig,
  hooks: core.Hooks,
  *,
  evaluation_environment: dm_env.Environment | None = None,
) -> core.Result:
  """Trains an agent in several processes on Ray.

  Actors and learner run at the same time; a rate limiter keeps them in step
  (`rate_limit.RateLimit`). Results are not reproducible bit for bit.

  Acting ends when the reported steps or episodes reach a limit. Steps that are already
  under way also count: at most a tenth of a second of the other actors' steps.
  Episodes beyond `config.episodes` do not count.

  Ray restarts a process that dies. The learner and replay start from the newest
  checkpoint, the others from the board's state. A report sent while its process died
  may be lost; none is counted twice.

  Args:
    agent: made for this environment's spec; must be picklable by cloudpickle.
    environment: unused: each process makes its own with `hooks.make_environment`.
    config: of the run.
    hooks: called from this process. `make_environment` is required and is called in
      the processes that need an environment.
    evaluation_environment: None for no evaluation; the evaluator makes its own.

  Raises:
    errors.StoppedError: if a process keeps failing.
    errors.SetUpError: if Ray cannot be reached.
    ValueError: if there is no limit, or processes would block each other.
  """
  del environment
  if config.episodes is None and config.steps is None:
    raise ValueError("the run has no limit; give episodes or steps.")
  if hooks.make_environment is None:
    raise ValueError("hooks.make_environment is missing: actors make environments.")
  check(agent, config)
  evaluates = evaluation_environment is not None
  num_processes = 1 + evaluates + (config.num_actors or 1) + (config.replay_shards or 1)
  with ray_cluster.connect(
    config.ray_address,
    max(len(os.sched_getaffinity(0)), num_processes),
    num_gpus=config.learner_gpus or 0,
    num_bytes=_OBJECT_STORE_BYTES,
  ):
    processes = processes_lib.Processes(agent, config, hooks, evaluates)
    try:
      return _Driver(processes, agent, config, hooks).run()
    finally:
      processes.kill()


def check(agent: types.Agent, config: config_lib.RunConfig) -> None:
  """Raises a ValueError if processes would block each other."""
  rate_limit.rate_limit(agent.replay, config)


class _Role:
  """The driver's knowledge of a role.

  Attributes:
    pid: of its process.
    deaths: times of its processes' recent deaths.
    in_vain: how many of them in a row had done no work.
    patience: seconds of blocking after which it is logged.
  """

  def __init__(self) -> None:
    self.pid: int | None = None
    self.deaths: list[float] = []
    self.in_vain = 0
    self.patience = _PATIENCE

  def died(self, had_worked: bool) -> str:
    """Counts a death; returns why the run must stop, or ''."""
    now = time.monotonic()
    recent = [at for at in self.deaths if now - at < _SECONDS_OF_DEATHS]
    self.deaths = [*recent, now]
    self.in_vain = 0 if had_worked else self.in_vain + 1
    if self.in_vain >= _MAX_DEATHS:
      return f"died {self.in_vain} times before doing any work"
    if len(self.deaths) >= _MAX_DEATHS:
      return f"died {len(self.deaths)} times within {_SECONDS_OF_DEATHS:.0f} s"
    return ""


class _Driver:
  """Polls the board and handles its messages."""

  def __init__(
    self,
    processes: processes_lib.Processes,
    agent: types.Agent,
    config: config_lib.RunConfig,
    hooks: core.Hooks,
  ):
    import ray

    self._ray = ray
    self._processes = processes
    self._board = processes.board
    self._tasks = dict(processes.tasks)
    self._min_size = agent.replay.min_size
    self._config = config
    self._hooks = hooks
    self._roles = {role: _Role() for role in (messages.BOARD, *self._tasks)}
    self._checkpoints = None
    found = None
    if hooks.checkpoints is not None:
      self._checkpoints = checkpoints.Checkpoints(
        agent, config.replay, hooks.checkpoints, processes.limit
      )
      found = hooks.checkpoints.found
    counts = None if found is None else found.record["counts"]["board"]
    self._state = board_lib.beginning(counts)
    self._found = found
    self._starts: dict[str, Any] = {}  # Role → reference to what it starts from.
    self._board_pid: int | None = None  # Of the board that has received the state.
    self._polled_at = time.monotonic()
    self._steps_per_second = float("nan")
    self._learnt: messages.LearnerState | None = None
    self._asked = False  # Whether the learner's state was requested. How often so far:
    self._requests = 0
    self._next_save = 0.0
    self._until: float | None = None  # Deadline of a run that was told to stop.

  def run(self) -> core.Result:
    """Polls until the run is over.

    Raises:
      errors.StoppedError: if a process keeps failing.
    """
    with signals.stop_on_interrupt() as interrupted:
      while self._workers():
        if self._until is None and (self._hooks.stop() or interrupted()):
          self._until = time.monotonic() + _SECONDS_TO_END
          self._board.enter.remote(messages.STOPPED)
        self._turn()
        if self._until is not None and time.monotonic() > self._until:
          break
      return self._end()

  def _workers(self) -> list[str]:
    """The roles whose work is not finished, without replay."""
    return [role for role in self._tasks if not role.startswith("replay")]

  def _turn(self) -> None:
    """Checks everything once."""
    poll = self._poll()
    self._ray.wait(list(self._tasks.values()), timeout=_SECONDS_BETWEEN_POLLS)
    for role in list(self._tasks):
      self._look_after(role)
    if poll is None:
      return
    for role, incarnation in poll.starting:
      start = self._start_of(role)
      self._board.give.remote(role, incarnation, start)
    if self._until is None:
      self._log_blocked(poll.blocked)
    if self._checkpoints is not None and messages.LEARNER in self._tasks:
      self._save_if_due(poll, self._checkpoints)

  def _poll(self) -> messages.Poll | None:
    """Handles the news; returns None if the board needs the state first."""
    try:
      poll = self._ray.get(self._board.poll.remote())
    except self._ray.exceptions.RayError as error:
      raise failures.stopped(messages.BOARD, error, [self._weights()]) from error
    if isinstance(poll, int):
      if poll != self._board_pid:
        deaths = 0 if self._board_pid is None else 1
        silence = time.monotonic() - self._polled_at
        self._board_pid, self._asked = poll, False
        self._board.resume.remote(self._state)
        for role in self._processes.tasks.keys() - self._tasks.keys():
          self._board.end.remote(role)
        self._note_start(
          messages.Started(messages.BOARD, deaths, poll, silence, True, "")
        )
      return None
    self._polled_at = time.monotonic()
    self._state = poll.state
    self._steps_per_second = poll.steps_per_second
    steps = poll.state.counts["env_steps"]
    activity = core.acting(steps, steps, self._min_size)
    if not steps:
      activity = core.Activity(core.STARTING, 0)
    self._hooks.on_activity(activity)
    for event in poll.events:
      if isinstance(event, core.Episode):
        self._hooks.on_episode(event._replace(seed=self._config.seed))
      elif isinstance(event, core.Failure):
        self._hooks.on_env_failure(event)
      elif isinstance(event, messages.Started):
        self._note_start(event)
      else:
        if self._hooks.observer is not None:
          evaluator.replay(event.calls, self._hooks.observer)
        self._hooks.on_evaluation(event.evaluation)
    return poll

  def _note_start(self, started: messages.Started) -> None:
    """Logs the death of an earlier process, if there was one, and counts it.

    Raises:
      errors.StoppedError: after too many deaths.
    """
    role = self._roles[started.role]
    if role.pid is not None:
      why = "died (it was killed, ran out of memory or crashed)"
      if started.reason:
        why = f"ended itself because {started.reason}"
      remedy = self._remedy(started.role)
      after = f" (after {started.silence:.1f} s)" if started.silence else ""
      self._hooks.on_replacement(
        Replacement(
          started.role.split()[0],
          f"{started.role} {why}; Ray restarted it{remedy}{after}.",
        )
      )
      if reason := role.died(started.had_worked):
        raise errors.StoppedError(
          f"{started.role} {reason}; the run stops.", [self._weights()]
        )
      if started.role.startswith("replay"):
        shard = self._processes.shards[int(started.role.split()[1])]
        self._tasks[started.role] = shard.ready.remote()
    if started.pid:
      role.pid = started.pid
      pids = {name: each.pid for name, each in self._roles.items() if each.pid}
      self._hooks.on_processes({"driver": os.getpid(), **pids})

  def _remedy(self, role: str) -> str:
    """Describes what a restarted process starts from."""
    kind = role.split()[0]
    if kind == "actor":
      return ", and drops its unfinished episodes"
    if kind not in (messages.LEARNER, "replay"):
      return ""
    self._found = (
      None if self._checkpoints is None else self._checkpoints.checkpointer.find()
    )
    if kind == messages.LEARNER and self._found is None:
      return " without a checkpoint, as there is none yet"
    if self._found is not None:
      at = (
        f"from the checkpoint of environment step {self._found.record['env_steps']:,}"
      )
      if kind == messages.LEARNER or "num_shards" in self._found.record["counts"]:
        return f" {at}"
    return f" empty; learning waits until it holds {self._min_size:,} steps"

  def _start_of(self, role: str) -> Any:
    """What a process starts from, as a list of one reference; None for nothing."""
    found: files.Checkpoint | None = self._found
    if found is None or self._checkpoints is None:
      return None
    if role == messages.LEARNER:
      value: Any = self._checkpoints.learner(found)
    elif role.startswith("replay"):
      num_shards = len(self._processes.shards)
      value = self._checkpoints.shard(found, int(role.split()[1]), num_shards)
    else:
      return None
    self._starts[role] = self._ray.put(value)
    return [self._starts[role]]

  def _look_after(self, role: str) -> None:
    """Takes the result of a finished task.

    Raises:
      errors.StoppedError: if it failed.
    """
    if not self._ray.wait([self._tasks[role]], timeout=0)[0]:
      return
    try:
      value = self._ray.get(self._tasks.pop(role))
    except self._ray.exceptions.RayError as error:
      raise failures.stopped(role, error, [self._weights()]) from error
    if not role.startswith("replay"):
      self._board.end.remote(role)
    if role == messages.LEARNER:
      self._learnt = value
      self._board.enter.remote(messages.EVALUATING)

  def _log_blocked(self, blocked: Mapping[str, tuple[str, float]]) -> None:
    for name, (doing, seconds) in blocked.items():
      role = self._roles[name]
      if seconds < _PATIENCE:
        role.patience = _PATIENCE
      elif seconds >= role.patience:
        self._hooks.on_message(f"for {seconds:.0f} s, {name} {doing}")
        role.patience *= 2

  def _save_if_due(self, poll: messages.Poll, kept: checkpoints.Checkpoints) -> None:
    """Requests the learner's state when a checkpoint is due; writes it later."""
    if poll.learner is None or not self._asked:
      is_due = kept.checkpointer.is_due(poll.state.counts["env_steps"])
      if is_due and not self._asked and time.monotonic() >= self._next_save:
        self._asked = True
        self._requests += 1
        self._board.ask_for_state.remote(self._requests)
      return
    self._asked = False
    try:
      kept.save(
        poll.state.counts,
        poll.learner,
        self._processes.shards,
        self._gather,
        complete=False,
      )
    except self._ray.exceptions.RayError as error:
      self._next_save = time.monotonic() + _SECONDS_BETWEEN_TRIES
      self._hooks.on_message(
        "a checkpoint could not be written, because a process did not deliver its part "
        f"({_last_line(error)}); it will be tried again"
      )

  def _gather(self, calls: list[Any]) -> list[Any]:
    """The results of calls of replay processes, however long they take.

    Raises:
      ray.exceptions.RayError: if one of the processes, or the board, has died. A
        replacement waits for the driver and answers no call before.
    """
    missing = calls
    while missing:
      _, missing = self._ray.wait(
        missing, num_returns=len(missing), timeout=_SECONDS_BETWEEN_POLLS
      )
      if missing and self._ray.get(self._board.needs_driver.remote()):
        raise self._ray.exceptions.RayError("a process has died")
    return self._ray.get(calls)

  def _end(self) -> core.Result:
    """Writes the last checkpoint and returns the result."""
    until = time.monotonic() + _SECONDS_TO_END
    while self._poll() is None and time.monotonic() < until:
      time.sleep(_SECONDS_BETWEEN_POLLS)
    counts, learnt = self._state.counts, self._learnt
    complete = self._config.is_reached(counts["env_steps"], counts["episodes"])
    if self._checkpoints is not None and learnt is not None:
      try:
        self._checkpoints.save(
          counts, learnt, self._processes.shards, self._gather, complete=complete
        )
      except self._ray.exceptions.RayError as error:
        self._hooks.on_message(
          f"the last checkpoint could not be written ({_last_line(error)})"
        )
    elif self._checkpoints is not None:
      self._hooks.on_message(
        "the learner did not end in time; its updates since the last checkpoint are "
        "lost"
      )
    return core.Result(
      weights=self._weights(),
      env_steps=counts["env_steps"],
      episodes=counts["episodes"],
      learner_updates=counts["updates"] if learnt is None else learnt.updates,
      steps_per_second=self._steps_per_second,
      interrupted=self._until is not None,
    )

  def _weights(self) -> types.Params:
    """The newest published weights; None if they are lost."""
    with contextlib.suppress(self._ray.exceptions.RayError):
      if self._state.version is not None:
        newest = self._ray.get(self._state.version.reference[0])
        return jax.tree.map(np.array, newest)
    return None


def _last_line(error: Exception) -> str:
  return str(error).strip().splitlines()[-1].strip()
