"""Compares an agent's settings by a score, and finds the best."""

import collections
import csv
import io
import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from explorax import environments
from explorax.experiments import errors, overrides, presets, reports
from explorax.experiments.recording import summary
from explorax.experiments.reports import runs as runs_lib
from explorax.experiments.sweeps import grid as grid_lib

_SHOWN = 10  # Rows of an agent's table.
_COLUMNS = (
  *("agent", "settings", "score", "mean", "standard_error"),
  *("seeds_done", "seeds", "is_preset", "is_best"),
)

Runs = Mapping[str, runs_lib.Run]  # Environment → the run of one agent and seed.


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
  def complete(self) -> bool:
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

  @property
  def settings(self) -> str:
    return " ".join(self.assignments)


def _bsuite(runs: Runs) -> float:
  """The mean over experiments of bsuite's score on the ids that were run."""
  logs: dict[str, dict[str, reports.scores.Log]] = {}
  for env, run in runs.items():
    kind, _, bsuite_id = env.partition(":")
    if kind != "bsuite" or run.bsuite is None:
      raise errors.SetUpError(
        f"--score=bsuite cannot score {env}, which is not bsuite's; use --score=return."
      )
    experiment = environments.bsuite_sweeps.experiment(bsuite_id)
    logs.setdefault(experiment, {})[bsuite_id] = run.bsuite
  return float(np.mean([reports.scores.score(name, x) for name, x in logs.items()]))


def _return(runs: Runs) -> float:
  """The mean return over all episodes, then over environments."""
  return float(np.mean([np.mean(run.returns) for run in runs.values()]))


def _final_return(runs: Runs) -> float:
  """The same over the last half of the episodes."""
  late = (run.returns[len(run.returns) // 2 :] for run in runs.values())
  return float(np.mean([np.mean(returns) for returns in late]))


def _evaluation(runs: Runs) -> float:
  """The mean return of the last evaluation, then the mean over environments."""
  evaluations = {env: run.evaluations() for env, run in runs.items()}
  for env, each in evaluations.items():
    if not each:
      raise errors.SetUpError(
        f"--score=evaluation cannot score {env}, whose run has no evaluation; use "
        "--score=return."
      )
  return float(np.mean([each[-1][1] for each in evaluations.values()]))


SCORES: Mapping[str, Callable[[Runs], float]] = {
  "bsuite": _bsuite,
  "return": _return,
  "final_return": _final_return,
  "evaluation": _evaluation,
}


def compare(cells: Sequence[grid_lib.Cell], score: str) -> list[Row]:
  """The scores of each combination of settings, in order.

  Args:
    cells: of the grid.
    score: one of `SCORES`.
  """
  found: dict[tuple[str, tuple[str, ...]], dict[int, dict[str, runs_lib.Run]]] = {}
  envs = {cell.config.env for cell in cells if not cell.left_out}
  for cell in cells:
    of_agent = found.setdefault((cell.config.agent, cell.config.settings), {})
    for path, seed in grid_lib.directories(cell.config):
      if (path / "summary.json").exists():
        run = runs_lib.read(path)
        if run.status == "finished":
          of_agent.setdefault(seed, {})[run.env] = run
  num_seeds = cells[0].config.num_seeds
  return [
    Row(
      agent,
      assignments,
      tuple(SCORES[score](runs) for runs in of_seeds.values() if {*runs} == envs),
      num_seeds,
      _is_preset(agent, assignments, min(envs)),
    )
    for (agent, assignments), of_seeds in found.items()
  ]


def report(grid: grid_lib.Grid, score: str | None) -> str:
  """Writes `tuning.csv`; returns the best settings as text.

  Args:
    grid: that was computed.
    score: one of `SCORES`; None: bsuite's on bsuite's environments, else that of
      evaluations if the runs have them, else the return.
  """
  configs = [cell.config for cell in grid.cells]
  is_bsuite = all(config.env.startswith("bsuite:") for config in configs)
  evaluates = all(config.evaluates for config in configs)
  score = score or ("bsuite" if is_bsuite else "evaluation" if evaluates else "return")
  rows = compare(grid.cells, score)
  content = to_csv(rows, score)
  grid.directory.write("tuning.csv", lambda file: file.write(content))
  return "\n" + text(rows, score)


def to_csv(rows: Sequence[Row], score: str) -> bytes:
  """One row per combination of settings."""
  file = io.StringIO()
  writer = csv.writer(file, lineterminator="\n")
  writer.writerow(_COLUMNS)
  best = {id(ranked[0]) for ranked in _ranked(rows).values() if ranked[0].complete}
  for row in rows:
    numbers = row.mean, row.error, len(row.scores), row.num_seeds
    flags = row.is_preset, id(row) in best
    writer.writerow((row.agent, row.settings, score, *numbers, *flags))
  return file.getvalue().encode()


def text(rows: Sequence[Row], score: str) -> str:
  """The best settings of each agent, and the flags for the best, as text."""
  lines = []
  for agent, ranked in _ranked(rows).items():
    counts = f"{len(ranked)} settings, {ranked[0].num_seeds} seeds each"
    lines.append(f"{agent}: {score} of {counts}; tuning.csv has all of them")
    lines += summary.aligned([_cells(row) for row in ranked[:_SHOWN]])
    if ranked[0].complete:
      flags = shlex.join([f"--set={x}" for x in ranked[0].assignments])
      lines.append(f"  best: --agent={agent} {flags}")
  return "\n".join(lines)


def _is_preset(agent: str, assignments: Sequence[str], env: str) -> bool:
  config = presets.PRESETS[agent].config_for(env)
  return overrides.apply(config, assignments) == config


def _ranked(rows: Sequence[Row]) -> dict[str, list[Row]]:
  """Agent → its rows, best first, incomplete ones last."""
  by_agent: dict[str, list[Row]] = collections.defaultdict(list)
  for row in rows:
    by_agent[row.agent].append(row)
  for of_agent in by_agent.values():
    of_agent.sort(key=lambda row: -row.mean if row.complete else math.inf)
  return by_agent


def _cells(row: Row) -> list[str]:
  """Settings, score, standard error and a remark."""
  error = "" if math.isnan(row.error) else f"± {row.error:.2g}"
  mean = "" if math.isnan(row.mean) else f"{row.mean:.4g}"
  remark = "the preset's" if row.is_preset else ""
  if not row.complete:
    remark = f"{len(row.scores)} of {row.num_seeds} seeds"
  return [row.settings, mean, error, remark]
