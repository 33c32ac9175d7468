"""Compares an agent's settings by a score, and finds the best."""

import collections
import csv
import io
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.experiments import errors, overrides, presets
from explorax.experiments.reports import runs as runs_lib
from explorax.experiments.sweeps import grid as grid_lib
from explorax.experiments.sweeps import seeds as seeds_lib

_SHOWN = 10  # Rows of an agent's table.

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
  from explorax.environments import bsuite_sweeps
  from explorax.experiments.reports import scores

  logs: dict[str, dict[str, scores.Log]] = {}
  for env, run in runs.items():
    kind, _, bsuite_id = env.partition(":")
    if kind != "bsuite" or run.bsuite is None:
      raise errors.SetUpError(
        f"--score=bsuite cannot score {env}, which is not bsuite's; use --score=return."
      )
    experiment = bsuite_sweeps.experiment(bsuite_id)
    logs.setdefault(experiment, {})[bsuite_id] = run.bsuite
  return float(np.mean([scores.score(name, x) for name, x in logs.items()]))


def _return(runs: Runs) -> float:
  """The mean return over all episodes, then over environments."""
  return float(np.mean([np.mean(run.returns) for run in runs.values()]))


def _final_return(runs: Runs) -> float:
  """The same over the last half of the episodes."""
  late = (run.returns[len(run.returns) // 2 :] for run in runs.values())
  return float(np.mean([np.mean(returns) for returns in late]))


SCORES: Mapping[str, Callable[[Runs], float]] = {
  "bsuite": _bsuite,
  "return": _return,
  "final_return": _final_return,
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
    for path, seed in seeds_lib.directories(cell.config):
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
    score: one of `SCORES`; None: bsuite's on bsuite's environments, else the return.
  """
  envs = [cell.config.env for cell in grid.cells]
  is_bsuite = all(env.startswith("bsuite:") for env in envs)
  score = score or ("bsuite" if is_bsuite else "return")
  rows = compare(grid.cells, score)
  content = to_csv(table(rows, score))
  grid.directory.write("tuning.csv", lambda file: file.write(content))
  return "\n" + tell(rows, score)


def table(rows: Sequence[Row], score: str) -> list[dict[str, Any]]:
  """One row per combination of settings, for a CSV."""
  best = {id(ranked[0]) for ranked in _ranked(rows).values() if ranked[0].complete}
  return [
    {
      "agent": row.agent,
      "settings": row.settings,
      "score": score,
      "mean": row.mean,
      "standard_error": row.error,
      "seeds_done": len(row.scores),
      "seeds": row.num_seeds,
      "is_preset": row.is_preset,
      "is_best": id(row) in best,
    }
    for row in rows
  ]


def to_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
  """Rows with the same columns as a CSV."""
  text = io.StringIO()
  writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
  writer.writeheader()
  writer.writerows(rows)
  return text.getvalue().encode()


def tell(rows: Sequence[Row], score: str) -> str:
  """The best settings of each agent and the flags for them, as text."""
  return "\n\n".join(
    "\n".join(_lines(agent, ranked, score)) for agent, ranked in _ranked(rows).items()
  )


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


def _lines(agent: str, ranked: Sequence[Row], score: str) -> Iterable[str]:
  width = max(len(row.settings) for row in ranked)
  yield f"{agent}: {score} of {len(ranked)} settings, {ranked[0].num_seeds} seeds each"
  shown = [*ranked[:_SHOWN], *(row for row in ranked[_SHOWN:] if row.is_preset)]
  for row in shown:
    told = f"{row.mean:10.4g}"
    if not math.isnan(row.error):
      told += f" ± {row.error:.2g}"
    if not row.complete:
      told = f"{'none':>10} ({len(row.scores)} of {row.num_seeds} seeds have a score)"
    mark = "  the preset's own" if row.is_preset else ""
    yield f"  {row.settings:{width}} {told}{mark}"
  if len(shown) < len(ranked):
    yield f"  and {len(ranked) - len(shown)} more in tuning.csv"
  best = ranked[0]
  if not best.complete:
    yield "  no setting has a score for every seed, so none is the best."
    return
  level = sum(best.mean - row.mean <= best.error for row in ranked[1:] if row.complete)
  if level:
    yield f"  {level} of the others are within one standard error of the best."
  flags = [f"--set={assignment}" for assignment in best.assignments]
  yield f"  best: --agent={agent} {shlex.join(flags)}"
  name = overrides.join_name(agent, best.assignments)
  yield f"  in a sweep: {shlex.quote(f'--agents={name}')}"
