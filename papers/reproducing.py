"""The work of `reproduce`: computes the figures' tasks, and draws them."""

import functools
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import jax

from explorax.experiments import command, output, overrides
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import plots
from explorax.experiments.tasks import pool as pool_lib
from explorax.papers import registry, report


def reproduce(given: dict[str, Any], argv: list[str]) -> int | command.Work:
  """Lists the figures, or checks what was asked for; returns what remains."""
  if given["list"]:
    return command.show(registry.listing())
  if given["page"]:
    report.write_page(output.RunDirectory.create(given["output"]))
    return 0
  plots.check_can_draw()
  figures = registry.choose(given["figure"])
  seeds = [] if given["seeds"] is None else [f"num_seeds={given['seeds']}"]
  asked = shlex.join(["python", "-m", "explorax.papers.reproduce", *argv])
  requests = []
  for figure in figures:
    config = figure.quick if given["quick"] else figure.config
    config = overrides.apply(config, [*given["set"], *seeds])
    requests.append(report.FigureRequest(figure, config, given["quick"], asked))
  directory = output.RunDirectory.create(given["output"])
  return functools.partial(_draw, requests, directory, given)


def _draw(
  requests: Sequence[report.FigureRequest],
  directory: output.RunDirectory,
  given: dict[str, Any],
) -> int:
  """Computes and draws the figures one after another."""
  console = console_lib.Console(sys.stdout)
  workers = given["workers"]
  if workers is None and jax.default_backend() != "cpu":
    workers = 1  # Ray's workers compute on the CPU.
  address = given["ray_address"]
  with pool_lib.Pool(console, workers=workers, ray_address=address) as pool:
    for request in requests:
      if not request.make(pool, directory, console) and pool.is_stopped():
        console_lib.print_error("stopped; run the same command again to resume.")
        return pool.exit_code
    return 1 if pool.failed else 0
