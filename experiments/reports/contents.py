"""What a report has: returns compared, bsuite's and Atari's scores, and the runs."""

import collections
from collections.abc import Mapping, Sequence

from explorax.environments import bsuite_sweeps
from explorax.experiments.recording import summary
from explorax.experiments.reports import atari, bsuite, bsuite_scores, compare, page
from explorax.experiments.reports import runs as runs_lib

_MAX_CURVES = 24  # Environments; with more, bsuite's have no curves of returns.


def make(
  found: runs_lib.Runs, command: str, baseline: str | None = None
) -> page.Report:
  """The report of runs.

  Args:
    found: the runs, at least one.
    command: that makes it.
    baseline: the agent over which others improve on Atari; None: the first.

  Raises:
    SetUpError: if a log of bsuite's is damaged, or there is no such agent.
  """
  runs, labels = found.runs, runs_lib.labels(found.runs)
  agents, envs = dict.fromkeys(labels), {run.problem for run in runs}
  title = (summary.count(len(agents), "agent"), summary.count(len(envs), "environment"))
  report = page.Report(" in ".join(title))
  pairs = [pair for pair in zip(runs, labels, strict=True) if pair[0].has_returns]
  compared = compare.compute(*zip(*pairs, strict=True)) if pairs else None
  games = atari.compute(compared, baseline) if compared else None
  logs = bsuite.finished(runs, labels)
  remarks = [*found.remarks, *(compared.remarks if compared else ())]
  names = ", ".join(map(page.code, agents))
  report.add(f"{summary.count(len(runs), 'run')} of {names}.")
  report.add(*(f"**Note.** {text}" for text in remarks))
  if logs:
    bsuite.add_to(report, bsuite.compute(logs), _lengths(runs))
  if games:
    atari.add_to(report, games)
  if compared:
    drawn = [*compared.steps]
    if logs and len(drawn) > _MAX_CURVES:
      drawn = [env for env in drawn if not env.startswith("bsuite:")]
    compare.add_to(report, compared, drawn)
  report.shown += remarks
  _add_runs(report, found, command)
  return report


def _lengths(runs: Sequence[runs_lib.Run]) -> dict[str, str]:
  """Experiment → `120 of 10,000`: the fewest episodes, if fewer than bsuite's."""
  lengths: dict[str, str] = {}
  by_length = sorted(
    runs, key=lambda run: run.record.get("episodes") or 0, reverse=True
  )
  for run in by_length:
    kind, _, bsuite_id = run.env.partition(":")
    if kind == "bsuite":
      name = bsuite_sweeps.experiment(bsuite_id)
      full = bsuite_sweeps.num_episodes(bsuite_scores.ids(name)[0])
      if (episodes := run.record.get("episodes") or full) < full:
        lengths[name] = f"{episodes:,} of {full:,}"
  return lengths


def _add_runs(report: page.Report, found: runs_lib.Runs, command: str) -> None:
  """Which runs there are, and how they and the report were made."""
  report.add("## The runs")
  if found.missing:
    report.add_table("Missing: asked for by a sweep, and not finished", _missing(found))
  report.add_table(
    "Every run of this report",
    [
      {
        "run": page.code(runs_lib.relative(run.path)),
        "environment": run.env,
        "seed": str(run.seed),
        "episodes": f"{run.num_episodes:,}",
        "steps": f"{run.num_steps:,}",
        "status": run.status,
      }
      for run in found.runs
    ],
  )
  report.add(
    "Agents with the same name differ in the settings after @; settings that are equal "
    "in all runs of an environment are not shown. config.json of each run has its "
    "settings and versions."
  )
  commits = {(run.record.get("versions") or {}).get("git_commit") for run in found.runs}
  report.add(f"Commits: {', '.join(sorted(filter(None, commits))) or 'unknown'}.")
  report.add("```\n{}\n```".format("\n".join([*found.commands, command])))


def _missing(found: runs_lib.Runs) -> list[Mapping[str, str]]:
  """bsuite's ids of an experiment together."""
  rows = collections.Counter(
    (env.partition("/")[0], agent, why) for env, agent, why in found.missing
  )
  return [
    {"environment": env, "agent": page.code(agent), "runs": f"{count:,}", "reason": why}
    for (env, agent, why), count in rows.items()
  ]
