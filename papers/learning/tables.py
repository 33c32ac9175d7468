"""Markdown tables of what agents learnt."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from explorax.experiments.recording import statistics as intervals
from explorax.experiments.reports import markdown
from explorax.papers import claims

Row = dict[str, Any]


def table(runs: Sequence[Row]) -> str:
  """Tables of runs that are to solve a problem, with evaluations, and without."""
  groups: dict[tuple[str, str], list[Row]] = {}
  for run in sorted(runs, key=lambda run: run["seed"]):
    groups.setdefault((run["label"], run["env"]), []).append(run)
  tables = []
  for mark, row_of in (
    ("solved_episode", _solved_row),
    ("evaluations", _evaluated_row),
    ("rooms", _explored_row),
  ):
    rows = [row_of(group) for group in groups.values() if mark in group[0]]
    if rows:
      tables.append(markdown.table(rows))
  return "\n\n".join([*tables, *_differences(groups)])


def _differences(groups: Mapping[tuple[str, str], Sequence[Row]]) -> Iterator[str]:
  """Sentences on the last evaluations of environments that two agents have."""
  for env in dict.fromkeys(env for _, env in groups):
    pair = {label: group for (label, x), group in groups.items() if x == env}
    if len(pair) == 2 and all("evaluations" in group[0] for group in pair.values()):
      names = " minus ".join(reversed(pair))
      a, b = ([run["evaluations"][-1][1] for run in group] for group in pair.values())
      found = claims.compare("", np.array(b), np.array(a), "{gap}")
      yield f"{names} in `{env}`, last evaluation: {found.words} ({found.test})."


def _solved_row(group: Sequence[Row]) -> Row:
  limit = group[0]["max_episodes"]
  episodes = [math.inf if (n := r["solved_episode"]) is None else n for r in group]

  def words(number: float) -> str:
    return f"> {limit}" if number > limit else f"{number:g}"

  return {
    "agent": group[0]["label"],
    "environment": f"`{group[0]['env']}`",
    "solved": f"{sum(map(math.isfinite, episodes))}/{len(group)}",
    "episodes to solve: median (each seed)": (
      f"{words(statistics.median(episodes))} ({', '.join(map(words, episodes))})"
    ),
  }


def _evaluated_row(group: Sequence[Row]) -> Row:
  last = [run["evaluations"][-1][1] for run in group]
  trained = [run["training_last_100"] for run in group]
  each = ", ".join(f"{value:.3g}" for value in last)
  return {
    "agent": group[0]["label"],
    "environment": f"`{group[0]['env']}`",
    "last evaluation: mean, 95 % interval (each seed)": f"{_mean(last)} ({each})",
    "last 100 training episodes: mean": _mean(trained),
  }


def _mean(values: Sequence[float]) -> str:
  """The mean with Student's t-interval, which equal values do not have.

  For a share, of zeros and ones, the interval is Clopper and Pearson's.
  """
  if set(values) == {0.0, 1.0}:
    low, high = _interval_of_share(round(sum(values)), len(values))
    return f"{statistics.fmean(values):.3g} [{low:.3g}, {high:.3g}]"
  mean = intervals.mean(values)
  return mean.to_text() if mean.high > mean.low else f"{mean.value:.3g}"


def _interval_of_share(found: int, number: int) -> tuple[float, float]:
  """Clopper and Pearson's 95 % interval; all shares if there is no number."""
  if not number:  # A run may end before its first episode does.
    return 0.0, 1.0
  interval = stats.binomtest(found, number).proportion_ci()
  return interval.low, interval.high


def _explored_row(group: Sequence[Row]) -> Row:
  each = {
    name: [run[name] for run in group]
    for name in ("episodes", "rewarded_episodes", "rooms")
  }
  rewarded, episodes = sum(each["rewarded_episodes"]), sum(each["episodes"])
  low, high = _interval_of_share(rewarded, episodes)
  return {
    "agent": group[0]["label"],
    "environment": f"`{group[0]['env']}`",
    "steps of each seed": f"{group[0]['env_steps']:,}",
    "episodes": episodes,
    "with a reward": rewarded,
    "share of them, 95 % interval": f"{low:.2%} to {high:.2%}",
    "rooms of each seed": ", ".join(f"{value:.0f}" for value in each["rooms"]),
  }
