"""Scores on Atari-57: human-normalised, summed up over games, and algorithms compared.

The scores of a random policy and of a human are those in `atari57.csv`: 30 no-op
starts, the table in common use since van Hasselt et al. 2016 (Deep reinforcement
learning with double Q-learning).
"""

import csv
import functools
import importlib.resources
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from explorax.environments import errors


class Reference(NamedTuple):
  """The scores that mean 0 and 1 in a game."""

  random: float
  human: float


@functools.cache
def references() -> Mapping[str, Reference]:
  """Every game of Atari-57, in snake case, and its reference scores."""
  table = importlib.resources.files(__package__).joinpath("atari57.csv")
  return {
    row["game"]: Reference(float(row["random"]), float(row["human"]))
    for row in csv.DictReader(table.read_text(encoding="utf-8").splitlines())
  }


def human_normalised_score(game: str, score: float) -> float:
  """`(score − random) / (human − random)`: 0 is random play, 1 a human's.

  Args:
    game: one of Atari-57, `MontezumaRevenge` or `montezuma_revenge`.
    score: undiscounted return of an episode, of rewards as the game gives them.

  Raises:
    ValueError: if it is none of the 57, or the score is not finite.
  """
  if not math.isfinite(score):
    raise ValueError(f"the score of {game!r} is {score}; it must be a finite number.")
  known = {_plain(name): name for name in references()}
  if _plain(game) not in known:
    otherwise = ", which has scores for 57 games; see references()."
    near = errors.did_you_mean(_plain(game), known, otherwise, known.__getitem__)
    raise ValueError(f"{game!r} is not in Atari-57{near}")
  reference = references()[known[_plain(game)]]
  return (score - reference.random) / (reference.human - reference.random)


def median(scores: Iterable[float]) -> float:
  """The median over games of human-normalised scores."""
  return float(np.median(_finite(scores)))


def mean(scores: Iterable[float]) -> float:
  """The mean over games of human-normalised scores."""
  return float(np.mean(_finite(scores)))


def human_gap(scores: Iterable[float]) -> float:
  """`1 − E[min(1, score)]` over games: 0 where every game is played as by a human.

  Args:
    scores: human-normalised, one a game.

  Source: Dabney et al. 2021, appendix D.
  """
  return float(1.0 - np.mean(np.minimum(1.0, _finite(scores))))


def inter_algorithm_scores(
  scores: Mapping[str, Mapping[str, float]],
) -> dict[str, dict[str, float]]:
  """`z = (score − worst) / (best − worst)`, worst and best being over algorithms.

  Where all are equal, each is the best: z is 1.

  Args:
    scores: algorithm → game → score, all for the same games.

  Returns:
    algorithm → game → z, in [0, 1].

  Raises:
    ValueError: if there are fewer than two algorithms, games differ between them, or
      a score is not finite.

  Source: Munos et al. 2016, section 4, after Bellemare et al. 2013.
  """
  if len(scores) < 2:
    raise ValueError(
      f"{len(scores)} algorithm(s) cannot be compared with each other; give the scores "
      "of at least two."
    )
  first, *others = scores
  for other in others:
    different = sorted(set(scores[first]) ^ set(scores[other]))
    if different:
      raise ValueError(
        f"{first!r} and {other!r} have not played the same games: only one of them "
        f"has a score for {', '.join(different)}; leave these out."
      )
  games = list(scores[first])
  table = np.stack([_finite(scores[name][g] for g in games) for name in scores])
  worst, best = table.min(axis=0), table.max(axis=0)
  spread = np.where(best > worst, best - worst, 1.0)
  z = np.where(best > worst, (table - worst) / spread, 1.0)
  return {
    name: dict(zip(games, row.tolist(), strict=True))
    for name, row in zip(scores, z, strict=True)
  }


def score_distribution(z: Iterable[float], x: np.ndarray) -> np.ndarray:
  """`f(x) = |{g : z_g ≥ x}| / |games|`, the share of games with a score of at least x.

  Args:
    z: one algorithm's inter-algorithm scores, one a game.
    x: `[N]`, where to evaluate it.

  Returns:
    `[N]`, in [0, 1] and falling with x.

  Source: Munos et al. 2016, section 4 and figure 1.
  """
  values = _finite(z)
  return (values[None, :] >= np.asarray(x)[:, None]).mean(axis=1)


def _plain(game: str) -> str:
  return game.replace("_", "").lower()


def _finite(scores: Iterable[float]) -> np.ndarray:
  values = np.array(list(scores), np.float64)
  if not values.size:
    raise ValueError("there are no scores; give one for each game.")
  if not np.isfinite(values).all():
    raise ValueError(
      f"one of the scores is {errors.first_non_finite(values)}; all must be finite."
    )
  return values
