"""The `local` runner: one machine, one thread, acting and learning in turn."""

import contextlib
import pathlib
from collections.abc import Callable
from typing import Any

import dm_env
import jax
import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import memory as memory_replay
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import saving
from explorax.experiments import config as config_lib
from explorax.experiments import errors, host_memory
from explorax.experiments.checkpoints import checkpointer, files
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import core, loop, recovery, training

# The first updates compile and do not count for the steps per second.
_WARM_UP_UPDATES = 2


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  config: config_lib.RunConfig,
  hooks: core.Hooks = core.NO_HOOKS,
  *,
  evaluation_environment: dm_env.Environment | None = None,
) -> core.Result:
  """Trains an agent; see `training.run` for its end and its evaluations.

  An environment that raises an exception in a step or a reset is recreated. Its episode
  does not count, but its steps do, and replay stores them as a truncated episode. An
  error of our own checks ends the run.

  With the memory replay and an environment written in JAX, a run resumes from a
  checkpoint bit for bit; otherwise at the start of an episode.

  Args:
    agent: made for this environment's spec.
    environment: from `environments.make`.
    config: provides the seed, limits (`steps` may end the run within an episode),
      replay, evaluations and failures.
    hooks: called during the run.
    evaluation_environment: another one with the same specs; None for no evaluation.

  Returns:
    The result of the run.

  Raises:
    errors.StoppedError: see `training.run`.
    ImportError: if the config asks for Reverb and it cannot be imported.
    ValueError: if there is no limit, or no environment to evaluate in.
  """
  training.check(config, evaluation_environment)
  with contextlib.ExitStack() as stack:
    found = None if hooks.checkpoints is None else hooks.checkpoints.found
    folder = None if found is None else found.folder("replay")
    builder = builder_lib.Builder(agent)
    store = builder.make_replay_tables(config.replay, config.seed, folder)
    stack.callback(store.close)
    guarded = recovery.guard(environment, core.TRAINING, config, hooks)
    stack.enter_context(contextlib.closing(guarded))
    local = _Training(agent, guarded, store, config, hooks)
    (result,) = training.run(local, config, hooks, evaluation_environment)
    return result


def check_memory(agent: types.Agent, config: config_lib.RunConfig) -> None:
  """Refuses a replay in memory that does not fit there.

  Raises:
    SetUpError: with the size of the replay and of the free memory.
  """
  if config.replay != "memory":
    return
  gib = 2**30
  needed, free = memory_replay.num_bytes(agent) / gib, host_memory.available() / gib
  if needed > free:
    raise errors.SetUpError(
      f"a replay of {agent.replay.capacity:,} environment steps needs {needed:.1f} GiB "
      f"of memory, and {free:.1f} GiB are free; use --replay=reverb, which compresses, "
      "or a smaller replay (--set replay_capacity=STEPS)."
    )


