"""What a report has: returns compared, bsuite's and Atari's scores, and the runs."""

import collections
from collections.abc import Iterator, Mapping, Sequence

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
  title = [
    summary.count(len(agents), "agent"),
    summary.count(len(envs), "environment"),
  ]
  report = page.Report(" in ".join(title))
  pairs = [
    (run, name) for run, name in zip(runs, labels, strict=True) if run.has_returns
  ]
  compared = compare.compute(*zip(*pairs, strict=True)) if pairs else None
  games = None if compared is None else atari.compute(compared, runs, baseline)
  logs = bsuite.finished(runs, labels)
  remarks = [
    *found.remarks,
    *(() if compared is None else compared.remarks),
    *(() if games is None else games.remarks),
  ]
  missing = ""
  if found.missing:
    missing = f"; {summary.count(len(found.missing), 'run')} of a sweep missing"
  names = ", ".join(map(page.code, agents))
  report.add(f"{summary.count(len(runs), 'run')} of {names}{missing}.")
  report.add(*(f"**Note.** {text}" for text in remarks))
  if logs:
    bsuite.add_to(report, bsuite.compute(logs), dict(_lengths(runs)))
  if games is not None:
    atari.add_to(report, games, baseline)
  if compared is not None:
    drawn = [*compared.steps]
    if logs and len(drawn) > _MAX_CURVES:
      drawn = [env for env in drawn if not env.startswith("bsuite:")]
    compare.add_to(report, compared, drawn)
  report.shown += remarks
  _add_runs(report, found, command, has_bsuite=bool(logs))
  return report


def _lengths(runs: Sequence[runs_lib.Run]) -> Iterator[tuple[str, str]]:
  """Experiment and `120 of 10,000` episodes, if its runs have fewer than bsuite's."""
  asked: dict[str, set[int | None]] = {}
  for run in runs:
    kind, _, bsuite_id = run.env.partition(":")
    if kind == "bsuite":
      name = bsuite_sweeps.experiment(bsuite_id)
      asked.setdefault(name, set()).add(run.record.get("episodes"))
  for name, lengths in asked.items():
    full = bsuite_sweeps.num_episodes(bsuite_scores.ids(name)[0])
    low, high = (f(x or full for x in lengths) for f in (min, max))
    if low < full:
      upto = f" to {high:,}" if high > low else ""
      yield name, f"{low:,}{upto} of {full:,}"


def _add_runs(
  report: page.Report, found: runs_lib.Runs, command: str, *, has_bsuite: bool
) -> None:
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
    "in all runs of an environment are not shown. The runs took "
    f"{summary.duration(sum(run.seconds for run in found.runs))} in total."
  )
  made_with = collections.Counter(run.versions for run in found.runs if run.versions)
  for versions, count in made_with.items():
    report.add(f"{count:,} of the {len(found.runs):,} runs were made with {versions}.")
  commands = "\n".join([*found.commands, command])
  own = page.versions(*(["bsuite"] if has_bsuite else []))
  report.add(f"```\n{commands}\n```", f"This report was made with {own}.")


def _missing(found: runs_lib.Runs) -> list[Mapping[str, str]]:
  """bsuite's ids of an experiment together."""
  rows = collections.Counter(
    (env.partition("/")[0], agent, why) for env, agent, why in found.missing
  )
  return [
    {"environment": env, "agent": page.code(agent), "runs": f"{count:,}", "reason": why}
    for (env, agent, why), count in rows.items()
  ]
