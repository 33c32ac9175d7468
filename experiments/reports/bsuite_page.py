"""bsuite's part of a report: scores, drawings, and how they were computed."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments.recording import summary
from explorax.experiments.reports import (
  catalogue,
  drawings,
  results,
  runs,
  scores,
)
from explorax.experiments.reports import cells as cells_lib

Finished = Mapping[results.Key, runs.Run]


def compute(done: Finished) -> results.Results | None:
  """The scores of finished runs; None if there are none."""
  logs = {key: run.bsuite for key, run in done.items() if run.bsuite is not None}
  return results.compute(logs) if logs else None


def context(done: Finished, found: results.Results) -> dict[str, Any]:
  """The variables of the template.

  Args:
    done: the finished runs.
    found: their scores.
  """
  by_tag = {tag: cells(found, tag) for tag in found.tags}
  return {
    "found": found,
    "tag_rows": [
      (agent, [by_tag[tag].get(agent) for tag in found.tags]) for agent in found.agents
    ],
    "experiment_rows": [
      (
        name,
        _remark(done, found, name),
        [cells(found, name).get(a) for a in found.agents],
      )
      for name in found.experiments
    ],
    "treasure_rows": list(_treasure_rows(found)),
    "formulas": [
      {
        "experiment": experiment,
        "formula": scores.formula(experiment),
        "regret": scores.regret_name(experiment),
        "tags": catalogue.tags(experiment),
      }
      for experiment in found.experiments
    ],
  }


def cells(found: results.Results, name: str) -> dict[str, cells_lib.Cell]:
  """Agent → its score in an experiment or over a tag."""
  best, total = found.best(name), len(catalogue.ids(name))
  return {
    agent: cells_lib.cell(
      score.mean,
      f"{summary.count(len(score.seeds), 'seed')}, {len(score.ids)} of {total} ids",
      bold=agent in best,
    )
    for agent, score in found.of(name).items()
  }


def _treasure_rows(found: results.Results) -> Iterator[tuple[str, float, list[str]]]:
  """(experiment and size, the best policy's rate, each agent's rate)."""
  for experiment in drawings.DEEP_SEAS:
    each = found.of(experiment)
    every = dict.fromkeys(i for score in each.values() for i in score.ids)
    for bsuite_id in sorted(every, key=lambda i: catalogue.setting(i) or 0):
      texts, best = [], math.nan
      for agent in found.agents:
        if agent not in each or bsuite_id not in each[agent].ids:
          texts.append("")
          continue
        logs = [found.logs[agent, bsuite_id, seed] for seed in each[agent].seeds]
        solutions = [scores.solution(bsuite_id, log) for log in logs]
        solved = sum(each is not None and each.solved for each in solutions)
        rates = [scores.treasure_rates(bsuite_id, log) for log in logs]
        best = rates[0][1]
        rate = np.mean([rate for rate, _ in rates])
        share = "–" if np.isnan(rate) else f"{rate:.1%}"
        texts.append(f"{share}; solved by {solved} of {len(logs)}")
      yield f"{experiment}, N = {catalogue.setting(bsuite_id):g}", best, texts


def _remark(done: Finished, found: results.Results, experiment: str) -> str:
  """The length of its runs, and which agents have the same logs."""
  same = [f"identical logs: {', '.join(x)}" for x in found.identical(experiment)]
  return "; ".join(filter(None, [_length(done, experiment), *same]))


def _length(done: Finished, experiment: str) -> str:
  """`120 of 10,000 episodes`; '' if all runs have bsuite's own number."""
  full = bsuite_sweeps.num_episodes(catalogue.ids(experiment)[0])
  lengths = {
    run.record["episodes"]
    for (_, bsuite_id, _), run in done.items()
    if bsuite_sweeps.experiment(bsuite_id) == experiment
  }
  low, high = (f(x or full for x in lengths) for f in (min, max))
  if low >= full:
    return ""
  return f"{low:,}{f' to {high:,}' if high > low else ''} of {full:,} episodes"
