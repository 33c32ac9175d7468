"""Compares the agents of runs: returns, curves and probabilities of improvement.

By the definitions of Agarwal et al. (2021), "Deep reinforcement learning at the edge of
the statistical precipice", as in rliable: interquartile means and probabilities of
improvement, with stratified bootstrap intervals. A run's curve is its evaluations, if
all runs of its environment have several (or one, and some no training episode), else
its smoothed returns of training episodes. Its score is its last evaluation, if all runs
of the environment have one at the same time, else the curve's end, where the shortest
curve of the environment ends.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.experiments.recording import curves as curves_lib
from explorax.experiments.recording import drawing, statistics, summary
from explorax.experiments.reports import page
from explorax.experiments.reports import runs as runs_lib

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

# A run below this share of the longest one of its environment is short, and evaluations
# are at the same time if their steps are closer.
_UNEQUAL = 0.9

_ABOUT = f"""The return at the end is the mean of a run's last evaluation (of the
greedy policy, unless an agent has another one for it), if all runs of the
environment have one at the same step; else the end of its curve of training
episodes, where the shortest run ends. The tables have interquartile means over
seeds, which leave out the lowest and the highest quarter, and 95 % intervals:
percentiles of {statistics.NUM_RESAMPLES:,} bootstrap draws of the seeds, which are
too narrow for few seeds. Bold: the best, if its interval lies above all others."""
_CURVES = f"""The mean return of evaluations, if all runs of the environment have
several; else the return of training episodes, smoothed over a tenth of the run's
episodes, and over {curves_lib.WINDOW} at most. An Atari game is one environment
whatever its preprocessing. Lines are interquartile means over seeds, bands are 95 %
intervals; of {drawing.FEW} seeds or fewer each is a thin line instead."""
_IMPROVEMENT = """P(X > Y) is how likely a run of X is better than a run of Y, a tie
counted as one half: the mean over the environments in which both were run. An
interval that contains 0.5 leaves open which of them is better."""
_NORMALISED = """In each environment, 0 is the lowest and 1 the highest return at the
end of a run of this report: the interquartile mean over all environments and seeds,
of the agents that were run in all environments."""


@dataclasses.dataclass(frozen=True)
class Group:
  """The runs of an agent in an environment, one for each seed.

  Attributes:
    curves: returns `[S, N]` at the environment's steps.
    scores: `[S]`, the score of each run.
    score: the interquartile mean of these over seeds. The interval is NaN for a single
      seed.
  """

  curves: np.ndarray
  scores: np.ndarray
  score: statistics.Interval


@dataclasses.dataclass
class Comparison:
  """The comparison of agents.

  Attributes:
    agents: their names, with the settings in which they differ.
    steps: environment → the environment steps `[N]` of its curves.
    ends: environment → what its scores are, as `of evaluations at step 50,000`.
    groups: (agent, environment) → its runs.
    remarks: what a reader has to know, in sentences.
  """

  agents: list[str]
  steps: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
  ends: dict[str, str] = dataclasses.field(default_factory=dict)
  groups: dict[tuple[str, str], Group] = dataclasses.field(default_factory=dict)
  remarks: list[str] = dataclasses.field(default_factory=list)

  def of(self, env: str) -> dict[str, Group]:
    """Agent → its runs in an environment."""
    return {
      agent: self.groups[agent, env]
      for agent in self.agents
      if (agent, env) in self.groups
    }


def compute(runs: Sequence[runs_lib.Run], labels: Sequence[str]) -> Comparison:
  """Compares runs.

  Args:
    runs: each with at least one episode (`has_returns`).
    labels: the agent of each.
  """
  found = Comparison(list(dict.fromkeys(labels)))
  for env in sorted({run.problem for run in runs}):
    pairs = [x for x in zip(labels, runs, strict=True) if x[1].problem == env]
    _compare(found, env, sorted(pairs, key=lambda x: x[1].seed))
  if two := sorted(
    {a for (a, _), group in found.groups.items() if len(group.scores) == 2}
  ):
    found.remarks.append(f"Intervals of two seeds say little: {', '.join(two)}.")
  return found


def _compare(
  found: Comparison, env: str, pairs: Sequence[tuple[str, runs_lib.Run]]
) -> None:
  """Adds an environment with its runs, each with its agent."""
  if _at_the_same_time([run.evaluations() for _, run in pairs]) is None:
    found.remarks += [
      f"{runs_lib.relative(run.path)} is left out: no episode of training has ended, "
      f"and not all runs on {env} have an evaluation at the same step."
      for _, run in pairs
      if not len(run.returns)
    ]
    pairs = [x for x in pairs if len(x[1].returns)]
  if not pairs:
    return
  runs = [run for _, run in pairs]
  # bsuite has scores of its own, and is compared by training episodes here.
  evaluations = [[] if env.startswith("bsuite:") else x.evaluations() for x in runs]
  curves: np.ndarray
  found.steps[env], curves = curves_lib.on_grid(_curves(runs, evaluations))
  scores, end, what = curves[:, -1], int(found.steps[env][-1]), "training"
  if (evaluated := _at_the_same_time(evaluations)) is not None:
    (end, scores), what = evaluated, "evaluations"
  elif any(evaluations):
    found.remarks.append(
      f"The runs on {env} are compared by returns of training, because not all of "
      "them have an evaluation at the same step."
    )
  found.ends[env] = f"of {what} at step {end:,}"
  ends = [run.num_steps for run in runs]
  if min(ends) < _UNEQUAL * max(ends):
    shortest = runs_lib.relative(runs[int(np.argmin(ends))].path)
    found.remarks.append(
      f"The runs on {env} are compared at step {min(ends):,}, where the shortest "
      f"({shortest}) ends; the longest has {max(ends):,} steps."
    )
  for agent in found.agents:
    rows = [i for i, (label, _) in enumerate(pairs) if label == agent]
    if rows:
      score = statistics.stratified([scores[rows]], statistics.interquartile_mean)
      found.groups[agent, env] = Group(curves[rows], scores[rows], score)


def _curves(
  runs: Sequence[runs_lib.Run], evaluations: Sequence[Sequence[tuple[int, float]]]
) -> list[tuple[np.ndarray, np.ndarray]]:
  """The environment steps `[E]` and values `[E]` of each run's curve."""
  are_needed = not all(len(run.returns) for run in runs)
  are_several = min(map(len, evaluations)) > 1
  if are_needed or (are_several and _at_the_same_time(evaluations) is not None):
    return [(steps, values) for steps, values in (np.array(x).T for x in evaluations)]
  return [(run.env_steps, curves_lib.smooth(run.returns)) for run in runs]