class _Training(training.Training):
  """An actor and a learner that take turns, a step at a time."""

  def __init__(
    self,
    agent: types.Agent,
    environment: recovery.RecoverableEnvironment,
    store: builder_lib.Replay,
    config: config_lib.RunConfig,
    hooks: core.Hooks,
  ):
    builder = builder_lib.Builder(agent)
    self._actor_key, learner_key = jax.random.split(jax.random.PRNGKey(config.seed))
    self._agent = agent
    self._builder = builder
    self._config = config
    self._on_episode = hooks.on_episode
    self._environment = environment
    self._store: Any = store
    self._adder = builder.make_adder(store)
    batches = builder.make_dataset_iterator(store)
    self._learner = builder.make_learner(learner_key, batches, store)
    self._actor = builder.make_actor(self._actor_key, self._learner, self._adder)
    self._loop = loop.EnvironmentLoop(
      [environment], self._actor, on_crash=self._on_crash, dtype=np.float32
    )
    self._pace = core.Pace(agent.replay)
    self._updates_due = 0  # Updates that remain after the last environment step.
    self._has_acted = self._has_learnt = False  # In this process; each compiles.
    self._has_ended = False  # Whether that step ended an episode.
    self._episodes = 0
    self.clock = clock_lib.Clock()

  @property
  def env_steps(self) -> int:
    return self._actor.env_steps

  @property
  def may_evaluate(self) -> bool:
    return not ((self._loop.slots[0].timestep is not None) or self._updates_due)

  @property
  def is_done(self) -> bool:
    is_reached = self._config.is_reached(self.env_steps, self._episodes)
    return is_reached and not self._updates_due

  def next_activity(self) -> core.Activity:
    compiles = not (self._has_learnt if self._updates_due else self._has_acted)
    if compiles:
      return core.Activity(core.COMPILING, self.env_steps)
    return self._pace.activity(self.env_steps)

  def advance(self) -> None:
    """An environment step with the first update due after it, or another update."""
    if not self._updates_due:
      before = self.env_steps
      self._has_ended = bool(self._loop.step())
      if self.env_steps == before:  # The environment crashed.
        return
      has_window = self._adder.num_windows > 0
      self._updates_due = self._pace.step(self.env_steps, has_window)
      self._has_acted = True
      if self._updates_due and not self._has_learnt:
        return  # The first update is a piece of its own, since it compiles.
    if self._updates_due:
      # The actor has used the newest weights, so they have been computed.
      self._learner.check_finite()
      self._learner.step()
      self._updates_due -= 1
      self._has_learnt = True
    if not self._updates_due:
      self._end_step()

  def _on_crash(self, env: int, crash: recovery.CrashError) -> None:
    del env
    self._environment.recover(crash, self._episodes + 1, self.env_steps)

  def check_finite(self) -> None:
    self._learner.check_finite()

  def _end_step(self) -> None:
    """Called when all updates due after an environment step are made."""
    if self._learner.num_updates >= _WARM_UP_UPDATES:
      self.clock.mark_warm(self.env_steps)
    if self._learner.num_updates:
      self._actor.update()
    if self._has_ended:
      self._episodes += 1
      self._report()

  def _report(self) -> None:
    tracker, steps = self._loop.slots[0].tracker, self.env_steps
    metrics = self._learner.metrics() | tracker.metrics()
    metrics |= environments.episode_metrics(self._environment.current)
    self._on_episode(
      core.Episode(
        episode=self._episodes,
        env_steps=steps,
        episode_return=float(tracker.episode_return),
        episode_length=tracker.length,
        policy=self._agent.policy_names[tracker.policy or 0],
        learner_updates=self._learner.num_updates,
        steps_per_second=self.clock.steps_per_second(steps),
        wall_seconds=self.clock.seconds,
        metrics=metrics,
        seed=self._config.seed,
      )
    )

  def weights(self) -> list[types.Params]:
    return jax.device_get(self._learner.get_variables(["params"]))

  def make_evaluation_actor(self) -> actor_lib.Actor:
    key = core.evaluation_key(self._actor_key)
    return self._builder.make_actor(key, self._learner, evaluation=True)

  def results(self, interrupted: bool) -> list[core.Result]:
    (weights,) = self.weights()
    return [
      core.Result(
        weights=weights,
        env_steps=self.env_steps,
        episodes=self._episodes,
        learner_updates=self._learner.num_updates,
        steps_per_second=self.clock.steps_per_second(self.env_steps),
        interrupted=interrupted,
      )
    ]

  def save(self, *, with_replay: bool) -> checkpointer.Snapshot:
    actor, actor_counts = self._actor.save()
    arrays, environment_counts = saving.save(self._environment.current)
    groups = {
      "state": {
        "actor": actor,
        "learner": self._learner.save(),
        "environment": arrays,
      }
    }
    counts = {
      "actor": actor_counts,
      "environment": environment_counts,
      "updates": self._learner.num_updates,
      "metrics": self._learner.metrics(),
      "pace": self._pace.save(),
      "updates_due": self._updates_due,
      "has_ended": self._has_ended,
      "tracker": self._loop.slots[0].tracker.save(),
      "in_episode": (self._loop.slots[0].timestep is not None),
      "episodes": self._episodes,
      "seconds": self.clock.seconds,
      "windows": self._adder.num_windows,
    }
    folders: dict[str, Callable[[pathlib.Path], None]] = {}
    if with_replay and isinstance(self._store, memory_replay.MemoryReplay):
      replay, counts["replay"] = self._store.save()
      adder, counts["adder"] = self._adder.save()
      groups["replay"] = {"store": replay, "adder": adder}
    elif with_replay:
      folders["replay"] = self._store.save_to  # Reverb's.
    return checkpointer.Snapshot(groups, counts, folders)

  def restore(self, checkpoint: files.Checkpoint) -> None:
    """Resumes, within the episode if its whole state is in the checkpoint."""
    counts = checkpoint.record["counts"]
    environment = self._environment.current
    shapes = {
      "actor": self._actor.shapes(counts["actor"]),
      "learner": self._learner.shapes(),
      "environment": saving.shapes(environment, counts["environment"]),
    }
    arrays = checkpoint.restore("state", shapes)
    self._learner.restore(arrays["learner"], counts["updates"], counts["metrics"])
    self._actor.restore(arrays["actor"], counts["actor"])
    saving.restore(environment, arrays["environment"], counts["environment"])
    self._pace.restore(counts["pace"])
    self._updates_due, self._has_ended = counts["updates_due"], counts["has_ended"]
    self._loop.slots[0].tracker.restore(counts["tracker"])
    self._episodes = counts["episodes"]
    self.clock.resume(counts["seconds"])
    if "replay" in checkpoint.groups:
      self._restore_replay(checkpoint)
      if counts["in_episode"] and saving.is_exact(environment):
        self._loop.resume()
        self._environment.resume(self._loop.slots[0].tracker.length)
      elif counts["in_episode"]:  # Replay stored the open episode as truncated.
        self._actor.truncate_episode()
      return
    self._actor.timesteps = [None]
    if checkpoint.folder("replay") is None:
      self._pace.begin_empty(self.env_steps)
      if self._updates_due:
        self._updates_due = 0
        self._end_step()
    else:
      self._adder.num_windows = counts["windows"]

  def _restore_replay(self, checkpoint: files.Checkpoint) -> None:
    counts = checkpoint.record["counts"]
    shapes = {
      "store": self._store.shapes(counts["replay"]),
      "adder": self._adder.shapes(counts["adder"]),
    }
    arrays = checkpoint.restore("replay", shapes)
    self._store.restore(arrays["store"], counts["replay"])
    self._adder.restore(arrays["adder"], counts["adder"])
