"""The page of a report: returns and their comparison, and bsuite's scores."""

import dataclasses
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from explorax.experiments.recording import drawing, returns, statistics, summary
from explorax.experiments.reports import comparison, pictures, runs, template

if TYPE_CHECKING:
  from explorax.experiments.reports import bsuite_page, results

_MAX_CURVES = 24  # Environments; with more, bsuite's have no curves of returns.


class Score(NamedTuple):
  """A return, or a share, as a table shows it.

  Attributes:
    value: as text.
    interval: as text; '' for a single seed.
    remark: on its seeds.
    bold: whether it is the best.
  """

  value: str
  interval: str
  remark: str = ""
  bold: bool = False


@dataclasses.dataclass(frozen=True)
class Content:
  """What a report says.

  Attributes:
    found: the runs.
    compared: the comparison of their returns; None if none has recorded its episodes.
    done: the finished runs on bsuite.
    scores: bsuite's scores of these; None if there are none.
  """

  found: runs.Runs
  compared: comparison.Comparison | None
  done: "bsuite_page.Finished"
  scores: "results.Results | None"


def compute(found: runs.Runs) -> Content:
  """Compares the runs, and scores those on bsuite."""
  labels = runs.labels(found.runs)
  pairs = list(zip(found.runs, labels, strict=True))
  with_returns = [(run, label) for run, label in pairs if len(run.returns)]
  compared = None
  if with_returns:
    compared = comparison.compute(*zip(*with_returns, strict=True))
  if not any(run.env.startswith("bsuite:") for run in found.runs):
    return Content(found, compared, {}, None)
  from explorax.experiments.reports import bsuite_page, results

  done = results.finished(found.runs, labels)
  return Content(found, compared, done, bsuite_page.compute(done))


def text(content: Content) -> str:
  """The returns and scores as text; on bsuite's environments only the scores."""
  lines = []
  compared = content.compared
  for env in compared.envs if compared is not None else ():
    if compared is None or (content.scores and env.startswith("bsuite:")):
      continue
    rows = [
      [agent, shown.remark, shown.value, shown.interval]
      for agent, shown in zip(compared.agents, scores(compared, env), strict=True)
      if shown is not None
    ]
    end = _end(compared, env)
    lines.append(f"{env}, return {end} (interquartile mean over seeds)")
    lines += [*summary.aligned(rows), ""]
  if content.scores is not None:
    from explorax.experiments.reports import results

    lines.append(results.text(content.scores))
  return "\n".join([*lines, *_remarks(content)])


def make(content: Content, *, command: str) -> template.Report:
  """Makes the page.

  Args:
    content: from `compute`.
    command: that makes the page.
  """
  found, compared, bsuite = content.found, content.compared, content.scores
  drawn: dict[str, list[pictures.Picture]] = {}
  context: dict[str, Any] = {
    "has_bsuite": bsuite is not None,
    "capped": {},
    "normalised_rows": [],
  }
  if compared is not None:
    drawn["curves"] = [_curves(compared, env) for env in _drawn(compared, bsuite)]
    context |= _comparison_context(compared)
  if bsuite is not None:
    from explorax.experiments.reports import bsuite_page

    drawn |= bsuite_page.draw(content.done, bsuite)
    context |= bsuite_page.context(content.done, bsuite, found.missing)
  agents = list(dict.fromkeys(runs.labels(found.runs)))
  envs = sorted({run.env for run in found.runs})
  return template.fill(
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
    num_asked=len(found.runs) + len(found.missing),
    seconds=sum(run.seconds for run in found.runs),
    run_rows=[(runs.shown(run.path), run) for run in found.runs],
    versions=_versions(found.runs),
    own_versions=template.versions(*["bsuite"] * (bsuite is not None)),
    **context,
  )


def scores(found: comparison.Comparison, env: str) -> list[Score | None]:
  """The return of each agent in an environment; None for those without a run."""
  best = comparison.best(found, env)
  shown: list[Score | None] = []
  for agent in found.agents:
    group = found.groups.get((agent, env))
    if group is None:
      shown.append(None)
      continue
    seeds = summary.count(len(group.runs), "seed")
    interval = "" if len(group.runs) == 1 else _interval(group.score, number)
    value = number(float(group.score.value))
    shown.append(Score(value, interval, seeds, agent in best))
  return shown


