"""Atari-57's part of a report: human-normalised scores over games and their drawings.

Dabney et al. (2021), figures 4, 9 and 16 to 18, and tables 1, 5 and 6, with the
aggregates of Agarwal et al. (2021) beside theirs. A score is a return on the curve of
its run (`comparison`): `final` is the curve's end, `average` its mean over training,
and `best` its maximum. Intervals are bootstrapped, stratified by game.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.environments import atari57
from explorax.experiments import errors
from explorax.experiments.recording import drawing, statistics, summary
from explorax.experiments.reports import cells as cells_lib
from explorax.experiments.reports import comparison, pictures, runs

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
_OF_BEST = ("median", "mean")  # Of table 6.
_NUM_POINTS = 40  # Of the curves over all games.
_LONGEST_BAR = 300  # Percent; longer ones are cut off.
_SAME_GAME = ("sticky", "noops", "max_frames")  # Of a profile: what the game is.

Curves = Mapping[tuple[str, str], np.ndarray]  # (agent, game) → `[S, N]`.


@dataclasses.dataclass(frozen=True)
class Atari:
  """The scores of agents in games of Atari-57.

  Attributes:
    agents: those that played one of the games.
    games: in snake case.
    steps: game → the environment steps `[N]` of its curves.
    returns: the curves, not normalised, each with the run's score at its end.
    baseline: the agent over which others improve.
    remarks: what a reader has to know, in sentences.
  """

  agents: Sequence[str]
  games: Sequence[str]
  steps: Mapping[str, np.ndarray]
  returns: Curves
  baseline: str
  remarks: Sequence[str]

  @functools.cached_property
  def normalised(self) -> Curves:
    """The curves as human-normalised scores."""
    return {
      (agent, game): atari57.human_normalised_score(game, curve)
      for (agent, game), curve in self.returns.items()
    }

  def games_of(self, agent: str) -> list[str]:
    return [game for game in self.games if (agent, game) in self.returns]


def compute(
  found: comparison.Comparison, all_runs: Sequence[runs.Run], baseline: str | None
) -> Atari | None:
  """The scores of the games of Atari-57; None if there are none.

  Args:
    found: the comparison of the runs.
    all_runs: the runs.
    baseline: an agent; None: the first.

  Raises:
    SetUpError: if there is no such agent.
  """
  atari = [env for env in found.envs if env.startswith("atari:")]
  names = {env: atari57.find(env.removeprefix("atari:")) for env in atari}
  envs = {game: env for env, game in names.items() if game is not None}
  agents = [a for a in found.agents if any((a, e) in found.groups for e in atari)]
  if baseline is not None and baseline not in agents:
    raise errors.SetUpError(
      f"--baseline={baseline} is no agent of these runs on Atari."
      f"{errors.nearest(baseline, agents)}"
    )
  if not envs:
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
  found_atari = Atari(
    agents,
    list(envs),
    {game: found.steps[env] for game, env in envs.items()},
    {
      (agent, game): _with_score(found.groups[agent, env])
      for agent in agents
      for game, env in envs.items()
      if (agent, env) in found.groups
    },
    agents[0] if baseline is None else baseline,
    remarks,
  )
  if len({tuple(found_atari.games_of(agent)) for agent in agents}) > 1:
    remarks.append(
      "Agents have played different games of Atari-57: their numbers over games cannot "
      "be compared."
    )
  return found_atari


def _with_score(group: comparison.Group) -> np.ndarray:
  return np.concatenate([group.curves[:, :-1], group.scores[:, None]], axis=1)


def _final(curve: np.ndarray) -> np.ndarray:
  return curve[:, -1]


def _average(curve: np.ndarray) -> np.ndarray:
  return np.mean(curve, axis=1)


def _best(curve: np.ndarray) -> np.ndarray:
  return np.max(curve, axis=1)


def _over_games(
  found: Atari,
  agent: str,
  aggregate: str,
  score: Callable[[np.ndarray], np.ndarray] = _final,
  games: Iterable[str] | None = None,
) -> statistics.Interval:
  """An aggregate of an agent's scores `[S]` in its games, or in some of them."""
  chosen = found.games_of(agent) if games is None else games
  tasks = [score(found.normalised[agent, game]) for game in chosen]
  return statistics.stratified(tasks, AGGREGATES[aggregate])


