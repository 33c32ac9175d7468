"""The course of a run: limits, logs, evaluations, checkpoints and its end."""

import abc
import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import dm_env

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import errors as environment_errors
from explorax.environments import rendering
from explorax.experiments import checkpoint as checkpoint_lib
from explorax.experiments import config as config_lib
from explorax.experiments import errors
from explorax.experiments.runners import common, loop

# An evaluation episode that does not end is left after so many steps.
MAX_STEPS = 1_000_000
# The evaluation of a run without `eval_every`: the share of the run's steps that it may
# take, and how many it may take in any case.
_SHARE, _FEW_STEPS = 0.1, 5_000


class Clock:
  """Steps per second, measured after compilation and without pauses."""

  def __init__(self, now: Callable[[], float] = time.monotonic):
    self._now = now
    self._start = now()
    self._warm: tuple[float, int] | None = None

  @property
  def seconds(self) -> float:
    """Seconds since the run's start, over all its processes."""
    return self._now() - self._start

  def resume(self, seconds: float) -> None:
    """Resumes a run that has already taken this many seconds."""
    self._start = self._now() - seconds

  def mark_warm(self, env_steps: int) -> None:
    """Starts the measurement, once."""
    if self._warm is None:
      self._warm = (self._now(), env_steps)

  @contextlib.contextmanager
  def paused(self) -> Iterator[None]:
    """A context whose time is not measured."""
    began = self._now()
    try:
      yield
    finally:
      if self._warm is not None:
        since, steps = self._warm
        self._warm = (since + self._now() - began, steps)

  def steps_per_second(self, env_steps: int) -> float:
    """NaN before `mark_warm`, and before the first step after it."""
    if self._warm is None or env_steps <= self._warm[1]:
      return math.nan
    since, steps = self._warm
    seconds = self._now() - since
    return (env_steps - steps) / seconds if seconds > 0 else math.nan


