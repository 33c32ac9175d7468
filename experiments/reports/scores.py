"""bsuite's scores, from its logs, with numpy alone.

bsuite 0.3.6 computes them with pandas 1 (`bsuite/experiments/*/analysis.py` and
`summary_analysis.py`), and breaks on later versions. These are its formulas; tests hold
them equal to bsuite's own on the same logs.

A log has a row for each of some episodes, n = 1, 2, …, 10, 12, 14, 17, 20, 25, …, whose
columns are totals over all episodes up to n. A regret R(n) is a total, too; R(n) / n is
the average regret, and `last` the greatest n that any log of a group has, at most
bsuite's number of episodes. Means are over the ids of a group that have got to `last`.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from explorax import environments
from explorax.environments import bsuite_sweeps
from explorax.experiments.reports import catalogue

Log = Mapping[str, np.ndarray]  # Column → float64 `[rows]`, in the order of episodes.
Logs = Mapping[str, Log]  # bsuite id → its log.

_FORGIVENESS = 100  # Episodes that Deep Sea is allowed beyond 2^N.
_MEMORY_THRESHOLD = 0.75  # As times a random agent's regret.
_UMBRELLA_THRESHOLD = 0.5
_FINAL = 0.9  # Of all episodes: mnist's final accuracy is over those after it.


class Solution(NamedTuple):
  """Whether Deep Sea was solved.

  Attributes:
    episode: in which; the last one that was logged where it was not.
    solved: whether it was.
  """

  episode: int
  solved: bool


@dataclasses.dataclass(frozen=True)
class _Kind:
  """How experiments are scored that differ in their settings only.

  Attributes:
    formula: the score, in words and symbols, for readers.
    regret: what regret is, the same way.
    columns: of the log that all of this needs, beside `episode`.
    total: the regret R(n) of a log, `[rows]`.
    score: of the logs of one experiment, in [0, 1]; NaN where it cannot be told.
    reference: an average regret to compare with.
    reference_name: what it is: `baseline`, with which nothing is scored for the regret;
      `threshold`, below which a setting counts.
  """

  formula: str
  regret: str
  columns: tuple[str, ...]
  total: Callable[[Log], np.ndarray]
  score: Callable[[Logs], float]
  reference: float
  reference_name: str = "baseline"


def columns(experiment: str) -> tuple[str, ...]:
  """The columns of a log that the score needs."""
  return ("episode", *_KINDS[catalogue.kind(experiment)].columns)


def formula(experiment: str) -> str:
  """How the experiment is scored, for readers."""
  text = _KINDS[catalogue.kind(experiment)].formula
  if catalogue.kind(experiment) != experiment:
    name = str(catalogue.setting_name(experiment)).replace("_", " ")
    text = f"½ [mean + (mean − deviation)] over each {name}'s score: {text}"
  return text


def regret_name(experiment: str) -> str:
  """What the average regret is, for readers."""
  return _KINDS[catalogue.kind(experiment)].regret


def average_regret(experiment: str, log: Log) -> np.ndarray:
  """R(n) / n at each logged episode n, `[rows]`: what learning curves show."""
  return _KINDS[catalogue.kind(experiment)].total(log) / log["episode"]


def reference(experiment: str) -> tuple[float, str]:
  """An average regret to compare with, and whether it is baseline or threshold."""
  of_kind = _KINDS[catalogue.kind(experiment)]
  return of_kind.reference, of_kind.reference_name


def score(experiment: str, logs: Logs) -> float:
  """The score of one agent and seed in an experiment.

  Args:
    experiment: one of `catalogue.EXPERIMENTS`.
    logs: of those of its ids that were run, at least one.

  Returns:
    From 0 to 1, as bsuite has it. In `_noise` and `_scale` variants it is the mean of
    two numbers over the scores of each scale, their mean and their mean less their
    deviation (over the number of scales), both cut to [0, 1]
    (`bsuite.utils.plotting.score_by_scaling`). NaN where the logs end before anything
    can be told.

  Raises:
    ValueError: without any log.
  """
  if not logs:
    raise ValueError(f"there is no log of {experiment} to score; give at least one.")
  of_kind = _KINDS[catalogue.kind(experiment)].score
  if catalogue.kind(experiment) == experiment:
    return float(of_kind(logs))
  each = [of_kind(group) for group in _by_setting(logs)]
  lower = np.mean(each) - np.std(each)
  return float(0.5 * (np.clip(np.mean(each), 0, 1) + np.clip(lower, 0, 1)))


def solution(bsuite_id: str, log: Log) -> Solution | None:
  """The first logged episode at which Deep Sea is solved, by bsuite's rule.

  The average number of bad episodes is below 0.9; in stochastic Deep Sea below 0.8, and
  only episodes from the hundredth on count (`deep_sea/analysis.py`, `find_solution`;
  `environments.solved_rule`).

  Args:
    bsuite_id: of `deep_sea` or `deep_sea_stochastic`.
    log: of it.

  Returns:
    None if no episode in the log counts.
  """
  rule = environments.solved_rule(f"bsuite:{bsuite_id}")
  if rule is None:
    raise ValueError(f"{bsuite_id!r} is no Deep Sea, and bsuite has no rule for it.")
  counting = log["episode"] >= rule.min_episode
  counting &= log["episode"] <= bsuite_sweeps.num_episodes(bsuite_id)
  if not counting.any():
    return None
  for episode, bad in zip(
    log["episode"][counting], log["total_bad_episodes"][counting], strict=True
  ):
    rule.update(int(episode), float(bad))
  if rule.solved_episode is not None:
    return Solution(rule.solved_episode, True)
  return Solution(int(log["episode"][counting].max()), False)


def _by_setting(logs: Logs) -> list[Logs]:
  """The logs apart by their setting, in its order."""
  groups: dict[float, dict[str, Log]] = {}
  for bsuite_id, log in logs.items():
    value = catalogue.setting(bsuite_id)
    assert value is not None  # Only experiments that have one are asked.
    groups.setdefault(value, {})[bsuite_id] = log
  return [groups[value] for value in sorted(groups)]


def _final_average(logs: Logs, total: Callable[[Log], np.ndarray]) -> float:
  """The mean of R(last) / last; NaN where no log has a row of the last episode."""
  limit = bsuite_sweeps.num_episodes(next(iter(logs)))
  last = min(max(log["episode"].max() for log in logs.values()), limit)
  values = np.concatenate([total(log)[log["episode"] == last] for log in logs.values()])
  return float(np.mean(values) / last) if values.size else math.nan


def _regret_score(
  logs: Logs, *, baseline: float, total: Callable[[Log], np.ndarray]
) -> float:
  """1 − R(last) / (last · baseline), cut to [0, 1] (`plotting.ave_regret_score`)."""
  average = _final_average(logs, total)
  return float(np.clip((baseline - average) / baseline, 0, 1))


def _with_best_episode(
  logs: Logs, *, baseline: float, good: float, total: Callable[[Log], np.ndarray]
) -> float:
  """½ the score by regret, ½ the share of ids with an episode better than `good`."""
  limit = bsuite_sweeps.num_episodes(next(iter(logs)))
  best = [np.max(log["best_episode"][log["episode"] <= limit]) for log in logs.values()]
  by_regret = _regret_score(logs, baseline=baseline, total=total)
  return 0.5 * (by_regret + float(np.mean(np.array(best) > good)))


def _swingup(logs: Logs) -> float:
  """The mean over height thresholds (`cartpole_swingup/analysis.py`)."""
  each = [
    _with_best_episode(group, baseline=700, good=100, total=_swingup_regret)
    for group in _by_setting(logs)
  ]
  return float(np.mean(each))


def _mnist(logs: Logs) -> float:
  """½ the score by regret, ½ the accuracy in the last tenth (`mnist/analysis.py`).

  Accuracy is (r + 1) / 2, r = 1 − ΔR / Δn being the average return between two rows.
  """
  final = _FINAL * bsuite_sweeps.num_episodes(next(iter(logs)))
  returns = []
  for log in logs.values():
    r = 1.0 - np.diff(log["total_regret"]) / np.diff(log["episode"])
    returns.append(r[log["episode"][1:] > final])
  late = np.concatenate(returns)
  accuracy = 0.5 * (np.mean(late) + 1) if late.size else math.nan
  by_regret = _regret_score(logs, baseline=1.8, total=_total_regret)
  return float(0.5 * (by_regret + accuracy))


def _share_below(
  logs: Logs, *, threshold: float, total: Callable[[Log], np.ndarray]
) -> float:
  """The share of settings whose average regret at the end is below a threshold."""
  averages = [_final_average(group, total) for group in _by_setting(logs)]
  return float(np.mean(np.array(averages) < threshold))


def _discounting_chain(logs: Logs) -> float:
  """1 − 10 (1.1 − the average return), cut to [0, 1]; 1.1 is the best return."""
  average = _final_average(logs, lambda log: log["total_return"])
  return float(np.clip(1.0 - 10.0 * (1.1 - average), 0, 1))


def _deep_sea(logs: Logs) -> float:
  """The share of sizes N that are solved in fewer than 2^N + 100 episodes.

  Ids whose log has no episode that counts are left out.
  """
  beaten = []
  for bsuite_id, log in logs.items():
    found, size = solution(bsuite_id, log), catalogue.setting(bsuite_id)
    assert size is not None
    if found is not None:
      beaten.append(found.solved and found.episode < 2**size + _FORGIVENESS)
  return float(np.mean(beaten)) if beaten else math.nan


def _total_regret(log: Log) -> np.ndarray:
  return log["total_regret"]


def _cartpole_regret(log: Log) -> np.ndarray:
  return 1000 * log["episode"] - log["raw_return"]


def _swingup_regret(log: Log) -> np.ndarray:
  return 700 * log["episode"] - log["total_return"]


def _mountain_car_regret(log: Log) -> np.ndarray:
  return -100 * log["episode"] - log["raw_return"]


def _chain_regret(log: Log) -> np.ndarray:
  return 1.1 * log["episode"] - log["total_return"]


def _memory_regret(log: Log) -> np.ndarray:
  """As times that of a random agent, which fails in half the episodes."""
  return (log["episode"] - log["total_perfect"]) / 0.5


def _bad_episodes(log: Log) -> np.ndarray:
  return log["total_bad_episodes"]


def _scored_by_regret(
  baseline: float, regret: str, column: str, total: Callable[[Log], np.ndarray]
) -> _Kind:
  return _Kind(
    formula=f"1 − average regret / {baseline:g}, at least 0",
    regret=regret,
    columns=(column,),
    total=total,
    score=functools.partial(_regret_score, baseline=baseline, total=total),
    reference=baseline,
  )


def _scored_by_threshold(
  threshold: float,
  what: str,
  regret: str,
  column: str,
  total: Callable[[Log], np.ndarray],
) -> _Kind:
  return _Kind(
    formula=f"share of {what} with an average regret below {threshold:g}",
    regret=regret,
    columns=(column,),
    total=total,
    score=functools.partial(_share_below, threshold=threshold, total=total),
    reference=threshold,
    reference_name="threshold",
  )


def _deep_sea_kind(threshold: float, from_episode: str) -> _Kind:
  return _Kind(
    formula=f"share of sizes N solved (fewer than {threshold:g} of the episodes bad"
    f"{from_episode}) in fewer than 2^N + {_FORGIVENESS} episodes",
    regret="share of bad episodes",
    columns=("total_bad_episodes",),
    total=_bad_episodes,
    score=_deep_sea,
    reference=threshold,
    reference_name="threshold",
  )


_PER_EPISODE = "regret per episode"

_KINDS: dict[str, _Kind] = {
  "bandit": _scored_by_regret(0.5, _PER_EPISODE, "total_regret", _total_regret),
  "catch": _scored_by_regret(1.6, _PER_EPISODE, "total_regret", _total_regret),
  "mountain_car": _scored_by_regret(
    1000, "steps beyond 100 per episode", "raw_return", _mountain_car_regret
  ),
  "mnist": _Kind(
    formula="½ (1 − average regret / 1.8, at least 0) + ½ accuracy in the last tenth",
    regret=_PER_EPISODE,
    columns=("total_regret",),
    total=_total_regret,
    score=_mnist,
    reference=1.8,
  ),
  "cartpole": _Kind(
    formula="½ (1 − average regret / 1000, at least 0) + ½ share of ids with an "
    "episode of return above 500",
    regret="return short of 1000 per episode",
    columns=("raw_return", "best_episode"),
    total=_cartpole_regret,
    score=functools.partial(
      _with_best_episode, baseline=1000, good=500, total=_cartpole_regret
    ),
    reference=1000,
  ),
  "cartpole_swingup": _Kind(
    formula="mean over ids of ½ (1 − average regret / 700, at least 0) + ½ whether an "
    "episode's return was above 100",
    regret="return short of 700 per episode",
    columns=("total_return", "best_episode"),
    total=_swingup_regret,
    score=_swingup,
    reference=700,
  ),
  "discounting_chain": _Kind(
    formula="1 − 10 · average regret, at least 0",
    regret="return short of 1.1 per episode",
    columns=("total_return",),
    total=_chain_regret,
    score=_discounting_chain,
    reference=0.1,
  ),
  "deep_sea": _deep_sea_kind(0.9, ""),
  "deep_sea_stochastic": _deep_sea_kind(0.8, ", from episode 100 on"),
  "memory_len": _scored_by_threshold(
    _MEMORY_THRESHOLD,
    "lengths",
    "wrong answers, as times a random agent's",
    "total_perfect",
    _memory_regret,
  ),
  "memory_size": _scored_by_threshold(
    _MEMORY_THRESHOLD,
    "numbers of bits",
    "wrong answers, as times a random agent's",
    "total_perfect",
    _memory_regret,
  ),
  "umbrella_length": _scored_by_threshold(
    _UMBRELLA_THRESHOLD, "lengths", _PER_EPISODE, "total_regret", _total_regret
  ),
  "umbrella_distract": _scored_by_threshold(
    _UMBRELLA_THRESHOLD,
    "numbers of distractors",
    _PER_EPISODE,
    "total_regret",
    _total_regret,
  ),
}


def tag_mean(scores: Sequence[float]) -> float:
  """A tag's score: the mean over its experiments, those that cannot be told left out.

  As `summary_analysis.ave_score_by_tag`. NaN if none can be told.
  """
  told = [x for x in scores if not math.isnan(x)]
  return float(np.mean(told)) if told else math.nan
