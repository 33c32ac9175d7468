"""Atari-57's part of a report: human-normalised scores over games.

Dabney et al. (2021), figures 4 and 9, and tables 1, 5 and 6, with the aggregates of
Agarwal et al. (2021) beside theirs. A score is the return at the end of a run's curve
(`compare`). Intervals are bootstrapped, stratified by game.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from explorax import notation
from explorax.environments import atari57
from explorax.experiments import errors
from explorax.experiments.recording import statistics
from explorax.experiments.reports import compare, page

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

# Of human-normalised scores over games.
AGGREGATES: Mapping[str, statistics.OfTasks] = {
  "median": statistics.median_of_tasks,
  "mean": statistics.mean_of_tasks,
  "interquartile mean": statistics.interquartile_mean,
  "optimality gap": statistics.optimality_gap,
  "human gap": statistics.human_gap,
}
_NUM_POINTS = 40  # Of the curves over all games.

_SOURCES = "; ".join(atari57.SOURCES.values())
_ABOUT = f"""A human-normalised score is 0 for random play and 1 for a human, whose
scores are those of van Hasselt et al. (2016). The human gap (Dabney et al., 2021) is
1 − the mean over games of min(1, score); the optimality gap limits each seed's score
to 1 in the same way. Lower gaps are better. Numbers over different games, or over games
with other preprocessing that is in an agent's name, cannot be compared. Published:
{_SOURCES}. Their frames, seeds and protocols differ."""


@dataclasses.dataclass(frozen=True)
class Atari:
  """The scores of agents in games of Atari-57.

  Attributes:
    steps: game → the environment steps `[N]` of its curves.
    curves: agent → game → human-normalised `[S, N]`, each with the run's score at its
      end.
    baseline: the agent that others are compared with.
  """

  steps: Mapping[str, np.ndarray]
  curves: Mapping[str, Mapping[str, np.ndarray]]
  baseline: str

  def over_games(
    self, agent: str, aggregate: str, games: Sequence[str] | None = None
  ) -> statistics.Interval:
    """An aggregate of an agent's scores in its games, or in some of them."""
    chosen = [*self.curves[agent]] if games is None else games
    tasks = [self.curves[agent][game][:, -1] for game in chosen]
    return statistics.stratified(tasks, AGGREGATES[aggregate])


def compute(found: compare.Comparison, baseline: str | None) -> Atari | None:
  """The scores of the games of Atari-57; None if there are none.

  Args:
    found: the comparison of the runs.
    baseline: an agent that others are compared with; None: the first.

  Raises:
    SetUpError: if there is no such agent.
  """
  steps: dict[str, np.ndarray] = {}
  curves: dict[str, dict[str, np.ndarray]] = {}
  for env in found.steps:
    kind, _, name = env.partition(":")
    game = atari57.find(name) if kind == "atari" else None
    if game is None:
      continue
    steps[game] = found.steps[env]
    for agent, group in found.of(env).items():
      ends = np.concatenate([group.curves[:, :-1], group.scores[:, None]], axis=1)
      scores = atari57.human_normalised_score(game, ends)
      curves.setdefault(agent, {})[game] = scores
  if baseline is not None and baseline not in curves:
    raise errors.SetUpError(
      f"--baseline={baseline} is no agent of these runs on Atari."
      f"{notation.nearest(baseline, [*curves])}"
    )
  return Atari(steps, curves, baseline or next(iter(curves))) if curves else None


def add_to(report: page.Report, found: Atari) -> None:
  """Adds the section of Atari-57."""
  report.add("## Atari-57", _ABOUT)
  rows = [row for name in AGGREGATES for row in _rows(found, name)]
  report.add_table("Human-normalised scores over games", rows, is_shown=True)
  for name in ("median", "mean", "human gap"):
    caption = f"Atari-57, {name} over games, with 95 % bands."
    file = f"atari57_{name.replace(' ', '_')}"
    report.add_picture(file, _draw_curve, caption, found, name)
  report.add_table("Mean scores by difficulty of exploration", _group_rows(found))
  report.add_table("Published scores over the same games", _published_rows(found))
  report.add_table(
    f"Mean scores by game, and better than {found.baseline} by", _game_rows(found)
  )


def _rows(found: Atari, aggregate: str) -> list[page.Row]:
  return page.estimates(
    {agent: found.over_games(agent, aggregate) for agent in found.curves},
    "score",
    {"number": aggregate, "games": {a: str(len(x)) for a, x in found.curves.items()}},
    lower_is_better=aggregate.endswith("gap"),
    are_comparable=len({tuple(x) for x in found.curves.values()}) == 1,
  )


def _group_rows(found: Atari) -> list[page.Row]:
  """Each agent's mean over the games of a group, if it played all of them here."""
  rows = []
  for name, members in atari57.groups().items():
    games = [game for game in members if game in found.steps]
    if not games or name == "atari57":
      continue
    label = name.removeprefix("atari57_").replace("_", " ")
    scores = {
      agent: found.over_games(agent, "mean", games)
      for agent, of_games in found.curves.items()
      if {*games} <= of_games.keys()
    }
    columns = {"category": label, "games": str(len(games))}
    rows += page.estimates(scores, "score", columns, are_comparable=False)
  return rows


def _published_rows(found: Atari) -> list[page.Row]:
  rows = []
  for paper, source in atari57.SOURCES.items():
    for name, scores in atari57.published(paper).items():
      games = [game for game in found.steps if game in scores]
      tasks = [
        np.array([atari57.human_normalised_score(game, scores[game])]) for game in games
      ]
      if games:
        row = {"algorithm": name, "of": source.partition(":")[0]}
        numbers = {x: f"{float(f(tasks)):.2f}" for x, f in AGGREGATES.items()}
        rows.append({**row, "games": str(len(games)), **numbers})
  return rows


def _game_rows(found: Atari) -> list[page.Row]:
  """Means over seeds, and 100 · (score − baseline) / |baseline| in percent."""
  rows = []
  for game in found.steps:
    means = {
      agent: float(np.mean(of_games[game][:, -1]))
      for agent, of_games in found.curves.items()
      if game in of_games
    }
    for agent, mean in means.items():
      row = {"game": game, "agent": page.code(agent), "score": f"{mean:.2f}"}
      if agent != found.baseline and found.baseline in means:
        percent = atari57.relative_improvement(mean, means[found.baseline])
        row["better by"] = f"{percent:,.0f} %" if np.isfinite(percent) else "–"
      rows.append(row)
  return rows


def _draw_curve(found: Atari, aggregate: str) -> "mpl_figure.Figure":
  """An aggregate over games against environment steps."""
  first = max(steps[0] for steps in found.steps.values())
  last = max(first, min(steps[-1] for steps in found.steps.values()))
  grid = np.linspace(first, last, _NUM_POINTS)
  at = {g: np.searchsorted(x, grid, side="right") - 1 for g, x in found.steps.items()}
  lines = {}
  for agent, of_games in found.curves.items():
    points = [
      statistics.stratified(
        [curve[:, at[game][i]] for game, curve in of_games.items()],
        AGGREGATES[aggregate],
      )
      for i in range(_NUM_POINTS)
    ]
    lines[agent] = grid, statistics.Interval(*np.array(points).T)
  fig, _ = page.curves(
    f"Atari-57: {aggregate}",
    lines,
    [*found.curves],
    xlabel="environment steps",
    ylabel=f"{aggregate}, human-normalised",
  )
  return fig