class Run(abc.ABC):
  """What a runner does between two calls of `RunControl`, and its counters.

  Attributes:
    clock: of the steps.
    episodes: number of finished episodes of each seed.
  """

  def __init__(
    self,
    agent: types.Agent,
    config: config_lib.RunConfig,
    on_episode: Callable[[common.Episode], None],
  ):
    """Starts with all counters at zero.

    Args:
      agent: trained with all seeds.
      config: provides the seeds and the limits.
      on_episode: called with each finished episode.
    """
    self._agent = agent
    self._config = config
    self._on_episode = on_episode
    self._resumed_at = 0  # Environment steps.
    self.clock = Clock()
    self.episodes = [0] * config.num_seeds

  @property
  @abc.abstractmethod
  def env_steps(self) -> int:
    """Environment steps so far, of each seed."""

  @property
  @abc.abstractmethod
  def num_updates(self) -> int:
    """Learner updates so far, of each seed."""

  @property
  def is_done(self) -> bool:
    """Whether a limit is reached."""
    return self._config.is_reached(self.env_steps, min(self.episodes))

  @property
  @abc.abstractmethod
  def may_evaluate(self) -> bool:
    """Whether an evaluation may run now."""

  @property
  @abc.abstractmethod
  def filled(self) -> tuple[int, int] | None:
    """See `common.Activity`."""

  @property
  def program(self) -> str:
    """Of which program `advance` is the next call; the first one compiles it."""
    return "acting" if self.filled else "learning"

  @abc.abstractmethod
  def advance(self) -> None:
    """Acts, stores and learns, for as long as the run cannot stop."""

  @abc.abstractmethod
  def check_finite(self) -> None:
    """Raises an error if the last update was not finite."""

  @abc.abstractmethod
  def save(self, *, with_replay: bool) -> checkpoint_lib.Snapshot:
    """The state for a checkpoint, without that of this class."""

  @abc.abstractmethod
  def restore(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    """Resumes from a state of `save`; `episodes` and `clock` have resumed."""

  @abc.abstractmethod
  def learner_metrics(self) -> list[dict[str, float]]:
    """Of the last update, of each seed; waits for it."""

  @abc.abstractmethod
  def weights(self) -> list[types.Params]:
    """The weights of each seed, on the host."""

  def own_environment(self, index: int) -> dm_env.Environment | None:
    """A seed's environment of evaluations, if it has parameters of its own."""
    return None

  @abc.abstractmethod
  def make_evaluation_actors(self) -> list[actor_lib.Actor]:
    """An actor with the learner's weights and a separate key for each seed."""

  def snapshot(self, *, with_replay: bool) -> checkpoint_lib.Snapshot:
    """All of the run for a checkpoint."""
    saved = self.save(with_replay=with_replay)
    counts = {"episodes": self.episodes, "seconds": self.clock.seconds}
    return saved._replace(counts={**saved.counts, **counts})

  def resume(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    """Resumes from a `snapshot`."""
    self._resumed_at = checkpoint.record["env_steps"]
    self.episodes = checkpoint.record["counts"]["episodes"]
    self.clock.resume(checkpoint.record["counts"]["seconds"])
    self.restore(checkpoint)

  def log_rows(self) -> list[common.LogRow]:
    """What is to be logged now, of each seed."""
    self.check_finite()
    return [
      common.log_row(
        self._agent,
        metrics,
        env_steps=self.env_steps,
        learner_updates=self.num_updates,
        steps_per_second=self.clock.steps_per_second(self.env_steps),
        wall_seconds=self.clock.seconds,
        seed=seed,
      )
      for seed, metrics in zip(self._config.seeds, self.learner_metrics(), strict=True)
    ]

  def results(self, interrupted: bool) -> list[common.Result]:
    """The result of each seed."""
    return [
      common.Result(
        weights=weights,
        env_steps=self.env_steps,
        episodes=episodes,
        learner_updates=self.num_updates,
        steps_per_second=self.clock.steps_per_second(self.env_steps),
        interrupted=interrupted,
      )
      for episodes, weights in zip(self.episodes, self.weights(), strict=True)
    ]

  def _count_episode(
    self, index: int, *, env_steps: int, policy: int, **columns: Any
  ) -> None:
    """Counts and reports an ended episode.

    Args:
      index: of its seed.
      env_steps: at its end.
      policy: the index of the policy that acted.
      **columns: others of `common.Episode`.
    """
    self.episodes[index] += 1
    self._on_episode(
      common.Episode(
        episode=self.episodes[index],
        env_steps=env_steps,
        policy=self._agent.policy_names[policy],
        steps_per_second=self.clock.steps_per_second(self.env_steps),
        wall_seconds=self.clock.seconds,
        seed=self._config.seeds[index],
        **columns,
      )
    )


class RunControl:
  """Limits, logs, evaluations, checkpoints and the end of a run; a context.

      with course.RunControl(run, config, hooks, evaluation_environment) as control:
        while control.continues():
          run.advance()
          control.after_step()
        return control.finish()

  `config.eval_episodes` episodes of the evaluation policy (or `config.eval_steps`
  steps) run at the end of a run that was not stopped, and with `config.eval_every` also
  whenever a multiple of so many environment steps was passed, unless the last
  evaluation is up to date. They do not affect replay, counts or returns. A run without
  its last evaluation is interrupted. Several seeds are evaluated one after the other.

  An exception in the context is the cause of the `common.StoppedError` that replaces
  it, with the last good weights.
  """

  def __init__(
    self,
    run: Run,
    config: config_lib.RunConfig,
    hooks: common.Hooks,
    evaluation_environment: dm_env.Environment | None = None,
  ):
    """Resumes the run if `hooks.checkpoints` has found a checkpoint.

    Args:
      run: what is to be done.
      config: has the limits.
      hooks: called during the run.
      evaluation_environment: closed by its owner. None: the only evaluation is at the
        end, in an environment that is made then, as it may share global random numbers
        with that of training; without `hooks.make_environment` there is none.
    """
    self._run = run
    self._config = config
    self._hooks = hooks
    self._compiled: set[str] = set()  # The programs that this process has called.
    self._at_exit = contextlib.ExitStack()
    self._evaluations: list[Evaluations] = []  # Of each seed.
    # When each seed was last evaluated, in environment steps.
    self._evaluated_at = [0] * config.num_seeds
    self._has_resumed = hooks.restored is not None
    if hooks.restored is not None:
      run.resume(hooks.restored)
      self._evaluated_at = hooks.restored.record["counts"]["evaluated_at"]
    if evaluation_environment is not None:
      self._prepare_evaluations(evaluation_environment)
    self._logged_at = run.env_steps

  def __enter__(self) -> "RunControl":
    return self

  def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
    self._at_exit.close()
    # Not Ctrl-C, and not a callback's.
    is_wrapped = isinstance(error, Exception | SystemExit)
    if is_wrapped and not isinstance(error, common.StoppedError):
      raise self._stopped(error) from error

  def continues(self) -> bool:
    """Whether another step is due; shows what it does."""
    run = self._run
    if self._has_resumed and run.may_evaluate:  # One that was stopped is repeated.
      self._evaluate_if_due()
    self._has_resumed = False
    if self._is_complete or self._hooks.stop():
      return False
    filled = run.filled
    name = common.FILLING if filled else common.ACTING
    activity = common.Activity(name, run.env_steps, filled)
    if run.program not in self._compiled:
      self._compiled.add(run.program)
      activity = common.compiling(run.program, run.env_steps)
    self._hooks.on_activity(activity)
    return True

  def after_step(self) -> None:
    """Logs, evaluates and writes a checkpoint, if they are due."""
    run, checkpoints = self._run, self._hooks.checkpoints
    if common.has_passed(self._config.log_every, self._logged_at, run.env_steps):
      self._logged_at = run.env_steps
      for row in run.log_rows():
        self._hooks.on_log(row)
    if run.may_evaluate:
      self._evaluate_if_due()
    if checkpoints is not None and checkpoints.is_due(run.env_steps):
      self._save(checkpoints)

  def finish(self) -> list[common.Result]:
    """Evaluates and writes the last checkpoint; returns the result of each seed.

    Without `eval_every`, the evaluation comes last and is in no checkpoint: one that is
    stopped is repeated, and a run that is extended has only that of its new end.
    """
    run = self._run
    run.check_finite()
    is_complete = self._is_complete
    evaluates_last = self._config.eval_every is None
    if is_complete and not evaluates_last:
      is_complete = self._evaluate()
    if self._hooks.checkpoints is not None:
      self._save(self._hooks.checkpoints)
    if is_complete and evaluates_last:
      make = self._hooks.make_environment
      if not self._evaluations and self._config.evaluates and make is not None:
        environment = make(common.EVALUATION, 0)
        self._at_exit.callback(common.close, environment)
        self._prepare_evaluations(environment)
      is_complete = self._evaluate()
    return run.results(interrupted=not is_complete)

  @property
  def _is_complete(self) -> bool:
    return self._run.is_done or self._hooks.ended()

  def _prepare_evaluations(self, environment: dm_env.Environment) -> None:
    config, hooks, run = self._config, self._hooks, self._run
    self._evaluations = []
    for index, actor in enumerate(run.make_evaluation_actors()):
      place = run.own_environment(index) or environment
      seed = config.seeds[index]
      self._evaluations.append(
        Evaluations(actor, place, run.clock, config, hooks, seed)
      )

  def _evaluate(self) -> bool:
    """Evaluates what is not up to date; returns whether that was not stopped."""
    steps = self._run.env_steps
    for index, evaluations in enumerate(self._evaluations):
      if self._evaluated_at[index] < steps:
        if not evaluations.evaluate(steps):
          return False
        self._evaluated_at[index] = steps
    return True

  def _evaluate_if_due(self) -> None:
    steps, every = self._run.env_steps, self._config.eval_every
    if common.has_passed(every, min(self._evaluated_at), steps):
      self._evaluate()

  def _save(self, checkpoints: checkpoint_lib.Checkpointer) -> None:
    self._run.check_finite()
    snapshot = self._run.snapshot(with_replay=checkpoints.with_replay)
    counts = {**snapshot.counts, "evaluated_at": self._evaluated_at}
    checkpoints.save(self._run.env_steps, snapshot._replace(counts=counts))

  def _stopped(self, error: Any) -> common.StoppedError:
    """The error that carries the weights, with Python's text and the user's line."""
    try:
      weights = self._run.weights()
    except Exception:  # For example if the computation failed on the device.
      weights = []
    steps, seed = self._run.env_steps, self._config.seed
    place = f"stopped at environment step {steps}, seed {seed}"
    is_ours = isinstance(error, FloatingPointError)  # Its text is a sentence.
    text = str(error) if is_ours else errors.describe(error)
    if not is_ours and (line := environment_errors.users_line(error)):
      text += f" ({line})"
    return common.StoppedError(f"{place}: {text}", weights)


class Evaluations:
  """Runs episodes of the evaluation policy, separate from training.

  A run has an evaluation at its end, also without `eval_every`. That one takes at most
  a tenth of the run's steps, so that it costs little where episodes are long.
  """

  def __init__(
    self,
    actor: actor_lib.Actor,
    environment: dm_env.Environment,
    clock: Clock,
    config: config_lib.RunConfig,
    hooks: common.Hooks,
    seed: int,
  ):
    """Prepares evaluations.

    Args:
      actor: with the evaluation policy, and without an adder.
      environment: used only here.
      clock: of training; paused during evaluations.
      config: says how long an evaluation is.
      hooks: `stop` is called after each step, and interrupts an evaluation.
      seed: whose weights are evaluated.
    """
    self._actor = actor
    self._environment = environment
    self._loop = loop.EnvironmentLoop([environment], actor, on_answer=self._observe)
    self._clock = clock
    self._config = config
    self._hooks = hooks
    self._seed = seed

  def evaluate(self, env_steps: int) -> bool:
    """Evaluates after so many steps of training; returns whether it was not stopped."""
    started = time.monotonic()
    self._hooks.on_activity(common.Activity(common.EVALUATING, env_steps))
    episodes: list[common.EvaluationEpisode] = []
    max_steps = self._max_steps(env_steps)
    with self._clock.paused():
      while not self._is_long_enough(episodes, max_steps):
        episode = self._play(env_steps, len(episodes) + 1, max_steps)
        if episode is None:
          return False
        episodes.append(episode)
      seconds = time.monotonic() - started
      done = common.Evaluation(env_steps, tuple(episodes), seconds, self._seed)
      self._hooks.on_evaluation(done)
    return True

  def _max_steps(self, env_steps: int) -> int:
    """Steps after which an episode is left."""
    if self._config.eval_every is not None or self._config.eval_steps is not None:
      return MAX_STEPS
    return max(_FEW_STEPS, int(_SHARE * env_steps))

  def _is_long_enough(
    self, episodes: list[common.EvaluationEpisode], max_steps: int
  ) -> bool:
    num_steps = sum(episode.episode_length for episode in episodes)
    if self._config.eval_steps is not None:
      return num_steps >= self._config.eval_steps
    has_all = len(episodes) >= self._config.eval_episodes
    return has_all or num_steps >= max_steps

  def _play(
    self, env_steps: int, number: int, max_steps: int
  ) -> common.EvaluationEpisode | None:
    """Plays an episode; None if the run is to stop."""
    observer, slot = self._hooks.observer, self._loop.slots[0]
    if observer is not None:
      observer.begin()
    # Schedules depend on the steps of training; the actor counts on from there.
    self._actor.env_steps = env_steps
    self._actor.update(wait=True)
    while not (ended := self._loop.step()) and slot.tracker.length < max_steps:
      if self._hooks.stop():
        self._loop.leave_episodes()
        return None
    metrics = environments.episode_metrics(self._environment)
    metrics["left"] = float(not ended)
    if not ended:
      self._loop.leave_episodes()
    episode = common.EvaluationEpisode(
      env_steps,
      number,
      slot.tracker.episode_return,
      slot.tracker.length,
      metrics,
      self._seed,
    )
    if observer is not None:
      observer.end(episode)
    return episode

  def _observe(self, env: int) -> None:
    """Passes an observation's picture to the observer."""
    observer, timestep = self._hooks.observer, self._loop.slots[env].timestep
    if observer is None or timestep is None:
      return
    frame = rendering.picture(self._environment, timestep)
    if frame is not None:
      observer.row(frame)


def check(
  config: config_lib.RunConfig, evaluation_environment: dm_env.Environment | None
) -> None:
  """Raises a ValueError if there is no limit, or nothing to evaluate in."""
  if config.episodes is None and config.steps is None:
    raise ValueError("the run has no limit; give episodes or steps.")
  if evaluation_environment is None and config.eval_every is not None:
    raise ValueError(
      f"eval_every is {config.eval_every}, but there is no evaluation_environment; "
      "give one of the same specs as the environment."
    )
