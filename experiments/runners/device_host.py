"""The host's part of a run on the device, for all kinds of environments."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.experiments import config as config_lib
from explorax.experiments import host_memory
from explorax.experiments.checkpoints import checkpointer, files
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import core, device_agent, errors, training

STEPS_PER_REPORT = 100  # Of each environment, between two reports of the device.


class Training(training.Training):
  """Runs steps and updates on the device; a variable source of the weights.

  Each program consumes the state (its buffers are donated) and returns a new one. The
  call of a program, the assignment of the state and the counters are inside
  `signals.deferred`, so that no interrupt separates them.

  Attributes:
    state: on the device, of all seeds.
    steps: of each environment.
    updates: of each learner.
    empty_steps: the value of `steps` when replay was last empty.
    episodes: number of finished episodes of each seed.
    metrics: each learner's latest.
  """

  def __init__(
    self,
    agent: types.Agent,
    seeds: Sequence[int],
    num_envs: int,
    state: device_agent.State,
    config: config_lib.RunConfig,
    on_episode: Callable[[core.Episode], None],
  ):
    """Starts with all counters at zero.

    Args:
      agent: trained with all seeds.
      seeds: one for each run.
      num_envs: environments of each seed.
      state: with a leading axis of seeds if there is more than one.
      config: provides the limits.
      on_episode: called with each finished episode.
    """
    self._agent = agent
    self._seeds = seeds
    self._num_envs = num_envs
    self._config = config
    self._on_episode = on_episode
    self.state = state
    self.clock = clock_lib.Clock()
    self.steps = 0
    self.updates = 0
    self.empty_steps = 0
    self.episodes = [0 for _ in seeds]
    self.metrics: list[dict[str, float]] = [{} for _ in seeds]
    self._compiled: set[str] = set()  # The activities of this process so far.

  @property
  def env_steps(self) -> int:
    """Of each seed."""
    return self.steps * self._num_envs

  @property
  def may_evaluate(self) -> bool:
    return True

  @property
  def is_done(self) -> bool:
    return self._config.is_reached(self.env_steps, min(self.episodes))

  @property
  def fill_steps(self) -> int:
    """Steps of each environment until an empty replay allows the first update."""
    spec = self._agent.replay
    return max(math.ceil(spec.min_size / self._num_envs), spec.window_rows)

  def next_activity(self) -> core.Activity:
    held = self.steps - self.empty_steps
    wanted = self.fill_steps * self._num_envs
    activity = core.acting(self.env_steps, held * self._num_envs, wanted)
    if activity.name not in self._compiled:
      self._compiled.add(activity.name)
      return core.Activity(core.COMPILING, self.env_steps)
    return activity

  def tell(
    self,
    index: int,
    step: int,
    updates: int,
    ended: device_agent.Episodes,
    metrics: Mapping[str, float],
  ) -> None:
    """Reports an episode.

    Args:
      index: of its seed.
      step: the environment's step at which it ended, from 1.
      updates: made by then.
      ended: its numbers, on the host; their `metrics` are not read.
      metrics: the environment's.
    """
    self.episodes[index] += 1
    of_learner = dict(self.metrics[index])
    if "r_int" in self._agent.replay.extras:
      of_learner["intrinsic_return"] = float(ended.intrinsic)
    self._on_episode(
      core.Episode(
        episode=self.episodes[index],
        env_steps=step * self._num_envs,
        episode_return=float(ended.episode_return),
        episode_length=int(ended.length),
        policy=self._agent.policy_names[int(ended.policy)],
        learner_updates=updates,
        steps_per_second=self.clock.steps_per_second(self.env_steps),
        wall_seconds=self.clock.seconds,
        metrics={**of_learner, **metrics},
        seed=self._seeds[index],
      )
    )

  def take(self, last: Sequence[device_agent.Update]) -> None:
    """Stores the metrics of each seed's last update, which are on the host."""
    self.metrics = [
      {name: float(x) for name, x in update.metrics.items()} for update in last
    ]

  def check_taken(self, last: Sequence[device_agent.Update], before: int = 0) -> None:
    """Checks that the updates were finite.

    Args:
      last: one for each seed.
      before: number of updates before the first one counted by `last`.

    Raises:
      errors.NonFiniteError: for the first seed whose update was not finite.
    """
    for seed, metrics, update in zip(self._seeds, self.metrics, last, strict=True):
      if metrics["finite"] > 0:
        continue
      number = before + int(update.number)
      raise errors.NonFiniteError(
        f"stopped at environment step {self.env_steps}, seed {seed}: a loss became NaN "
        f"or infinite in learner update {number}; lower the learning rate or clip the "
        "gradient.",
        self.weights(),
        {
          "seed": seed,
          "learner_update": number,
          "metrics": metrics,
          "keys": update.keys.tolist(),
        },
      )

  def save(self, *, with_replay: bool) -> checkpointer.Snapshot:
    groups: dict[str, Any] = {"state": self.state._replace(replay=())}  # type: ignore[arg-type]
    if with_replay:
      groups["replay"] = self.state.replay
    counts = {
      "steps": self.steps,
      "updates": self.updates,
      "empty_steps": self.empty_steps,
      "episodes": list(self.episodes),
      "metrics": [dict(metrics) for metrics in self.metrics],
      "seconds": self.clock.seconds,
    }
    return checkpointer.Snapshot(groups, counts)

  def restore(self, checkpoint: files.Checkpoint) -> None:
    """Resumes from a checkpoint; replay is empty if the checkpoint lacks it."""
    counts = checkpoint.record["counts"]
    has_replay = "replay" in checkpoint.groups
    shapes = jax.eval_shape(lambda: self.state)
    replay = self.state.replay
    if has_replay:
      # Both copies may not fit into memory at the same time.
      del replay
      self.state = self.state._replace(replay=())  # type: ignore[arg-type]
      replay = _on_device(checkpoint.restore("replay", shapes.replay))
    state = checkpoint.restore("state", shapes._replace(replay=()))
    self.state = _on_device(state)._replace(replay=replay)
    self.steps, self.updates = counts["steps"], counts["updates"]
    self.empty_steps = counts["empty_steps"] if has_replay else self.steps
    self.episodes = list(counts["episodes"])
    self.metrics = [dict(metrics) for metrics in counts["metrics"]]
    self.clock.resume(counts["seconds"])

  def results(self, interrupted: bool) -> list[core.Result]:
    return [
      core.Result(
        weights=weights,
        env_steps=self.env_steps,
        episodes=episodes,
        learner_updates=self.updates,
        steps_per_second=self.clock.steps_per_second(self.env_steps),
        interrupted=interrupted,
      )
      for episodes, weights in zip(self.episodes, self.weights(), strict=True)
    ]

  def make_evaluation_actor(self) -> actor_lib.Actor:
    key = core.evaluation_key(jax.random.PRNGKey(self._seeds[0]))
    return builder_lib.Builder(self._agent).make_actor(key, self, evaluation=True)

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    """The weights of the only seed, for Acme's actors."""
    params = self._agent.learner.params(self.state.learner)
    # The state is donated to the next program.
    return [jax.tree.map(jnp.copy, params) for _ in names]

  def weights(self) -> list[types.Params]:
    params = self._agent.learner.params
    if len(self._seeds) == 1:
      return [jax.device_get(params(self.state.learner))]
    weights = jax.device_get(jax.vmap(params)(self.state.learner))
    return [jax.tree.map(lambda x, i=i: x[i], weights) for i in range(len(self._seeds))]


def free_memory() -> float:
  """Bytes free on the device where JAX computes; infinite if unknown."""
  stats = jax.devices()[0].memory_stats() or {}
  if "bytes_limit" in stats:
    return stats["bytes_limit"] - stats.get("bytes_in_use", 0)
  return host_memory.available()  # On a CPU.


def _on_device(tree: Any) -> Any:
  """Copies the arrays of a tree, so that they may be donated."""
  return jax.tree.map(lambda x: jnp.array(x, copy=True), tree)