def _at_the_same_time(
  evaluations: Sequence[Sequence[tuple[int, float]]],
) -> tuple[int, np.ndarray] | None:
  """The step where the first run's evaluations end, and each run's value next to it.

  None if a run has no evaluation at about that step.
  """
  if not all(evaluations):
    return None
  end = min(x[-1][0] for x in evaluations)
  nearest = [min(x, key=lambda pair: abs(pair[0] - end)) for x in evaluations]
  steps, values = np.array(nearest).T
  is_same = (steps >= _UNEQUAL * end) & (steps * _UNEQUAL <= end)
  return (end, values) if is_same.all() else None


def add_to(report: page.Report, found: Comparison, drawn: Sequence[str]) -> None:
  """Adds the sections of a comparison.

  Args:
    report: to add to.
    found: the comparison.
    drawn: the environments whose curves are drawn, and whose returns are printed.
  """
  report.add("## Returns", _ABOUT)
  for env in found.steps:
    rows = _return_rows(found, env)
    title = f"{env}, return {found.ends[env]} (interquartile mean over seeds)"
    report.add_table(title, rows, is_shown=env in drawn)
  if drawn:
    report.add("## Learning curves", _CURVES)
  for env in drawn:
    report.add_picture(
      "return_" + runs_lib.file_name(env),
      functools.partial(_draw_curves, found, env),
      f"{env}: return against environment steps, interquartile means over seeds.",
    )
  report.add("## Probability of improvement", _IMPROVEMENT)
  if rows := _improvement_rows(found):
    report.add_table("Pairs of agents, the better one first", rows)
  else:
    report.add("No two agents were run in the same environment.")
  if len(found.steps) > 1 and (rows := _normalised_rows(found)):
    report.add("## All environments together", _NORMALISED)
    report.add_table("Normalised returns", rows)


