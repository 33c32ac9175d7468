"""Runs of paper 4's agents: the episode in which each one solves a problem."""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from explorax import environments
from explorax.environments import binary_tree, deep_sea, jax_types
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import presets
from explorax.experiments.runners import common
from explorax.papers import training, types

PAPER = "Flennerhag et al. (2020), Temporal Difference Uncertainties"
BOOTSTRAPPED = "bootstrapped_dqn"  # What paper 4 calls β = 0.
TDU = "tdu"
# Episodes whose treasures are counted, for `until`. At N = 50 the best policy finds
# 0.37 of them, with a standard error of 0.02.
_WINDOW = 500


def agent_settings(
  beta: float, prior_scale: float, num_explorers: int | None = None
) -> dict[str, Any]:
  """The agent's part of a task's settings: TDU with these scales.

  β = 0 is Bootstrapped DQN, as in the paper: without a bonus, explorers and exploiters
  learn the same.
  """
  return {
    "agent": TDU if beta else BOOTSTRAPPED,
    "beta": beta,
    "prior_scale": prior_scale,
    "num_explorers": num_explorers if beta else 0,
  }


def agent_config(settings: types.Settings) -> Any:
  """The preset's config, changed where the settings say so.

  A different number of explorers does not change the total number of value functions.
  """
  config = presets.PRESETS[settings["agent"]].config
  changes = {
    name: settings[name]
    for name in ("beta", "prior_scale", "num_explorers")
    if settings.get(name) is not None
  }
  if "num_explorers" in changes:
    changes["num_members"] = config.ensemble_size - changes["num_explorers"]
  return dataclasses.replace(config, **changes)


def train(
  settings: types.Settings,
  config: Any,
  environment: jax_types.Environment,
  *,
  own_params: Sequence[jax_types.Params] = (),
  on_episode: Callable[[common.Episode], None] | None = None,
  is_over: Callable[[], bool] = lambda: False,
  **end: Any,
) -> training.Trained:
  """`training.train` of an agent on the device with a task's seeds, consecutive ones.

  Each seed may have its own environment parameters. Training ends after the episodes or
  steps of `end` (fields of `RunConfig`).
  """
  adapter = environments.wrap(environment, seed=0)
  preset = presets.PRESETS[settings["agent"]]
  first, *others = settings["seeds"]
  return training.train(
    config_lib.RunConfig(
      runner="device", seed=first, num_seeds=1 + len(others), **end, eval_episodes=0
    ),
    parts_lib.CallerObjects(
      agent=preset.make_agent(config, environments.spec(adapter)),
      environment=adapter,
      params=own_params,
    ),
    on_episode=on_episode,
    is_over=is_over,
  )


class Progress:
  """Counts each seed's episodes until it solves a problem or reaches the limit.

  The rule decides from the treasures in the episodes' metrics (`bad_episode` and
  `denoised_return`) whether a seed has solved the problem. With the setting `until`, a
  seed goes on until, besides, the share of the last 500 episodes that found the
  treasure has been at least `until` times the best policy's.
  """

  def __init__(
    self, settings: types.Settings, rule: Callable[[], environments.SolvedRule]
  ):
    self._limit, self._until = settings["max_episodes"], settings.get("until")
    self._rules = {seed: rule() for seed in settings["seeds"]}
    self._episodes = dict.fromkeys(self._rules, 0)
    self._treasures = dict.fromkeys(self._rules, 0.0)
    self._mastered = dict.fromkeys(self._rules, 0)
    self._last = {
      seed: collections.deque[float](maxlen=_WINDOW) for seed in self._rules
    }

  def is_over(self) -> bool:
    """Whether all seeds have ended."""
    return all(map(self._has_ended, self._rules))

  def _has_ended(self, seed: int) -> bool:
    solved = self._rules[seed].treasure_episode is not None
    done = solved and (self._until is None or self._mastered[seed] > 0)
    return done or self._episodes[seed] >= self._limit

  def count(self, seed: int, metrics: Mapping[str, float]) -> None:
    """Counts an episode with these metrics, unless the seed has ended."""
    if self._has_ended(seed):
      return
    self._episodes[seed] += 1
    found, rule = metrics["denoised_return"], self._rules[seed]
    self._treasures[seed] += found
    self._last[seed].append(found)
    rule.add_episode(self._episodes[seed], metrics)
    rate = sum(self._last[seed]) / _WINDOW
    if self._until is not None and rate >= self._until * rule.best_rate:
      self._mastered[seed] = self._mastered[seed] or self._episodes[seed]

  def results(self) -> types.Results:
    """For each seed, int32 `[S]`.

    `solved`, the episode in which the problem was solved, or 0; `by_bsuite`, the same
    by bsuite's rule, within these episodes; `mastered`, the first episode in which the
    share was `until`, or 0 (only with `until`); `episodes`, their number up to the
    run's end; `treasures`, how many of them found the treasure.
    """
    rules = self._rules.values()
    results = {
      "solved": [rule.treasure_episode or 0 for rule in rules],
      "by_bsuite": [rule.solved_episode or 0 for rule in rules],
      "episodes": list(self._episodes.values()),
      "treasures": list(self._treasures.values()),
    }
    if self._until is not None:
      results["mastered"] = list(self._mastered.values())
    return {name: np.array(values, np.int32) for name, values in results.items()}


