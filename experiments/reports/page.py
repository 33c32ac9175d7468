"""The page of a report: returns and their comparison, bsuite's and Atari's scores."""

import collections
import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import scipy  # It imports `stats` when it is first used.

from explorax.experiments import reports
from explorax.experiments.recording import drawing, returns, summary
from explorax.experiments.reports import (
  atari_page,
  comparison,
  pictures,
  runs,
)
from explorax.experiments.reports import cells as cells_lib

_MAX_CURVES = 24  # Environments; with more, bsuite's have no curves of returns.


@dataclasses.dataclass(frozen=True)
class Content:
  """What a report says.

  Attributes:
    found: the runs.
    compared: the comparison of their returns; None if none has recorded its episodes.
    done: the finished runs on bsuite.
    scores: bsuite's scores of these; None if there are none.
    atari: the scores of games of Atari-57; None if there are none.
  """

  found: runs.Runs
  compared: comparison.Comparison | None
  done: "reports.bsuite_page.Finished"
  scores: "reports.results.Results | None"
  atari: atari_page.Atari | None


def compute(found: runs.Runs, baseline: str | None = None) -> Content:
  """Compares the runs, and scores those on bsuite and on Atari-57.

  Args:
    found: the runs.
    baseline: the agent over which others improve on Atari; None: the first.
  """
  labels = runs.labels(found.runs)
  pairs = list(zip(found.runs, labels, strict=True))
  with_returns = [(run, label) for run, label in pairs if run.has_returns]
  compared, atari = None, None
  if with_returns:
    compared = comparison.compute(*zip(*with_returns, strict=True))
    atari = atari_page.compute(compared, found.runs, baseline)
  if not any(run.env.startswith("bsuite:") for run in found.runs):
    return Content(found, compared, {}, None, atari)
  done = reports.results.finished(found.runs, labels)
  return Content(found, compared, done, reports.bsuite_page.compute(done), atari)


def text(content: Content) -> str:
  """The returns and scores as text; on bsuite's environments only the scores.

  The numbers over games of Atari-57 come last.
  """
  tables: dict[str, dict[str, cells_lib.Cell]] = {}
  compared, bsuite = content.compared, content.scores
  for env in compared.envs if compared is not None else ():
    if compared is not None and not (bsuite and env.startswith("bsuite:")):
      title = f"{env}, return {compared.ends[env]} (interquartile mean over seeds)"
      tables[title] = returns_of(compared, env)
  if bsuite is not None:
    for experiment in bsuite.experiments:
      tables[f"{experiment}, score"] = reports.bsuite_page.cells(bsuite, experiment)
  if content.atari is not None:
    for name in atari_page.AGGREGATES:
      title = f"Atari-57, {name} of human-normalised scores at the end"
      tables[title] = atari_page.cells(content.atari, name)
  lines = []
  for title, cells in tables.items():
    rows = [[agent, x.remark, x.value, x.interval] for agent, x in cells.items()]
    lines += [title, *summary.aligned(rows), ""]
  return "\n".join([*lines, *_remarks(content)])


def make(content: Content, *, command: str) -> "reports.template.Report":
  """Makes the page.

  Args:
    content: from `compute`.
    command: that makes the page.
  """
  found, compared, bsuite = content.found, content.compared, content.scores
  drawn: dict[str, list[pictures.Picture]] = {}
  context: dict[str, Any] = {
    "has_bsuite": bsuite is not None,
    "atari": None,
    "normalised_rows": [],
  }
  if compared is not None:
    drawn["curves"] = [_curves(compared, env) for env in _drawn(compared, bsuite)]
    context |= _comparison_context(compared)
  if bsuite is not None:
    drawn |= reports.drawings.draw(bsuite)
    context |= reports.bsuite_page.context(content.done, bsuite)
  if content.atari is not None:
    drawn |= atari_page.draw(content.atari)
    context |= atari_page.context(content.atari)
  agents = list(dict.fromkeys(runs.labels(found.runs)))
  envs = sorted({run.problem for run in found.runs})
  return reports.template.fill(
    "report.html",
    drawn,
    title=f"{summary.count(len(agents), 'agent')} in "
    f"{summary.count(len(envs), 'environment')}",
    agents=agents,
    envs=envs,
    runs=found,
    compared=compared,
    window=returns.WINDOW,
    command=command,
    remarks=_remarks(content),
    missing_rows=_missing_rows(found.missing),
    seconds=sum(run.seconds for run in found.runs),
    run_rows=[(runs.relative(run.path), run) for run in found.runs],
    versions=_versions(found.runs),
    own_versions=reports.template.versions(*["bsuite"] * (bsuite is not None)),
    **context,
  )


