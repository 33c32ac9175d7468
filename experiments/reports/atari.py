"""Atari-57's part of a report: human-normalised scores over games.

Dabney et al. (2021), figures 4 and 9, and tables 1, 5 and 6, with the aggregates of
Agarwal et al. (2021) beside theirs. A score is the return at the end of a run's curve
(`compare`). Intervals are bootstrapped, stratified by game.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from explorax import notation
from explorax.environments import atari57
from explorax.experiments import errors
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import compare, page, runs

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
_SAME_GAME = ("sticky", "noops", "max_frames")  # Of a profile: what the game is.

_SOURCES = "; ".join(atari57.SOURCES.values())
_ABOUT = f"""A human-normalised score is 0 for random play and 1 for a human, whose
scores are those of van Hasselt et al. (2016). The human gap (Dabney et al., 2021) is
1 − the mean over games of min(1, score); the optimality gap limits each seed's score
to 1 in the same way. Lower gaps are better. Published: {_SOURCES}. Their frames,
seeds and protocols differ."""


@dataclasses.dataclass(frozen=True)
class Atari:
  """The scores of agents in games of Atari-57.

  Attributes:
    steps: game → the environment steps `[N]` of its curves.
    curves: agent → game → human-normalised `[S, N]`, each with the run's score at its
      end.
    remarks: what a reader has to know, in sentences.
  """

  steps: Mapping[str, np.ndarray]
  curves: Mapping[str, Mapping[str, np.ndarray]]
  remarks: Sequence[str]

  def over_games(
    self, agent: str, aggregate: str, games: Sequence[str] | None = None
  ) -> statistics.Interval:
    """An aggregate of an agent's scores in its games, or in some of them."""
    chosen = [*self.curves[agent]] if games is None else games
    tasks = [self.curves[agent][game][:, -1] for game in chosen]
    return statistics.stratified(tasks, AGGREGATES[aggregate])


def compute(
  found: compare.Comparison, all_runs: Sequence[runs.Run], baseline: str | None
) -> Atari | None:
  """The scores of the games of Atari-57; None if there are none.

  Args:
    found: the comparison of the runs.
    all_runs: the runs.
    baseline: an agent that others are compared with, which must exist.

  Raises:
    SetUpError: if there is no such agent.
  """
  atari = [env for env in found.steps if env.startswith("atari:")]
  names = {env: atari57.find(env.removeprefix("atari:")) for env in atari}
  curves: dict[str, dict[str, np.ndarray]] = {}
  for env, game in names.items():
    for agent, group in found.of(env).items():
      of_agent = curves.setdefault(agent, {})
      if game is not None:
        ends = np.concatenate([group.curves[:, :-1], group.scores[:, None]], axis=1)
        of_agent[game] = atari57.human_normalised_score(game, ends)
  if baseline is not None and baseline not in curves:
    raise errors.SetUpError(
      f"--baseline={baseline} is no agent of these runs on Atari."
      f"{notation.nearest(baseline, [*curves])}"
    )
  curves = {agent: of_games for agent, of_games in curves.items() if of_games}
  if not curves:
    return None
  remarks = [
    f"{env} has no human's score in the table of Atari-57, and counts in no "
    "human-normalised score."
    for env in atari
    if names[env] is None
  ]
  for field in _SAME_GAME:
    values = {x.settings[field] for x in all_runs if x.problem in atari}
    if len(values) > 1:
      remarks.append(
        f"The Atari games of these runs differ in {field}: {', '.join(sorted(values))}."
      )
  if len({tuple(of_games) for of_games in curves.values()}) > 1:
    remarks.append(
      "Agents have played different games of Atari-57: their numbers over games cannot "
      "be compared."
    )
  steps = {game: found.steps[env] for env, game in names.items() if game is not None}
  return Atari(steps, curves, remarks)


