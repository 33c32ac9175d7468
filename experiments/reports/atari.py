"""Atari-57's part of a report: human-normalised scores over games.

The aggregates of Dabney et al. (2021), tables 1, 5 and 6 and figure 9, and those of
Agarwal et al. (2021). A score is the return at the end of a run (`compare`). Intervals
are bootstrapped, stratified by game.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax.environments import atari57
from explorax.experiments.recording import statistics
from explorax.experiments.reports import compare
from explorax.experiments.reports import page as page_lib

# Of human-normalised scores over games.
AGGREGATES: Mapping[str, statistics.OfTasks] = {
  "median": statistics.median_of_tasks,
  "mean": statistics.mean_of_tasks,
  "interquartile mean": statistics.interquartile_mean,
  "human gap": statistics.human_gap,
}

_ABOUT = """A human-normalised score is 0 for random play and 1 for a human, whose
scores are those of van Hasselt et al. (2016). The human gap (Dabney et al., 2021), of
which less is better, is 1 − the mean over games of min(1, score). Numbers over
different games, or over games with other preprocessing that is in an agent's name,
cannot be compared."""


def add_to(page: page_lib.Page, comparisons: Sequence[compare.Comparison]) -> None:
  """Adds the section of Atari-57 if there are runs in its games."""
  scores: dict[str, dict[str, np.ndarray]] = {}  # Agent → game → `[S]`.
  for comparison in comparisons:
    kind, _, name = comparison.env.partition(":")
    if kind == "atari" and (game := atari57.find(name)):
      for agent, group in comparison.groups.items():
        normalised = atari57.human_normalised_score(game, group.scores)
        scores.setdefault(agent, {})[game] = normalised
  if not scores:
    return
  page.add("## Atari-57", _ABOUT)
  games = {agent: str(len(of_games)) for agent, of_games in scores.items()}
  rows: list[page_lib.Row] = []
  for name, aggregate in AGGREGATES.items():
    over_games = {
      agent: statistics.stratified([*of_games.values()], aggregate)
      for agent, of_games in scores.items()
    }
    columns: dict[str, Any] = {"number": name, "games": games}
    rows += page_lib.estimates(over_games, "score", columns)
  page.add_table("Human-normalised scores over games", rows, is_shown=True)
  rows = []
  for game in dict.fromkeys(game for of_games in scores.values() for game in of_games):
    means = {
      agent: statistics.stratified([of_games[game]], statistics.mean_of_tasks)
      for agent, of_games in scores.items()
      if game in of_games
    }
    rows += page_lib.estimates(means, "score", {"game": game})
  page.add_table("Mean human-normalised scores by game", rows)
