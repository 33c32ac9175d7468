"""What agents learn: claims about their parts, gymnasium, and games.

  python -m explorax.papers.learning.runs  # all missing runs, many hours of a core
  python -m explorax.papers.learning.runs --only=memory,sparse,recurrent,breakout
  python -m explorax.papers.learning.runs --only=cartpole,mountain_car,acrobot
  python -m explorax.papers.learning.runs --only=pong,freeway,montezuma
  python -m explorax.papers.learning.runs --table=results/learning/runs.jsonl

Deep Sea's episodes to solve against its size are a figure (`reproduce
--figure=tdu/scaling`). Two of the claims:

- A recurrent agent solves a task that needs memory, and one without memory does not.
- Temporally-extended exploration finds a sparse reward, and ε-greedy does not.

On gymnasium's environments, agents have the settings that `--env=gym:` selects
(`goals.py` writes their table).

An experiment (`experiments.py`) is a grid of runs with the local runner and one thread,
each in OUTPUT/EXPERIMENT/AGENT-ENV/seedSEED. Replay is in memory and seeded, so that a
run can be repeated bit for bit on one machine.
"""

import argparse
import json
import pathlib
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.experiments import config as config_lib
from explorax.experiments import grid, output, processes
from explorax.experiments import parts as parts_lib
from explorax.experiments.recording import console
from explorax.experiments.reports import runs as runs_lib
from explorax.papers.learning import experiments, tables

Row = tables.Row


class Cell(NamedTuple):
  """An agent of an experiment in an environment, with all seeds."""

  experiment: str
  label: str
  env: str
  config: config_lib.RunConfig


def cells(names: Sequence[str], folder: str) -> list[Cell]:
  """The grids of the experiments, whose runs are in this folder."""
  found = []
  for name in names:
    experiment = experiments.EXPERIMENTS[name]
    for env in experiment.envs:
      for label, (preset, settings) in experiment.agents.items():
        own_folder = config_lib.safe_name(f"{label}-{env}")
        config = config_lib.RunConfig(
          agent=preset,
          settings=settings,
          env=env,
          seed=experiment.first_seed,
          num_seeds=experiment.seeds,
          output=f"{folder}/{name}/{own_folder}",
          **{field: getattr(experiment, field) for field in _OF_A_RUN},
          eval_episodes=0
          if experiment.eval_every is None
          else experiment.eval_episodes,
        )
        found.append(Cell(name, label, env, parts_lib.resolve(config)[0]))
  return found


_OF_A_RUN = ("episodes", "steps", "eval_every")


def rows(cell: Cell) -> Iterator[Row]:
  """A row of `runs.jsonl` for each finished run."""
  for path, _ in grid.directories(cell.config):
    if (path / "summary.json").exists():
      run = runs_lib.read(path)
      if run.status == "finished":
        yield row(cell, run)


def row(cell: Cell, run: runs_lib.Run) -> Row:
  """What the tables say of a run; its `cpu_seconds` are those of its only thread."""
  config, summary = cell.config, run.summary
  common = {
    "experiment": cell.experiment,
    "label": cell.label,
    "env": cell.env,
    "seed": run.seed,
    "env_steps": summary["env_steps"],
    "learner_updates": summary["learner_updates"],
    **_made_by(run.record["versions"]),
    "cpu_seconds": round(summary["wall_seconds"], 1),
  }
  if config.episodes is not None:
    found = {name: summary[name] for name in ("solved_episode", "episodes")}
    return {**common, "max_episodes": config.episodes, **found}
  episodes = run.episodes()
  if config.eval_every is None:
    return {
      **common,
      "episodes": len(run.returns),
      "rewarded_episodes": int(np.sum(run.returns > 0)),
      "greatest_return": float(max(run.returns, default=0.0)),
      "rooms": float(max(episodes.get("rooms_so_far", ()), default=1.0)),
    }
  evaluations = run.evaluations
  seconds = np.interp(
    [steps for steps, _ in evaluations],
    run.env_steps,
    episodes["wall_seconds"],
  )
  return {
    **common,
    "training_first_100": statistics.fmean(run.returns[:100]),
    "training_last_100": statistics.fmean(run.returns[-100:]),
    "evaluations": evaluations,
    "evaluated_after": [round(float(x), 1) for x in seconds],
  }


def _made_by(versions: Mapping[str, Any]) -> dict[str, str]:
  """The commit, and the versions that matter to what is learnt."""
  packages = ("jax", "dm-haiku", "optax", "bsuite", "gymnasium", "ale-py")
  numbers = [f"{name} {versions['packages'][name]}" for name in packages]
  return {
    "commit": (versions["git_commit"] or "unknown")[:7],
    "versions": ", ".join([f"Python {versions['python']}", *numbers]),
  }


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--output", default="results/learning")
  parser.add_argument(
    "--only", default=",".join(experiments.EXPERIMENTS), metavar="NAME,..."
  )
  parser.add_argument("--workers", type=int, help="parallel tasks [one per core]")
  parser.add_argument(
    "--table", type=pathlib.Path, help="compute nothing; print the table of these runs"
  )
  args = parser.parse_args()
  names = args.only.split(",")
  for name in names:
    if name not in experiments.EXPERIMENTS:
      parser.error(
        f"no experiment {name!r}; choose from {', '.join(experiments.EXPERIMENTS)}."
      )
  code = 0
  if args.table is not None:
    runs = [json.loads(line) for line in args.table.read_text().splitlines()]
  else:
    processes.use_one_thread()  # With one worker, this process computes.
    runs, code = compute(cells(names, args.output), args.output, args.workers)
  print(tables.table(runs))
  return code


def compute(
  grids: Sequence[Cell], folder: str, workers: int | None
) -> tuple[list[Row], int]:
  """Computes the missing runs; returns the rows of all finished ones, and a code."""
  directory, here = output.RunDirectory.create(folder), console.Console(sys.stdout)
  configs = [cell.config for cell in grids]
  code = grid.compute(configs, sys.argv[1:], here, workers=workers)
  found = [row for cell in grids for row in rows(cell)]
  lines = "".join(json.dumps(row) + "\n" for row in found)
  directory.write("runs.jsonl", lambda file: file.write(lines.encode()))
  return found, code


if __name__ == "__main__":
  sys.exit(main())
