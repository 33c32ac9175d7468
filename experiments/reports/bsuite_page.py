"""bsuite's part of a report: scores, drawings, and how they were computed."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments.recording import summary
from explorax.experiments.reports import (
  catalogue,
  drawings,
  pictures,
  results,
  runs,
  scores,
  tdu_paper,
  template,
)

# Published scores of the agent of the preset `bootstrapped_dqn`, for comparison. They
# are given with two decimals and without intervals.
PUBLISHED = {"deep_sea": 1.00, "deep_sea_stochastic": 0.90, "exploration": 0.68}
_PUBLISHED_AGENT = "bootstrapped_dqn"
_PUBLISHED_SOURCE = (
  "bootstrapped DQN in bsuite's paper (Osband et al., 2020, Behaviour Suite for "
  "Reinforcement Learning) or a later one; number of seeds not known here"
)

Finished = Mapping[results.Key, runs.Run]


class _Score(NamedTuple):
  """A score as a table displays it."""

  cell: results.Cell
  bold: bool
  remark: str


def compute(done: Finished) -> results.Results | None:
  """The scores of finished runs; None if there are none."""
  logs = {key: run.bsuite for key, run in done.items() if run.bsuite is not None}
  return results.compute(logs) if logs else None


def draw(done: Finished, found: results.Results) -> dict[str, list[pictures.Picture]]:
  """The drawings by section."""
  return drawings.draw(found, _betas(done))


def context(
  done: Finished, found: results.Results, missing: Sequence[runs.Missing]
) -> dict[str, Any]:
  """The variables of the template.

  Args:
    done: the finished runs.
    found: their scores.
    missing: the runs of sweeps that are not finished.
  """
  asked = {
    bsuite_sweeps.experiment(run.env.removeprefix("bsuite:"))
    for run in missing
    if run.env.startswith("bsuite:")
  }
  return {
    "found": found,
    "seeds": sorted({seed for _, _, seed in done}),
    "all_experiments": catalogue.EXPERIMENTS,
    "num_all_ids": sum(len(catalogue.ids(e)) for e in catalogue.EXPERIMENTS),
    "num_ids": len({bsuite_id for _, bsuite_id, _ in done}),
    "capped": {e: text for e in found.experiments if (text := _capped(done, e))},
    "full_seconds": sum(_full_seconds(*each) for each in done.items()),
    "partial": [e for e in found.experiments if not results.all_whole(found, e)],
    "tag_rows": list(_tag_rows(found)),
    "experiment_rows": list(_experiment_rows(done, found)),
    "treasure_rows": list(_treasure_rows(found)),
    "tdu_not_drawn": list(_tdu_not_drawn(done, found)),
    "published_agent": _PUBLISHED_AGENT,
    "published_source": _PUBLISHED_SOURCE,
    "published_rows": list(_published_rows(done, found)),
    "formulas": [
      {
        "experiment": experiment,
        "formula": scores.formula(experiment),
        "regret": scores.regret_name(experiment),
        "tags": catalogue.tags(experiment),
      }
      for experiment in found.experiments
    ],
    "not_asked_for": [
      e for e in catalogue.EXPERIMENTS if e not in {*found.experiments, *asked}
    ],
    "partial_ids": list(_partial_ids(found)),
    "has_mnist": any(catalogue.kind(e) == "mnist" for e in found.experiments),
  }


def _betas(done: Finished) -> dict[str, float]:
  """Agent → its β; 0 for agents without one."""
  return {agent: run.settings.get("beta") or 0.0 for (agent, *_), run in done.items()}


def _tag_rows(found: results.Results) -> Iterator[tuple[str, list[_Score | None]]]:
  """(agent, a score for each tag)."""
  best = {
    tag: results.best(results.of_agents(found.by_tag, tag, found.agents))
    for tag in found.tags
  }
  for agent in found.agents:
    row: list[_Score | None] = []
    for tag in found.tags:
      cell = found.by_tag.get((agent, tag))
      is_best = agent in best[tag]
      row.append(
        None if cell is None else _Score(cell, is_best, _tag_remark(tag, cell))
      )
    yield agent, row


def _experiment_rows(
  done: Finished, found: results.Results
) -> Iterator[tuple[str, str, list[_Score | None]]]:
  """(experiment, a remark on it, a score for each agent)."""
  for experiment in found.experiments:
    cells = results.of_agents(found.by_experiment, experiment, found.agents)
    best = results.best(cells)
    differ = len({len(cell.ids) for cell in cells.values()}) > 1
    remark = [results.num_ids(experiment, cells), _capped(done, experiment)]
    shown = {}
    for agent, cell in cells.items():
      ids = [summary.count(len(cell.ids), "id")] if differ else []
      shown[agent] = _Score(cell, agent in best, _remark(ids, cell))
    row = [shown.get(agent) for agent in found.agents]
    yield experiment, "; ".join(filter(None, remark)), row


def _tag_remark(tag: str, cell: results.Cell) -> str:
  every = [e for e in catalogue.EXPERIMENTS if tag in catalogue.tags(e)]
  remarks = []
  if len(cell.experiments) < len(every):
    remarks.append(f"{len(cell.experiments)} of {len(every)} experiments")
  elif not results.is_whole_tag(tag, cell):
    remarks.append("some ids")
  return _remark(remarks, cell)


def _remark(remarks: list[str], cell: results.Cell) -> str:
  """A remark about a score and its seeds."""
  if not cell.seeds:
    return "; ".join([*remarks, "no seed has finished all of them"])
  if len(cell.seeds) <= 2:
    remarks.append(("one seed", "two seeds")[len(cell.seeds) - 1])
  if cell.left_out:
    remarks.append(f"without {template.seeds(cell.left_out)}")
  return "; ".join(remarks)


def _treasure_rows(found: results.Results) -> Iterator[tuple[str, float, list[str]]]:
  """(experiment and size, the best policy's rate, each agent's rate)."""
  for experiment in drawings.DEEP_SEAS:
    cells = results.of_agents(found.by_experiment, experiment, found.agents)
    every = dict.fromkeys(i for cell in cells.values() for i in cell.ids)
    for bsuite_id in sorted(every, key=lambda i: catalogue.setting(i) or 0):
      shown, best = [], math.nan
      for agent in found.agents:
        cell = cells.get(agent)
        if cell is None or bsuite_id not in cell.ids:
          shown.append("")
          continue
        logs = [found.logs[agent, bsuite_id, seed] for seed in cell.seeds]
        solutions = [scores.solution(bsuite_id, log) for log in logs]
        solved = sum(each is not None and each.solved for each in solutions)
        rates = [scores.treasure_rates(bsuite_id, log) for log in logs]
        best = rates[0][1]
        rate = np.mean([own for own, _ in rates])
        told = "–" if np.isnan(rate) else f"{rate:.1%}"
        shown.append(f"{told}; solved by {solved} of {len(logs)}")
      yield f"{experiment}, N = {catalogue.setting(bsuite_id):g}", best, shown


def _tdu_not_drawn(
  done: Finished, found: results.Results
) -> Iterator[tuple[str, str, list[str]]]:
  """(figure of paper 4, what it compares, its agents that were not run)."""
  for figure, (what, _, _) in tdu_paper.FIGURES.items():
    agents = tdu_paper.agents(figure, found, _betas(done))
    if len(agents) < 2:
      yield figure, what, tdu_paper.absent(figure, agents)


def _published_rows(done: Finished, found: results.Results) -> Iterator[dict[str, Any]]:
  """Published scores, with those of these runs beside them."""
  for name, value in PUBLISHED.items():
    is_tag = name in catalogue.TAGS
    cells = found.by_tag if is_tag else found.by_experiment
    cell = cells.get((_PUBLISHED_AGENT, name))
    ours = "not run"
    if cell is not None:
      whole = results.is_whole_tag if is_tag else results.is_whole
      reasons = [] if whole(name, cell) else ["only some ids"]
      if any(_capped(done, experiment) for experiment in cell.experiments):
        reasons.append("capped")
      ours = template.decimals(cell.value) if cell.told else "–"
      ours += f" (not comparable: {', '.join(reasons)})" if reasons else ""
    yield {"name": name, "value": value, "ours": ours}


def _partial_ids(found: results.Results) -> Iterator[str]:
  """`deep_sea (3 of 21 ids)` for each experiment of which some ids were run."""
  for experiment in found.experiments:
    cells = results.of_agents(found.by_experiment, experiment, found.agents)
    if part := results.num_ids(experiment, cells):
      yield f"{experiment} ({part})"


def _full_seconds(key: results.Key, run: runs.Run) -> float:
  """The estimated duration with bsuite's own number of episodes."""
  own = bsuite_sweeps.num_episodes(key[1])
  return run.seconds * own / min(own, _length(run))


def _length(run: runs.Run) -> int:
  """The number of episodes that the run was asked for, or that it has logged."""
  if run.record.get("episodes") is not None:
    return run.record["episodes"]
  return 1 if run.bsuite is None else int(run.bsuite["episode"][-1])


def _capped(done: Finished, experiment: str) -> str:
  """`120 of 10,000 episodes`; '' if all runs have bsuite's own number."""
  own = bsuite_sweeps.num_episodes(catalogue.ids(experiment)[0])
  lengths = {
    _length(run)
    for (_, bsuite_id, _), run in done.items()
    if bsuite_sweeps.experiment(bsuite_id) == experiment
  }
  low, high = min(lengths), max(lengths)
  if low >= own:
    return ""
  return f"{low:,}{f' to {high:,}' if high > low else ''} of {own:,} episodes"
