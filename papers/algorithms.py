"""Scores of algorithms in games, compared with each other."""

from collections.abc import Iterable, Mapping

import numpy as np

from explorax.environments import atari57


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
    of_games: game → category; None: `atari57.categories()`. Games without one are left
      out.

  Returns:
    category → algorithm → games, and under `tied` those with more than one best.

  Source: Chen et al. 2017 (UCB exploration via Q-ensembles), table 4.
  """
  of_games = atari57.categories() if of_games is None else of_games
  z = inter_algorithm_scores(scores)
  counts: dict[str, dict[str, int]] = {}
  for game in next(iter(z.values())):
    if game in of_games:
      row = counts.setdefault(of_games[game], dict.fromkeys([*z, "tied"], 0))
      best = [name for name in z if z[name][game] == 1.0]
      row[best[0] if len(best) == 1 else "tied"] += 1
  return counts


def _finite(scores: Iterable[float]) -> np.ndarray:
  values = np.array(list(scores), np.float64)
  if not values.size:
    raise ValueError("there are no scores; give one for each game.")
  if not np.isfinite(values).all():
    raise ValueError(
      f"one of the scores is {values[~np.isfinite(values)][0]}; all must be finite."
    )
  return values