def cells(found: Atari, aggregate: str) -> dict[str, cells_lib.Cell]:
  """Agent → an aggregate of its final scores."""
  each = {agent: _over_games(found, agent, aggregate) for agent in found.agents}
  sign = -1 if aggregate.endswith("gap") else 1
  bounds = {
    agent: tuple(sorted((sign * float(x.low), sign * float(x.high))))
    for agent, x in each.items()
  }
  same = len({tuple(found.games_of(agent)) for agent in found.agents}) == 1
  best = statistics.above_all(bounds) if same else ()  # type: ignore[arg-type]
  games = {agent: len(found.games_of(agent)) for agent in found.agents}
  return {
    agent: cells_lib.cell(x, summary.count(games[agent], "game"), bold=agent in best)
    for agent, x in each.items()
  }


def context(found: Atari) -> dict[str, Any]:
  """The variables of the template."""
  by_aggregate = {name: cells(found, name) for name in AGGREGATES}
  best = {
    agent: [cells_lib.cell(_over_games(found, agent, x, _best)) for x in _OF_BEST]
    for agent in found.agents
  }
  published = {
    (name, source.partition(":")[0]): scores
    for paper, source in atari57.SOURCES.items()
    for name, scores in atari57.published(paper).items()
  }
  return {
    "atari": found,
    "aggregates": list(AGGREGATES),
    "aggregate_rows": [
      (
        agent,
        len(found.games_of(agent)),
        [each[agent]._replace(remark="") for each in by_aggregate.values()],
        best[agent],
      )
      for agent in found.agents
    ],
    "published_rows": [
      (name, source, _published_cells(found, scores))
      for (name, source), scores in published.items()
      if any(game in scores for game in found.games)
    ],
    "published": [*published],
    "sources": list(atari57.SOURCES.values()),
    "group_rows": _group_rows(found),
    "game_rows": [
      (
        game,
        [f"{x:,.1f}" for x in atari57.references()[game]],
        [_return(found, agent, game) for agent in found.agents],
        [f"{x[game]:,.1f}" if game in x else "" for x in published.values()],
      )
      for game in found.games
    ],
  }


def _published_cells(
  found: Atari, scores: Mapping[str, float]
) -> tuple[int, list[cells_lib.Cell]]:
  """The number of the page's games with a published score, and their aggregates."""
  tasks = [
    np.array([atari57.human_normalised_score(game, scores[game])])
    for game in found.games
    if game in scores
  ]
  return len(tasks), [
    cells_lib.cell(statistics.stratified(tasks, aggregate))
    for aggregate in AGGREGATES.values()
  ]


def _group_rows(found: Atari) -> list[tuple[str, int, list[cells_lib.Cell | None]]]:
  """(group, its games here, each agent's mean over them), if it played them all."""
  rows = []
  for name, members in atari57.groups().items():
    games = [game for game in members if game in found.games]
    if games and name != "atari57":
      means = [
        cells_lib.cell(_over_games(found, agent, "mean", games=games))
        if all((agent, game) in found.returns for game in games)
        else None
        for agent in found.agents
      ]
      name = name.removeprefix("atari57_").replace("_", " ")
      rows.append((name, len(games), means))
  return rows


def _return(found: Atari, agent: str, game: str) -> cells_lib.Cell | None:
  """The mean return at the end over seeds, as papers print it."""
  if (agent, game) not in found.returns:
    return None
  tasks = [_final(found.returns[agent, game])]
  mean = statistics.stratified(tasks, statistics.mean_of_tasks)
  return cells_lib.cell(mean, form="{:,.1f}".format)


def draw(found: Atari) -> dict[str, list[pictures.Picture]]:
  """The drawings by section."""
  curves = [_summary_curve(found, name) for name in ("median", "mean", "human gap")]
  others = [agent for agent in found.agents if agent != found.baseline]
  bars = [
    _improvement(found, agent, *which)
    for agent in others
    for which in (("final", _final), ("average", _average))
    if {*found.games_of(agent)} & {*found.games_of(found.baseline)}
  ]
  return {"atari": curves, "atari_improvement": bars}


