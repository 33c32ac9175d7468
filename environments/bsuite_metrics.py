"""Decides when Deep Sea is solved, by bsuite's rule and by the treasure."""

import math
from collections.abc import Mapping
from typing import Any


class SolvedRule:
  """Finds the episode in which Deep Sea is solved.

  By bsuite's rule it is the first episode n ≥ `min_episode` at which the average regret
  so far,

      total_bad_episodes(n) / n,

  is below `threshold` (bsuite/experiments/deep_sea/analysis.py, `find_solution`).
  bsuite itself checks only the episodes in its log, which are spaced logarithmically;
  here every episode is checked, so bsuite's number may be later.

  In the stochastic version this does not show whether the treasure is found: an episode
  is bad if the agent goes left on the diagonal, but failing moves to the right leave
  the diagonal. With N = 10, going right in the first three positions and left
  everywhere else has a regret of 0.9³ = 0.73, and never finds the treasure. By the
  treasure, the solved episode is the first episode n ≥ `min_episode` at which

      1 − treasures(n) / (n · best_rate)

  is below `threshold`; in the deterministic version the two are the same.

  Attributes:
    threshold: of both rules.
    min_episode: the first episode that counts.
    best_rate: the share of episodes in which the best policy finds the treasure.
    solved_episode: by bsuite's rule; None until it is solved.
    treasure_episode: by the treasure; None until it is solved.
    treasure_rate: the share of episodes so far that found the treasure; NaN if the
      environment does not report it, or no episode has ended.
  """

  def __init__(
    self, threshold: float = 0.9, min_episode: int = 1, best_rate: float = 1.0
  ):
    self.threshold = threshold
    self.min_episode = min_episode
    self.best_rate = best_rate
    self.solved_episode: int | None = None
    self.treasure_episode: int | None = None
    self.treasure_rate = math.nan
    self._bad = self._treasures = 0.0  # For environments without totals.

  def add_episode(
    self, episode: int, metrics: Mapping[str, float], *, has_learnt: bool = True
  ) -> None:
    """Adds an episode's metrics, if they say whether it was bad.

    Args:
      episode: number of ended episodes, including this one.
      metrics: bsuite's `total_bad_episodes` and `denoised_return`, both totals, or
        `bad_episode` and `denoised_return` of this episode.
      has_learnt: False before the agent's first update. The episode then counts, but
        cannot solve the environment: it only had luck.
    """
    treasures = metrics.get("denoised_return", math.nan)
    if "total_bad_episodes" in metrics:
      self._bad, self._treasures = metrics["total_bad_episodes"], treasures
    elif "bad_episode" in metrics:
      self._bad += metrics["bad_episode"]
      self._treasures += treasures
    else:
      return
    self.treasure_rate = self._treasures / episode
    if has_learnt and episode >= self.min_episode:
      if self.solved_episode is None and self._bad / episode < self.threshold:
        self.solved_episode = episode
      regret = 1 - self.treasure_rate / self.best_rate
      if self.treasure_episode is None and regret < self.threshold:
        self.treasure_episode = episode


def solved_rule(name: str) -> SolvedRule | None:
  """The rule for the environment `name`; None if bsuite has none.

  0.9 for `bsuite:deep_sea/…`; 0.8 from episode 100 on for
  `bsuite:deep_sea_stochastic/…`, where some episodes are good by luck
  (bsuite/experiments/deep_sea_stochastic/analysis.py). The same for the environments in
  JAX, `jax:deep_sea/…` without and with `stochastic=true`.
  """
  if name.startswith("jax:deep_sea/"):
    from explorax.environments import jax_environments  # noqa: PLC0415  # Imports jax.

    twin: Any = jax_environments.make(name.removeprefix("jax:"))[0]
    size, stochastic = twin.size, twin.stochastic
  elif name.startswith(("bsuite:deep_sea/", "bsuite:deep_sea_stochastic/")):
    from explorax.environments import bsuite_sweeps  # noqa: PLC0415  # Imports bsuite.

    size = bsuite_sweeps.settings(name.removeprefix("bsuite:"))["size"]
    stochastic = "stochastic" in name
  else:
    return None
  if not stochastic:
    return SolvedRule()
  # All moves to the last column must succeed, but not the last one, to the treasure.
  best_rate = (1 - 1 / size) ** (size - 1)
  return SolvedRule(threshold=0.8, min_episode=100, best_rate=best_rate)
