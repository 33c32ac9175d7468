"""Runs episodes of the evaluation policy, separate from training."""

import time
from typing import Any

from explorax import environments
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import saving
from explorax.experiments import config as config_lib
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
    config: config_lib.RunConfig,
    hooks: core.Hooks,
  ):
    """Prepares evaluations.

    Args:
      actor: with the evaluation policy, and without an adder.
      environment: used only here.
      clock: of training; paused during evaluations.
      config: says when an evaluation is due, and how long it is.
      hooks: `stop` is called after each step, and interrupts an evaluation.
    """
    self._actor = actor
    self._environment = environment
    self._loop = loop.EnvironmentLoop(
      [environment], actor, on_crash=self._on_crash, on_answer=self._observe
    )
    self._clock = clock
    self._config = config
    self._hooks = hooks
    self._observer = hooks.observer
    self._done_at = 0  # Environment steps of training.
    self._unfinished: _Saved | None = None  # The state before the current evaluation.
    self._env_steps = 0  # Those of training before the current evaluation.
    self._episodes: list[core.EvaluationEpisode] = []  # Of the current evaluation.

  def evaluate_if_due(self, env_steps: int) -> None:
    """Evaluates if a multiple of `eval_every` was passed since the last evaluation.

    Raises:
      recovery.UnrecoverableError: if the environment fails too often.
    """
    every = self._config.eval_every
    if every is not None and env_steps // every > self._done_at // every:
      self.evaluate(env_steps)

  def evaluate(self, env_steps: int) -> None:
    """Evaluates, unless nothing was learnt since the last evaluation; same errors."""
    if self.is_up_to_date(env_steps):
      return
    started = time.monotonic()
    self._hooks.on_activity(core.Activity(core.EVALUATING, env_steps))
    self._unfinished = self._save()
    self._env_steps, self._episodes = env_steps, []
    with self._clock.paused():
      while not self._is_long_enough():
        self._begin_episode()
        while not self._loop.step():
          if self._hooks.stop():
            self._loop.truncate_episodes()
            return
        self._end_episode()
      self._done_at = env_steps
      self._unfinished = None
      seconds = time.monotonic() - started
      done = core.Evaluation(env_steps, tuple(self._episodes), seconds)
      self._hooks.on_evaluation(done)

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
    if not checkpoint.has("evaluation"):  # The run had no evaluations so far.
      self._done_at = checkpoint.record["env_steps"]
      return False
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

  def _is_long_enough(self) -> bool:
    num_steps = self._config.eval_steps
    if num_steps is None:
      return len(self._episodes) >= self._config.eval_episodes
    return sum(each.episode_length for each in self._episodes) >= num_steps

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
