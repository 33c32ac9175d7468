"""Compares the agents of runs: returns, curves and probabilities of improvement.

By the definitions of Agarwal et al. (2021), "Deep reinforcement learning at the edge of
the statistical precipice", as in rliable: interquartile means and probabilities of
improvement, with stratified bootstrap intervals.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.experiments import config
from explorax.experiments.recording import curves as curves_lib
from explorax.experiments.recording import drawing, statistics, summary
from explorax.experiments.reports import page as page_lib
from explorax.experiments.reports import runs as runs_lib

# Evaluations are at the same time if the ratio of their steps is closer to 1.
_SAME = 0.9

_ABOUT = f"""The return at the end is the mean of a run's last evaluation, if all runs
of the environment have one at the same step; else the end of its curve of training
episodes, where the shortest run ends. The tables have interquartile means over seeds,
which leave out the lowest and the highest quarter, and 95 % intervals: percentiles of
{statistics.NUM_RESAMPLES:,} bootstrap draws of the seeds, which are too narrow for few
seeds. Curves are returns of evaluations, if all runs of the environment have several;
else of training episodes, smoothed over a tenth of the run's episodes, and over
{curves_lib.WINDOW} at most: interquartile means over seeds with 95 % bands, or each of
{drawing.FEW} seeds or fewer as a thin line."""
_IMPROVEMENT = """P(X > Y) is how likely a run of X is better than a run of Y, a tie
counted as one half: the mean over the environments in which both were run."""


class Group(NamedTuple):
  """The runs of an agent in an environment, one for each seed."""

  curves: np.ndarray  # Returns `[S, N]` at the environment's steps.
  scores: np.ndarray  # `[S]`, the return at the end of each run.


class Comparison(NamedTuple):
  """The runs in an environment."""

  env: str
  steps: np.ndarray  # Environment steps `[N]` of the curves.
  end: str  # What the scores are, as `evaluations at step 50,000`.
  groups: Mapping[str, Group]  # Agent → its runs.


def compute(runs: Sequence[runs_lib.Run], labels: Sequence[str]) -> list[Comparison]:
  """Compares the runs in each environment.

  Args:
    runs: each with at least one episode of training.
    labels: the agent of each.
  """
  return [
    _compare(env, [x for x in zip(runs, labels, strict=True) if x[0].problem == env])
    for env in sorted({run.problem for run in runs})
  ]


def _compare(env: str, pairs: Sequence[tuple[runs_lib.Run, str]]) -> Comparison:
  """Compares the runs in an environment, each with its agent."""
  runs = [run for run, _ in pairs]
  evaluated = _at_the_same_time([run.evaluations for run in runs])
  curves = [(run.env_steps, curves_lib.smooth(run.returns)) for run in runs]
  if evaluated is not None and all(len(run.evaluations) > 1 for run in runs):
    curves = [(steps, x) for steps, x in (np.array(x.evaluations).T for x in runs)]
  steps, values = curves_lib.on_grid(curves)
  scores, end = values[:, -1], f"training at step {int(steps[-1]):,}"
  if evaluated is not None:
    scores, end = evaluated[1], f"evaluations at step {evaluated[0]:,}"
  groups = {}
  for agent in dict.fromkeys(label for _, label in pairs):
    rows = [i for i, (_, label) in enumerate(pairs) if label == agent]
    groups[agent] = Group(values[rows], scores[rows])
  return Comparison(env, steps, end, groups)


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


def add_to(
  page: page_lib.Page, comparisons: Sequence[Comparison], agents: Sequence[str]
) -> None:
  """Adds the sections of a comparison of these agents."""
  page.add("## Returns", _ABOUT)
  rows: list[page_lib.Row] = []
  for env, _, end, groups in comparisons:
    columns: dict[str, Any] = {"environment": env, "of": end}
    columns["seeds"] = {agent: str(len(x.scores)) for agent, x in groups.items()}
    scores = {
      agent: statistics.stratified([x.scores], statistics.interquartile_mean)
      for agent, x in groups.items()
    }
    rows += page_lib.estimates(scores, "return", columns, summary.number)
  page.add_table("Returns at the end of runs", rows, is_shown=True)
  trimmed_mean = functools.partial(scipy.stats.trim_mean, proportiontocut=0.25)
  for env, steps, _, groups in comparisons:
    curves = {agent: (steps, x.curves) for agent, x in groups.items()}
    page.add_picture(
      f"return_{config.safe_name(env)}",
      f"{env}: return against environment steps.",
      functools.partial(
        page_lib.curves, env, curves, agents, ylabel="return", statistic=trimmed_mean
      ),
    )
  if rows := _improvement_rows(comparisons, agents):
    page.add("## Probability of improvement", _IMPROVEMENT)
    page.add_table("Pairs of agents, the better one first", rows)


def _improvement_rows(
  comparisons: Sequence[Comparison], agents: Sequence[str]
) -> list[page_lib.Row]:
  rows: list[page_lib.Row] = []
  for x, y in itertools.combinations(agents, 2):
    common = [groups for *_, groups in comparisons if {x, y} <= {*groups}]
    if not common:
      continue
    tasks = [groups[agent].scores for agent in (x, y) for groups in common]
    better = statistics.stratified(tasks, statistics.probability_of_improvement)
    if better.value < 0.5:
      x, y = y, x
      better = statistics.Interval(1 - better.value, 1 - better.high, 1 - better.low)
    value, interval = page_lib.cells(better)
    names = {"X": f"`{x}`", "Y": f"`{y}`"}
    counts = {"of": summary.count(len(common), "environment")}
    rows.append({**names, **counts, "P(X > Y)": value, "95 % interval": interval})
  return rows
