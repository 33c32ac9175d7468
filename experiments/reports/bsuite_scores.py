"""bsuite's scores, from its logs.

bsuite 0.3.6 computes them with pandas 1 (`bsuite/experiments/*/analysis.py` and
`summary_analysis.py`), and fails on later versions. These are its formulas; tests
compare them with bsuite's own on the same logs.

A log has a row for some episodes, n = 1, 2, …, 10, 12, 14, 17, 20, 25, …, whose columns
are totals over all episodes up to n. A regret R(n) is a total, too; R(n) / n is the
average regret, and `last` is the greatest n in the logs of a group, at most bsuite's
number of episodes. Means are over the ids of a group that have reached `last`.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from explorax import environments
from explorax.environments import bsuite_sweeps
from explorax.experiments.reports import runs

Log = runs.Log
Logs = Mapping[str, Log]  # bsuite id → its log.

# Variants of an experiment, and the setting in which their ids differ.
_VARIANTS = {"_noise": "noise_scale", "_scale": "reward_scale"}
# The setting of other experiments that bsuite's scores and plots depend on.
_SETTINGS = {
  "cartpole_swingup": "height_threshold",
  "deep_sea": "size",
  "deep_sea_stochastic": "size",
  "memory_len": "memory_length",
  "memory_size": "num_bits",
  "umbrella_distract": "n_distractor",
  "umbrella_length": "chain_length",
}

# bsuite's order of experiments (`summary_analysis._ORDERED_EXPERIMENTS`).
_BASICS = ("bandit", "mnist", "catch", "mountain_car", "cartpole")
EXPERIMENTS = (
  *_BASICS,
  *(f"{name}_noise" for name in _BASICS),
  *(f"{name}_scale" for name in _BASICS),
  *("deep_sea", "deep_sea_stochastic", "cartpole_swingup"),
  *("umbrella_length", "umbrella_distract", "discounting_chain"),
  *("memory_len", "memory_size"),
)
# The tags, in its order of types (`_ORDERED_TYPES`), and the one that is no type.
TAGS = (
  *("basic", "noise", "scale", "exploration", "credit_assignment", "memory"),
  "generalization",
)

_FORGIVENESS = 100  # Episodes that Deep Sea may take beyond 2^N.
_FINAL = 0.9  # MNIST's final accuracy is over the episodes after this share.


class Kind(NamedTuple):
  """How experiments are scored that differ only in their settings."""

  # An average regret: a baseline, which scores 0, or a threshold, below which a setting
  # counts.
  reference: float
  score: "Callable[[Kind, Logs], float]"  # In [0, 1]; NaN if undetermined.
  # R(n) is this column of the log; or `scale · (best · n − column)`, if the best return
  # of an episode is known.
  column: str = "total_regret"
  best: float | None = None
  scale: float = 1.0
  good: float | None = None  # A return to exceed, if the score has one.

  def total(self, log: Log) -> np.ndarray:
    """R(n) at each logged episode n, `[rows]`."""
    if self.best is None:
      return log[self.column]
    return self.scale * (self.best * log["episode"] - log[self.column])


def kind(experiment: str) -> Kind:
  """That of `catch` also for `catch_noise` and `catch_scale`."""
  return _KINDS[experiment.removesuffix("_noise").removesuffix("_scale")]


def tags(experiment: str) -> tuple[str, ...]:
  """bsuite's tags of an experiment, in the order of `TAGS`."""
  groups = bsuite_sweeps.groups()
  return tuple(tag for tag in TAGS if ids(experiment)[0] in groups[tag])


def ids(name: str) -> tuple[str, ...]:
  """All of bsuite's ids of an experiment, or of a tag."""
  groups = bsuite_sweeps.groups()
  return groups[name] if name in TAGS else groups[name.upper()]


def setting(bsuite_id: str) -> float:
  """The value of the setting by which bsuite groups the ids of an experiment."""
  experiment = bsuite_sweeps.experiment(bsuite_id)
  name = _VARIANTS.get(experiment[-6:]) or _SETTINGS[experiment]
  return bsuite_sweeps.settings(bsuite_id)[name]


def score(experiment: str, logs: Logs) -> float:
  """The score of one agent and seed in an experiment.

  Args:
    experiment: one of `EXPERIMENTS`.
    logs: of its ids that were run, at least one.

  Returns:
    From 0 to 1, as in bsuite. In `_noise` and `_scale` variants it is the mean of two
    numbers over the scores of each scale, their mean, and their mean minus their
    standard deviation over the number of scales, both clipped to [0, 1]
    (`bsuite.utils.plotting.score_by_scaling`). NaN if the logs are too short.
  """
  how = kind(experiment)
  if experiment[-6:] not in _VARIANTS:
    return float(how.score(how, logs))
  scores = [how.score(how, group) for group in _by_setting(logs)]
  lower = np.mean(scores) - np.std(scores)
  return float(0.5 * (np.clip(np.mean(scores), 0, 1) + np.clip(lower, 0, 1)))


class Solution(NamedTuple):
  """Whether Deep Sea was solved by bsuite's rule."""

  episode: int  # Of the solution; if unsolved, the last logged one.
  solved: bool
  counts: bool = True  # Whether the log has an episode at which the rule applies.


