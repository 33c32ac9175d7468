"""What a report says of its numbers: published ones, missing ones, their making."""

import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from explorax.environments import bsuite_sweeps
from explorax.experiments.recording import statistics, summary
from explorax.experiments.reports import (
  catalogue,
  markup,
  published,
  read,
  results,
  scores,
  wording,
)

_INTERVALS = (
  f"Intervals span {100 * statistics.LEVEL:.0f} % of {statistics.NUM_RESAMPLES:,} "
  "bootstrap draws of the seeds (percentiles; over a tag, seeds are drawn in each "
  "experiment by itself), as rliable makes them."
)


def published_scores(sweep: read.Sweep, found: results.Results) -> str:
  """The table of published scores, with this sweep's beside them."""
  rows = []
  for score in published.SCORES:
    is_tag = score.name in catalogue.TAGS
    cells = found.by_tag if is_tag else found.by_experiment
    cell = cells.get((score.agent, score.name))
    if cell is None:
      ours = "not run"
    else:
      whole = results.is_whole_tag if is_tag else results.is_whole
      reasons = [] if whole(score.name, cell) else ["only some ids"]
      if any(wording.capped(sweep, experiment) for experiment in cell.experiments):
        reasons.append("capped")
      ours = f"{wording.decimals(cell.value)}" if cell.told else "–"
      ours += f" (not comparable: {', '.join(reasons)})" if reasons else ""
    rows.append(
      [
        markup.name(score.name),
        markup.cell(f"{score.value:.2f}, published, not run here", "number"),
        markup.cell(markup.text(ours), "number"),
        markup.cell(markup.text(score.source)),
      ]
    )
  return markup.table(
    ["of", "published score", f"{published.SCORES[0].agent} in this sweep", "source"],
    rows,
    caption="For comparison, from the literature; what is published was not run here.",
    name="Published scores",
  )


def missing(sweep: read.Sweep, found: results.Results) -> str:
  """Tasks without results, ids and experiments that were not run, and mnist."""
  groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
  for entry in sweep.lacking:
    experiment = bsuite_sweeps.experiment(entry["bsuite_id"])
    key = experiment, entry["status"], str(entry.get("reason", ""))
    groups.setdefault(key, []).append(entry)
  parts = []
  if groups:
    rows = [
      [
        markup.name(experiment),
        markup.cell(f"{len(entries):,} {markup.text(status)}", "number"),
        markup.cell(markup.text(_whose(entries))),
        markup.cell(markup.text(reason)),
      ]
      for (experiment, status, reason), entries in groups.items()
    ]
    parts.append(
      markup.table(
        ["experiment", "tasks", "agents and seeds", "why"],
        rows,
        caption="Tasks that were asked for and have no results.",
        name="Missing tasks",
      )
    )
  else:
    parts.append(markup.paragraph("All tasks that were asked for are done."))
  asked = set(found.experiments) | {experiment for experiment, _, _ in groups}
  others = [e for e in catalogue.EXPERIMENTS if e not in asked]
  if others:
    parts.append(
      markup.paragraph(f"Experiments that were not asked for: {', '.join(others)}.")
    )
  partial = []
  for experiment in found.experiments:
    cells = results.of_agents(found.by_experiment, experiment, found.agents)
    if part := wording.num_ids(experiment, cells):
      partial.append(f"{experiment} ({part})")
  if partial:
    parts.append(
      markup.paragraph(f"Experiments with some of their ids: {', '.join(partial)}.")
    )
  mnist = [e for e in catalogue.EXPERIMENTS if e.startswith("mnist")]
  if not any(e in found.experiments for e in mnist):
    parts.append(
      markup.paragraph(
        f"Of mnist ({', '.join(mnist)}) there is nothing: its data are files of their "
        "own, which a sweep needs (--mnist_dir). The scores by tag are without it."
      )
    )
  return "\n".join(parts)


def how_made(sweep: read.Sweep, found: results.Results, command: str) -> str:
  """Commands, seeds, versions, formulas and intervals."""
  ours = ("explorax", "numpy", "matplotlib", "bsuite")
  rows = [
    [
      markup.name(experiment),
      markup.cell(markup.text(scores.formula(experiment))),
      markup.cell(markup.text(scores.regret_name(experiment))),
      markup.cell(markup.text(", ".join(catalogue.tags(experiment)))),
    ]
    for experiment in found.experiments
  ]
  return "\n".join(
    [
      "<h3>The sweep</h3>",
      markup.paragraph("It was called by:"),
      markup.preformatted(sweep.commands),
      markup.paragraph(
        f"Seeds: {', '.join(map(str, sweep.seeds))}. Tasks took "
        f"{summary.duration(sweep.seconds)} of one process, added up. Episodes: "
        + (
          "bsuite's own numbers"
          if sweep.cap is None
          else f"at most {sweep.cap:,}; with bsuite's own numbers, without --episodes, "
          "the same tasks would take about "
          f"{wording.hours(sweep.full_seconds)} of one process if their later episodes "
          "are as long as these"
        )
        + f". The index was written at {sweep.written}."
      ),
      *(
        markup.paragraph(_made_with(versions, count, len(sweep.logs)))
        for versions, count in sweep.versions
      ),
      "<h3>This page</h3>",
      markup.preformatted([command]),
      markup.paragraph(
        f"Made with python {platform.python_version()}, "
        + ", ".join(f"{name} {metadata.version(name)}" for name in ours)
        + f". It reads {os.fspath(sweep.path)}/sweep.json and, of each task that is "
        "done, bsuite's log in bsuite_csv/AGENT/seedSEED, whose checksum is compared "
        "with what the sweep noted."
      ),
      "<h3>Scores and intervals</h3>",
      markup.paragraph(
        "Scores follow bsuite 0.3.6 (bsuite/experiments/*/analysis.py), computed anew "
        "without pandas and equal to bsuite's own on the same logs. A score is "
        "computed for each seed over all of its ids, and the mean over seeds is shown. "
        + _INTERVALS
      ),
      markup.table(
        ["experiment", "score", "regret", "tags"],
        rows,
        caption="How experiments are scored. “At least 0” is also at most 1.",
        name="Formulas",
      ),
    ]
  )


def _made_with(versions: Mapping[str, Any], count: int, total: int) -> str:
  """What so many of all tasks were made with."""
  shown = {"python": versions.get("python"), **(versions.get("packages") or {})}
  shown["commit"] = versions.get("git_commit")
  names = ", ".join(f"{name} {value}" for name, value in shown.items() if value)
  whose = "Made" if count == total else f"{count:,} of the {total:,} tasks were made"
  return f"{whose} with {names}, on {versions.get('platform')}."


def _whose(entries: Sequence[Mapping[str, Any]]) -> str:
  """`dqn (seeds 0, 1), tdu (seed 0)`."""
  seeds: dict[str, set[int]] = {}
  for entry in entries:
    seeds.setdefault(entry["agent"], set()).add(entry["seed"])
  return ", ".join(
    f"{agent} ({wording.seeds(sorted(own))})" for agent, own in seeds.items()
  )