def _return_rows(found: Comparison, env: str) -> list[dict[str, str]]:
  scores = {agent: group.score for agent, group in found.of(env).items()}
  best = statistics.above_all({agent: (x.low, x.high) for agent, x in scores.items()})
  rows = []
  for agent, score in scores.items():
    spec = _spec(float(score.value))
    value, interval = page.cells(score, spec, bold=agent in best)
    seeds = str(len(found.groups[agent, env].scores))
    names = {"agent": page.code(agent), "seeds": seeds}
    rows.append({**names, "return": value, "95 % interval": interval})
  return rows


def _spec(value: float) -> str:
  """The format of about four digits: `475.2`, `12,345`, `0.004`."""
  size = math.floor(math.log10(abs(value))) if value else 0
  return ".3g" if size < -1 else f",.{max(0, min(3, 3 - size))}f"


def _draw_curves(found: Comparison, env: str) -> "mpl_figure.Figure":
  groups = found.of(env)
  fig, axes = page.new(3.2, env, groups)
  lines, styles = [], drawing.styles(found.agents)
  for agent, group in groups.items():
    first = len(axes.lines)
    drawing.seeds(
      axes,
      found.steps[env],
      group.curves,
      label=agent,
      style=styles[agent],
      statistic=functools.partial(scipy.stats.trim_mean, proportiontocut=0.25),
    )
    lines.append(axes.lines[first])
  axes.set(xlabel="environment steps", ylabel="return")
  drawing.shorten_numbers(axes.xaxis)
  axes.grid(alpha=0.3)
  page.add_legend(fig, lines, groups)
  return fig


def _improvement_rows(found: Comparison) -> list[dict[str, str]]:
  rows = []
  for i, first in enumerate(found.agents):
    for second in found.agents[i + 1 :]:
      common = [env for env in found.steps if {first, second} <= found.of(env).keys()]
      if not common:
        continue
      tasks = [found.groups[a, env].scores for a in (first, second) for env in common]
      better = statistics.stratified(tasks, statistics.probability_of_improvement)
      x, y = first, second
      if better.value < 0.5:
        x, y = second, first
        better = statistics.Interval(1 - better.value, 1 - better.high, 1 - better.low)
      value, interval = page.cells(better)
      counts = summary.count(len(common), "environment")
      names = {"X": page.code(x), "Y": page.code(y), "of": counts}
      rows.append({**names, "P(X > Y)": value, "95 % interval": interval})
  return rows


def _normalised_rows(found: Comparison) -> list[dict[str, str]]:
  scales = {}
  for env in found.steps:
    scores = np.concatenate([group.scores for group in found.of(env).values()])
    scales[env] = scores.min(), max(np.ptp(scores), np.finfo(np.float64).tiny)
  rows = []
  for agent in found.agents:
    if all((agent, env) in found.groups for env in scales):
      tasks = [
        (found.groups[agent, env].scores - low) / spread
        for env, (low, spread) in scales.items()
      ]
      score = statistics.stratified(tasks, statistics.interquartile_mean)
      value, interval = page.cells(score)
      row = {"normalised return": value, "95 % interval": interval}
      rows.append({"agent": page.code(agent), **row})
  return rows