def solve(
  settings: types.Settings,
  config: Any,
  environment: jax_types.Environment,
  *,
  rule: Callable[[], environments.SolvedRule],
  metrics: Callable[[common.Episode], Mapping[str, float]],
  own_params: Sequence[jax_types.Params] = (),
) -> types.Results:
  """Runs an agent until all seeds have solved a problem or reached the episode limit.

  Returns:
    `Progress.results`.
  """
  progress = Progress(settings, rule)
  train(
    settings,
    config,
    environment,
    own_params=own_params,
    on_episode=lambda episode: progress.count(episode.seed, metrics(episode)),
    is_over=progress.is_over,
    episodes=settings["max_episodes"],
  )
  return progress.results()


def deep_sea_tasks(
  agents: Mapping[str, types.Settings],
  sizes: Sequence[int],
  versions: Sequence[bool],
  seeds: range,
  *,
  max_episodes: int,
  seeds_per_task: int,
) -> list[types.Task]:
  """Tasks of `solve_deep_sea`: agents (label → settings) × sizes × versions × seeds.

  A version is whether Deep Sea is stochastic.
  """
  return [
    task
    for label, agent in agents.items()
    for size in sizes
    for stochastic in versions
    for task in types.split(
      f"{label}_{size}{'_stochastic' * stochastic}",
      {**agent, "size": size, "stochastic": stochastic, "max_episodes": max_episodes},
      len(seeds),
      seeds_per_task,
      size**2 * (3.0 if stochastic else 1.0),  # These take longer to solve.
      seeds.start,
    )
  ]


def deep_sea_rule(size: int, stochastic: bool) -> environments.SolvedRule:
  """When Deep Sea is solved; bsuite has a rule for both versions."""
  version = ",stochastic=true" if stochastic else ""
  rule = environments.solved_rule(f"jax:deep_sea/{size}{version}")
  assert rule is not None
  return rule


def solve_deep_sea(settings: types.Settings, config: Any = None) -> types.Results:
  """`solve` for Deep Sea of a `size`, `stochastic` or not.

  In the paper, a size is solved when the average regret falls below 0.9. In the
  stochastic version, luck can achieve this in a run's first episodes, so that bsuite
  requires 0.8 from the hundredth episode. Regret counts treasures, since the regret of
  bsuite's stochastic version is low even without them (`environments.SolvedRule`). The
  action mapping is that of bsuite's sweeps; with `own_mapping`, each seed has its own.
  """
  stochastic = settings.get("stochastic", False)
  environment = deep_sea.DeepSea(settings["size"], stochastic=stochastic)
  is_own = settings.get("own_mapping", False)
  return solve(
    settings,
    agent_config(settings) if config is None else config,
    environment,
    rule=lambda: deep_sea_rule(settings["size"], stochastic),
    metrics=lambda episode: episode.metrics,
    own_params=own_mappings(environment, settings["seeds"]) if is_own else [],
  )


def own_mappings(
  environment: deep_sea.DeepSea, seeds: Sequence[int]
) -> list[deep_sea.Params]:
  """Parameters of Deep Sea with another action mapping for each seed."""
  return [
    dataclasses.replace(environment, mapping_seed=seed).default_params()
    for seed in seeds
  ]


def solve_tree(settings: types.Settings) -> types.Results:
  """`solve` for a binary tree of a depth `size`, another one for each seed.

  The paper does not define when a tree is solved. We use Deep Sea's rule: the average
  regret is below 0.9, where an episode's regret is 1 minus its return. The rule applies
  from episode 10, since untrained networks may find the way up a small tree by chance.
  """
  size = settings["size"]
  return solve(
    settings,
    agent_config(settings),
    binary_tree.BinaryTree(size),
    own_params=[
      binary_tree.Params(binary_tree.action_mapping(seed, size))
      for seed in settings["seeds"]
    ],
    rule=lambda: environments.SolvedRule(min_episode=10),
    metrics=_tree_metrics,
  )


def _tree_metrics(episode: common.Episode) -> dict[str, float]:
  """The episode's metrics: the treasure is at the tree's top, with a return of 1."""
  found = episode.episode_return
  return {"bad_episode": 1.0 - found, "denoised_return": found}
