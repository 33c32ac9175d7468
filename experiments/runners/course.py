"""The course of a run: limits, logs, evaluations, checkpoints and its end."""

import abc
import contextlib
import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import dm_env

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.experiments import checkpoint as checkpoint_lib
from explorax.experiments import config as config_lib
from explorax.experiments.runners import common, loop

# An evaluation episode that does not end is left after so many steps.
MAX_STEPS = 1_000_000
# The evaluation of a run without `eval_every`: the share of the run's steps that it may
# take, and how many it may take in any case.
_SHARE, _FEW_STEPS = 0.1, 5_000


class Clock:
  """Steps per second, measured after compilation and without evaluations."""

  def __init__(self, now: Callable[[], float] = time.monotonic):
    self._now = now
    self._start = now()
    self._warm: tuple[float, int] | None = None

  @property
  def seconds(self) -> float:
    """Since the run's start, over all its processes."""
    return self._now() - self._start

  def resume(self, seconds: float) -> None:
    """Resumes a run that has already taken this many seconds."""
    self._start = self._now() - seconds

  def mark_warm(self, env_steps: int) -> None:
    """Starts the measurement, once."""
    if self._warm is None:
      self._warm = (self._now(), env_steps)

  def leave_out(self, seconds: float) -> None:
    """The last seconds are not measured."""
    if self._warm is not None:
      self._warm = (self._warm[0] + seconds, self._warm[1])

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
    ended: those that are not reported yet.
    resumed_at: environment steps of the checkpoint; 0 for a new run.
    may_run_ahead: whether `advance` may begin what follows before it returns.
    begun: what it has begun, so that the state is ahead of the counters; or None.
  """

  def __init__(self, agent: types.Agent, config: config_lib.RunConfig):
    """Starts with all counters at zero."""
    self._agent = agent
    self._config = config
    self._seeds = config.seeds
    self.resumed_at = 0
    self.clock = Clock()
    self.episodes = [0] * config.num_seeds
    self.ended: list[common.Episode] = []
    self.may_run_ahead: Callable[[], bool] = lambda: False
    self.begun: Any = None

  @property
  @abc.abstractmethod
  def env_steps(self) -> int:
    """Environment steps so far, of each seed."""

  @property
  @abc.abstractmethod
  def num_updates(self) -> int:
    """Learner updates so far, of each seed."""

  @property
  @abc.abstractmethod
  def may_evaluate(self) -> bool:
    """Whether an evaluation may run now."""

  @property
  def activity(self) -> str:
    """What `advance` does next: `common.FILLING` or `common.ACTING`."""
    return common.ACTING

  @abc.abstractmethod
  def advance(self) -> None:
    """Acts, stores and learns, for as long as the run cannot stop."""

  def check_finite(self) -> None:  # noqa: B027
    """Raises an error if the last update was not finite, unless `advance` does."""

  @abc.abstractmethod
  def learner_metrics(self) -> list[dict[str, float]]:
    """Of the last update, of each seed; waits for it."""

  @abc.abstractmethod
  def weights(self) -> list[types.Params]:
    """The weights of each seed, on the host."""

  @abc.abstractmethod
  def make_evaluation_actors(self) -> list[actor_lib.Actor]:
    """An actor with the learner's weights and a separate key for each seed."""

  @abc.abstractmethod
  def save(self, *, with_replay: bool) -> checkpoint_lib.Snapshot:
    """The state for a checkpoint, without that of this class."""

  @abc.abstractmethod
  def restore(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    """Resumes from a state of `save`; the attributes of this class have resumed."""

  @property
  def is_done(self) -> bool:
    """Whether a limit is reached."""
    return self._config.is_reached(self.env_steps, min(self.episodes))

  def own_environment(self, index: int) -> dm_env.Environment | None:
    """A seed's environment of evaluations, if it has parameters of its own."""
    return None

  def log_rows(self) -> Iterator[common.LogRow]:
    """What is to be logged now, of each seed: also ε, the learning rate and so on."""
    self.check_finite()
    parameters = self._agent.parameters(self.env_steps, self.num_updates)
    for seed, metrics in zip(self._config.seeds, self.learner_metrics(), strict=True):
      yield common.LogRow(
        env_steps=self.env_steps,
        learner_updates=self.num_updates,
        **self._times(),
        metrics={
          **parameters,
          **{name: value for name, value in metrics.items() if name != "finite"},
        },
        seed=seed,
      )

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

  def _count_episodes(
    self, indices: Sequence[int], times: Mapping[str, float], **columns: Sequence[Any]
  ) -> None:
    """Counts ended episodes of seeds with these indices, which are to be reported.

    `times` are of `_times`, and `columns` of `common.Episode`; policies are indices.
    """
    numbers = []
    for index in indices:  # Thousands a second: one call for each is too slow.
      self.episodes[index] += 1
      numbers.append(self.episodes[index])
    columns["episode"], names = numbers, self._agent.policy_names
    columns["policy"] = [names[x] for x in columns["policy"]]
    columns["seed"] = [self._seeds[x] for x in indices]
    columns |= {name: [value] * len(indices) for name, value in times.items()}
    self.ended += map(common.Episode, *[columns[x] for x in common.Episode._fields])

  def _times(self) -> dict[str, float]:
    """The columns of rows that depend on the time."""
    speed = self.clock.steps_per_second(self.env_steps)
    return {"steps_per_second": speed, "wall_seconds": self.clock.seconds}


class RunControl:
  """Limits, logs, evaluations, checkpoints and the end of a run.

  `config.eval_episodes` episodes of the evaluation policy (or `config.eval_steps`
  steps) run at the end of a run that was not stopped, and with `config.eval_every` also
  whenever a multiple of so many environment steps was passed, unless the last
  evaluation is up to date. They do not affect replay, counts or returns. A run without
  its last evaluation is interrupted. Several seeds are evaluated one after the other.
  """

  def __init__(
    self,
    run: Run,
    config: config_lib.RunConfig,
    hooks: common.Hooks,
    evaluation_environment: dm_env.Environment | None = None,
  ):
    """Resumes the run if `hooks.checkpoints` has found a checkpoint.

    The caller closes the evaluation environment. If there is none, the only evaluation
    is at the end, in an environment that is made then, as it may share global random
    numbers with that of training; without `hooks.make_environment` there is none.
    """
    self._run = run
    self._config = config
    self._hooks = hooks
    self._compiled: set[str] = set()  # What this process has done before.
    self._has_learnt = False  # In this process.
    self._at_exit = contextlib.ExitStack()
    self._at_exit.callback(gc.unfreeze)
    self._evaluations: list[loop.EnvironmentLoop] = []  # Of each seed.
    # When each seed was last evaluated, in environment steps.
    self._evaluated_at = [0] * config.num_seeds
    if hooks.restored is not None:
      self._resume(hooks.restored)
    if evaluation_environment is not None:
      self._prepare_evaluations(evaluation_environment)
    self._logged_at = run.env_steps
    run.may_run_ahead = self._may_run_ahead

  def train(self) -> list[common.Result]:
    """Advances the run to its end; returns the result of each seed.

    An exception passes through, with a note at which step, once `hooks.on_failure` has
    the weights.
    """
    try:
      return self._train()
    except (Exception, SystemExit) as error:
      error.add_note(f"stopped at environment step {self._run.env_steps}")
      with contextlib.suppress(Exception):  # The computation may have failed.
        self._hooks.on_failure(self._run.weights())
      raise
    finally:
      self._at_exit.close()

  def _train(self) -> list[common.Result]:
    """See `train`.

    The last evaluation comes after the last checkpoint: one that is stopped is
    repeated, and a run that is extended has that of its new end instead.
    """
    run = self._run
    while self._continues():
      try:
        run.advance()
      except BaseException:
        with contextlib.suppress(Exception):  # What has ended the run is raised.
          self._report()
        raise
      self._report()
      if run.num_updates and not self._has_learnt:
        self._has_learnt = True
        gc.freeze()  # A full collection of JAX's objects would take 0.3 s each time.
      if common.has_passed(self._config.log_every, self._logged_at, run.env_steps):
        self._logged_at = run.env_steps
        for row in run.log_rows():
          self._hooks.on_log(row)
      if run.begun is None and self._saves_now:
        self._save()
    run.check_finite()
    self._save()
    is_complete = self._is_complete and self._evaluate_at_end()
    return run.results(interrupted=not is_complete)

  def _report(self) -> None:
    """Reports the episodes that have ended."""
    ended, self._run.ended = self._run.ended, []
    if ended:
      self._hooks.on_episodes(ended)

  def _continues(self) -> bool:
    """Evaluates if it is due; whether another step is, and shows what it does."""
    run = self._run
    if run.begun is None:
      if self._evaluates_now:
        self._evaluate()
      if self._is_complete or self._hooks.stop():
        return False
    activity = run.activity
    if activity not in self._compiled:
      self._compiled.add(activity)
      activity = common.COMPILING + activity
    self._hooks.on_activity(activity, run.env_steps)
    return True

  def _may_run_ahead(self) -> bool:
    """Whether the run goes on, and nothing before the next report needs the state."""
    ends = self._config.episodes is not None or self._is_complete or self._hooks.stop()
    return not (ends or self._evaluates_now or self._saves_now)

  @property
  def _evaluates_now(self) -> bool:
    run, every = self._run, self._config.eval_every
    is_due = common.has_passed(every, min(self._evaluated_at), run.env_steps)
    return is_due and run.may_evaluate

  @property
  def _saves_now(self) -> bool:
    checkpoints = self._hooks.checkpoints
    return checkpoints is not None and checkpoints.is_due(self._run.env_steps)

  @property
  def _is_complete(self) -> bool:
    return self._run.is_done or self._hooks.ended()

  def _prepare_evaluations(self, environment: dm_env.Environment) -> None:
    self._evaluations = [
      loop.EnvironmentLoop([self._run.own_environment(index) or environment], actor)
      for index, actor in enumerate(self._run.make_evaluation_actors())
    ]

  def _evaluate_at_end(self) -> bool:
    """As `_evaluate`, in an environment that is made now if there is none."""
    make = self._hooks.make_environment
    if not self._evaluations and self._config.evaluates and make is not None:
      environment = make(common.EVALUATION, 0)
      self._at_exit.callback(common.close, environment)
      self._prepare_evaluations(environment)
    return self._evaluate()

  def _evaluate(self) -> bool:
    """Evaluates what is not up to date; returns whether that was not stopped."""
    run, hooks = self._run, self._hooks
    for index in range(len(self._evaluations)):
      if self._evaluated_at[index] == run.env_steps:
        continue
      hooks.on_activity(common.EVALUATING, run.env_steps)
      started = run.clock.seconds
      episodes = self._play(index)
      run.clock.leave_out(run.clock.seconds - started)
      if episodes is None:
        return False
      seed = self._config.seeds[index]
      hooks.on_evaluation(common.Evaluation(run.env_steps, tuple(episodes), seed))
      self._evaluated_at[index] = run.env_steps
    return True

  def _play(self, index: int) -> list[common.EvaluationEpisode] | None:
    """Plays the episodes of a seed's evaluation; None if the run is to stop.

    The only evaluation of a run takes at most a tenth of its steps, so that it costs
    little where episodes are long.
    """
    config, env_steps = self._config, self._run.env_steps
    evaluation = self._evaluations[index]
    slot, actor = evaluation.slots[0], evaluation.actor
    max_steps, most_steps = MAX_STEPS, math.inf
    most_episodes: float = config.eval_episodes
    if config.eval_steps is not None:
      most_episodes, most_steps = math.inf, config.eval_steps
    elif config.eval_every is None:
      most_steps = max_steps = max(_FEW_STEPS, int(_SHARE * env_steps))
    episodes: list[common.EvaluationEpisode] = []
    num_steps = 0
    while len(episodes) < most_episodes and num_steps < most_steps:
      # Schedules depend on the steps of training; the actor counts on from there.
      actor.env_steps = env_steps
      actor.update(wait=True)
      while not (ended := evaluation.step()) and slot.tracker.length < max_steps:
        if self._hooks.stop():
          evaluation.leave_episodes()
          return None
      if not ended:
        evaluation.leave_episodes()
      metrics = environments.episode_metrics(slot.environment)
      metrics["left"] = float(not ended)
      num_steps += slot.tracker.length
      episodes.append(
        common.EvaluationEpisode(
          env_steps=env_steps,
          episode=len(episodes) + 1,
          episode_return=slot.tracker.episode_return,
          episode_length=slot.tracker.length,
          metrics=metrics,
          seed=config.seeds[index],
        )
      )
    return episodes

  def _save(self) -> None:
    run, checkpoints = self._run, self._hooks.checkpoints
    if checkpoints is None:
      return
    run.check_finite()
    snapshot = run.save(with_replay=checkpoints.with_replay)
    counts = {
      **snapshot.counts,
      "episodes": run.episodes,
      "seconds": run.clock.seconds,
      "evaluated_at": self._evaluated_at,
    }
    path = checkpoints.save(run.env_steps, snapshot._replace(counts=counts))
    self._hooks.on_checkpoint(path, run.env_steps)

  def _resume(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    run, counts = self._run, checkpoint.record["counts"]
    run.resumed_at = checkpoint.record["env_steps"]
    run.episodes = counts["episodes"]
    run.clock.resume(counts["seconds"])
    run.restore(checkpoint)
    self._evaluated_at = counts["evaluated_at"]
