"""Atari-57's part of a report: human-normalised scores over games.

Dabney et al. (2021), figures 4 and 9, and tables 1, 5 and 6, with the aggregates of
Agarwal et al. (2021) beside theirs. A score is the return at the end of a run's curve
(`compare`). Intervals are bootstrapped, stratified by game.
"""

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from explorax.environments import atari57
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import compare
from explorax.experiments.reports import page as page_lib

# Of human-normalised scores over games.
AGGREGATES: Mapping[str, statistics.OfTasks] = {
  "median": statistics.median_of_tasks,
  "mean": statistics.mean_of_tasks,
  "interquartile mean": statistics.interquartile_mean,
  "optimality gap": statistics.optimality_gap,
  "human gap": statistics.human_gap,
}
_DRAWN = ("median", "mean", "human gap")
_NUM_POINTS = 40  # Of the curves over all games.

_ABOUT = """A human-normalised score is 0 for random play and 1 for a human, whose
scores are those of van Hasselt et al. (2016). The human gap (Dabney et al., 2021) is
1 − the mean over games of min(1, score); the optimality gap limits each seed's score
to 1 in the same way. Lower gaps are better. Numbers over different games, or over
games with other preprocessing that is in an agent's name, cannot be compared."""

# Agent → game → human-normalised `[S, N]`, each with the run's score at its end.
Curves = Mapping[str, Mapping[str, np.ndarray]]


def compute(comparisons: Sequence[compare.Comparison]) -> Curves:
  """The scores of the runs in games of Atari-57."""
  curves: dict[str, dict[str, np.ndarray]] = {}
  for game, comparison in _games(comparisons).items():
    for agent, (returns, last) in comparison.groups.items():
      ends = np.concatenate([returns[:, :-1], last[:, None]], axis=1)
      scores = atari57.human_normalised_score(game, ends)
      curves.setdefault(agent, {})[game] = scores
  return curves


def _games(
  comparisons: Sequence[compare.Comparison],
) -> dict[str, compare.Comparison]:
  """The comparisons in games of Atari-57, by the game's name."""
  games = {}
  for comparison in comparisons:
    kind, _, name = comparison.env.partition(":")
    if kind == "atari" and (game := atari57.find(name)):
      games[game] = comparison
  return games


def add_to(page: page_lib.Page, comparisons: Sequence[compare.Comparison]) -> None:
  """Adds the section of Atari-57 if there are runs in its games."""
  curves = compute(comparisons)
  if not curves:
    return
  page.add("## Atari-57", _ABOUT)
  rows = [row for name in AGGREGATES for row in _rows(curves, name)]
  page.add_table("Human-normalised scores over games", rows, is_shown=True)
  steps = {game: x.steps for game, x in _games(comparisons).items()}
  for name in _DRAWN:
    caption = f"Atari-57, {name} over games, with 95 % bands."
    draw = functools.partial(_draw_curve, curves, steps, name)
    page.add_picture(f"atari57_{name.replace(' ', '_')}", caption, draw)
  rows = [row for game in steps for row in _game_rows(curves, game)]
  page.add_table("Mean human-normalised scores by game", rows)


def _rows(curves: Curves, aggregate: str) -> list[page_lib.Row]:
  scores = {
    agent: statistics.stratified(
      [x[:, -1] for x in of_games.values()], AGGREGATES[aggregate]
    )
    for agent, of_games in curves.items()
  }
  games = {agent: str(len(of_games)) for agent, of_games in curves.items()}
  return page_lib.estimates(scores, "score", {"number": aggregate, "games": games})


def _game_rows(curves: Curves, game: str) -> list[page_lib.Row]:
  scores = {
    agent: statistics.stratified([of_games[game][:, -1]], statistics.mean_of_tasks)
    for agent, of_games in curves.items()
    if game in of_games
  }
  return page_lib.estimates(scores, "score", {"game": game})


def _draw_curve(
  curves: Curves, steps: Mapping[str, np.ndarray], aggregate: str
) -> drawing.Figure:
  """An aggregate over games against environment steps."""
  first = max(x[0] for x in steps.values())
  last = max(first, min(x[-1] for x in steps.values()))
  grid = np.linspace(first, last, _NUM_POINTS)
  at = {g: np.searchsorted(x, grid, side="right") - 1 for g, x in steps.items()}
  lines = {}
  for agent, of_games in curves.items():
    points = [
      statistics.stratified(
        [curve[:, at[game][i]] for game, curve in of_games.items()],
        AGGREGATES[aggregate],
      )
      for i in range(_NUM_POINTS)
    ]
    lines[agent] = grid, statistics.Interval(*np.array(points).T)
  return page_lib.curves(
    f"Atari-57: {aggregate}",
    lines,
    [*curves],
    ylabel=f"{aggregate}, human-normalised",
  )