def add_to(report: page.Report, found: Atari, baseline: str | None) -> None:
  """Adds the section of Atari-57; without a baseline it is the first agent."""
  report.add("## Atari-57", _ABOUT)
  rows = [row for name in AGGREGATES for row in _rows(found, name)]
  report.add_table("Human-normalised scores over games", rows, is_shown=True)
  for name in ("median", "mean", "human gap"):
    report.add_picture(
      f"atari57_{name.replace(' ', '_')}",
      functools.partial(_draw_curve, found, name),
      f"Atari-57, {name} over games, with 95 % bands.",
    )
  report.add_table("Mean scores by difficulty of exploration", _group_rows(found))
  report.add_table("Published scores over the same games", _published_rows(found))
  report.add_table(
    f"Mean scores by game, and better than {baseline or next(iter(found.curves))} by",
    _game_rows(found, baseline or next(iter(found.curves))),
  )


def _rows(found: Atari, aggregate: str) -> list[dict[str, str]]:
  scores = {agent: found.over_games(agent, aggregate) for agent in found.curves}
  bounds = {agent: (x.low, x.high) for agent, x in scores.items()}
  if aggregate.endswith("gap"):
    bounds = {agent: (-high, -low) for agent, (low, high) in bounds.items()}
  is_same = len({tuple(of_games) for of_games in found.curves.values()}) == 1
  best = statistics.above_all(bounds) if is_same else ()
  rows = []
  for agent, score in scores.items():
    value, interval = page.cells(score, bold=agent in best)
    games = str(len(found.curves[agent]))
    names = {"number": aggregate, "agent": page.code(agent), "games": games}
    rows.append({**names, "score": value, "95 % interval": interval})
  return rows


def _group_rows(found: Atari) -> list[dict[str, str]]:
  """Each agent's mean over the games of a group, if it played all of them here."""
  rows = []
  for name, members in atari57.groups().items():
    games = [game for game in members if game in found.steps]
    label = name.removeprefix("atari57_").replace("_", " ")
    for agent, of_games in found.curves.items():
      if games and name != "atari57" and {*games} <= of_games.keys():
        value, interval = page.cells(found.over_games(agent, "mean", games))
        row = {"category": label, "games": str(len(games)), "agent": page.code(agent)}
        rows.append({**row, "score": value, "95 % interval": interval})
  return rows


def _published_rows(found: Atari) -> list[dict[str, str]]:
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


def _game_rows(found: Atari, baseline: str) -> list[dict[str, str]]:
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
      if agent != baseline and baseline in means:
        percent = atari57.relative_improvement(mean, means[baseline])
        row["better by"] = f"{percent:,.0f} %" if np.isfinite(percent) else "–"
      rows.append(row)
  return rows


def _draw_curve(found: Atari, aggregate: str) -> "mpl_figure.Figure":
  """An aggregate over games against environment steps."""
  first = max(steps[0] for steps in found.steps.values())
  last = max(first, min(steps[-1] for steps in found.steps.values()))
  grid = np.linspace(first, last, _NUM_POINTS)
  fig, axes = page.new(3.2, f"Atari-57: {aggregate}", found.curves)
  styles = drawing.styles([*found.curves])
  at = {g: np.searchsorted(x, grid, side="right") - 1 for g, x in found.steps.items()}
  for agent, of_games in found.curves.items():
    points = [
      statistics.stratified(
        [curve[:, at[game][i]] for game, curve in of_games.items()],
        AGGREGATES[aggregate],
      )
      for i in range(_NUM_POINTS)
    ]
    curve = statistics.Interval(*np.array(points).T)
    drawing.band(axes, grid, curve, label=agent, style=styles[agent])
  axes.set_xlabel("environment steps")
  axes.set_ylabel(f"{aggregate}, human-normalised")
  drawing.shorten_numbers(axes.xaxis)
  axes.grid(alpha=0.3)
  page.add_legend(fig, list(axes.lines), found.curves)
  return fig
