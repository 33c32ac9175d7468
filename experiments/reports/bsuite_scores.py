"""bsuite's scores, from its logs, with numpy alone.

bsuite 0.3.6 computes them with pandas 1 (`bsuite/experiments/*/analysis.py` and
`summary_analysis.py`), and fails on later versions. These are its formulas; tests
compare them with bsuite's own on the same logs.

A log has a row for some episodes, n = 1, 2, …, 10, 12, 14, 17, 20, 25, …, whose columns
are totals over all episodes up to n. A regret R(n) is a total, too; R(n) / n is the
average regret, and `last` is the greatest n in the logs of a group, at most bsuite's
number of episodes. Means are over the ids of a group that have reached `last`.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from explorax import environments
from explorax.environments import bsuite_sweeps
from explorax.experiments.reports import runs

Log = runs.Log
Logs = Mapping[str, Log]  # bsuite id → its log.

_VARIANTS = ("_noise", "_scale")

# The setting of each experiment that bsuite's scores and plots depend on.
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


def kind(experiment: str) -> str:
  """`catch` for `catch_noise` and `catch_scale`."""
  return next(
    (experiment.removesuffix(v) for v in _VARIANTS if experiment.endswith(v)),
    experiment,
  )


def tags(experiment: str) -> tuple[str, ...]:
  """bsuite's tags of an experiment, in the order of `TAGS`."""
  groups = bsuite_sweeps.groups()
  first = ids(experiment)[0]
  return tuple(tag for tag in TAGS if first in groups[tag])


def ids(name: str) -> tuple[str, ...]:
  """All of bsuite's ids of an experiment, or of a tag."""
  groups = bsuite_sweeps.groups()
  return groups[name] if name in TAGS else groups[name.upper()]


def setting_name(experiment: str) -> str | None:
  """The setting by which bsuite groups ids: `size`, `noise_scale`; None if none."""
  variant = next((v for v in _VARIANTS if experiment.endswith(v)), None)
  if variant is not None:
    return {"_noise": "noise_scale", "_scale": "reward_scale"}[variant]
  return _SETTINGS.get(experiment)


def setting(bsuite_id: str) -> float | None:
  """The value of that setting in an id."""
  name = setting_name(bsuite_sweeps.experiment(bsuite_id))
  return None if name is None else bsuite_sweeps.settings(bsuite_id)[name]


class Solution(NamedTuple):
  """Whether Deep Sea was solved by bsuite's rule.

  Attributes:
    episode: of the solution; if unsolved, the last logged one.
    solved: whether it was solved.
  """

  episode: int
  solved: bool


@dataclasses.dataclass(frozen=True)
class _Kind:
  """How experiments are scored that differ only in their settings.

  Attributes:
    regret: the regret, in words and symbols, for readers.
    columns: of the log that these need, besides `episode`.
    total: the regret R(n) of a log, `[rows]`.
    reference: an average regret: a baseline, which scores 0, or a threshold, below
      which a setting counts.
    score: of the logs of one experiment, in [0, 1]; NaN if undetermined.
    good: a return to exceed; None if the score has none.
    reference_name: `baseline` or `threshold`.
  """

  regret: str
  columns: tuple[str, ...]
  total: Callable[[Log], np.ndarray]
  reference: float
  score: "Callable[[_Kind, Logs], float]"
  good: float | None = None
  reference_name: str = "baseline"


def columns(experiment: str) -> tuple[str, ...]:
  """The columns of a log that the score needs."""
  return ("episode", *_KINDS[kind(experiment)].columns)


def regret_name(experiment: str) -> str:
  """The average regret in words, for readers."""
  return _KINDS[kind(experiment)].regret


def average_regret(experiment: str, log: Log) -> np.ndarray:
  """R(n) / n at each logged episode n, `[rows]`, for learning curves."""
  return _KINDS[kind(experiment)].total(log) / log["episode"]


