"""Runs of paper 4's agents: the episode in which each one solves a problem."""

import dataclasses
import functools
from typing import Any

from explorax import environments
from explorax.environments import binary_tree
from explorax.environments import deep_sea as deep_sea_lib
from explorax.experiments import presets
from explorax.experiments.runners import common
from explorax.papers import compute, figures

PAPER = "Flennerhag et al. (2020), Temporal Difference Uncertainties"
# Settings of a task that are fields of the agent's config.
_FIELDS = ("beta", "prior_scale", "num_explorers", "num_members", "shared_torso")


def agent_config(settings: figures.Settings) -> Any:
  """The preset's config, changed where the settings say so.

  A different number of explorers does not change the total number of value functions.
  `scale` is UCB's λ.
  """
  config = presets.PRESETS[settings["agent"]].config
  changes = {x: settings[x] for x in _FIELDS if settings.get(x) is not None}
  if "num_explorers" in changes:
    changes["num_members"] = config.ensemble_size - changes["num_explorers"]
  if settings.get("scale") is not None:
    rule = dataclasses.replace(config.exploration, scale=settings["scale"])
    changes["exploration"] = rule
  return dataclasses.replace(config, **changes)


def deep_sea(settings: figures.Settings, config: Any = None) -> figures.Results:
  """When each seed solves Deep Sea of a `size`, `stochastic` or not.

  In the paper, a size is solved when the average regret falls below 0.9. In the
  stochastic version, luck can achieve this in a run's first episodes, so that bsuite
  requires 0.8 from the hundredth episode. Regret counts treasures, since the regret of
  bsuite's stochastic version is low even without them (`environments.SolvedRule`). The
  action mapping is that of bsuite's sweeps; with `own_mapping`, each seed has its own.

  Returns:
    `compute.Solved.results`.
  """
  stochastic = settings.get("stochastic", False)
  name = f"jax:deep_sea/{settings['size']}{',stochastic=true' * stochastic}"
  sea = deep_sea_lib.DeepSea(settings["size"], stochastic=stochastic)
  return compute.until_solved(
    settings,
    functools.partial(environments.solved_rule, name),
    config=agent_config(settings) if config is None else config,
    environment=sea,
    params=own_mappings(sea, settings),
  )


def own_mappings(
  sea: deep_sea_lib.DeepSea, settings: figures.Settings
) -> list[deep_sea_lib.Params]:
  """Parameters of Deep Sea with another action mapping for each seed, if asked for."""
  seeds = settings["seeds"] if settings.get("own_mapping") else []
  return [dataclasses.replace(sea, mapping_seed=x).default_params() for x in seeds]


def tree(settings: figures.Settings) -> figures.Results:
  """When each seed solves a binary tree of a depth `size`, a tree of its own.

  The paper does not define when a tree is solved. We use Deep Sea's rule: the average
  regret is below 0.9, where an episode's regret is 1 minus its return. The rule applies
  from episode 10, since untrained networks may find the way up a small tree by chance.

  Returns:
    `compute.Solved.results`.
  """
  size = settings["size"]

  def metrics(episode: common.Episode) -> dict[str, float]:
    found = episode.episode_return  # The treasure is at the top, with a return of 1.
    return {"bad_episode": 1.0 - found, "denoised_return": found}

  return compute.until_solved(
    settings,
    functools.partial(environments.SolvedRule, min_episode=10),
    metrics,
    config=agent_config(settings),
    environment=binary_tree.BinaryTree(size),
    params=[
      binary_tree.Params(binary_tree.action_mapping(seed, size))
      for seed in settings["seeds"]
    ],
  )
