"""The page of a comparison: fills `comparison.html`, and draws its curves."""

import math
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from explorax.experiments.recording import drawing, returns, statistics, summary
from explorax.experiments.reports import comparison, pictures, template
from explorax.experiments.reports import runs as runs_lib


class Score(NamedTuple):
  """A score as a table shows it.

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


def make(found: comparison.Comparison, *, command: str) -> template.Report:
  """Makes the page.

  Args:
    found: the comparison.
    command: that makes the page.
  """
  agents = summary.count(len(found.agents), "agent")
  envs = summary.count(len(found.envs), "environment")
  every = [run for group in found.groups.values() for run in group.runs]
  return template.fill(
    "comparison.html",
    {"curves": [_curves(found, env) for env in found.envs]},
    title=f"{agents} in {envs}",
    found=found,
    num_runs=len(every),
    window=returns.WINDOW,
    command=command,
    score_rows=[(env, _end(found, env), scores(found, env)) for env in found.envs],
    improvement_rows=[
      (x, _share(x.probability, summary.count(len(x.envs), "environment")))
      for x in found.improvements
    ],
    normalised_rows=[(agent, _share(x)) for agent, x in found.normalised.items()],
    run_rows=[(runs_lib.shown(run.path), run) for run in every],
    versions=sorted({run.versions for run in every}),
    own_versions=template.versions(),
  )


def scores(found: comparison.Comparison, env: str) -> list[Score | None]:
  """The score of each agent in an environment; None for those without a run."""
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


def table(found: comparison.Comparison) -> str:
  """The scores as text, environment by environment."""
  lines = []
  for env in found.envs:
    rows = [
      [agent, shown.remark, shown.value, shown.interval]
      for agent, shown in zip(found.agents, scores(found, env), strict=True)
      if shown is not None
    ]
    lines.append(f"{env}, return {_end(found, env)} (interquartile mean over seeds)")
    lines += summary.aligned(rows)
    lines.append("")
  return "\n".join(lines)


def number(value: float) -> str:
  """A return with about four digits: `475.2`, `12,345`, `0.004`."""
  size = math.floor(math.log10(abs(value))) if value else 0
  return f"{value:.3g}" if size < -1 else f"{value:,.{max(0, min(3, 3 - size))}f}"


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
    "curve_" + re.sub(r"[^A-Za-z0-9.-]+", "_", env),
    fig,
    f"Learning curves in {env}: return against environment steps, a line with a band "
    f"for each agent. They end with {', '.join(ends)}.",
    f"{env}: interquartile mean over seeds, with 95 % bands.",
  )