def returns_of(found: comparison.Comparison, env: str) -> dict[str, cells_lib.Cell]:
  """Agent → its return in an environment."""
  best = comparison.best(found, env)
  return {
    agent: cells_lib.cell(
      found.groups[agent, env].score,
      summary.count(len(found.groups[agent, env].runs), "seed"),
      bold=agent in best,
      form=number,
    )
    for agent in found.agents
    if (agent, env) in found.groups
  }


def number(value: float) -> str:
  """A return with about four digits: `475.2`, `12,345`, `0.004`."""
  size = math.floor(math.log10(abs(value))) if value else 0
  return f"{value:.3g}" if size < -1 else f"{value:,.{max(0, min(3, 3 - size))}f}"


def _comparison_context(found: comparison.Comparison) -> dict[str, Any]:
  rows = [
    (env, found.ends[env], [returns_of(found, env).get(a) for a in found.agents])
    for env in found.envs
  ]
  improvements = [
    (x, cells_lib.cell(x.probability, summary.count(len(x.envs), "environment")))
    for x in found.improvements
  ]
  normalised = [(agent, cells_lib.cell(x)) for agent, x in found.normalised.items()]
  return {
    "return_rows": rows,
    "improvement_rows": improvements,
    "normalised_rows": normalised,
  }


def _remarks(content: Content) -> list[str]:
  compared = content.compared
  return [
    *content.found.remarks,
    *(compared.remarks if compared is not None else ()),
    *(content.atari.remarks if content.atari is not None else ()),
  ]


def _missing_rows(
  missing: Sequence[tuple[str, str, str]],
) -> list[tuple[tuple[str, str, str], int]]:
  """((environment, agent, reason), number of runs), bsuite's ids together."""
  rows = ((env.partition("/")[0], agent, why) for env, agent, why in missing)
  return list(collections.Counter(rows).items())


def _versions(found: Sequence[runs.Run]) -> list[str]:
  """A sentence for each set of versions that made some of the runs."""
  counts = collections.Counter(run.versions for run in found if run.versions)
  return [
    f"{count:,} of the {len(found):,} runs were made with {versions}."
    for versions, count in counts.items()
  ]


def _drawn(
  found: comparison.Comparison, bsuite: "reports.results.Results | None"
) -> Sequence[str]:
  """The environments whose curves of returns are drawn."""
  if bsuite is None or len(found.envs) <= _MAX_CURVES:
    return found.envs
  return [env for env in found.envs if not env.startswith("bsuite:")]


def _curves(found: comparison.Comparison, env: str) -> pictures.Picture:
  agents = [agent for agent in found.agents if (agent, env) in found.groups]
  fig, axes = pictures.new(3.2, env, agents)
  lines, ends, styles = [], [], drawing.styles(found.agents)
  for agent in agents:
    first = len(axes.lines)
    drawing.seeds(
      axes,
      found.steps[env],
      found.groups[agent, env].curves,
      label=agent,
      style=styles[agent],
      statistic=functools.partial(scipy.stats.trim_mean, proportiontocut=0.25),
    )
    lines.append(axes.lines[first])
    ends.append(f"{agent} at {number(float(lines[-1].get_ydata()[-1]))}")
  axes.set(xlabel="environment steps", ylabel="return")
  drawing.shorten_numbers(axes.xaxis)
  axes.grid(alpha=0.3)
  pictures.legend(fig, lines, agents)
  return pictures.make(
    "return_" + runs.file_name(env),
    fig,
    f"Learning curves in {env}: return against environment steps, a line for each "
    f"agent. They end with {', '.join(ends)}.",
    f"{env}: interquartile mean over seeds, with 95 % bands; of at most {drawing.FEW} "
    "seeds each is a thin line.",
  )
