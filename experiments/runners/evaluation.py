"""Runs episodes of the evaluation policy, separate from training."""

import time
from collections.abc import Callable
from typing import Any

from explorax import environments
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import saving
from explorax.experiments.checkpoints import checkpointer, files
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import core, loop, recovery

# A pytree of arrays, and values in JSON's types.
_Saved = tuple[Any, dict[str, Any]]


class Evaluations:
  """Runs an evaluation every so many steps, in a separate environment."""

  def __init__(
    self,
    actor: actor_lib.Actor,
    environment: recovery.RecoverableEnvironment,
    clock: clock_lib.Clock,
    *,
    every: int | None,
    num_episodes: int,
    num_steps: int | None,
    stop: Callable[[], bool],
    observer: core.EvaluationObserver | None,
    on_evaluation: Callable[[core.Evaluation], None],
    on_activity: Callable[[core.Activity], None] = lambda activity: None,
  ):
    """Prepares evaluations.

    Args:
      actor: with the evaluation policy, and without an adder.
      environment: used only here.
      clock: of training; paused during evaluations.
      every: environment steps; None: only at the end.
      num_episodes: of each evaluation.
      num_steps: if given, an evaluation ends with the episode in which its steps
        reach this number, instead of after `num_episodes`.
      stop: called after each step; True interrupts the evaluation.
      observer: observes the episodes; None for no observer.
      on_evaluation: called with each complete evaluation.
      on_activity: called when an evaluation begins.
    """
    self._actor = actor
    self._environment = environment
    self._loop = loop.EnvironmentLoop(
      [environment], actor, on_crash=self._on_crash, on_answer=self._observe
    )
    self._clock = clock
    self._every = every
    self._num_episodes = num_episodes
    self._num_steps = num_steps
    self._stop = stop
    self._observer = observer
    self._on_evaluation = on_evaluation
    self._on_activity = on_activity
    self._done_at = 0  # Environment steps of training.
    self._unfinished: _Saved | None = None  # The state before the current evaluation.
    self._env_steps = 0  # Those of training before the current evaluation.
    self._episodes: list[core.EvaluationEpisode] = []  # Of the current evaluation.

  def after_episode(self, env_steps: int) -> None:
    """Evaluates if a multiple of `every` was passed since the last evaluation.

    Raises:
      recovery.UnrecoverableError: if the environment fails too often.
    """
    every = self._every
    if every is not None and env_steps // every > self._done_at // every:
      self._evaluate(env_steps)

  def at_the_end(self, env_steps: int) -> None:
    """Evaluates unless nothing was learnt since the last evaluation; same errors."""
    if not self.is_up_to_date(env_steps):
      self._evaluate(env_steps)

  def is_up_to_date(self, env_steps: int) -> bool:
    """Whether nothing was learnt since the last evaluation."""
    return env_steps <= self._done_at

  def add_to(self, snapshot: checkpointer.Snapshot) -> checkpointer.Snapshot:
    """Adds the state of evaluations; an unfinished one restarts when resumed."""
    arrays, counts = self._unfinished or self._save()
    return snapshot._replace(
      groups={**snapshot.groups, "evaluation": arrays},
      counts={
        **snapshot.counts,
        "evaluation": {**counts, "left_off": self._unfinished is not None},
      },
    )

  def restore(self, checkpoint: files.Checkpoint) -> bool:
    """Resumes from the checkpoint of a snapshot that `add_to` extended.

    Returns:
      Whether an evaluation was unfinished and has to be repeated.
    """
    counts = checkpoint.record["counts"]["evaluation"]
    environment = self._environment.current
    arrays = checkpoint.restore(
      "evaluation",
      {
        "actor": self._actor.shapes(counts["actor"]),
        "environment": saving.shapes(environment, counts["environment"]),
      },
    )
    self._actor.restore(arrays["actor"], counts["actor"])
    saving.restore(environment, arrays["environment"], counts["environment"])
    self._done_at = counts["done_at"]
    return counts["left_off"]

  def _save(self) -> _Saved:
    actor, actor_counts = self._actor.save()
    environment, environment_counts = saving.save(self._environment.current)
    return {"actor": actor, "environment": environment}, {
      "done_at": self._done_at,
      "actor": actor_counts,
      "environment": environment_counts,
    }

  def _evaluate(self, env_steps: int) -> None:
    started = time.monotonic()
    self._on_activity(core.Activity(core.EVALUATING, env_steps))
    self._unfinished = self._save()
    self._env_steps, self._episodes = env_steps, []
    with self._clock.paused():
      while not self._is_enough():
        self._begin_episode()
        while not self._loop.step():
          if self._stop():
            self._loop.truncate_episodes()
            return
        self._end_episode()
      self._done_at = env_steps
      self._unfinished = None
      seconds = time.monotonic() - started
      self._on_evaluation(core.Evaluation(env_steps, tuple(self._episodes), seconds))

  def _is_enough(self) -> bool:
    if self._num_steps is None:
      return len(self._episodes) >= self._num_episodes
    return sum(each.episode_length for each in self._episodes) >= self._num_steps

  def _begin_episode(self) -> None:
    if self._observer is not None:
      self._observer.begin()
    # Schedules depend on the steps of training; the actor counts on from there.
    self._actor.env_steps = self._env_steps
    self._actor.update(wait=True)

  def _end_episode(self) -> None:
    tracker = self._loop.slots[0].tracker
    episode = core.EvaluationEpisode(
      self._env_steps,
      len(self._episodes) + 1,
      float(tracker.episode_return),
      tracker.length,
      environments.episode_metrics(self._environment.current),
    )
    self._episodes.append(episode)
    if self._observer is not None:
      self._observer.end(episode)

  def _on_crash(self, env: int, crash: recovery.CrashError) -> None:
    """The episode is repeated."""
    del env
    self._environment.recover(crash, len(self._episodes) + 1, self._env_steps)
    self._begin_episode()

  def _observe(self, env: int) -> None:
    """Passes an observation to the observer, after the actor has answered it."""
    if self._observer is None:
      return
    timestep = self._loop.slots[env].timestep
    frame = None
    if self._observer.draws and timestep is not None:
      frame = self._environment.picture(timestep)
    r_int = self._actor.extras[env].get("r_int")
    self._observer.row(frame, None if r_int is None else float(r_int))
