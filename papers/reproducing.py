"""The work of `reproduce`: computes the figures' tasks, and draws them."""

import functools
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import jax

from explorax.experiments import command, output, pool, signals
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import plots
from explorax.papers import registry, report


def reproduce(flags: dict[str, Any], argv: list[str]) -> int | command.Work:
  """Lists the figures, or checks what was asked for; returns what remains."""
  if flags["list"]:
    return command.show(registry.listing())
  if flags["page"]:
    report.write_page(output.RunDirectory.create(flags["output"]))
    return 0
  plots.check_can_draw()
  figures = registry.choose(flags["figure"])
  seeds = [] if flags["seeds"] is None else [f"num_seeds={flags['seeds']}"]
  asked = shlex.join(["python", "-m", "explorax.papers.reproduce", *argv])
  requests = []
  for figure in figures:
    config = figure.quick if flags["quick"] else figure.config
    config = settings_lib.apply(config, [*flags["set"], *seeds])
    requests.append(report.FigureRequest(figure, config, flags["quick"], asked))
  directory = output.RunDirectory.create(flags["output"])
  return functools.partial(_draw, requests, directory, flags)


def _draw(
  requests: Sequence[report.FigureRequest],
  directory: output.RunDirectory,
  flags: dict[str, Any],
) -> int:
  """Computes and draws the figures one after another."""
  console = console_lib.Console(sys.stdout)
  workers = flags["workers"]
  if workers is None and jax.default_backend() != "cpu":
    workers = 1  # Other processes compute on the CPU.
  code = 0
  with signals.stop_on_signals() as stop:
    compute = functools.partial(
      pool.compute, workers=workers, ray_address=flags["ray_address"], stop=stop
    )
    for request in requests:
      is_drawn = request.make(compute, directory, console)
      if stop():
        console_lib.print_error("stopped; run the same command again to resume.")
        return stop.exit_code
      code = code if is_drawn else 1
  return code
