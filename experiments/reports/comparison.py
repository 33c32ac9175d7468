"""Compares the agents of runs: returns, curves and probabilities of improvement.

By the definitions of Agarwal et al. (2021), "Deep reinforcement learning at the edge of
the statistical precipice", as in rliable: interquartile means and probabilities of
improvement, with stratified bootstrap intervals. A run's curve is its evaluations, if
all runs of its environment have several (or one, and some no training episode), else
its smoothed returns of training episodes. Its score is its last evaluation, if all runs
of the environment have one at the same time, else the curve's end, where the shortest
curve of the environment ends. bsuite has scores of its own, and is compared by training
episodes here.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from explorax.experiments.recording import returns, statistics
from explorax.experiments.reports import runs as runs_lib

# A run below this share of the longest one of its environment is short, and evaluations
# are at the same time if their steps are closer.
_UNEQUAL = 0.9


@dataclasses.dataclass(frozen=True)
class Group:
  """The runs of an agent in an environment.

  Attributes:
    runs: one for each seed.
    curves: returns `[S, N]` at the environment's steps.
    scores: `[S]`, the score of each run.
    score: the interquartile mean of these over seeds. The interval is NaN for a single
      seed.
  """

  runs: Sequence[runs_lib.Run]
  curves: np.ndarray
  scores: np.ndarray
  score: statistics.Interval


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
    ends: environment → what its scores are, as `of evaluations at step 50,000`.
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
  ends: Mapping[str, str]
  groups: Mapping[tuple[str, str], Group]
  normalised: Mapping[str, statistics.Interval]
  improvements: Sequence[Improvement]
  remarks: Sequence[str]


def compute(runs: Sequence[runs_lib.Run], labels: Sequence[str]) -> Comparison:
  """Compares runs.

  Args:
    runs: each with at least one episode (`has_returns`).
    labels: the agent of each.
  """
  agents, envs = list(dict.fromkeys(labels)), sorted({x.problem for x in runs})
  remarks: list[str] = []
  steps: dict[str, np.ndarray] = {}
  ends: dict[str, str] = {}
  groups: dict[tuple[str, str], Group] = {}
  for env in envs:
    pairs = [x for x in zip(labels, runs, strict=True) if x[1].problem == env]
    pairs.sort(key=lambda x: x[1].seed)
    if _at_the_same_time([x.evaluations() for _, x in pairs]) is None:
      remarks += [
        f"{runs_lib.relative(x.path)} is left out: no episode of training has ended, "
        f"and not all runs on {env} have an evaluation at the same step."
        for _, x in pairs
        if not len(x.returns)
      ]
      pairs = [x for x in pairs if len(x[1].returns)]
    if not pairs:
      continue
    of_env = [run for _, run in pairs]
    # Per run: bsuite has its own scores.
    evaluations = [[] if env.startswith("bsuite:") else x.evaluations() for x in of_env]
    curves: np.ndarray
    steps[env], curves = returns.on_grid(_curves(of_env, evaluations))
    scores, end = curves[:, -1], int(steps[env][-1])
    evaluated = _at_the_same_time(evaluations)
    if evaluated is not None:
      end, scores = evaluated
    what = "training" if evaluated is None else "evaluations"
    ends[env] = f"of {what} at step {end:,}"
    if any(evaluations) and evaluated is None:
      remarks.append(
        f"The runs on {env} are compared by returns of training, because not all of "
        "them have an evaluation at the same step."
      )
    remarks += _unequal(env, of_env)
    for agent in agents:
      rows = [i for i, (label, _) in enumerate(pairs) if label == agent]
      if rows:
        score = statistics.stratified([scores[rows]], statistics.interquartile_mean)
        groups[agent, env] = Group(
          [of_env[i] for i in rows], curves[rows], scores[rows], score
        )
  two = sorted({agent for (agent, _), g in groups.items() if len(g.runs) == 2})
  if two:
    remarks.append(f"Intervals of two seeds say little: {', '.join(two)}.")
  envs = [*steps]
  return Comparison(
    agents,
    envs,
    steps,
    ends,
    groups,
    _normalised(agents, envs, groups),
    _improvements(agents, envs, groups),
    remarks,
  )


def _curves(
  runs: Sequence[runs_lib.Run], evaluations: Sequence[Sequence[tuple[int, float]]]
) -> list[tuple[np.ndarray, np.ndarray]]:
  """The environment steps `[E]` and values `[E]` of each run's curve."""
  are_needed = not all(len(run.returns) for run in runs)
  are_several = min(map(len, evaluations)) > 1
  if are_needed or (are_several and _at_the_same_time(evaluations) is not None):
    return [(steps, values) for steps, values in (np.array(x).T for x in evaluations)]
  return [(run.env_steps, returns.smooth(run.returns)) for run in runs]


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
      found[agent] = statistics.stratified(tasks, statistics.interquartile_mean)
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
      better = statistics.stratified(tasks, statistics.probability_of_improvement)
      if better.value >= 0.5:
        found.append(Improvement(x, y, common, better))
      else:
        other = statistics.Interval(1 - better.value, 1 - better.high, 1 - better.low)
        found.append(Improvement(y, x, common, other))
  return found


def _unequal(env: str, runs: Sequence[runs_lib.Run]) -> list[str]:
  """Says so if the runs of an environment are of different lengths."""
  ends = [run.num_steps for run in runs]
  if min(ends) >= _UNEQUAL * max(ends):
    return []
  shortest = runs[int(np.argmin(ends))]
  return [
    f"The runs on {env} are compared at step {min(ends):,}, where the shortest "
    f"({runs_lib.relative(shortest.path)}) ends; the longest has {max(ends):,} steps."
  ]