def reference(experiment: str) -> tuple[float, str]:
  """The reference for the average regret, and whether it is baseline or threshold."""
  of_kind = _KINDS[kind(experiment)]
  return of_kind.reference, of_kind.reference_name


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

  Raises:
    ValueError: without any log.
  """
  if not logs:
    raise ValueError(f"there is no log of {experiment}; give at least one.")
  of_kind = _KINDS[kind(experiment)]
  if kind(experiment) == experiment:
    return float(of_kind.score(of_kind, logs))
  scores = [of_kind.score(of_kind, group) for group in _by_setting(logs)]
  lower = np.mean(scores) - np.std(scores)
  return float(0.5 * (np.clip(np.mean(scores), 0, 1) + np.clip(lower, 0, 1)))


def solution(bsuite_id: str, log: Log) -> Solution | None:
  """The first logged episode at which Deep Sea is solved, by bsuite's rule.

  The average number of bad episodes is below 0.9; in stochastic Deep Sea below 0.8, and
  only from episode 100 on (`deep_sea/analysis.py`, `find_solution`;
  `environments.solved_rule`).

  Args:
    bsuite_id: of `deep_sea` or `deep_sea_stochastic`.
    log: of it.

  Returns:
    None if the log has no episode that counts.
  """
  rule = environments.solved_rule(f"bsuite:{bsuite_id}")
  if rule is None:
    raise ValueError(f"{bsuite_id!r} is not Deep Sea, and bsuite has no rule for it.")
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


def treasure_rates(bsuite_id: str, log: Log) -> tuple[float, float]:
  """The share of all episodes that found Deep Sea's treasure, and the best policy's.

  The first is NaN if the log does not contain it.
  """
  rule = environments.solved_rule(f"bsuite:{bsuite_id}")
  if rule is None:
    raise ValueError(f"{bsuite_id!r} is not Deep Sea, and has no treasure.")
  found = log.get("denoised_return", np.array([math.nan]))
  return float(found[-1] / log["episode"][-1]), rule.best_rate


def _by_setting(logs: Logs) -> list[Logs]:
  """Groups the logs by their setting, in order."""
  groups: dict[float, dict[str, Log]] = {}
  for bsuite_id, log in logs.items():
    value = setting(bsuite_id)
    assert value is not None  # Callers have experiments with a setting.
    groups.setdefault(value, {})[bsuite_id] = log
  return [groups[value] for value in sorted(groups)]


def _final_average(logs: Logs, total: Callable[[Log], np.ndarray]) -> float:
  """The mean of R(last) / last; NaN if no log has a row of the last episode."""
  limit = bsuite_sweeps.num_episodes(next(iter(logs)))
  last = min(max(log["episode"].max() for log in logs.values()), limit)
  values = np.concatenate([total(log)[log["episode"] == last] for log in logs.values()])
  return float(np.mean(values) / last) if values.size else math.nan


def _regret_score(kind: _Kind, logs: Logs) -> float:
  """1 − R(last) / (last · baseline), in [0, 1] (`plotting.ave_regret_score`)."""
  average = _final_average(logs, kind.total)
  return float(np.clip((kind.reference - average) / kind.reference, 0, 1))


def _with_best_episode(kind: _Kind, logs: Logs) -> float:
  """½ the regret score, ½ the share of ids with an episode better than `good`."""
  limit = bsuite_sweeps.num_episodes(next(iter(logs)))
  best = [np.max(log["best_episode"][log["episode"] <= limit]) for log in logs.values()]
  share = np.mean(np.array(best) > kind.good)
  return 0.5 * (_regret_score(kind, logs) + float(share))


def _over_settings(kind: _Kind, logs: Logs) -> float:
  """The mean of the same over settings (`cartpole_swingup/analysis.py`)."""
  return float(np.mean([_with_best_episode(kind, x) for x in _by_setting(logs)]))


def _with_accuracy(kind: _Kind, logs: Logs) -> float:
  """½ the regret score, ½ the accuracy in the last tenth (`mnist/analysis.py`).

  Accuracy is (r + 1) / 2, where r = 1 − ΔR / Δn is the average return between two rows.
  """
  final = _FINAL * bsuite_sweeps.num_episodes(next(iter(logs)))
  returns = []
  for log in logs.values():
    r = 1.0 - np.diff(kind.total(log)) / np.diff(log["episode"])
    returns.append(r[log["episode"][1:] > final])
  late = np.concatenate(returns)
  accuracy = 0.5 * (np.mean(late) + 1) if late.size else math.nan
  return float(0.5 * (_regret_score(kind, logs) + accuracy))


def _share_below(kind: _Kind, logs: Logs) -> float:
  """The share of settings whose average regret at the end is below the threshold."""
  averages = [_final_average(group, kind.total) for group in _by_setting(logs)]
  return float(np.mean(np.array(averages) < kind.reference))


def _share_solved(kind: _Kind, logs: Logs) -> float:
  """The share of Deep Sea's sizes N solved in fewer than 2^N + 100 episodes.

  Ids whose log has no counting episode are left out.
  """
  del kind
  beaten = []
  for bsuite_id, log in logs.items():
    found, size = solution(bsuite_id, log), setting(bsuite_id)
    assert size is not None
    if found is not None:
      beaten.append(found.solved and found.episode < 2**size + _FORGIVENESS)
  return float(np.mean(beaten)) if beaten else math.nan


def _column(name: str) -> Callable[[Log], np.ndarray]:
  """A regret that is a column of the log."""
  return lambda log: log[name]


def _short_of(best: float, column: str) -> Callable[[Log], np.ndarray]:
  """The regret if the best return of an episode is known."""
  return lambda log: best * log["episode"] - log[column]


def _wrong_answers(log: Log) -> np.ndarray:
  """In units of a random agent's errors, which fails in half of the episodes."""
  return (log["episode"] - log["total_perfect"]) / 0.5