def _summary_curve(found: Atari, aggregate: str) -> pictures.Picture:
  """An aggregate over games against environment steps."""
  first = max(steps[0] for steps in found.steps.values())
  last = max(first, min(steps[-1] for steps in found.steps.values()))
  grid = np.linspace(first, last, _NUM_POINTS)
  fig, axes = pictures.new(3.2, f"Atari-57: {aggregate}", found.agents)
  ends, styles = [], drawing.styles(found.agents)
  for agent in found.agents:
    games = found.games_of(agent)
    at = {g: np.searchsorted(found.steps[g], grid, side="right") - 1 for g in games}
    points = [
      statistics.stratified(
        [found.normalised[agent, g][:, at[g][i]] for g in games], AGGREGATES[aggregate]
      )
      for i in range(_NUM_POINTS)
    ]
    curve = statistics.Interval(*np.array(points).T)
    drawing.band(axes, grid, curve, label=agent, style=styles[agent])
    ends.append(f"{agent} at {curve.value[-1]:.2f}")
  axes.set_xlabel("environment steps")
  axes.set_ylabel(f"{aggregate}, human-normalised")
  drawing.shorten_numbers(axes.xaxis)
  axes.grid(alpha=0.3)
  pictures.legend(fig, list(axes.lines), found.agents)
  return pictures.make(
    f"atari57_{aggregate.replace(' ', '_')}",
    fig,
    f"The {aggregate} over games of human-normalised scores against environment steps, "
    f"a line with a band for each agent. They end with {', '.join(ends)}.",
    f"Atari-57, {aggregate} over games, with 95 % bands.",
  )


def _improvement(
  found: Atari,
  agent: str,
  name: str,
  score: Callable[[np.ndarray], np.ndarray],
) -> pictures.Picture:
  """Bars of the relative improvement over the baseline by game."""
  games = [g for g in found.games_of(agent) if (found.baseline, g) in found.returns]
  scores, baseline = (
    {game: float(np.mean(score(found.returns[x, game]))) for game in games}
    for x in (agent, found.baseline)
  )
  improvements = atari57.relative_improvements(scores, baseline)
  better = sum(x > 0 for x in improvements.values())
  title = f"{agent} over {found.baseline}, {name}"
  return pictures.make(
    f"improvement_{name}_" + runs.file_name(agent),
    _bars(title, improvements),
    f"Bars of the relative improvement of {agent} over {found.baseline} in percent, by "
    f"game, the greatest first, of {name} scores. It is better in {better} of "
    f"{len(games)} games.",
    f"{title}: better in {better} of {len(games)} games. Bars are cut off at "
    f"±{_LONGEST_BAR} %, with the number beside them.",
  )


def _bars(title: str, improvements: Mapping[str, float]) -> "mpl_figure.Figure":
  values = np.array(list(improvements.values()))
  height = 1.0 + 0.15 * len(values)
  fig, ((axes,),) = drawing.new(width=pictures.WIDTH, height=height)
  fig.suptitle("\n".join(pictures.wrapped([title])), fontsize="medium")
  shown = np.clip(np.nan_to_num(values), -_LONGEST_BAR, _LONGEST_BAR)
  colors = [drawing.style(int(x < 0)).color for x in shown]
  rows = range(len(values))
  axes.barh(rows, shown, color=colors)
  for row, value, length in zip(rows, values, shown, strict=True):
    if abs(value) > _LONGEST_BAR:
      text = f"{value:,.0f} %" if np.isfinite(value) else "baseline is 0"
      side = "right" if length > 0 else "left"
      axes.text(length, row, f" {text} ", va="center", ha=side, fontsize=6, color="w")
  axes.set_yticks(rows, list(improvements), fontsize=7)
  axes.set_ylim(len(values) - 0.4, -0.6)
  axes.axvline(0, color="0.3", linewidth=0.8)
  axes.set(xlabel="relative improvement (%)")
  axes.grid(axis="x", alpha=0.3)
  return fig
