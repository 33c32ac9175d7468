"""Searches an agent's settings: every combination of a grid, and the best by its mean.

--set qex.beta=0.01,0.1,1.0 --set "noisy_dqn.hidden_sizes=(50,50),(20,)"
"""

import csv
import io
import itertools
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from explorax.experiments import config as config_lib
from explorax.experiments import errors, output, presets
from explorax.experiments import grid as grid_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import curves
from explorax.experiments.reports import markdown
from explorax.experiments.reports import runs as runs_lib

_SHOWN = 10  # Rows of an agent's table.
# Commas outside of parentheses: hidden_sizes=(50,50),(20,).
_COMMAS = re.compile(r",(?![^()]*\))")

Grid = Mapping[str, Mapping[str, Sequence[str]]]  # Agent → setting → values as text.


def split(settings: Sequence[str], agents: Sequence[str]) -> tuple[Grid, list[str]]:
  """The grids among the values of `--set`, `AGENT.FIELD=VALUE,VALUE`, and the others.

  Raises:
    SetUpError: if there are grids, but none of these agents.
  """
  grid: dict[str, dict[str, list[str]]] = {}
  others = []
  known = {*presets.PRESETS, *agents}
  for setting in settings:
    name, _, text = setting.partition("=")
    agent, _, field = name.strip().partition(".")
    if agent in known and field:
      values = [value.strip() for value in _COMMAS.split(text)]
      grid.setdefault(agent, {}).setdefault(field, []).extend(values)
    else:
      others.append(setting)
  if grid and not {*grid} & {*agents}:
    raise errors.SetUpError(
      f"--set has values of {', '.join(grid)} to try, and none of "
      f"--agents={','.join(agents)}."
    )
  return grid, others


def variants(grid: Grid, agents: Sequence[str]) -> list[str]:
  """Each of the agents with each combination of its settings: `qex@beta=0.1`."""
  names = []
  for agent in agents:
    fields = grid.get(agent, {})
    for values in itertools.product(*fields.values()):
      pairs = zip(fields, values, strict=True)
      names.append(settings_lib.join_name(agent, ["=".join(pair) for pair in pairs]))
  return list(dict.fromkeys(names))


# Of a run.
SCORES: Mapping[str, Callable[[runs_lib.Run], float]] = {
  "return": lambda run: float(np.mean(run.returns)),
  "evaluation": lambda run: run.summary["evaluation_return"],
}


class Row(NamedTuple):
  """The scores of one combination of settings; the columns of `tuning.csv`."""

  agent: str
  settings: str  # As flags.
  score: str  # One of `SCORES`.
  mean: float  # Over the seeds; NaN if one is missing.
  standard_error: float | None
  seeds_done: int  # Whose runs are all finished.
  seeds: int


def report(
  configs: Sequence[config_lib.RunConfig], directory: output.RunDirectory, score: str
) -> str:
  """Writes `tuning.csv`; returns the best settings as text."""
  rows = ranked(configs, score)
  file = io.StringIO()
  csv.writer(file, lineterminator="\n").writerows([Row._fields, *rows])
  directory.write("tuning.csv", lambda to: to.write(file.getvalue().encode()))
  return to_text(rows)


def ranked(configs: Sequence[config_lib.RunConfig], score: str) -> list[Row]:
  """Each combination of settings: by agent, the best first, incomplete ones last.

  The score of a seed is the mean over environments.
  """
  combinations: dict[tuple[str, tuple[str, ...]], dict[int, list[float]]] = {}
  for config in configs:
    seeds = combinations.setdefault((config.agent, config.settings), {})
    for seed, path in grid_lib.directories(config).items():
      if runs_lib.read_summary(path).get("status") == "finished":
        seeds.setdefault(seed, []).append(SCORES[score](runs_lib.read(path)))
  rows, requested = [], configs[0].num_seeds
  num_envs = len({config.env for config in configs})
  for (agent, settings), seeds in combinations.items():
    scores = [float(np.mean(x)) for x in seeds.values() if len(x) == num_envs]
    mean = float(np.mean(scores)) if len(scores) == requested else math.nan
    error = curves.standard_error(np.array(scores))
    text = shlex.join([f"--set={x}" for x in settings])
    rows.append(Row(agent, text, score, mean, error, len(scores), requested))
  names = [row.agent for row in rows]
  return sorted(rows, key=lambda x: (names.index(x.agent), math.isnan(x.mean), -x.mean))


def to_text(rows: Sequence[Row]) -> str:
  """The best settings of each agent, and the flags for the best."""
  blocks = []
  for agent, group in itertools.groupby(rows, lambda row: row.agent):
    best, *others = group
    shown = [row._asdict() for row in [best, *others][:_SHOWN]]
    blocks += [f"{agent}: the best settings", markdown.table(shown)]
    if not math.isnan(best.mean):
      blocks.append(f"best: --agent={agent} {best.settings}")
  return "\n\n".join([*blocks, "All are in tuning.csv."])