def solution(bsuite_id: str, log: Log) -> Solution:
  """The first logged episode at which Deep Sea is solved, by bsuite's rule.

  The average number of bad episodes is below 0.9; in stochastic Deep Sea below 0.8, and
  only from episode 100 on (`deep_sea/analysis.py`, `find_solution`;
  `environments.solved_rule`).
  """
  rule = environments.solved_rule(f"bsuite:{bsuite_id}")
  assert rule is not None  # Callers have Deep Sea.
  counting = log["episode"] >= rule.min_episode
  counting &= log["episode"] <= bsuite_sweeps.num_episodes(bsuite_id)
  episodes, bad = log["episode"][counting], log["total_bad_episodes"][counting]
  if not len(episodes):
    return Solution(int(log["episode"][-1]), False, counts=False)
  solved = episodes[bad / episodes < rule.threshold]
  return Solution(int(solved[0] if len(solved) else episodes[-1]), len(solved) > 0)


def _by_setting(logs: Logs) -> list[Logs]:
  """Groups the logs by their setting, in order."""
  groups: dict[float, dict[str, Log]] = {}
  for bsuite_id, log in logs.items():
    groups.setdefault(setting(bsuite_id), {})[bsuite_id] = log
  return [groups[value] for value in sorted(groups)]


def _limit(logs: Logs) -> int:
  """bsuite's number of episodes."""
  return bsuite_sweeps.num_episodes(next(iter(logs)))


def _final_average(kind: Kind, logs: Logs) -> float:
  """The mean of R(last) / last; NaN if no log has a row of the last episode."""
  last = min(max(log["episode"].max() for log in logs.values()), _limit(logs))
  ends = [kind.total(log)[log["episode"] == last] for log in logs.values()]
  values = np.concatenate(ends)
  return float(np.mean(values) / last) if values.size else math.nan


def _regret_score(kind: Kind, logs: Logs) -> float:
  """1 − R(last) / (last · baseline), in [0, 1] (`plotting.ave_regret_score`)."""
  average = _final_average(kind, logs)
  return float(np.clip((kind.reference - average) / kind.reference, 0, 1))


def _with_best_episode(kind: Kind, logs: Logs) -> float:
  """½ the regret score, ½ the share of ids with an episode better than `good`."""
  limit = _limit(logs)
  best = [np.max(log["best_episode"][log["episode"] <= limit]) for log in logs.values()]
  share = np.mean(np.array(best) > kind.good)
  return 0.5 * (_regret_score(kind, logs) + float(share))


def _over_settings(kind: Kind, logs: Logs) -> float:
  """The mean of the same over settings (`cartpole_swingup/analysis.py`)."""
  return float(np.mean([_with_best_episode(kind, x) for x in _by_setting(logs)]))


def _with_accuracy(kind: Kind, logs: Logs) -> float:
  """½ the regret score, ½ the accuracy in the last tenth (`mnist/analysis.py`).

  Accuracy is (r + 1) / 2, where r = 1 − ΔR / Δn is the average return between two rows.
  """
  returns = []
  for log in logs.values():
    r = 1.0 - np.diff(kind.total(log)) / np.diff(log["episode"])
    returns.append(r[log["episode"][1:] > _FINAL * _limit(logs)])
  late = np.concatenate(returns)
  accuracy = 0.5 * (np.mean(late) + 1) if late.size else math.nan
  return float(0.5 * (_regret_score(kind, logs) + accuracy))


def _share_below(kind: Kind, logs: Logs) -> float:
  """The share of settings whose average regret at the end is below the threshold."""
  averages = [_final_average(kind, group) for group in _by_setting(logs)]
  return float(np.mean(np.array(averages) < kind.reference))


def _share_solved(kind: Kind, logs: Logs) -> float:
  """The share of Deep Sea's sizes N solved in fewer than 2^N + 100 episodes.

  Ids whose log has no counting episode are left out.
  """
  del kind
  beaten = []
  for bsuite_id, log in logs.items():
    if (end := solution(bsuite_id, log)).counts:
      limit = 2 ** setting(bsuite_id) + _FORGIVENESS
      beaten.append(end.solved and end.episode < limit)
  return float(np.mean(beaten)) if beaten else math.nan


# In units of a random agent's errors, which fails in half of the episodes.
_MEMORY = Kind(0.75, _share_below, "total_perfect", best=1.0, scale=2.0)
_KINDS: dict[str, Kind] = {
  "bandit": Kind(0.5, _regret_score),
  "catch": Kind(1.6, _regret_score),
  "mnist": Kind(1.8, _with_accuracy),
  "mountain_car": Kind(1000, _regret_score, "raw_return", best=-100),
  "discounting_chain": Kind(0.1, _regret_score, "total_return", best=1.1),
  # A known best return, which is also the baseline.
  "cartpole": Kind(1000, _with_best_episode, "raw_return", best=1000, good=500),
  "cartpole_swingup": Kind(700, _over_settings, "total_return", best=700, good=100),
  "deep_sea": Kind(0.9, _share_solved, "total_bad_episodes"),
  "deep_sea_stochastic": Kind(0.8, _share_solved, "total_bad_episodes"),
  "memory_len": _MEMORY,
  "memory_size": _MEMORY,
  "umbrella_length": Kind(0.5, _share_below),
  "umbrella_distract": Kind(0.5, _share_below),
}
