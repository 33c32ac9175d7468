"""Compares the agents of runs: returns, curves and probabilities of improvement.

By the definitions of Agarwal et al. (2021), "Deep reinforcement learning at the edge of
the statistical precipice", as in rliable: interquartile means and probabilities of
improvement, with stratified bootstrap intervals. A run's curve is its smoothed returns
of training episodes; in an Atari game its evaluations, if all runs there have some. Its
score is the curve's end, where the shortest curve of its environment ends.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from explorax.experiments.recording import returns, statistics
from explorax.experiments.reports import runs as runs_lib

_UNEQUAL = 0.9  # A run below this share of the longest one of its environment is short.


@dataclasses.dataclass(frozen=True)
class Group:
  """The runs of an agent in an environment.

  Attributes:
    runs: one for each seed.
    curves: returns `[S, N]` at the environment's steps.
    score: the interquartile mean of the last of these over seeds. The interval is NaN
      for a single seed.
  """

  runs: Sequence[runs_lib.Run]
  curves: np.ndarray
  score: statistics.Interval

  @property
  def scores(self) -> np.ndarray:
    """`[S]`: the score of each run."""
    return self.curves[:, -1]


@dataclasses.dataclass(frozen=True)
class Improvement:
  """The probability that an agent's run has a higher score than another one's.

  Attributes:
    x: the agent with the better probability.
    y: the other one.
    envs: in which both were run.
    probability: the mean over these environments.
  """

  x: str
  y: str
  envs: Sequence[str]
  probability: statistics.Interval


@dataclasses.dataclass(frozen=True)
class Comparison:
  """The comparison of agents.

  Attributes:
    agents: their names, with the settings in which they differ.
    envs: the environments; an Atari game whatever its preprocessing.
    steps: environment → the environment steps `[N]` of its curves.
    groups: (agent, environment) → its runs.
    normalised: agent → the interquartile mean over all environments and seeds of scores
      between 0 and 1, the lowest and the highest of a run in the environment; of the
      agents that were run in all environments. Empty for a single environment.
    improvements: each pair of agents with a common environment.
    remarks: what a reader has to know, in sentences.
  """

  agents: Sequence[str]
  envs: Sequence[str]
  steps: Mapping[str, np.ndarray]
  groups: Mapping[tuple[str, str], Group]
  normalised: Mapping[str, statistics.Interval]
  improvements: Sequence[Improvement]
  remarks: Sequence[str]


def compute(runs: Sequence[runs_lib.Run], labels: Sequence[str]) -> Comparison:
  """Compares runs.

  Args:
    runs: each with at least one episode.
    labels: the agent of each.
  """
  agents, envs = list(dict.fromkeys(labels)), sorted({x.problem for x in runs})
  remarks: list[str] = []
  steps: dict[str, np.ndarray] = {}
  groups: dict[tuple[str, str], Group] = {}
  for env in envs:
    pairs = [x for x in zip(labels, runs, strict=True) if x[1].problem == env]
    pairs.sort(key=lambda x: x[1].seed)
    curves: np.ndarray
    steps[env], curves = returns.on_grid(_curves(env, [run for _, run in pairs]))
    remarks += _unequal(env, [run for _, run in pairs])
    for agent in agents:
      rows = [i for i, (label, _) in enumerate(pairs) if label == agent]
      if rows:
        chosen = curves[rows]
        score = interval([chosen[:, -1]], statistics.interquartile_mean)
        groups[agent, env] = Group([pairs[i][1] for i in rows], chosen, score)
  two = sorted({agent for (agent, _), g in groups.items() if len(g.runs) == 2})
  if two:
    remarks.append(f"Intervals of two seeds say little: {', '.join(two)}.")
  return Comparison(
    agents,
    envs,
    steps,
    groups,
    _normalised(agents, envs, groups),
    _improvements(agents, envs, groups),
    remarks,
  )


def _curves(
  env: str, runs: Sequence[runs_lib.Run]
) -> list[tuple[np.ndarray, np.ndarray]]:
  """The environment steps `[E]` and values `[E]` of each run's curve."""
  if env.startswith("atari:"):
    evaluations = [np.array(run.evaluations()) for run in runs]
    if all(map(len, evaluations)):
      return [(steps, values) for steps, values in (x.T for x in evaluations)]
  return [(run.env_steps, returns.smooth(run.returns)) for run in runs]


def interval(
  tasks: Sequence[np.ndarray], statistic: statistics.OfTasks
) -> statistics.Interval:
  """`statistics.stratified`, with NaN as the interval if a task has a single seed."""
  found = statistics.stratified(tasks, statistic)
  if any(len(x) == 1 for x in tasks):
    return found._replace(low=np.array(math.nan), high=np.array(math.nan))
  return found


def best(found: Comparison, env: str) -> list[str]:
  """The agent, if any, whose interval in the environment lies above all others."""
  each = {agent: g.score for (agent, e), g in found.groups.items() if e == env}
  return statistics.above_all({agent: (x.low, x.high) for agent, x in each.items()})


def _normalised(
  agents: Sequence[str], envs: Sequence[str], groups: Mapping[tuple[str, str], Group]
) -> dict[str, statistics.Interval]:
  if len(envs) < 2:
    return {}
  scales = {}
  for env in envs:
    every = np.concatenate([g.scores for (_, e), g in groups.items() if e == env])
    scales[env] = every.min(), max(np.ptp(every), np.finfo(np.float64).tiny)
  found = {}
  for agent in agents:
    if all((agent, env) in groups for env in envs):
      tasks = [(groups[agent, e].scores - scales[e][0]) / scales[e][1] for e in envs]
      found[agent] = interval(tasks, statistics.interquartile_mean)
  return found


def _improvements(
  agents: Sequence[str], envs: Sequence[str], groups: Mapping[tuple[str, str], Group]
) -> list[Improvement]:
  found = []
  for i, x in enumerate(agents):
    for y in agents[i + 1 :]:
      common = [env for env in envs if {(x, env), (y, env)} <= groups.keys()]
      if not common:
        continue
      tasks = [groups[agent, env].scores for agent in (x, y) for env in common]
      better = interval(tasks, statistics.probability_of_improvement)
      if better.value >= 0.5:
        found.append(Improvement(x, y, common, better))
      else:
        other = statistics.Interval(1 - better.value, 1 - better.high, 1 - better.low)
        found.append(Improvement(y, x, common, other))
  return found


def _unequal(env: str, runs: Sequence[runs_lib.Run]) -> list[str]:
  """Says so if the runs of an environment are of different lengths."""
  ends = [int(run.env_steps[-1]) for run in runs]
  if min(ends) >= _UNEQUAL * max(ends):
    return []
  shortest = runs[int(np.argmin(ends))]
  return [
    f"The runs on {env} are compared at step {min(ends):,}, where the shortest "
    f"({runs_lib.relative(shortest.path)}) ends; the longest has {max(ends):,} steps."
  ]
