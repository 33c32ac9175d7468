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
import itertools
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

_SAME = (
  0.9  # Evaluations are at the same time if the ratio of their steps is closer to 1.
)

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
  comparison = Comparison(list(dict.fromkeys(labels)))
  by_seed = sorted(zip(labels, runs, strict=True), key=lambda pair: pair[1].seed)
  for env in sorted({run.problem for run in runs}):
    _compare(comparison, env, [pair for pair in by_seed if pair[1].problem == env])
  return comparison


def _compare(
  comparison: Comparison, env: str, pairs: Sequence[tuple[str, runs_lib.Run]]
) -> None:
  """Adds an environment with its runs, each with its agent."""
  if _at_the_same_time([run.evaluations for _, run in pairs]) is None:
    comparison.remarks += [
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
  evaluations = [[] if env.startswith("bsuite:") else x.evaluations for x in runs]
  curves: np.ndarray
  steps, curves = curves_lib.on_grid(_curves(runs, evaluations))
  scores, end, what = curves[:, -1], int(steps[-1]), "training"
  if (evaluated := _at_the_same_time(evaluations)) is not None:
    (end, scores), what = evaluated, "evaluations"
  comparison.steps[env], comparison.ends[env] = steps, f"of {what} at step {end:,}"
  for agent in comparison.agents:
    rows = [i for i, (label, _) in enumerate(pairs) if label == agent]
    if rows:
      score = statistics.stratified([scores[rows]], statistics.interquartile_mean)
      comparison.groups[agent, env] = Group(curves[rows], scores[rows], score)


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
  is_same = (steps >= _SAME * end) & (steps * _SAME <= end)
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
    groups = found.of(env)
    seeds = {agent: str(len(group.scores)) for agent, group in groups.items()}
    scores = {agent: group.score for agent, group in groups.items()}
    title = f"{env}, return {found.ends[env]} (interquartile mean over seeds)"
    rows = page.estimates(scores, "return", {"seeds": seeds}, None)
    report.add_table(title, rows, is_shown=env in drawn)
  if drawn:
    report.add("## Learning curves", _CURVES)
  for env in drawn:
    caption = (
      f"{env}: return against environment steps, interquartile means over seeds."
    )
    name = "return_" + runs_lib.file_name(env)
    report.add_picture(name, _draw_curves, caption, found, env)
  report.add("## Probability of improvement", _IMPROVEMENT)
  if rows := _improvement_rows(found):
    report.add_table("Pairs of agents, the better one first", rows)
  else:
    report.add("No two agents were run in the same environment.")
  if len(found.steps) > 1 and (rows := _normalised_rows(found)):
    report.add("## All environments together", _NORMALISED)
    report.add_table("Normalised returns", rows)


def _draw_curves(found: Comparison, env: str) -> "mpl_figure.Figure":
  lines = {agent: (found.steps[env], x.curves) for agent, x in found.of(env).items()}
  fig, _ = page.curves(
    env,
    lines,
    found.agents,
    xlabel="environment steps",
    ylabel="return",
    statistic=functools.partial(scipy.stats.trim_mean, proportiontocut=0.25),
  )
  return fig


def _improvement_rows(found: Comparison) -> list[page.Row]:
  rows = []
  for x, y in itertools.combinations(found.agents, 2):
    common = [env for env in found.steps if {x, y} <= found.of(env).keys()]
    if not common:
      continue
    tasks = [found.groups[agent, env].scores for agent in (x, y) for env in common]
    better = statistics.stratified(tasks, statistics.probability_of_improvement)
    if better.value < 0.5:
      x, y = y, x
      better = statistics.Interval(1 - better.value, 1 - better.high, 1 - better.low)
    value, interval = page.cells(better)
    names = {"X": page.code(x), "Y": page.code(y)}
    counts = {"of": summary.count(len(common), "environment")}
    rows.append({**names, **counts, "P(X > Y)": value, "95 % interval": interval})
  return rows


def _normalised_rows(found: Comparison) -> list[page.Row]:
  scales = {}
  for env in found.steps:
    scores = np.concatenate([group.scores for group in found.of(env).values()])
    scales[env] = scores.min(), max(np.ptp(scores), np.finfo(np.float64).tiny)
  normalised = {}
  for agent in found.agents:
    if all((agent, env) in found.groups for env in scales):
      tasks = [
        (found.groups[agent, env].scores - low) / spread
        for env, (low, spread) in scales.items()
      ]
      normalised[agent] = statistics.stratified(tasks, statistics.interquartile_mean)
  return page.estimates(normalised, "normalised return", {}, are_comparable=False)
