"""Searches an agent's settings: every combination of a grid, and the best by its mean.

A grid is a TOML file with a table for each preset, and the values of each setting:

    [qex]
    beta = [0.01, 0.1, 1.0]

    [noisy_dqn]
    noisy_sigma = [0.1, 0.5]
    hidden_sizes = [[50, 50], [20]]

On the command line the same is `--set qex.beta=0.01,0.1,1.0`.
"""

import collections
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
from explorax.experiments.recording import summary
from explorax.experiments.reports import bsuite_scores
from explorax.experiments.reports import runs as runs_lib

_SHOWN = 10  # Rows of an agent's table.
_COLUMNS = (
  *("agent", "settings", "score", "mean", "standard_error"),
  *("seeds_done", "seeds", "is_preset", "is_best"),
)
# Commas outside of parentheses: hidden_sizes=(50,50),(20,).
_COMMAS = re.compile(r",(?![^()]*\))")

Grid = Mapping[str, Mapping[str, Sequence[str]]]  # Agent → setting → values as text.
Runs = Mapping[str, runs_lib.Run]  # Environment → the run of one agent and seed.


def from_flags(flags: Mapping[str, Any], agents: Sequence[str]) -> tuple[Grid, Any]:
  """The grid of `--sweep_config` or of `--set`, and the other values of `--set`.

  The grid is empty if there is none.

  Raises:
    SetUpError: if there are two grids, or a score without a grid.
  """
  grid, others = from_settings(flags["set"], agents)
  file = flags["sweep_config"]
  if grid and file:
    raise errors.SetUpError(
      f"--sweep_config={file} and --set AGENT.FIELD=VALUE,VALUE are both grids; leave "
      "one of them out."
    )
  if file:
    grid = load(file)
  if flags["score"] and not grid:
    raise errors.SetUpError(
      f"--score={flags['score']} has no effect without a grid of settings; add "
      "--sweep_config or --set AGENT.FIELD=VALUE,VALUE, or leave out --score."
    )
  return grid, others


def load(name: str) -> Grid:
  """The grid of a TOML file.

  Raises:
    SetUpError: if it cannot be read, or is none.
  """
  try:
    grid = tomllib.loads(pathlib.Path(name).expanduser().read_text(encoding="utf-8"))
  except (OSError, ValueError) as error:
    raise errors.SetUpError(
      f"--sweep_config={name} is no TOML file that can be read "
      f"({errors.describe(error)})."
    ) from error
  for agent, settings in grid.items():
    if agent not in presets.PRESETS:
      near = errors.nearest(agent, list(presets.PRESETS))
      raise errors.SetUpError(
        f"--sweep_config={name} has the unknown agent {agent!r}.{near}"
      )
    lists = settings.values() if isinstance(settings, dict) else ()
    if not lists or not all(isinstance(x, list) and x for x in lists):
      raise errors.SetUpError(
        f"--sweep_config={name} has {agent} = {settings!r}; write a list of values to "
        "try for each setting."
      )
  return {
    agent: {name: [*map(_text, values)] for name, values in settings.items()}
    for agent, settings in grid.items()
  }


def _text(value: Any) -> str:
  """A value as a user would type it after --set."""
  if isinstance(value, bool):
    return str(value).lower()
  if isinstance(value, list):
    return ",".join(map(_text, value)) or "()"
  short = f"{value:g}" if isinstance(value, float) else str(value)
  return short if not isinstance(value, float) or float(short) == value else repr(value)


def from_settings(
  settings: Sequence[str], agents: Sequence[str]
) -> tuple[Grid, list[str]]:
  """The grid of `AGENT.FIELD=VALUE,VALUE,…` among the values of `--set`.

  Returns:
    The grid, in which an agent without such settings has one combination, and the
    other settings; the grid is empty if there are none.

  Raises:
    SetUpError: for a setting without values, or given twice.
  """
  grid: dict[str, dict[str, list[str]]] = {agent: {} for agent in agents}
  others = []
  for setting in settings:
    name, _, text = setting.partition("=")
    agent, _, field = name.strip().partition(".")
    if agent not in grid or not field:
      others.append(setting)
      continue
    values = [value.strip() for value in _COMMAS.split(text)]
    if field in grid[agent] or not all(values):
      raise errors.SetUpError(
        f"--set {setting} must be one list of values for the field, as "
        "AGENT.FIELD=VALUE,VALUE."
      )
    grid[agent][field] = values
  return (grid if any(grid.values()) else {}), others


def variants(grid: Grid, agents: Sequence[str]) -> list[str]:
  """Each of the agents with each combination of its settings: `qex@beta=0.1`.

  Raises:
    SetUpError: for an agent that is not in the grid.
  """
  found: list[str] = []
  for agent in agents:
    if agent not in grid:
      raise errors.SetUpError(
        f"the grid has no settings for the agent {agent!r}."
        f"{errors.nearest(agent, list(grid))} Its agents are: {', '.join(grid)}."
      )
    for values in itertools.product(*grid[agent].values()):
      pairs = zip(grid[agent], values, strict=True)
      found.append(settings_lib.join_name(agent, ["=".join(pair) for pair in pairs]))
  return list(dict.fromkeys(found))


def _bsuite(runs: Runs) -> float:
  """The mean over experiments of bsuite's score on the ids that were run."""
  logs: dict[str, dict[str, Any]] = {}
  for env, run in runs.items():
    kind, _, bsuite_id = env.partition(":")
    if kind != "bsuite" or run.bsuite is None:
      raise errors.SetUpError(
        f"--score=bsuite cannot score {env}, which is not bsuite's; use --score=return."
      )
    logs.setdefault(bsuite_sweeps.experiment(bsuite_id), {})[bsuite_id] = run.bsuite
  return float(np.mean([bsuite_scores.score(name, x) for name, x in logs.items()]))


