"""Runs of paper 4's agents: the episode in which each one solves a problem."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from explorax import environments
from explorax.experiments.runners import common
from explorax.papers import compute, draw, figures

PAPER = "Flennerhag et al. (2020), Temporal Difference Uncertainties"
TDU, BOOTSTRAPPED = {"agent": "tdu"}, {"agent": "bootstrapped_dqn"}
LINES = {"TDU": TDU, "bootstrapped DQN": BOOTSTRAPPED}
NOISY = {"stochastic": True}  # Deep Sea.
_FUNCTIONS = 20  # Of TDU: the members and the explorers.
# Episodes whose treasures are counted, for `until`. At N = 50 the best policy finds
# 0.37 of them, with a standard error of 0.02.
_WINDOW = 500


class Solved(compute.Record):
  """The episodes of each seed until it solves a problem, or plays `max_episodes`.

  The rule decides from the treasures in the episodes' metrics (`bad_episode` and
  `denoised_return`), or without these from their returns, whether a seed has solved the
  problem. With the setting `until`, a seed goes on until, besides, the share of the
  last 500 episodes that found the treasure has been at least `until` times the best
  policy's.
  """

  def __init__(
    self, settings: figures.Settings, rule: Callable[[], environments.SolvedRule]
  ):
    super().__init__(settings["seeds"])
    self._until, self._limit = settings.get("until"), settings["max_episodes"]
    self._rules = {seed: rule() for seed in settings["seeds"]}
    self._treasures: dict[int, list[float]] = {x: [] for x in settings["seeds"]}
    self._mastered = dict.fromkeys(settings["seeds"], 0)

  def add_episode(self, episode: common.Episode) -> None:
    seed, found = episode.seed, episode.episode_return
    if self._is_done(seed):
      return
    metrics = {"bad_episode": 1.0 - found, "denoised_return": found, **episode.metrics}
    rule, treasures = self._rules[seed], self._treasures[seed]
    treasures.append(metrics["denoised_return"])
    rule.add_episode(len(treasures), metrics)
    rate = sum(treasures[-_WINDOW:]) / _WINDOW
    if (
      self._until and not self._mastered[seed] and rate >= self._until * rule.best_rate
    ):
      self._mastered[seed] = len(treasures)

  def has_ended(self) -> bool:
    return all(map(self._is_done, self._rules))

  def _is_done(self, seed: int) -> bool:
    solved = self._rules[seed].treasure_episode and (
      self._until is None or self._mastered[seed]
    )
    return bool(solved) or len(self._treasures[seed]) >= self._limit

  def results(self) -> figures.Results:
    """Of each seed, int32 `[S]`, episodes, 0 where something did not happen.

    `solved`, when the problem was solved; `by_bsuite`, the same by bsuite's rule,
    within these episodes; `mastered`, when the share was first `until`; `episodes`,
    their number.
    """
    rules = self._rules.values()
    results = {
      "solved": [rule.treasure_episode or 0 for rule in rules],
      "by_bsuite": [rule.solved_episode or 0 for rule in rules],
      "mastered": [*self._mastered.values()],
      "episodes": [*map(len, self._treasures.values())],
    }
    return {name: np.array(values, np.int32) for name, values in results.items()}


def changes(settings: figures.Settings) -> list[str]:
  """A task's changes of the preset, as of `--set`; `scale` is UCB's λ.

  A different number of explorers does not change the total number of value functions.
  """
  values = {
    "beta": settings.get("beta"),
    "prior_scale": settings.get("prior_scale"),
    "shared_torso": settings.get("shared_torso"),
    "num_members": settings.get("num_members"),
    "num_explorers": settings.get("num_explorers"),
    "exploration.scale": settings.get("scale"),
  }
  if values["num_explorers"] is not None:
    values["num_members"] = _FUNCTIONS - values["num_explorers"]
  return [f"{name}={value}" for name, value in values.items() if value is not None]


def _solve(
  settings: figures.Settings, env: str, rule: Callable[[], Any], own_mappings: bool
) -> figures.Results:
  """Trains a task's seeds until they have solved the problem: `Solved.results`."""
  record = Solved(settings, rule)
  compute.train(
    {**settings, "changes": changes(settings)},
    record,
    env=env,
    own_mappings=own_mappings,
    episodes=settings["max_episodes"],
    eval_episodes=0,
  )
  return record.results()


def deep_sea(settings: figures.Settings) -> figures.Results:
  """When each seed solves Deep Sea of a `size`, `stochastic` or not.

  In the paper, a size is solved when the average regret falls below 0.9. In the
  stochastic version, luck can achieve this in a run's first episodes, so that bsuite
  requires 0.8 from the hundredth episode. Regret counts treasures, since the regret of
  bsuite's stochastic version is low even without them (`environments.SolvedRule`). The
  action mapping is that of bsuite's sweeps; with `own_mapping`, each seed has its own.
  """
  stochastic = ",stochastic=true" if settings.get("stochastic") else ""
  env = f"jax:deep_sea/{settings['size']}{stochastic}"
  rule = functools.partial(environments.solved_rule, env)
  return _solve(settings, env, rule, bool(settings.get("own_mapping")))


def tree(settings: figures.Settings) -> figures.Results:
  """When each seed solves a binary tree of a depth `size`, a tree of its own.

  The paper does not define when a tree is solved. We use Deep Sea's rule: the average
  regret is below 0.9, where an episode's regret is 1 minus its return. The rule applies
  from episode 10, since untrained networks may find the way up a small tree by chance.
  """
  rule = functools.partial(environments.SolvedRule, min_episode=10)
  return _solve(settings, f"jax:binary_tree/{settings['size']}", rule, True)


def solved_rows(
  lines: draw.Lines, where: figures.Selection, title: str, limit: int
) -> draw.Rows:
  """The episodes in which runs solve a problem, of at most `limit`."""
  return draw.Rows(
    lines=lines,
    where=where,
    guides=[draw.guide("axvline", limit)],
    axes={
      "title": title,
      "xlabel": "episodes to solve",
      "xscale": "log",
      "xlim": (0.7, 3000),
    },
  )
