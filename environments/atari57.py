"""Scores on Atari-57: human-normalised, and published.

The scores of a random policy and of a human are those in `atari57.csv`: 30 no-op
starts, the table in common use since van Hasselt et al. 2016 (Deep reinforcement
learning with double Q-learning). Its categories of exploration are those of
Bellemare et al. 2016 (Unifying count-based exploration and intrinsic motivation),
table 1, which is table 1 of Ostrovski et al. 2017 as well.
"""

import csv
import functools
import importlib.resources
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from explorax import notation

T = TypeVar("T", float, np.ndarray)


class Reference(NamedTuple):
  """The scores that mean 0 and 1 in a game."""

  random: float
  human: float


# Games with published scores (Munos et al. 2016) but without a human's.
BEYOND = ("carnival", "elevator_action", "pooyan")

# Exploration is easy if ε-greedy agents play like humans or exploit the score; else it
# is hard, with dense or with sparse rewards.
CATEGORIES = ("human_optimal", "score_exploit", "dense_reward", "sparse_reward")
# The six of Badia et al. 2020 (table 1), "identified by Bellemare et al. (2016)": those
# with sparse rewards but Freeway. Dabney et al. 2021 name three of them as examples.
HARD_EXPLORATION = (
  *("gravitar", "montezuma_revenge", "pitfall", "private_eye", "solaris", "venture"),
)


@functools.cache
def references() -> Mapping[str, Reference]:
  """Every game of Atari-57, in snake case, and its reference scores."""
  return {
    row["game"]: Reference(float(row["random"]), float(row["human"]))
    for row in _table("atari57.csv")
  }


@functools.cache
def categories() -> Mapping[str, str]:
  """Game → its category, one of `CATEGORIES`, for the 52 games that have one."""
  rows = _table("atari57.csv")
  return {row["game"]: row["exploration"] for row in rows if row["exploration"]}


def published(paper: str) -> dict[str, dict[str, float]]:
  """The scores that a paper prints for games of Atari-57 and `BEYOND`.

  Args:
    paper: `badia` (Badia et al., 2020, table 10: 35 billion frames, 3 seeds), `chen`
      (Chen et al., 2017, table 2: the best mean of 100 training episodes, 40 million
      frames) or `munos` (Munos et al., 2016, table 2: 200 million frames).

  Returns:
    Algorithm → game → score, not normalised. The algorithms are `r2d2_retrace`, `ngu`
    (evaluated with β_0) and `ngu_exploratory` (with β_31 = 0.3) of Badia et al.;
    `bootstrapped_dqn`, `double_dqn`, `ensemble_voting` and `ucb` of Chen et al.; and
    `tree_backup`, `retrace`, `dqn` and `q_star` (λ = 1) of Munos et al.
  """
  rows = _table("atari57_published.csv")
  names = [name for name in rows[0] if name.startswith(f"{paper}:")]
  return {
    name.removeprefix(f"{paper}:"): {
      row["game"]: float(row[name]) for row in rows if row[name]
    }
    for name in names
  }


def groups() -> dict[str, list[str]]:
  """Name → games: `atari57`, its categories, and `atari57_hard_exploration`."""
  return {
    "atari57": list(references()),
    **{
      f"atari57_{category}": [g for g, c in categories().items() if c == category]
      for category in CATEGORIES
    },
    "atari57_hard_exploration": list(HARD_EXPLORATION),
  }


def _table(name: str) -> list[dict[str, str]]:
  text = importlib.resources.files(__package__).joinpath(name)
  return list(csv.DictReader(text.read_text(encoding="utf-8").splitlines()))


def find(game: str) -> str | None:
  """The name in `references()` of `MontezumaRevenge` or `montezuma_revenge`.

  None if the game is none of Atari-57.
  """
  return {_plain(name): name for name in references()}.get(_plain(game))


def human_normalised_score(game: str, score: T) -> T:
  """`(score − random) / (human − random)`: 0 is random play, 1 a human's.

  Args:
    game: one of Atari-57, `MontezumaRevenge` or `montezuma_revenge`.
    score: undiscounted return of an episode, of rewards as the game gives them; or an
      array of such.

  Raises:
    ValueError: if it is not one of the 57, or a score is not finite.
  """
  if not np.isfinite(score).all():
    raise ValueError(f"the score of {game!r} is {score}; it must be a finite number.")
  name = find(game)
  if name is None:
    near = notation.nearest(game, references())
    raise ValueError(f"{game!r} is none of Atari-57's games.{near}")
  reference = references()[name]
  return (score - reference.random) / (reference.human - reference.random)


def _plain(game: str) -> str:
  return game.replace("_", "").lower()
