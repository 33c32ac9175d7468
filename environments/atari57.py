"""Scores on Atari-57: human-normalised, published, and compared by algorithm.

The scores of a random policy and of a human are those in `atari57.csv`: 30 no-op
starts, the table in common use since van Hasselt et al. 2016 (Deep reinforcement
learning with double Q-learning). Its categories of exploration are those of
Bellemare et al. 2016 (Unifying count-based exploration and intrinsic motivation),
table 1, which is table 1 of Ostrovski et al. 2017 as well.
"""

import csv
import functools
import importlib.resources
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from explorax.environments import errors

T = TypeVar("T", float, np.ndarray)


class Reference(NamedTuple):
  """The scores that mean 0 and 1 in a game."""

  random: float
  human: float


# Paper → the source of its scores in `published`.
SOURCES = {
  "badia": "Badia et al. (2020), table 10: 35 billion frames, 3 seeds, evaluated",
  "chen": "Chen et al. (2017), table 2: the best mean of 100 training episodes, 40 "
  "million frames, 2 seeds",
  "munos": "Munos et al. (2016), table 2: the end of 200 million frames, 4 seeds",
}
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
    paper: one of `SOURCES`.

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
  if _plain(game) in map(_plain, BEYOND):
    raise ValueError(
      f"{game!r} is not in Atari-57: its table has no scores of a random policy and of "
      "a human for this game, so that its scores cannot be normalised."
    )
  name = find(game)
  if name is None:
    known = {_plain(name): name for name in references()}
    otherwise = ", which has scores for 57 games; see references()."
    near = errors.did_you_mean(_plain(game), known, otherwise, known.__getitem__)
    raise ValueError(f"{game!r} is not in Atari-57{near}")
  reference = references()[name]
  return (score - reference.random) / (reference.human - reference.random)


def relative_improvement(score: float, baseline: float) -> float:
  """`100 · (score − baseline) / |baseline|`, in percent; NaN or infinite over 0.

  The paper divides by the baseline, so that a better score counts as a loss if the
  baseline is worse than random play.

  Source: Dabney et al. 2021, figures 16 and 17, appendix G.
  """
  difference = np.float64(score) - baseline
  with np.errstate(divide="ignore", invalid="ignore"):
    return float(100.0 * difference / abs(baseline))


def relative_improvements(
  scores: Mapping[str, float], baseline: Mapping[str, float]
) -> dict[str, float]:
  """`relative_improvement` of human-normalised scores by game, the greatest first.

  Args:
    scores: game → score, final or averaged over training.
    baseline: another agent's, for at least these games.
  """
  improvements = {
    game: relative_improvement(
      human_normalised_score(game, score), human_normalised_score(game, baseline[game])
    )
    for game, score in scores.items()
  }
  return dict(sorted(improvements.items(), key=lambda x: -np.nan_to_num(x[1])))


def inter_algorithm_scores(
  scores: Mapping[str, Mapping[str, float]],
) -> dict[str, dict[str, float]]:
  """`z = (score − worst) / (best − worst)`, with worst and best over algorithms.

  If all are equal, all are the best: z is 1.

  Args:
    scores: algorithm → game → score, all for the same games.

  Returns:
    algorithm → game → z, in [0, 1].

  Raises:
    ValueError: if there are fewer than two algorithms, games differ between them, or
      a score is not finite.

  Source: Munos et al. 2016, section 5, after Bellemare et al. 2013.
  """
  if len(scores) < 2:
    raise ValueError(
      f"cannot compare {len(scores)} algorithm(s); give the scores of at least two."
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


def best_by_category(
  scores: Mapping[str, Mapping[str, float]],
  of_games: Mapping[str, str] | None = None,
) -> dict[str, dict[str, int]]:
  """The number of games of each category in which each algorithm is the only best.

  Args:
    scores: algorithm → game → score, for the same games in snake case; for example the
      best mean of 100 episodes in a run's `summary.json`.
    of_games: game → category; None: `categories()`. Games without one are left out.

  Returns:
    category → algorithm → games, and under `tied` those with more than one best.

  Source: Chen et al. 2017 (UCB exploration via Q-ensembles), table 4.
  """
  of_games = categories() if of_games is None else of_games
  z = inter_algorithm_scores(scores)
  counts: dict[str, dict[str, int]] = {}
  for game in next(iter(z.values())):
    if game in of_games:
      row = counts.setdefault(of_games[game], dict.fromkeys([*z, "tied"], 0))
      best = [name for name in z if z[name][game] == 1.0]
      row[best[0] if len(best) == 1 else "tied"] += 1
  return counts


def normalised_curves(
  curves: Mapping[str, Mapping[str, np.ndarray]],
) -> dict[str, np.ndarray]:
  """Learning curves in [0, 1], averaged over games.

  In each game, 0 and 1 are the minimum and the maximum over all points of all
  algorithms' curves, as means over seeds.

  Args:
    curves: algorithm → game → `[S, N]`, S seeds at N points, for the same games.

  Returns:
    algorithm → `[S, N]`; single seeds may leave [0, 1].

  Source: Chen et al. 2017 (UCB exploration via Q-ensembles), figures 1 and 3.
  """
  total: dict[str, np.ndarray] = {}
  games = next(iter(curves.values()))
  for game in games:
    means = np.stack([np.mean(curve[game], axis=0) for curve in curves.values()])
    low, spread = means.min(), np.ptp(means)
    for name, curve in curves.items():
      scaled = (np.asarray(curve[game]) - low) / (spread or 1.0)
      total[name] = total.get(name, 0.0) + scaled / len(games)
  return total


def _plain(game: str) -> str:
  return game.replace("_", "").lower()


def _finite(scores: Iterable[float]) -> np.ndarray:
  values = np.array(list(scores), np.float64)
  if not values.size:
    raise ValueError("there are no scores; give one for each game.")
  if not np.isfinite(values).all():
    raise ValueError(f"one of the scores {values} is not finite; all must be.")
  return values