def number(value: float) -> str:
  """A return with about four digits: `475.2`, `12,345`, `0.004`."""
  size = math.floor(math.log10(abs(value))) if value else 0
  return f"{value:.3g}" if size < -1 else f"{value:,.{max(0, min(3, 3 - size))}f}"


def _comparison_context(found: comparison.Comparison) -> dict[str, Any]:
  return {
    "score_rows": [(env, _end(found, env), scores(found, env)) for env in found.envs],
    "improvement_rows": [
      (x, _share(x.probability, summary.count(len(x.envs), "environment")))
      for x in found.improvements
    ],
    "normalised_rows": [(agent, _share(x)) for agent, x in found.normalised.items()],
  }


def _remarks(content: Content) -> list[str]:
  compared = content.compared
  return [*content.found.remarks, *(compared.remarks if compared is not None else ())]


def _missing_rows(missing: Sequence[runs.Missing]) -> list[dict[str, Any]]:
  """The missing runs, by the kind of environment and by reason."""
  groups: dict[tuple[str, str], list[runs.Missing]] = {}
  for run in missing:
    # All ids of an experiment of bsuite together.
    groups.setdefault((run.env.partition("/")[0], run.reason), []).append(run)
  rows = []
  for (env, reason), group in groups.items():
    seeds: dict[str, set[int]] = {}
    for run in group:
      seeds.setdefault(run.agent, set()).add(run.seed)
    whose = [f"{a} ({template.seeds(sorted(own))})" for a, own in seeds.items()]
    whose_text = ", ".join(whose)
    rows.append(
      {"env": env, "count": len(group), "whose": whose_text, "reason": reason}
    )
  return rows


def _versions(found: Sequence[runs.Run]) -> list[str]:
  """A sentence for each set of versions that made some of the runs."""
  counts: dict[str, int] = {}
  for run in found:
    counts[run.versions] = counts.get(run.versions, 0) + 1
  total = len(found)
  return [
    f"{'Made' if count == total else f'{count:,} of the {total:,} runs were made'} "
    f"with {versions}."
    for versions, count in counts.items()
    if versions
  ]


def _drawn(
  found: comparison.Comparison, bsuite: "results.Results | None"
) -> Sequence[str]:
  """The environments whose curves of returns are drawn."""
  if bsuite is None or len(found.envs) <= _MAX_CURVES:
    return found.envs
  return [env for env in found.envs if not env.startswith("bsuite:")]


def _share(x: statistics.Interval, remark: str = "") -> Score:
  """A number between 0 and 1."""
  interval = "" if math.isnan(x.low) else _interval(x, template.decimals)
  return Score(template.decimals(float(x.value)), interval, remark)


def _interval(x: statistics.Interval, form: Callable[[float], str]) -> str:
  return f"[{form(float(x.low))}, {form(float(x.high))}]"


def _end(found: comparison.Comparison, env: str) -> str:
  return f"at step {found.steps[env][-1]:,.0f}"


def _curves(found: comparison.Comparison, env: str) -> pictures.Picture:
  agents = [agent for agent in found.agents if (agent, env) in found.groups]
  fig, axes = pictures.new(3.2, env, agents)
  ends = []
  for agent in agents:
    group = found.groups[agent, env]
    drawn = drawing.curve(
      axes,
      found.steps[env],
      group.curves,
      label=agent,
      index=found.agents.index(agent),
      statistic=lambda x: statistics.interquartile_mean([np.moveaxis(x, -2, -1)]),
    )
    ends.append(f"{agent} at {number(float(drawn.value[-1]))}")
  axes.set(xlabel="environment steps", ylabel="return")
  axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
  axes.grid(alpha=0.3)
  pictures.legend(fig, list(axes.lines), agents)
  return pictures.make(
    "return_" + re.sub(r"[^A-Za-z0-9.-]+", "_", env),
    fig,
    f"Learning curves in {env}: return against environment steps, a line with a band "
    f"for each agent. They end with {', '.join(ends)}.",
    f"{env}: interquartile mean over seeds, with 95 % bands.",
  )
