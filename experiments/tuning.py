"""Searches an agent's settings: every combination of a grid, and the best by its mean.

A grid is a TOML file with a table for each preset, and the values of each setting:

    [qex]
    beta = [0.01, 0.1, 1.0]

    [noisy_dqn]
    noisy_sigma = [0.1, 0.5]
    hidden_sizes = [[50, 50], [20]]

On the command line the same is `--set qex.beta=0.01,0.1,1.0`.
"""

import csv
import io
import itertools
import math
import pathlib
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments import config as config_lib
from explorax.experiments import errors, output, presets
from explorax.experiments import grid as grid_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import curves
from explorax.experiments.reports import bsuite_scores, markdown
from explorax.experiments.reports import runs as runs_lib

_SHOWN = 10  # Rows of an agent's table.
# Commas outside of parentheses: hidden_sizes=(50,50),(20,).
_COMMAS = re.compile(r",(?![^()]*\))")

Grid = Mapping[str, Mapping[str, Sequence[str]]]  # Agent → setting → values as text.
Runs = Mapping[str, runs_lib.Run]  # Environment → the run of one agent and seed.


def from_flags(flags: Mapping[str, Any], agents: Sequence[str]) -> tuple[Grid, Any]:
  """The grid of `--sweep_config` and of `--set`, and the other values of `--set`.

  Raises:
    SetUpError: if the file is no grid, or there is a score without a grid.
  """
  grid: dict[str, dict[str, list[str]]] = {}
  if flags["sweep_config"]:
    grid = load(flags["sweep_config"])
    if not {*grid} & {*agents}:
      raise errors.SetUpError(
        f"--sweep_config={flags['sweep_config']} has settings of {', '.join(grid)}, "
        f"and none of --agents={','.join(agents)}."
      )
  others = []
  for setting in flags["set"]:
    name, _, text = setting.partition("=")
    agent, _, field = name.strip().partition(".")
    if agent in agents and field:
      values = [value.strip() for value in _COMMAS.split(text)]
      grid.setdefault(agent, {}).setdefault(field, []).extend(values)
    else:
      others.append(setting)
  if flags["score"] and not grid:
    raise errors.SetUpError(
      f"--score={flags['score']} has no effect without a grid of settings; add "
      "--sweep_config or --set AGENT.FIELD=VALUE,VALUE, or leave out --score."
    )
  return grid, others


def load(name: str) -> dict[str, dict[str, list[str]]]:
  """The grid of a TOML file.

  Raises:
    SetUpError: if it cannot be read, or is none.
  """
  try:
    text = pathlib.Path(name).expanduser().read_text(encoding="utf-8")
    grid = {
      agent: {field: _spelled(field, values) for field, values in x.items()}
      for agent, x in tomllib.loads(text).items()
    }
    for agent in grid:
      presets.find(agent)
  except (OSError, ValueError, TypeError, AttributeError) as error:
    raise errors.SetUpError(
      f"--sweep_config={name} is no TOML file with an [agent] and lists of values to "
      f"try, as beta = [0.1, 1.0]: {str(error).removesuffix('.')}."
    ) from error
  return grid


def _spelled(field: str, values: Any) -> list[str]:
  if not isinstance(values, list) or not values:
    raise ValueError(f"{field} is {values!r}, and no list of values")
  return [*map(settings_lib.spell, values)]


def variants(grid: Grid, agents: Sequence[str]) -> list[str]:
  """Each of the agents with each combination of its settings: `qex@beta=0.1`."""
  names = []
  for agent in agents:
    fields = grid.get(agent, {})
    for values in itertools.product(*fields.values()):
      pairs = zip(fields, values, strict=True)
      names.append(settings_lib.join_name(agent, ["=".join(pair) for pair in pairs]))
  return list(dict.fromkeys(names))


def _bsuite(runs: Runs) -> float:
  """The mean over experiments of bsuite's score on the ids that were run."""
  logs: dict[str, dict[str, Any]] = {}
  for env, run in runs.items():
    if run.bsuite is None:
      raise errors.SetUpError(f"{env} is not bsuite's; use --score=return.")
    bsuite_id = env.removeprefix("bsuite:")
    logs.setdefault(bsuite_sweeps.experiment(bsuite_id), {})[bsuite_id] = run.bsuite
  return float(np.mean([bsuite_scores.score(name, x) for name, x in logs.items()]))


def _evaluation(run: runs_lib.Run) -> float:
  if not run.evaluations:
    raise errors.SetUpError(f"{run.path} has no evaluation; use --score=return.")
  return run.evaluations[-1][1]


def _over_environments(score: Callable[[runs_lib.Run], float]) -> Callable:
  return lambda runs: float(np.mean([score(run) for run in runs.values()]))


SCORES: Mapping[str, Callable[[Runs], float]] = {
  "bsuite": _bsuite,
  "return": _over_environments(lambda run: np.mean(run.returns)),
  "final_return": _over_environments(
    lambda run: np.mean(run.returns[len(run.returns) // 2 :])
  ),
  "evaluation": _over_environments(_evaluation),
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
  configs: Sequence[config_lib.RunConfig],
  directory: output.RunDirectory,
  score: str | None,
) -> str:
  """Writes `tuning.csv`; returns the best settings as text.

  Args:
    configs: that were computed.
    directory: of all runs.
    score: one of `SCORES`; None: bsuite's on bsuite's environments, else that of
      evaluations if the runs have them, else the return.
  """
  is_bsuite = all(config.env.startswith("bsuite:") for config in configs)
  evaluates = all(config.evaluates for config in configs)
  score = score or ("bsuite" if is_bsuite else "evaluation" if evaluates else "return")
  rows = ranked(configs, score)
  file = io.StringIO()
  csv.writer(file, lineterminator="\n").writerows([Row._fields, *rows])
  directory.write("tuning.csv", lambda to: to.write(file.getvalue().encode()))
  return to_text(rows)


def ranked(configs: Sequence[config_lib.RunConfig], score: str) -> list[Row]:
  """Each combination of settings: by agent, the best first, incomplete ones last."""
  combinations: dict[tuple[str, tuple[str, ...]], dict[int, dict[str, Any]]] = {}
  envs = {config.env for config in configs}
  for config in configs:
    seeds = combinations.setdefault((config.agent, config.settings), {})
    for path, seed in grid_lib.directories(config):
      if runs_lib.read_summary(path).get("status") == "finished":
        seeds.setdefault(seed, {})[config.env] = runs_lib.read(path)
  rows, requested = [], configs[0].num_seeds
  for (agent, settings), seeds in combinations.items():
    scores = [SCORES[score](runs) for runs in seeds.values() if {*runs} == envs]
    mean = float(np.mean(scores)) if len(scores) == requested else math.nan
    error = curves.standard_error(np.array(scores))
    text = shlex.join([f"--set={x}" for x in settings])
    rows.append(Row(agent, text, score, mean, error, len(scores), requested))
  agents = [row.agent for row in rows]
  return sorted(
    rows, key=lambda x: (agents.index(x.agent), math.isnan(x.mean), -x.mean)
  )


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
