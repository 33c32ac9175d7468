"""The `local` runner: one machine, one thread, acting and learning in turn.

With `num_envs` it acts in several environments with one inference for all of them.
"""

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import dm_env
import jax

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import memory
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import saving
from explorax.experiments import checkpoint as checkpoint_lib
from explorax.experiments import config as config_lib
from explorax.experiments import errors
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
  """Trains an agent; see `training.Course` for its end and its evaluations.

  An environment that raises an exception in a step or a reset is recreated. Its episode
  does not count, but its steps do, and replay stores them as a truncated episode. An
  error of our own checks ends the run.

  With the memory replay and an environment written in JAX, a run resumes from a
  checkpoint bit for bit; otherwise at the start of an episode.

  Args:
    agent: made for this environment's spec.
    environment: from `environments.make`; others of `config.num_envs` are made by
      `hooks.make_environment`.
    config: provides the seed, limits (`steps` may end the run within an episode),
      replay, evaluations and failures.
    hooks: called during the run.
    evaluation_environment: another one with the same specs; None: see
      `training.Course`.

  Returns:
    The result of the run.

  Raises:
    errors.StoppedError: see `training.Course`.
    ImportError: if the config asks for Reverb and it cannot be imported.
    ValueError: if there is no limit, or no environment to evaluate in.
  """
  training.check(config, evaluation_environment)
  with contextlib.ExitStack() as stack:
    checkpoint = None if hooks.checkpoints is None else hooks.checkpoints.restored
    folder = None if checkpoint is None else checkpoint.replay_folder
    builder = builder_lib.Builder(agent)
    replay = builder.make_replay_tables(
      config.replay, config.seed, folder, config.steps
    )
    stack.callback(replay.close)
    guarded = [
      recovery.guard(each, core.TRAINING, config, hooks, number=i)
      for i, each in enumerate(_environments(environment, config, hooks, stack))
    ]
    for each in guarded:
      stack.enter_context(contextlib.closing(each))
    local = LocalRun(agent, guarded, replay, config, hooks.on_episode)
    course = training.Course(local, config, hooks, evaluation_environment)
    with course:
      while course.continues():
        local.advance()
        course.after_step()
      (result,) = course.finish()
    return result


def _environments(
  first: dm_env.Environment,
  config: config_lib.RunConfig,
  hooks: core.Hooks,
  stack: contextlib.ExitStack,
) -> list[dm_env.Environment]:
  """The environments of a run; all but the first are closed by the stack."""
  found = [first]
  for number in range(1, config.num_envs or 1):
    if hooks.make_environment is None:
      raise ValueError(
        f"num_envs={config.num_envs} needs an environment by its name, as "
        "gym:CartPole-v1 or module:function, to make several."
      )
    environment = hooks.make_environment(core.TRAINING, number)
    stack.callback(recovery.close, environment)
    found.append(environment)
  return found


def check_memory(agent: types.Agent, config: config_lib.RunConfig) -> None:
  """Refuses a replay in memory that the machine cannot hold.

  Raises:
    SetUpError: with the size of the replay and of the memory.
  """
  if config.replay != "memory":
    return
  gib = 2**30
  num_steps = min(agent.replay.capacity, config.steps or math.inf)
  needed = memory.num_bytes(agent, num_steps) / gib
  size = core.physical_memory() / gib
  if needed > size:
    raise errors.SetUpError(
      f"a replay of {num_steps:,} environment steps needs {needed:.1f} GiB "
      f"of memory, and this machine has {size:.1f} GiB; use --replay=reverb, which "
      "compresses, or a smaller replay (--set replay_capacity=STEPS)."
    )


