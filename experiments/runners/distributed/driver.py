"""Polls the board of a run, writes its checkpoints, and ends its processes."""

import contextlib
import math
import os
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import dm_env
import jax
import numpy as np
import ray

from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.experiments import config as config_lib
from explorax.experiments import ray_cluster
from explorax.experiments.runners import clock, core, errors, evaluation, recovery
from explorax.experiments.runners.distributed import (
  board,
  checkpoints,
  envs,
  evaluator,
  messages,
  rate_limit,
)
from explorax.experiments.runners.distributed import processes as processes_lib

# Space for batches, rows in transit, and a few versions of the weights.
_OBJECT_STORE_BYTES = 256 * 2**20
_SECONDS_BETWEEN_POLLS = 0.2
_SECONDS_TO_ANSWER = 1.0  # Between checks of Ray's own processes.
_SECONDS_TO_END = 20.0  # For processes that were told to stop.
_PATIENCE = 60.0  # Seconds after which a blocked process is logged.
# So many deaths of a role's processes within so many seconds end the run.
_MAX_DEATHS = 5
_SECONDS_OF_DEATHS = 120.0
# Added to the timeout of an environment for processes that do not respond at all.
_SECONDS_OF_SILENCE = 30.0
# What a restarted process starts from.
_REMEDIES = {
  "actor": ", and drops its unfinished episodes",
  "evaluator": "",
  "learner": " from the newest checkpoint, if there is one",
  "replay": " with what the newest checkpoint has of it, or empty",
}


