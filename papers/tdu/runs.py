"""Runs of paper 4's agents: the episode in which each one solves a problem."""

import collections
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorax import environments
from explorax.environments import binary_tree, deep_sea, jax_types
from explorax.experiments import config as config_lib
from explorax.experiments import job, presets, supervision
from explorax.experiments.runners import core
from explorax.papers import types

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
  on_episode: Callable[[core.Episode], None],
  share: Callable[[], float],
  context: types.TaskContext,
  **end: Any,
) -> None:
  """Trains an agent on the device with all seeds of a task, which are consecutive.

  Each seed may have its own environment parameters. Training ends after the episodes or
  steps of `end` (fields of `RunConfig`), or when the finished `share`, which
  `context.report` receives, is 1.

  Raises:
    InterruptedTaskError: if training was stopped before its end.
  """

  def stop() -> bool:
    done = share()
    context.report(done)
    return done >= 1.0

  adapter = environments.wrap(environment, seed=0)
  preset = presets.PRESETS[settings["agent"]]
  first, *others = settings["seeds"]
  results = supervision.train_without_files(
    config_lib.RunConfig(runner="device", seed=first, num_seeds=1 + len(others), **end),
    core.Hooks(on_episode=on_episode, stop=stop),
    job.Given(
      agent=preset.make_agent(config, environments.spec(adapter)),
      environment=adapter,
      params=jax.tree.map(lambda *x: jnp.stack(x), *own_params) if own_params else None,
    ),
  )
  if any(result.interrupted for result in results.values()) and share() < 1.0:
    raise types.InterruptedTaskError


def solve(
  settings: types.Settings,
  config: Any,
  environment: jax_types.Environment,
  *,
  rule: Callable[[], environments.SolvedRule],
  metrics: Callable[[core.Episode], Mapping[str, float]],
  context: types.TaskContext,
  own_params: Sequence[jax_types.Params] = (),
) -> types.Results:
  """Runs an agent until all seeds have solved a problem or reached the episode limit.

  The rule decides from the treasures in the episodes' `metrics` (`bad_episode` and
  `denoised_return`) whether a seed has solved the problem. A run with the setting
  `until` ends later: when, besides, the share of the last 500 episodes that found the
  treasure has been at least `until` times the best policy's.

  Returns:
    For each seed, `[S]`: `solved`, the episode in which the problem was solved, or 0;
    `by_bsuite`, the same by bsuite's rule, within these episodes; `mastered`, the
    first episode in which the share was `until`, or 0 (only with `until`); `episodes`,
    their number up to the run's end; `treasures`, how many of them found the treasure.
  """
  seeds, limit = settings["seeds"], settings["max_episodes"]
  until = settings.get("until")
  rules = {seed: rule() for seed in seeds}
  episodes, treasures = dict.fromkeys(seeds, 0), dict.fromkeys(seeds, 0.0)
  mastered = dict.fromkeys(seeds, 0)
  last = {seed: collections.deque[float](maxlen=_WINDOW) for seed in seeds}

  def is_over(seed: int) -> bool:
    solved = rules[seed].treasure_episode is not None
    done = solved and (until is None or mastered[seed] > 0)
    return done or episodes[seed] >= limit

  def count(episode: core.Episode) -> None:
    seed = episode.seed
    if not is_over(seed):
      episodes[seed] += 1
      found = metrics(episode)
      treasures[seed] += found["denoised_return"]
      last[seed].append(found["denoised_return"])
      rules[seed].add_episode(episodes[seed], found)
      rate = sum(last[seed]) / _WINDOW
      if until is not None and rate >= until * rules[seed].best_rate:
        mastered[seed] = mastered[seed] or episodes[seed]

  def share() -> float:
    shares = [1.0 if is_over(seed) else episodes[seed] / limit for seed in seeds]
    return sum(shares) / len(seeds)

  train(
    settings,
    config,
    environment,
    own_params=own_params,
    on_episode=count,
    share=share,
    context=context,
    episodes=limit,
  )
  of_seeds = {
    "solved": [rules[seed].treasure_episode or 0 for seed in seeds],
    "by_bsuite": [rules[seed].solved_episode or 0 for seed in seeds],
    "episodes": [episodes[seed] for seed in seeds],
    "treasures": [treasures[seed] for seed in seeds],
  }
  if until is not None:
    of_seeds["mastered"] = [mastered[seed] for seed in seeds]
  return {name: np.array(values, np.int32) for name, values in of_seeds.items()}


def solve_deep_sea(
  settings: types.Settings, context: types.TaskContext, config: Any = None
) -> types.Results:
  """`solve` for Deep Sea of a `size`, `stochastic` or not.

  In the paper, a size is solved when the average regret falls below 0.9. In the
  stochastic version, luck can achieve this in a run's first episodes, so that bsuite
  requires 0.8 from the hundredth episode. Regret counts treasures, since the regret of
  bsuite's stochastic version is low even without them (`environments.SolvedRule`). The
  action mapping is that of bsuite's sweeps; with `own_mapping`, each seed has its own.
  """
  stochastic = settings.get("stochastic", False)
  environment = deep_sea.DeepSea(settings["size"], stochastic=stochastic)
  own_params = []
  if settings.get("own_mapping", False):
    own_params = [
      dataclasses.replace(environment, mapping_seed=seed).default_params()
      for seed in settings["seeds"]
    ]

  def rule() -> environments.SolvedRule:
    version = ",stochastic=true" if stochastic else ""
    found = environments.solved_rule(f"jax:deep_sea/{settings['size']}{version}")
    assert found is not None  # bsuite has one for each of the two.
    return found

  return solve(
    settings,
    agent_config(settings) if config is None else config,
    environment,
    rule=rule,
    metrics=lambda episode: episode.metrics,
    context=context,
    own_params=own_params,
  )


def solve_tree(settings: types.Settings, context: types.TaskContext) -> types.Results:
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
    context=context,
  )


def _tree_metrics(episode: core.Episode) -> dict[str, float]:
  """The episode's metrics: the treasure is at the tree's top, with a return of 1."""
  found = episode.episode_return
  return {"bad_episode": 1.0 - found, "denoised_return": found}
