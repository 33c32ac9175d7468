"""What the host of the device runner counts and tells, wherever environments are."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from explorax.agents import types
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import device_agent, errors, local


class Account:
  """The counts of a run of one or many seeds.

  Attributes:
    clock: of the steps.
    steps: of each environment.
    updates: of each learner.
    episodes: that have ended, of each seed.
    metrics: each learner's latest.
    empty_steps: how many of `steps` were made when replay was empty for the last time.
  """

  def __init__(
    self,
    agent: types.Agent,
    seeds: Sequence[int],
    num_envs: int,
    on_episode: Callable[[int, local.Episode], None],
  ):
    """Begins with zeros.

    Args:
      agent: trained with all seeds.
      seeds: one for each run.
      num_envs: environments of each seed.
      on_episode: (seed, Episode) → None, told of each episode.
    """
    self._agent = agent
    self._seeds = seeds
    self._num_envs = num_envs
    self._on_episode = on_episode
    self.clock = clock_lib.Clock()
    self.steps = 0
    self.updates = 0
    self.empty_steps = 0
    self.episodes = [0 for _ in seeds]
    self.metrics: list[dict[str, float]] = [{} for _ in seeds]

  @property
  def num_seeds(self) -> int:
    return len(self._seeds)

  @property
  def env_steps(self) -> int:
    """Of each seed."""
    return self.steps * self._num_envs

  @property
  def fill_steps(self) -> int:
    """Of each environment, before the first update is due."""
    spec = self._agent.replay
    return max(math.ceil(spec.min_size / self._num_envs), spec.window_rows)

  def save(self) -> dict[str, Any]:
    """What goes into a checkpoint."""
    return {
      "steps": self.steps,
      "updates": self.updates,
      "empty_steps": self.empty_steps,
      "episodes": list(self.episodes),
      "metrics": [dict(metrics) for metrics in self.metrics],
      "seconds": self.clock.seconds,
    }

  def restore(self, saved: Mapping[str, Any], *, with_replay: bool) -> None:
    """Goes on from what `save` returned.

    Args:
      saved: that.
      with_replay: whether replay holds what it did then; else it is empty.
    """
    self.steps, self.updates = saved["steps"], saved["updates"]
    self.empty_steps = saved["empty_steps"] if with_replay else self.steps
    self.episodes = list(saved["episodes"])
    self.metrics = [dict(metrics) for metrics in saved["metrics"]]
    self.clock.resume(saved["seconds"])

  def is_done(self, num_episodes: int | None, num_steps: int | None) -> bool:
    """Whether every seed has had so many episodes or steps."""
    return (num_steps is not None and self.env_steps >= num_steps) or (
      num_episodes is not None and min(self.episodes) >= num_episodes
    )

  def tell(
    self,
    index: int,
    step: int,
    updates: int,
    ended: device_agent.Episodes,
    metrics: Mapping[str, float],
  ) -> None:
    """Tells of an episode.

    Args:
      index: of its seed.
      step: of its environment in which it ended, from 1.
      updates: made by then.
      ended: its numbers, on the host; their `metrics` are not looked at.
      metrics: the environment's.
    """
    self.episodes[index] += 1
    of_learner = dict(self.metrics[index])
    if "r_int" in self._agent.replay.extras:
      of_learner["intrinsic_return"] = float(ended.intrinsic)
    self._on_episode(
      self._seeds[index],
      local.Episode(
        episode=self.episodes[index],
        env_steps=step * self._num_envs,
        episode_return=float(ended.episode_return),
        episode_length=int(ended.length),
        policy=self._agent.policy_names[int(ended.policy)],
        learner_updates=updates,
        steps_per_second=self.clock.steps_per_second(self.env_steps),
        wall_seconds=self.clock.seconds,
        metrics={**of_learner, **metrics},
      ),
    )

  def take(self, last: Sequence[device_agent.Update]) -> None:
    """Keeps the metrics of each seed's last update, fetched from the device."""
    self.metrics = [
      {name: float(x) for name, x in update.metrics.items()} for update in last
    ]

  def check_finite(
    self,
    last: Sequence[device_agent.Update],
    weights: Callable[[], list[types.Params]],
    before: int = 0,
  ) -> None:
    """Raises a NonFiniteError if an update was not finite, of the first such seed.

    Args:
      last: each seed's, fetched from the device.
      weights: makes those that are kept.
      before: how many updates came before the first that `last` counts.
    """
    for seed, metrics, update in zip(self._seeds, self.metrics, last, strict=True):
      if metrics["finite"] > 0:
        continue
      number = before + int(update.number)
      raise errors.NonFiniteError(
        f"stopped at environment step {self.env_steps}, seed {seed}: a loss became NaN "
        f"or infinite in learner update {number}; lower the learning rate or clip the "
        "gradient.",
        weights(),
        {
          "seed": seed,
          "learner_update": number,
          "metrics": metrics,
          "keys": update.keys.tolist(),
        },
      )

  def result(
    self, index: int, weights: types.Params, interrupted: bool
  ) -> local.Result:
    """What a seed's run leaves; the weights are on the host or get there."""
    return local.Result(
      weights=jax.device_get(weights),
      env_steps=self.env_steps,
      episodes=self.episodes[index],
      learner_updates=self.updates,
      steps_per_second=self.clock.steps_per_second(self.env_steps),
      interrupted=interrupted,
    )
