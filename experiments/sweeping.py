"""The work of `sweep`: computes the missing runs, and prints the results."""

import contextlib
import pathlib
import shlex
import sys
from typing import Any

from explorax.experiments import config as config_lib
from explorax.experiments import errors, output
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import summary
from explorax.experiments.reports import page, runs
from explorax.experiments.sweeps import grid, grids, selection, tuning
from explorax.experiments.tasks import index, pool

_FIRST_TUNING_SEED = 1_000_000
listing = selection.listing


def compute(given: dict[str, Any], argv: list[str]) -> int:
  """Computes the missing runs, and prints the results."""
  agents, envs = selection.agents(given["agents"]), selection.environments(given)
  tried, kept = grids.from_settings(given["set"], agents)
  run_flags = {**given, "workers": None, "set": kept}
  grid_name = given["sweep_config"]
  if grid_name and tried:
    raise errors.SetUpError(
      f"--sweep_config={grid_name} and --set AGENT.FIELD=VALUE,VALUE are both grids; "
      "leave one of them out."
    )
  if grid_name:
    tried = grids.load(grid_name)
  if tried:
    agents = list(grids.variants(tried, grid_name, agents))
    run_flags["seed"] += _FIRST_TUNING_SEED
  elif given["score"]:
    raise errors.SetUpError(
      f"--score={given['score']} has no effect without a grid of settings; add "
      "--sweep_config or --set AGENT.FIELD=VALUE,VALUE, or leave out --score."
    )
  if given["runner"] != config_lib.DISTRIBUTED:
    run_flags["ray_address"] = None  # Of the pool.
  root = str(pathlib.Path(given["output"]).expanduser())
  configs = grid.configs(run_flags, agents, envs, root)
  console = console_lib.Console(sys.stdout)
  workers = pool.Pool(
    console,
    workers=grid.num_workers(configs[0], given["workers"]),
    ray_address=given["ray_address"] if run_flags["ray_address"] is None else None,
  )
  with contextlib.ExitStack() as stack:
    try:
      directory = output.RunDirectory.create(root, is_locked=True)
    except errors.OutputError as error:
      raise errors.SetUpError(str(error)) from error
    stack.callback(directory.unlock)
    found = grid.Grid(configs, directory, argv, console)
    counts = (
      summary.count(len(agents), "agent"),
      summary.count(len(envs), "environment"),
      summary.count(given["seeds"], "seed"),
    )
    number = summary.count(len(configs) * given["seeds"], "run")
    console.line(f"{number} ({', '.join(counts)}), into {directory.given}")
    asked = shlex.join(["python", "-m", "explorax.experiments.sweep", *argv])
    index.add(directory, asked, found.entries())
    with workers:
      code = found.compute(workers)
    if code in (0, 1) and tried:
      console.line(tuning.report(found, given["score"]))
    elif code in (0, 1):
      _print_results(directory.path, console)
    return code


def _print_results(path: pathlib.Path, console: console_lib.Console) -> None:
  """Prints the scores and returns of all runs, and the command of the report."""
  found = runs.read_all([str(path)])
  if found.runs:
    console.line(f"\n{page.text(page.compute(found))}")
    report = f"python -m explorax.experiments.report {shlex.quote(str(path))}"
    console.line(f"The report: {report}")