class Replacement(NamedTuple):
  """A process that died was replaced."""

  role: str  # `actor`, `learner`, `replay` or `evaluator`
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

  Ray restarts a process that dies, except the board. The learner and replay start from
  the newest checkpoint. A report that is under way when its process dies may be lost;
  none is counted twice.

  Args:
    agent: made for this environment's spec; must be picklable by cloudpickle.
    environment: unused: each process makes its own with `hooks.make_environment`.
    config: of the run.
    hooks: called from this process. `make_environment` is required and is called in
      the processes that need an environment.
    evaluation_environment: with `config.eval_every`, the evaluator's process makes its
      own; else the driver evaluates in this one, or in one that it makes, at the end.

  Raises:
    errors.StoppedError: if the board dies, or a process keeps failing.
    errors.SetUpError: if Ray cannot be reached.
    ValueError: if there is no limit, or processes would block each other.
  """
  del environment
  if config.episodes is None and config.steps is None:
    raise ValueError("the run has no limit; give episodes or steps.")
  if hooks.make_environment is None:
    raise ValueError("hooks.make_environment is missing: actors make environments.")
  check(agent, config)
  has_evaluator = config.eval_every is not None
  num_processes = (
    1 + has_evaluator + (config.num_actors or 1) + (config.replay_shards or 1)
  )
  with ray_cluster.connect(
    config.ray_address,
    max(len(os.sched_getaffinity(0)), num_processes),
    num_gpus=config.learner_gpus or 0,
    num_bytes=_OBJECT_STORE_BYTES,
  ):
    processes = processes_lib.Processes(agent, config, hooks, has_evaluator)
    try:
      return _Driver(processes, agent, config, hooks, evaluation_environment).run()
    finally:
      processes.kill()


def check(agent: types.Agent, config: config_lib.RunConfig) -> None:
  """Raises a ValueError if processes would block each other."""
  rate_limit.rate_limit(agent.replay, config)


def failure(role: str, error: Any, weights: list[types.Params]) -> errors.StoppedError:
  """The error that ends a run after a call of a process has failed with a RayError."""
  cause = getattr(error, "cause", None) or error
  if isinstance(cause, ray.exceptions.RayActorError):
    # Ray's message about a failed constructor ends with the line of the exception.
    why = str(cause).strip().splitlines()[-1].strip()
    return errors.StoppedError(f"the process of {role} failed: {why}", weights)
  text = " ".join(str(cause).split())
  if isinstance(cause, FloatingPointError):
    return errors.NonFiniteError(f"{role} stopped: {text}", weights)
  if isinstance(cause, recovery.UnrecoverableError):
    return errors.EnvironmentFailedError(f"{role} stopped: {text}", weights)
  return errors.StoppedError(f"{role} failed: {type(cause).__name__}: {text}", weights)


class _Role:
  """The driver's knowledge of a role.

  Attributes:
    pid: of its process.
    deaths: times of its processes' deaths.
    hung: why the driver has killed its process; '' if it has not.
    patience: seconds of blocking after which it is logged.
  """

  def __init__(self) -> None:
    self.pid: int | None = None
    self.deaths: list[float] = []
    self.hung = ""
    self.patience = _PATIENCE


class _Driver:
  """The part of a run in the driver's process."""

  def __init__(
    self,
    processes: processes_lib.Processes,
    agent: types.Agent,
    config: config_lib.RunConfig,
    hooks: core.Hooks,
    evaluation_environment: dm_env.Environment | None,
  ):
    self._agent = agent
    self._evaluation_environment = evaluation_environment
    self._processes = processes
    self._tasks = dict(processes.tasks)
    self._min_size = agent.replay.min_size
    self._config = config
    self._hooks = hooks
    self._servers = ray_cluster.servers()
    self._roles = {role: _Role() for role in (messages.BOARD, *processes.handles)}
    found = None if hooks.checkpoints is None else hooks.checkpoints.restored
    self._saving: Any = None  # The reference to the learner's state, once requested.
    self._last_state: messages.LearnerState | None = None
    counts = checkpoints.counts(found)
    self._news = messages.Poll([], counts, None, {}, math.nan)
    self._log_clock = core.LogClock(config.log_every, counts.env_steps)

  def run(self) -> core.Result:
    """Polls until the run is over.

    Raises:
      errors.StoppedError: if the board dies, or a process keeps failing.
    """
    until = math.inf  # The deadline of a run that was told to stop.
    while self._is_at_work() and time.monotonic() < until:
      if until == math.inf and self._hooks.stop():
        until = time.monotonic() + _SECONDS_TO_END
        self._processes.board.enter.remote(messages.STOPPED)
      elif self._hooks.ended():
        self._processes.board.enter.remote(messages.LEARNING)
      self._poll()
      self._finish_tasks()
      if until == math.inf:
        self._check_blocked(self._news.blocked)
      self._save_if_due()
    return self._end(interrupted=until < math.inf)

  def _is_at_work(self) -> bool:
    return any(not role.startswith("replay") for role in self._tasks)

  def _poll(self) -> None:
    """Handles the news of the board."""
    self._news = news = self._get_news()
    steps = news.counts.env_steps
    activity = core.acting(steps, steps, self._min_size)
    if not steps:
      activity = core.Activity(core.STARTING, 0)
    self._hooks.on_activity(activity)
    for event in news.events:
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
    if self._log_clock.is_due(steps):
      row = core.log_row(
        self._agent,
        news.counts.metrics,
        env_steps=steps,
        learner_updates=news.counts.updates,
        steps_per_second=news.steps_per_second,
        wall_seconds=news.counts.seconds,
        seed=self._config.seed,
      )
      self._hooks.on_log(row)

  def _get_news(self) -> messages.Poll:
    """The news of the board, as long as Ray's own processes run.

    Raises:
      errors.StoppedError: if one of them dies, or the board. Ray itself would end this
        process without a word a minute later.
    """
    coming = self._processes.board.poll.remote()
    while True:
      for server in self._servers:
        if not server.is_running():
          raise self._stopped(f"Ray's {server.name} died (it was killed or crashed)")
      try:
        return ray.get(coming, timeout=_SECONDS_TO_ANSWER)
      except ray.exceptions.GetTimeoutError:
        continue
      except ray.exceptions.RayError as error:
        raise self._stopped(
          "the board, which receives all reports, died (it was killed, ran out of "
          "memory or crashed)"
        ) from error

  def _note_start(self, started: messages.Started) -> None:
    """Reports the death of an earlier process of the role, if there was one.

    Raises:
      errors.StoppedError: after too many deaths.
    """
    role, now = self._roles[started.role], time.monotonic()
    if role.pid is not None:
      why = role.hung or "died (it was killed, ran out of memory or crashed)"
      kind = started.role.split()[0]
      sentence = f"{started.role} {why}; Ray restarted it{_REMEDIES[kind]}."
      self._hooks.on_replacement(Replacement(kind, sentence))
      role.deaths = [*role.deaths, now][-_MAX_DEATHS:]
      if len(role.deaths) == _MAX_DEATHS and now - role.deaths[0] < _SECONDS_OF_DEATHS:
        raise self._stopped(
          f"{started.role} died {_MAX_DEATHS} times in {now - role.deaths[0]:.0f} s"
        )
      if kind == "replay":
        self._tasks[started.role] = self._processes.handles[started.role].run.remote()
    role.pid, role.hung = started.pid, ""
    pids = {name: each.pid for name, each in self._roles.items() if each.pid}
    self._hooks.on_processes({"driver": os.getpid(), **pids})

  def _finish_tasks(self) -> None:
    """Waits for a moment, and notes which processes have done their work."""
    finished, _ = ray.wait(list(self._tasks.values()), timeout=_SECONDS_BETWEEN_POLLS)
    for role in [role for role, task in self._tasks.items() if task in finished]:
      value = self._get(role, self._tasks.pop(role))
      if role.startswith("replay"):
        continue  # It has started.
      self._processes.board.end.remote(role)
      if role == messages.LEARNER:
        self._last_state = value
        self._processes.board.enter.remote(messages.EVALUATING)

  def _get(self, role: str, reference: Any) -> Any:
    """The result of a call of a process.

    Raises:
      errors.StoppedError: if it failed.
    """
    try:
      return ray.get(reference)
    except ray.exceptions.RayError as error:
      raise failure(role, error, [self._weights()]) from error

  def _check_blocked(self, blocked: Mapping[str, tuple[str, float]]) -> None:
    """Replaces a process whose environment hangs; logs others that are blocked."""
    timeout = self._config.environment_timeout or 0
    for name, (doing, seconds) in blocked.items():
      role = self._roles[name]
      if name.startswith(("actor", messages.EVALUATOR)) and role.pid and not role.hung:
        # An environment that holds Python's lock stops the reports, too.
        is_silent = doing == board.NOT_RESPONDING
        allowed = timeout + _SECONDS_OF_SILENCE * is_silent
        if (is_silent or doing == envs.WAITS) and seconds >= allowed:
          role.hung = (
            f"was killed because its environment did not answer for {seconds:.0f} s "
            "(--environment_timeout)"
          )
          self._processes.replace(name)
      if seconds < _PATIENCE:
        role.patience = _PATIENCE
      elif seconds >= role.patience:
        self._hooks.on_message(f"for {seconds:.0f} s, {name} {doing}")
        role.patience *= 2

  def _save_if_due(self) -> None:
    """Requests the learner's state when a checkpoint is due; writes it later."""
    checkpointer = self._hooks.checkpoints
    if checkpointer is None or messages.LEARNER not in self._tasks:
      return
    if self._saving is None and checkpointer.is_due(self._news.counts.env_steps):
      self._saving = self._processes.handles[messages.LEARNER].save.remote()
    elif self._saving and ray.wait([self._saving], timeout=0)[0]:
      state, self._saving = self._get(messages.LEARNER, self._saving), None
      self._save(state, checkpointer.with_replay)

  def _save(self, state: messages.LearnerState, with_replay: bool) -> None:
    assert self._hooks.checkpoints is not None
    try:
      checkpoints.save(
        self._hooks.checkpoints,
        self._processes.run,
        self._news.counts,
        state,
        self._processes.shards if with_replay else [],
      )
    except ray.exceptions.RayError as error:
      raise failure("replay", error, [self._weights()]) from error

  def _end(self, *, interrupted: bool) -> core.Result:
    """Writes the last checkpoint, evaluates and returns the result."""
    self._poll()
    counts, state = self._news.counts, self._last_state
    checkpointer = self._hooks.checkpoints
    if checkpointer is not None and state is not None:
      is_complete = self._config.is_reached(counts.env_steps, counts.episodes)
      self._save(state, checkpointer.with_replay and not is_complete)
    elif checkpointer is not None:
      self._hooks.on_message(
        "the learner did not end in time; its updates since the last checkpoint are "
        "lost"
      )
    weights = self._weights()
    if self._config.evaluates and self._config.eval_every is None and not interrupted:
      interrupted = not self._evaluate(weights)
    return core.Result(
      weights=weights,
      env_steps=counts.env_steps,
      episodes=counts.episodes,
      learner_updates=counts.updates if state is None else state.updates,
      steps_per_second=self._news.steps_per_second,
      interrupted=interrupted,
    )

  def _evaluate(self, weights: types.Params) -> bool:
    """Evaluates the weights in this process; returns whether that was not stopped.

    Raises:
      errors.EnvironmentFailedError: if the environment crashed too often in a row.
    """
    config, hooks, steps = self._config, self._hooks, self._news.counts.env_steps
    make, environment = hooks.make_environment, self._evaluation_environment
    if weights is None or make is None:
      return True
    actor_key, _ = jax.random.split(jax.random.PRNGKey(config.seed))
    with contextlib.ExitStack() as stack:
      if environment is None:
        environment = make(core.EVALUATION, 0)
        stack.callback(recovery.close, environment)
      guarded = recovery.guard(environment, core.EVALUATION, config, hooks)
      stack.enter_context(contextlib.closing(guarded))
      # The learner's process still has the GPU's memory.
      stack.enter_context(jax.default_device(jax.local_devices(backend="cpu")[0]))
      actor = builder_lib.Builder(self._agent).make_actor(
        core.evaluation_key(actor_key), actor_lib.Constant(weights), evaluation=True
      )
      evaluations = evaluation.Evaluations(actor, guarded, clock.Clock(), config, hooks)
      try:
        evaluations.evaluate(steps)
      except recovery.UnrecoverableError as error:
        raise errors.EnvironmentFailedError(str(error), [weights]) from error
    return evaluations.is_up_to_date(steps)

  def _stopped(self, why: str) -> errors.StoppedError:
    """The error of a run that the same command can resume."""
    remedy = ""
    if self._hooks.checkpoints is not None:
      remedy = "; the same command resumes the run from its newest checkpoint"
    return errors.StoppedError(f"{why}{remedy}.", [self._weights()])

  def _weights(self) -> types.Params:
    """The newest published weights; None if they are lost."""
    with contextlib.suppress(ray.exceptions.RayError):
      if self._news.version is not None:
        newest = ray.get(self._news.version.reference[0], timeout=_SECONDS_TO_ANSWER)
        return jax.tree.map(np.array, newest)
    return None
