"""Fills the template of a sweep's report, `page.html`."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments.recording import summary
from explorax.experiments.reports import (
  catalogue,
  drawings,
  read,
  results,
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


class _Score(NamedTuple):
  """A score as a table displays it."""

  cell: results.Cell
  bold: bool
  remark: str


def make(sweep: read.Sweep, found: results.Results, *, command: str) -> template.Report:
  """Makes the report of a sweep.

  Args:
    sweep: from `read`.
    found: its scores.
    command: that makes the report.
  """
  drawn = drawings.draw(sweep, found)
  return template.fill(
    "page.html",
    drawn,
    title=f"bsuite scores of {summary.count(len(found.agents), 'agent')}",
    sweep=sweep,
    found=found,
    command=command,
    all_experiments=catalogue.EXPERIMENTS,
    num_all_ids=sum(len(catalogue.ids(e)) for e in catalogue.EXPERIMENTS),
    num_ids=len({bsuite_id for _, bsuite_id, _ in sweep.logs}),
    num_tasks=len(sweep.logs) + len(sweep.lacking),
    capped=[e for e in found.experiments if _capped(sweep, e)],
    partial=[e for e in found.experiments if not results.all_whole(found, e)],
    tag_rows=list(_tag_rows(found)),
    experiment_rows=list(_experiment_rows(sweep, found)),
    treasure_rows=list(_treasure_rows(sweep, found)),
    tdu_not_drawn=list(_tdu_not_drawn(sweep, found)),
    published_agent=_PUBLISHED_AGENT,
    published_source=_PUBLISHED_SOURCE,
    published_rows=list(_published_rows(sweep, found)),
    versions=[_made_with(*each, len(sweep.logs)) for each in sweep.versions],
    own_versions=template.versions("bsuite"),
    formulas=[
      {
        "experiment": experiment,
        "formula": scores.formula(experiment),
        "regret": scores.regret_name(experiment),
        "tags": catalogue.tags(experiment),
      }
      for experiment in found.experiments
    ],
    **_missing(sweep, found),
  )


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
  sweep: read.Sweep, found: results.Results
) -> Iterator[tuple[str, str, list[_Score | None]]]:
  """(experiment, a remark on it, a score for each agent)."""
  for experiment in found.experiments:
    cells = results.of_agents(found.by_experiment, experiment, found.agents)
    best = results.best(cells)
    differ = len({len(cell.ids) for cell in cells.values()}) > 1
    remark = [results.num_ids(experiment, cells), _capped(sweep, experiment)]
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


def _treasure_rows(
  sweep: read.Sweep, found: results.Results
) -> Iterator[tuple[str, float, list[str]]]:
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
        logs = [sweep.logs[agent, bsuite_id, seed] for seed in cell.seeds]
        solutions = [scores.solution(bsuite_id, log) for log in logs]
        solved = sum(each is not None and each.solved for each in solutions)
        rates = [scores.treasure_rates(bsuite_id, log) for log in logs]
        best = rates[0][1]
        rate = np.mean([own for own, _ in rates])
        told = "–" if np.isnan(rate) else f"{rate:.1%}"
        shown.append(f"{told}; solved by {solved} of {len(logs)}")
      yield f"{experiment}, N = {catalogue.setting(bsuite_id):g}", best, shown


def _tdu_not_drawn(
  sweep: read.Sweep, found: results.Results
) -> Iterator[tuple[str, str, list[str]]]:
  """(figure of paper 4, what it compares, its agents that are not in the sweep)."""
  for figure, (what, _, _) in tdu_paper.FIGURES.items():
    agents = tdu_paper.agents(figure, found, sweep.settings)
    if len(agents) < 2:
      yield figure, what, tdu_paper.absent(figure, agents)


def _published_rows(
  sweep: read.Sweep, found: results.Results
) -> Iterator[dict[str, Any]]:
  """Published scores, with this sweep's beside them."""
  for name, value in PUBLISHED.items():
    is_tag = name in catalogue.TAGS
    cells = found.by_tag if is_tag else found.by_experiment
    cell = cells.get((_PUBLISHED_AGENT, name))
    ours = "not run"
    if cell is not None:
      whole = results.is_whole_tag if is_tag else results.is_whole
      reasons = [] if whole(name, cell) else ["only some ids"]
      if any(_capped(sweep, experiment) for experiment in cell.experiments):
        reasons.append("capped")
      ours = template.decimals(cell.value) if cell.told else "–"
      ours += f" (not comparable: {', '.join(reasons)})" if reasons else ""
    yield {"name": name, "value": value, "ours": ours}


def _missing(sweep: read.Sweep, found: results.Results) -> dict[str, Any]:
  """Tasks without results, ids and experiments that were not run, and MNIST."""
  groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
  for entry in sweep.lacking:
    experiment = bsuite_sweeps.experiment(entry["bsuite_id"])
    key = experiment, entry["status"], str(entry.get("reason", ""))
    groups.setdefault(key, []).append(entry)
  rows = []
  for (experiment, status, reason), entries in groups.items():
    seeds: dict[str, set[int]] = {}
    for entry in entries:
      seeds.setdefault(entry["agent"], set()).add(entry["seed"])
    rows.append(
      {
        "experiment": experiment,
        "count": len(entries),
        "status": status,
        "reason": reason,
        "whose": ", ".join(
          f"{a} ({template.seeds(sorted(own))})" for a, own in seeds.items()
        ),
      }
    )
  asked = {*found.experiments, *(experiment for experiment, _, _ in groups)}
  partial = []
  for experiment in found.experiments:
    cells = results.of_agents(found.by_experiment, experiment, found.agents)
    if part := results.num_ids(experiment, cells):
      partial.append(f"{experiment} ({part})")
  return {
    "missing_rows": rows,
    "not_asked_for": [e for e in catalogue.EXPERIMENTS if e not in asked],
    "partial_ids": partial,
    "has_mnist": any(catalogue.kind(e) == "mnist" for e in found.experiments),
  }


def _made_with(versions: Mapping[str, Any], count: int, total: int) -> str:
  """The versions that made `count` of all tasks."""
  shown = {"python": versions.get("python"), **(versions.get("packages") or {})}
  shown["commit"] = versions.get("git_commit")
  shown["XLA_FLAGS"] = versions.get("xla_flags")
  names = ", ".join(f"{name} {value}" for name, value in shown.items() if value)
  whose = "Made" if count == total else f"{count:,} of the {total:,} tasks were made"
  return f"{whose} with {names}, on {versions.get('platform')}."


def _capped(sweep: read.Sweep, experiment: str) -> str:
  """`120 of 10,000 episodes`; '' if the cap does not apply."""
  own = bsuite_sweeps.num_episodes(catalogue.ids(experiment)[0])
  if sweep.cap is None or sweep.cap >= own:
    return ""
  return f"{sweep.cap:,} of {own:,} episodes"