_PER_EPISODE = "regret per episode"
_WRONG = "wrong answers, as times a random agent's"
_TOTAL = ("total_regret",)


def _by_regret(
  baseline: float,
  regret: str = _PER_EPISODE,
  columns: tuple[str, ...] = _TOTAL,
  total: Callable[[Log], np.ndarray] | None = None,
) -> _Kind:
  total = total or _column(columns[0])
  return _Kind(regret, columns, total, baseline, _regret_score)


def _by_threshold(
  threshold: float,
  regret: str = _PER_EPISODE,
  columns: tuple[str, ...] = _TOTAL,
  total: Callable[[Log], np.ndarray] | None = None,
) -> _Kind:
  total = total or _column(columns[0])
  return _Kind(
    regret, columns, total, threshold, _share_below, reference_name="threshold"
  )


def _by_solutions(threshold: float) -> _Kind:
  return _Kind(
    regret="share of episodes that missed the best return",
    columns=("total_bad_episodes",),
    total=_column("total_bad_episodes"),
    reference=threshold,
    score=_share_solved,
    reference_name="threshold",
  )


_KINDS: dict[str, _Kind] = {
  "bandit": _by_regret(0.5),
  "catch": _by_regret(1.6),
  "mountain_car": _by_regret(
    1000,
    "steps beyond 100 per episode",
    ("raw_return",),
    _short_of(-100, "raw_return"),
  ),
  "discounting_chain": _by_regret(
    0.1,
    "return short of 1.1 per episode",
    ("total_return",),
    _short_of(1.1, "total_return"),
  ),
  "mnist": _Kind(
    regret=_PER_EPISODE,
    columns=_TOTAL,
    total=_column("total_regret"),
    reference=1.8,
    score=_with_accuracy,
  ),
  "cartpole": _Kind(
    regret="return short of 1000 per episode",
    columns=("raw_return", "best_episode"),
    total=_short_of(1000, "raw_return"),
    reference=1000,
    score=_with_best_episode,
    good=500,
  ),
  "cartpole_swingup": _Kind(
    regret="return short of 700 per episode",
    columns=("total_return", "best_episode"),
    total=_short_of(700, "total_return"),
    reference=700,
    score=_over_settings,
    good=100,
  ),
  "deep_sea": _by_solutions(0.9),
  "deep_sea_stochastic": _by_solutions(0.8),
  "memory_len": _by_threshold(0.75, _WRONG, ("total_perfect",), _wrong_answers),
  "memory_size": _by_threshold(0.75, _WRONG, ("total_perfect",), _wrong_answers),
  "umbrella_length": _by_threshold(0.5),
  "umbrella_distract": _by_threshold(0.5),
}
