"""Compares an agent's settings by a score, and finds the best."""

import collections
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments import overrides
from explorax.experiments.reports import scores
from explorax.experiments.sweeps import agents

_SHOWN = 10  # Rows of an agent's table.

Log = scores.Log
Logs = Mapping[str, Log]  # bsuite id → the log of one agent and seed.
# (agent, bsuite id, seed) → a log; `records.Run` is such a key.
AllLogs = Mapping[tuple[str, str, int], Log]


class Row(NamedTuple):
  """The scores of one combination of settings.

  Attributes:
    agent: the preset.
    assignments: `setting=value` of each.
    scores: one per seed whose tasks are all done.
    num_seeds: requested.
    is_preset: whether these are the preset's own settings.
  """

  agent: str
  assignments: tuple[str, ...]
  scores: tuple[float, ...]
  num_seeds: int
  is_preset: bool

  @property
  def complete(self) -> bool:
    """Whether each seed has a score."""
    return len(self.scores) == self.num_seeds and not np.isnan(self.scores).any()

  @property
  def mean(self) -> float:
    """Over the seeds; NaN without any."""
    return float(np.mean(self.scores)) if self.scores else math.nan

  @property
  def error(self) -> float:
    """The standard error of the mean; NaN for fewer than two seeds."""
    if len(self.scores) < 2:
      return math.nan
    return float(np.std(self.scores, ddof=1) / math.sqrt(len(self.scores)))

  @property
  def settings(self) -> str:
    return " ".join(self.assignments)


def _bsuite(logs: Logs) -> float:
  """The mean over experiments of bsuite's score on the ids that are done."""
  by_experiment: dict[str, dict[str, Log]] = {}
  for bsuite_id, log in logs.items():
    by_experiment.setdefault(bsuite_sweeps.experiment(bsuite_id), {})[bsuite_id] = log
  return float(np.mean([scores.score(name, x) for name, x in by_experiment.items()]))


def _return(logs: Logs) -> float:
  """The mean return over all episodes, then over ids."""
  return float(np.mean([_mean_return(log, 0) for log in logs.values()]))


def _final_return(logs: Logs) -> float:
  """The same over the last half of the episodes, as far as bsuite's log allows."""
  return float(
    np.mean([_mean_return(log, log["episode"][-1] / 2) for log in logs.values()])
  )


def _mean_return(log: Log, after: float) -> float:
  """The mean over the episodes after the last log entry at `after` or before."""
  episode, total = log["episode"], log["total_return"]
  before = np.flatnonzero(episode <= after)
  if not len(before):
    return total[-1] / episode[-1]
  first = before[-1]
  return (total[-1] - total[first]) / (episode[-1] - episode[first])


SCORES: Mapping[str, Callable[[Logs], float]] = {
  "bsuite": _bsuite,
  "return": _return,
  "final_return": _final_return,
}


def compare(
  logs: AllLogs,
  variants: Iterable[str],
  ids: Sequence[str],
  seeds: Sequence[int],
  score: str,
) -> list[Row]:
  """The scores of each combination of settings, in order.

  Args:
    logs: of all finished tasks.
    variants: names of agents.
    ids: of bsuite; a seed has a score if all of them are done.
    seeds: of the tuning.
    score: one of `SCORES`.
  """
  rows = []
  for variant in variants:
    agent, assignments = overrides.split_name(variant)
    done = []
    for seed in seeds:
      of_seed = {i: logs[variant, i, seed] for i in ids if (variant, i, seed) in logs}
      if len(of_seed) == len(ids):
        done.append(SCORES[score](of_seed))
    own = agents.identity(variant) == agents.identity(agent)
    rows.append(Row(agent, assignments, tuple(done), len(seeds), own))
  return rows


def table(rows: Sequence[Row], score: str) -> list[dict[str, Any]]:
  """One row per combination of settings, for a CSV."""
  best = {id(ranked[0]) for ranked in _ranked(rows).values() if ranked[0].complete}
  return [
    {
      "agent": row.agent,
      "settings": row.settings,
      "score": score,
      "mean": row.mean,
      "standard_error": row.error,
      "seeds_done": len(row.scores),
      "seeds": row.num_seeds,
      "is_preset": row.is_preset,
      "is_best": id(row) in best,
    }
    for row in rows
  ]


def tell(rows: Sequence[Row], score: str) -> str:
  """The best settings of each agent and the flags for them, as text."""
  return "\n\n".join(
    "\n".join(_lines(agent, ranked, score)) for agent, ranked in _ranked(rows).items()
  )


def _ranked(rows: Sequence[Row]) -> dict[str, list[Row]]:
  """Agent → its rows, best first, incomplete ones last."""
  by_agent: dict[str, list[Row]] = collections.defaultdict(list)
  for row in rows:
    by_agent[row.agent].append(row)
  for of_agent in by_agent.values():
    of_agent.sort(key=lambda row: -row.mean if row.complete else math.inf)
  return by_agent


def _lines(agent: str, ranked: Sequence[Row], score: str) -> Iterable[str]:
  width = max(len(row.settings) for row in ranked)
  yield f"{agent}: {score} of {len(ranked)} settings, {ranked[0].num_seeds} seeds each"
  shown = [*ranked[:_SHOWN], *(row for row in ranked[_SHOWN:] if row.is_preset)]
  for row in shown:
    told = f"{row.mean:10.4g}"
    if not math.isnan(row.error):
      told += f" ± {row.error:.2g}"
    if not row.complete:
      told = f"{'none':>10} ({len(row.scores)} of {row.num_seeds} seeds have a score)"
    mark = "  the preset's own" if row.is_preset else ""
    yield f"  {row.settings:{width}} {told}{mark}"
  if len(shown) < len(ranked):
    yield f"  and {len(ranked) - len(shown)} more in tuning.csv"
  best = ranked[0]
  if not best.complete:
    yield "  no setting has a score for every seed, so none is the best."
    return
  level = sum(best.mean - row.mean <= best.error for row in ranked[1:] if row.complete)
  if level:
    yield f"  {level} of the others are within one standard error of the best."
  flags = [f"--set={assignment}" for assignment in best.assignments]
  yield f"  best: --agent={agent} {shlex.join(flags)}"
  name = overrides.join_name(agent, best.assignments)
  yield f"  in a sweep: {shlex.quote(f'--agents={name}')}"