class LocalRun(training.Run):
  """An actor and a learner that take turns, a step of all environments at a time."""

  def __init__(
    self,
    agent: types.Agent,
    environments: list[recovery.RecoverableEnvironment],
    replay: builder_lib.Replay,
    config: config_lib.RunConfig,
    on_episode: Callable[[core.Episode], None],
  ):
    builder = builder_lib.Builder(agent)
    self._actor_key, learner_key = jax.random.split(jax.random.PRNGKey(config.seed))
    self._agent = agent
    self._builder = builder
    self._config = config
    self._on_episode = on_episode
    self._environments = environments
    self._replay: Any = replay
    self._adders = [builder.make_adder(replay) for _ in environments]
    batches = builder.make_dataset_iterator(replay)
    self._learner = builder.make_learner(learner_key, batches, replay)
    self._actor = builder.make_actor(self._actor_key, self._learner, self._adders)
    self._loop = loop.EnvironmentLoop(
      environments, self._actor, on_crash=self._on_crash
    )
    self._pace = core.Pace(agent.replay)
    self._episodes = 0
    self.clock = clock_lib.Clock()

  @property
  def env_steps(self) -> int:
    return self._actor.env_steps

  @property
  def may_evaluate(self) -> bool:
    return not self._loop.in_episode

  @property
  def may_save(self) -> bool:
    """bsuite's environments can be saved between two episodes."""
    environment = self._environments[0].current
    return not (self._loop.in_episode and saving.is_exact_between_episodes(environment))

  @property
  def is_done(self) -> bool:
    return self._config.is_reached(self.env_steps, self._episodes)

  @property
  def activity(self) -> core.Activity:
    return self._pace.activity(self.env_steps)

  def advance(self) -> None:
    """Acts, stores and learns: a step of each environment, and the updates due then."""
    before = self.env_steps
    ended = self._loop.step()  # The actor writes to replay.
    has_window = any(adder.num_windows > 0 for adder in self._adders)
    self._learn(self.env_steps - before, has_window)  # A crashed one has taken none.
    if self._learner.num_updates:
      self._actor.update()
    for env in ended:
      self._report(
        self._loop.slots[env].tracker,
        environments.episode_metrics(self._environments[env].current),
        self.env_steps,
      )

  def _learn(self, num_steps: int, has_window: bool) -> None:
    """Makes the updates that are due after this many more environment steps."""
    for _ in range(self._pace.step(self.env_steps, has_window, num_steps)):
      # The actor has used the newest weights, so they have been computed.
      self._learner.check_finite()
      self._learner.step()
    if self._learner.num_updates >= _WARM_UP_UPDATES:
      self.clock.mark_warm(self.env_steps)

  def check_finite(self) -> None:
    self._learner.check_finite()

  def log_rows(self) -> list[core.LogRow]:
    row = core.log_row(
      self._agent,
      self._learner.metrics(),
      env_steps=self.env_steps,
      learner_updates=self._learner.num_updates,
      steps_per_second=self.clock.steps_per_second(self.env_steps),
      wall_seconds=self.clock.seconds,
      seed=self._config.seed,
    )
    return [row]

  def weights(self) -> list[types.Params]:
    return jax.device_get(self._learner.get_variables(["params"]))

  def make_evaluation_actors(self) -> list[actor_lib.Actor]:
    key = core.evaluation_key(self._actor_key)
    return [self._builder.make_actor(key, self._learner, evaluation=True)]

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

  def save(self, *, with_replay: bool) -> checkpoint_lib.Snapshot:
    actor, actor_counts = self._actor.save()
    saved = [saving.save(each.current) for each in self._environments]
    groups = {
      "actor": actor,
      "learner": self._learner.save(),
      "environments": [arrays for arrays, _ in saved],
    }
    counts = {
      "actor": actor_counts,
      "environments": [environment for _, environment in saved],
      "updates": self._learner.num_updates,
      "metrics": self._learner.metrics(),
      "pace": self._pace.save(),
      "trackers": [slot.tracker.save() for slot in self._loop.slots],
      "episodes": self._episodes,
      "seconds": self.clock.seconds,
      "windows": sum(adder.num_windows for adder in self._adders),
    }
    save_replay = None
    if with_replay and isinstance(self._replay, memory.MemoryReplay):
      replay, counts["replay"] = self._replay.save()
      adders = [adder.save() for adder in self._adders]
      counts["adders"] = [adder_counts for _, adder_counts in adders]
      groups["replay"] = {"store": replay, "adders": [arrays for arrays, _ in adders]}
    elif with_replay:
      save_replay = self._replay.save_to  # Reverb's.
    return checkpoint_lib.Snapshot(groups, counts, save_replay)

  def restore(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    """Resumes, within the episode if its whole state is in the checkpoint."""
    counts = checkpoint.record["counts"]
    environments = [each.current for each in self._environments]
    of_environments = list(zip(environments, counts["environments"], strict=True))
    shapes = {
      "actor": self._actor.shapes(counts["actor"]),
      "learner": self._learner.shapes(),
      "environments": [saving.shapes(*each) for each in of_environments],
    }
    arrays = {name: checkpoint.restore(name, shapes[name]) for name in shapes}
    self._learner.restore(arrays["learner"], counts["updates"], counts["metrics"])
    self._actor.restore(arrays["actor"], counts["actor"])
    for (environment, saved), state in zip(
      of_environments, arrays["environments"], strict=True
    ):
      saving.restore(environment, state, saved)
    self._pace.restore(counts["pace"])
    for slot, tracker in zip(self._loop.slots, counts["trackers"], strict=True):
      slot.tracker.restore(tracker)
    self._episodes = counts["episodes"]
    self.clock.resume(counts["seconds"])
    has_replay = "replay" in counts  # With the rows of the open episodes.
    if has_replay:
      self._restore_replay(checkpoint)
    elif checkpoint.replay_folder is not None:
      for adder in self._adders[:1]:
        adder.num_windows = counts["windows"]
    else:
      self._pace.begin_empty(self.env_steps)
    if environments and has_replay and all(map(saving.is_exact, environments)):
      self._loop.resume()
      for each, slot in zip(self._environments, self._loop.slots, strict=True):
        if slot.timestep is not None:
          each.resume(slot.tracker.length)
    elif has_replay:
      self._loop.truncate_episodes()
    else:  # The next step begins with a reset.
      self._actor.timesteps = [None for _ in environments]

  def _restore_replay(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    counts = checkpoint.record["counts"]
    shapes = {
      "store": self._replay.shapes(counts["replay"]),
      "adders": [
        adder.shapes(saved)
        for adder, saved in zip(self._adders, counts["adders"], strict=True)
      ],
    }
    arrays = checkpoint.restore("replay", shapes)
    self._replay.restore(arrays["store"], counts["replay"])
    for adder, state, saved in zip(
      self._adders, arrays["adders"], counts["adders"], strict=True
    ):
      adder.restore(state, saved)

  def _on_crash(self, env: int, crash: recovery.CrashError) -> None:
    self._environments[env].recover(crash, self._episodes + 1, self.env_steps)

  def _report(
    self, tracker: core.EpisodeTracker, metrics: Mapping[str, float], steps: int
  ) -> None:
    """Reports an ended episode; those beyond the limit do not count.

    Args:
      tracker: of the episode.
      metrics: of its environment.
      steps: environment steps at its end.
    """
    if self._episodes == self._config.episodes:
      return
    self._episodes += 1
    self._on_episode(
      core.Episode(
        episode=self._episodes,
        env_steps=steps,
        episode_return=tracker.episode_return,
        episode_length=tracker.length,
        policy=self._agent.policy_names[tracker.policy or 0],
        learner_updates=self._learner.num_updates,
        steps_per_second=self.clock.steps_per_second(steps),
        wall_seconds=self.clock.seconds,
        metrics=self._learner.metrics() | tracker.metrics() | dict(metrics),
        seed=self._config.seed,
      )
    )