def _return(runs: Runs) -> float:
  """The mean return over all episodes, then over environments."""
  return float(np.mean([np.mean(run.returns) for run in runs.values()]))


def _final_return(runs: Runs) -> float:
  """The same over the last half of the episodes."""
  late = (run.returns[len(run.returns) // 2 :] for run in runs.values())
  return float(np.mean([np.mean(returns) for returns in late]))


def _evaluation(runs: Runs) -> float:
  """The mean return of the last evaluation, then the mean over environments."""
  for env, run in runs.items():
    if not run.evaluations():
      raise errors.SetUpError(
        f"--score=evaluation cannot score {env}, whose run has no evaluation; use "
        "--score=return."
      )
  return float(np.mean([run.evaluations()[-1][1] for run in runs.values()]))


SCORES: Mapping[str, Callable[[Runs], float]] = {
  "bsuite": _bsuite,
  "return": _return,
  "final_return": _final_return,
  "evaluation": _evaluation,
}


class Row(NamedTuple):
  """The scores of one combination of settings.

  Attributes:
    agent: the preset.
    assignments: `setting=value` of each.
    scores: one per seed whose runs are all finished.
    num_seeds: requested.
    is_preset: whether these are the preset's own settings.
  """

  agent: str
  assignments: tuple[str, ...]
  scores: tuple[float, ...]
  num_seeds: int
  is_preset: bool

  @property
  def is_complete(self) -> bool:
    """Whether each seed has a score."""
    return len(self.scores) == self.num_seeds and not np.isnan(self.scores).any()

  @property
  def mean(self) -> float:
    """Over the seeds; NaN without any."""
    return float(np.mean(self.scores)) if self.scores else math.nan

  @property
  def error(self) -> float:
    """The standard error of the mean; NaN for fewer than two seeds."""
    if len(self.scores) < 2:
      return math.nan
    return float(np.std(self.scores, ddof=1) / math.sqrt(len(self.scores)))


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
  rows = compare(configs, score)
  content = to_csv(rows, score)
  directory.write("tuning.csv", lambda file: file.write(content))
  return to_text(rows, score)


def compare(configs: Sequence[config_lib.RunConfig], score: str) -> list[Row]:
  """The scores of each combination of settings, in order."""
  found: dict[tuple[str, tuple[str, ...]], dict[int, dict[str, runs_lib.Run]]] = {}
  envs = {config.env for config in configs}
  for config in configs:
    of_agent = found.setdefault((config.agent, config.settings), {})
    for path, seed in grid_lib.directories(config):
      if runs_lib.read_summary(path).get("status") == "finished":
        of_agent.setdefault(seed, {})[config.env] = runs_lib.read(path)
  return [
    Row(
      agent,
      assignments,
      tuple(SCORES[score](runs) for runs in of_seeds.values() if {*runs} == envs),
      configs[0].num_seeds,
      _is_preset(agent, assignments, min(envs)),
    )
    for (agent, assignments), of_seeds in found.items()
  ]


def _is_preset(agent: str, assignments: Sequence[str], env: str) -> bool:
  config = presets.PRESETS[agent].config_for(env)
  return settings_lib.apply(config, assignments) == config


def to_csv(rows: Sequence[Row], score: str) -> bytes:
  """One row per combination of settings."""
  file = io.StringIO()
  writer = csv.writer(file, lineterminator="\n")
  writer.writerow(_COLUMNS)
  best = {id(ranked[0]) for ranked in _ranked(rows).values() if ranked[0].is_complete}
  for row in rows:
    settings = " ".join(row.assignments)
    numbers = row.mean, row.error, len(row.scores), row.num_seeds
    flags = row.is_preset, id(row) in best
    writer.writerow((row.agent, settings, score, *numbers, *flags))
  return file.getvalue().encode()


def to_text(rows: Sequence[Row], score: str) -> str:
  """The best settings of each agent, and the flags for the best."""
  lines = []
  for agent, ranked in _ranked(rows).items():
    counts = f"{len(ranked)} settings, {ranked[0].num_seeds} seeds each"
    lines.append(f"{agent}: {score} of {counts}; tuning.csv has all of them")
    lines += summary.aligned([_cells(row) for row in ranked[:_SHOWN]])
    if ranked[0].is_complete:
      flags = shlex.join([f"--set={x}" for x in ranked[0].assignments])
      lines.append(f"  best: --agent={agent} {flags}")
  return "\n".join(lines)


def _ranked(rows: Sequence[Row]) -> dict[str, list[Row]]:
  """Agent → its rows, best first, incomplete ones last."""
  by_agent: dict[str, list[Row]] = collections.defaultdict(list)
  for row in rows:
    by_agent[row.agent].append(row)
  for of_agent in by_agent.values():
    of_agent.sort(key=lambda row: -row.mean if row.is_complete else math.inf)
  return by_agent


def _cells(row: Row) -> list[str]:
  """Settings, score, standard error and a remark."""
  error = "" if math.isnan(row.error) else f"± {row.error:.2g}"
  mean = "" if math.isnan(row.mean) else f"{row.mean:.4g}"
  remark = "the preset's" if row.is_preset else ""
  if not row.is_complete:
    remark = f"{len(row.scores)} of {row.num_seeds} seeds"
  return [" ".join(row.assignments), mean, error, remark]
