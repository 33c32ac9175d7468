"""Runs episodes of the evaluation policy, separate from training.

A run has an evaluation at its end, also without `eval_every`. That one takes at most a
tenth of the run's steps, so that it costs little where episodes are long.
"""

import time
from collections.abc import Mapping
from typing import Any

from explorax import environments
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import saving
from explorax.experiments import checkpoint as checkpoint_lib
from explorax.experiments import config as config_lib
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import core, loop, recovery

# An episode that does not end is left after so many steps.
MAX_STEPS = 1_000_000
# The evaluation of a run without `eval_every`: the share of the run's steps that it may
# take, and how many it may take in any case.
_SHARE, _FEW_STEPS = 0.1, 5_000

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
    seed: int | None = None,
  ):
    """Prepares evaluations.

    Args:
      actor: with the evaluation policy, and without an adder.
      environment: used only here.
      clock: of training; paused during evaluations.
      config: says when an evaluation is due, and how long it is.
      hooks: `stop` is called after each step, and interrupts an evaluation.
      seed: whose weights are evaluated; None: the config's.
    """
    self._actor = actor
    self._environment = environment
    self._loop = loop.EnvironmentLoop(
      [environment], actor, on_crash=self._on_crash, on_answer=self._observe
    )
    self._clock = clock
    self._config = config
    self._hooks = hooks
    self._seed = config.seed if seed is None else seed
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
        while not (ended := self._loop.step()) and self._length < self._max_steps:
          if self._hooks.stop():
            self._loop.truncate_episodes()
            return
        self._end_episode({} if ended else {"left": 1.0})
      self._done_at = env_steps
      self._unfinished = None
      seconds = time.monotonic() - started
      done = core.Evaluation(env_steps, tuple(self._episodes), seconds, self._seed)
      self._hooks.on_evaluation(done)

  def is_up_to_date(self, env_steps: int) -> bool:
    """Whether nothing was learnt since the last evaluation."""
    return env_steps <= self._done_at

  def add_to(
    self, snapshot: checkpoint_lib.Snapshot, name: str = "evaluation"
  ) -> checkpoint_lib.Snapshot:
    """Adds the state of evaluations; an unfinished one restarts when resumed."""
    arrays, counts = self._unfinished or self._save()
    left_off = self._unfinished is not None
    return snapshot._replace(
      groups={**snapshot.groups, name: arrays},
      counts={**snapshot.counts, name: {**counts, "left_off": left_off}},
    )

  def restore(
    self, checkpoint: checkpoint_lib.Checkpoint, name: str = "evaluation"
  ) -> bool:
    """Resumes from the checkpoint of a snapshot that `add_to` extended.

    Returns:
      Whether an evaluation was unfinished and has to be repeated. False for a run that
      had no evaluations so far.
    """
    counts = checkpoint.record["counts"].get(name)
    if counts is None:
      return False
    environment = self._environment.current
    arrays = checkpoint.restore(
      name,
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

  @property
  def _length(self) -> int:
    """Steps of the current episode so far."""
    return self._loop.slots[0].tracker.length

  @property
  def _max_steps(self) -> int:
    """Steps after which the current episode is left."""
    if self._config.eval_every is not None or self._config.eval_steps is not None:
      return MAX_STEPS
    return max(_FEW_STEPS, int(_SHARE * self._env_steps))

  def _is_long_enough(self) -> bool:
    num_steps = sum(each.episode_length for each in self._episodes)
    if self._config.eval_steps is not None:
      return num_steps >= self._config.eval_steps
    has_all = len(self._episodes) >= self._config.eval_episodes
    return has_all or num_steps >= self._max_steps

  def _begin_episode(self) -> None:
    if self._observer is not None:
      self._observer.begin()
    # Schedules depend on the steps of training; the actor counts on from there.
    self._actor.env_steps = self._env_steps
    self._actor.update(wait=True)

  def _end_episode(self, metrics: Mapping[str, float]) -> None:
    """Records the episode; `metrics` are added to the environment's."""
    tracker = self._loop.slots[0].tracker
    of_environment = environments.episode_metrics(self._environment.current)
    self._loop.truncate_episodes()  # If it has not ended.
    episode = core.EvaluationEpisode(
      self._env_steps,
      len(self._episodes) + 1,
      float(tracker.episode_return),
      tracker.length,
      {**of_environment, **metrics},
      self._seed,
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
