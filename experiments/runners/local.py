"""The `local` runner: one machine, one thread, acting and learning in turn.

With `num_envs` it acts in several environments with one inference for all of them.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import dm_env
import jax

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import memory
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.experiments import checkpoint as checkpoint_lib
from explorax.experiments import config as config_lib
from explorax.experiments.runners import common, course, loop

# The first updates compile and do not count for the steps per second.
_WARM_UP_UPDATES = 2


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  config: config_lib.RunConfig,
  hooks: common.Hooks = common.NO_HOOKS,
  *,
  evaluation_environment: dm_env.Environment | None = None,
) -> list[common.Result]:
  """Trains an agent; see `course.RunControl` for its end and its evaluations.

  A run resumes from a checkpoint with new episodes. Of an episode that was open then,
  replay keeps the windows that were complete: it counts as truncated at the last one.

  Args:
    agent: made for this environment's spec.
    environment: from `environments.make`; others of `config.num_envs` are made by
      `hooks.make_environment`.
    config: provides the seed, limits (`steps` may end the run within an episode),
      replay and evaluations.
    hooks: called during the run.
    evaluation_environment: another one with the same specs; None: see
      `course.RunControl`.

  Returns:
    The result of the only seed.

  Raises:
    ImportError: if the config asks for Reverb and it cannot be imported.
    ValueError: if it cannot make the environments of `config.num_envs`.
  """
  with contextlib.ExitStack() as stack:
    replay = make_replay(agent, config, hooks)
    stack.callback(replay.close)
    training = _environments(environment, config, hooks, stack)
    local = LocalRun(agent, training, replay, config)
    return course.RunControl(local, config, hooks, evaluation_environment).train()


def make_replay(
  agent: types.Agent, config: config_lib.RunConfig, hooks: common.Hooks
) -> builder_lib.Replay:
  """The replay of a run, with Reverb's content of its checkpoint; see `run`."""
  folder = None if hooks.restored is None else hooks.restored.replay_folder
  return builder_lib.Builder(agent).make_replay_tables(
    config.replay, config.seed, folder, config.steps
  )


def _environments(
  first: dm_env.Environment,
  config: config_lib.RunConfig,
  hooks: common.Hooks,
  stack: contextlib.ExitStack,
) -> list[dm_env.Environment]:
  """The environments of a run; all but the first are closed by the stack."""
  made = [first]
  for number in range(1, config.num_envs or 1):
    if hooks.make_environment is None:
      raise ValueError(
        f"num_envs={config.num_envs} needs an environment by its name, as "
        "gym:CartPole-v1 or module:function, to make several."
      )
    environment = hooks.make_environment(common.TRAINING, number)
    stack.callback(common.close, environment)
    made.append(environment)
  return made


class LocalRun(course.Run):
  """An actor and a learner that take turns, a step of all environments at a time."""

  def __init__(
    self,
    agent: types.Agent,
    environments: list[dm_env.Environment],
    replay: builder_lib.Replay,
    config: config_lib.RunConfig,
  ):
    super().__init__(agent, config)
    builder = builder_lib.Builder(agent)
    self._actor_key, learner_key = jax.random.split(jax.random.PRNGKey(config.seed))
    self._builder = builder
    self._replay: Any = replay
    self._adders = [builder.make_adder(replay) for _ in environments]
    batches = builder.make_dataset_iterator(replay)
    self._learner = builder.make_learner(learner_key, batches, replay)
    self._actor = builder.make_actor(self._actor_key, self._learner, self._adders)
    self._loop = loop.EnvironmentLoop(environments, self._actor)
    self._pace = common.Pace(agent.replay)
    self._has_window = False  # In replay.

  @property
  def env_steps(self) -> int:
    return self._actor.env_steps

  @property
  def num_updates(self) -> int:
    return self._learner.num_updates

  @property
  def may_evaluate(self) -> bool:
    return not self._loop.in_episode

  @property
  def activity(self) -> str:
    is_filling = self._pace.is_filling(self.env_steps)
    return common.FILLING if is_filling else common.ACTING

  def advance(self) -> None:
    """Acts, stores and learns: a step of each environment, and the updates due then."""
    before = self.env_steps
    ended = self._loop.step()  # The actor writes to replay.
    self._has_window |= any(adder.num_windows > 0 for adder in self._adders)
    self._learn(self.env_steps - before)
    if self._learner.num_updates:
      self._actor.update()
    for env in ended:
      slot = self._loop.slots[env]
      metrics = environments.episode_metrics(slot.environment)
      self._report(slot.tracker, metrics, self.env_steps)

  def _learn(self, num_steps: int) -> None:
    """Makes the updates that are due after this many more environment steps."""
    for _ in range(self._pace.step(self.env_steps, self._has_window, num_steps)):
      # The actor has used the newest weights, so they have been computed.
      self._learner.check_finite()
      self._learner.step()
    if self._learner.num_updates >= _WARM_UP_UPDATES:
      self.clock.mark_warm(self.env_steps)

  def _report(
    self, tracker: common.EpisodeTracker, metrics: Mapping[str, float], steps: int
  ) -> None:
    """Reports an ended episode; those beyond the limit do not count.

    `metrics` are its environment's, and `steps` those of the run at its end.
    """
    if self.episodes[0] == self._config.episodes:
      return
    self._count_episodes(
      [0],
      self._times(),
      policy=[tracker.policy or 0],
      env_steps=[steps],
      episode_return=[tracker.episode_return],
      episode_length=[tracker.length],
      learner_updates=[self.num_updates],
      metrics=[self._learner.metrics() | tracker.metrics() | dict(metrics)],
    )

  def check_finite(self) -> None:
    self._learner.check_finite()

  def learner_metrics(self) -> list[dict[str, float]]:
    return [self._learner.metrics()]

  def weights(self) -> list[types.Params]:
    return jax.device_get(self._learner.get_variables(["params"]))

  def make_evaluation_actors(self) -> list[actor_lib.Actor]:
    key = common.evaluation_key(self._actor_key, self.resumed_at)
    return [self._builder.make_actor(key, self._learner, evaluation=True)]

  def save(self, *, with_replay: bool) -> checkpoint_lib.Snapshot:
    groups = {"learner": self._learner.save(), "actor": self._actor.state}
    counts = {
      "updates": self._learner.num_updates,
      "metrics": self._learner.metrics(),
      "pace": self._pace.save(),
      "has_window": self._has_window,
    }
    save_replay = None
    if with_replay and isinstance(self._replay, memory.MemoryReplay):
      groups["replay"], counts["replay"] = self._replay.save()
    elif with_replay:
      save_replay = self._replay.save_to  # Reverb's.
    return checkpoint_lib.Snapshot(groups, counts, save_replay)

  def restore(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    counts = checkpoint.record["counts"]
    learner = checkpoint.restore("learner", self._learner.shapes())
    self._learner.restore(learner, counts["updates"], counts["metrics"])
    actor = checkpoint.restore("actor", self._actor.state)
    self._actor.state = common.on_device(actor)
    self._actor.env_steps = self.resumed_at
    self._pace.restore(counts["pace"])
    if "replay" in counts:
      self._replay.restore(checkpoint.arrays("replay"), counts["replay"])
    if "replay" in counts or checkpoint.replay_folder is not None:
      self._has_window = counts["has_window"]
    else:
      self._pace.begin_empty(self.env_steps)
