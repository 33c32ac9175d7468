"""The work of `reproduce`: computes the figures' tasks, and draws them."""

import functools
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Any

import jax

from explorax.experiments import command, output, pool, signals
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import plots
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
    config = settings_lib.apply(config, [*given["set"], *seeds])
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
    workers = 1  # Other processes compute on the CPU.
  code = 0
  with signals.stop_on_signals(_announce) as stop:
    compute = functools.partial(
      pool.compute, workers=workers, ray_address=given["ray_address"], stop=stop
    )
    for request in requests:
      is_drawn = request.make(compute, directory, console)
      if stop():
        console_lib.print_error("stopped; run the same command again to resume.")
        return stop.exit_code
      code = code if is_drawn else 1
  return code


def _announce(number: signal.Signals) -> None:
  del number
  console_lib.alert(
    "stopping; finished results are kept (send it again to quit at once)"
  )
