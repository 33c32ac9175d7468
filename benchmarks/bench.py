"""Functions that all benchmarks share: fresh processes, alternating rounds, tables.

  python benchmarks/bench.py deep_sea:run_peer \\
    '{"bsuite_id": "deep_sea/0", "steps": 400}'

calls a function in this process and prints its result as the last line, as JSON.
`sample` does this in a fresh process, so that the programs that are compared share no
threads, caches or memory.
"""

import csv
import functools
import importlib
import json
import os
import pathlib
import platform as platform_lib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

FOLDER = pathlib.Path(__file__).resolve().parent
_TIMEOUT = 1800  # Seconds for one sample.
_POLL = 0.1  # Seconds between two looks at the memory of a program.

Row = dict[str, Any]
Contestants = Mapping[str, Callable[[], Row]]
T = TypeVar("T")


class Table(NamedTuple):
  """A table of the report.

  Attributes:
    title: the title.
    measure: a function of `quick` that returns the rows; or its name,
      `module:function`, to call it in a fresh process on JAX's default device.
  """

  title: str
  measure: Callable[[bool], list[Row]] | str

  def rows(self, quick: bool) -> list[Row]:
    if isinstance(self.measure, str):
      return sample(self.measure, platform=None, quick=quick)
    return self.measure(quick)


class Mark(NamedTuple):
  """The counts of a program at a moment; `seconds` are since any fixed moment."""

  env_steps: int
  learner_updates: int
  seconds: float


def sample(
  function: str,
  platform: str | None = "cpu",
  python: str = sys.executable,
  **arguments: Any,
) -> Any:
  """Calls `module:function` of this folder in a fresh process; returns its result.

  `platform` is JAX's; None leaves the choice to JAX. `python` is the interpreter. The
  arguments and the result must be JSON.

  Raises:
    RuntimeError: if it failed; the message has the end of its stderr.
  """
  script = str(FOLDER / "bench.py")
  text, _ = _run([script, function, json.dumps(arguments)], platform, python)
  return json.loads(text.splitlines()[-1])


def run_speed(flags: Sequence[str], warm_up: int) -> Row:
  """Steps per second, and peak memory, of `explorax.experiments.run` with these flags.

  The first `warm_up` environment steps, which include compilation, are not measured.
  """
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "run")
    command = ["-P", "-m", "explorax.experiments.run", *flags]
    command += ["--eval_episodes=0", f"--output={path}"]
    _, peak = _run(command, "cpu")
    files = sorted(path.glob("seed*/metrics.csv")) or [path / "metrics.csv"]
    with open(files[0], newline="") as file:
      marks = [
        Mark(*(kind(row[name]) for name, kind in _OF_A_MARK.items()))
        for row in csv.DictReader(file)
      ]
  found = speed(marks, warm_up)
  found["steps_per_s"] *= len(files)  # One file for each seed.
  return found | {"peak_mib": peak}


_OF_A_MARK = {"env_steps": int, "learner_updates": int, "wall_seconds": float}


def speed(marks: Iterable[Mark], warm_up: int) -> Row:
  """Environment steps per second between the first mark after the warm-up and the last.

  Of several marks with the same time, the last one counts: the device runner reports
  many episodes at a time.
  """
  by_time = {mark.seconds: mark for mark in marks}
  measured = [mark for mark in by_time.values() if mark.env_steps >= warm_up]
  first, last = measured[0], measured[-1]
  steps, seconds = last.env_steps - first.env_steps, last.seconds - first.seconds
  if not seconds:
    raise RuntimeError(
      f"only one time was recorded after {warm_up} steps; measure more steps."
    )
  return {
    "steps_per_s": steps / seconds,
    "env_steps": last.env_steps,
    "learner_updates": last.learner_updates,
  }


def in_turn(
  contestants: Mapping[str, Callable[[], T]], rounds: int
) -> dict[str, list[T]]:
  """Calls the contestants in turn, and returns the results of each.

  Every second round has the opposite order, so that a machine that slows down does not
  favour one of them.
  """
  samples: dict[str, list[T]] = {name: [] for name in contestants}
  for i in range(rounds):
    for name in list(contestants)[:: 1 if i % 2 == 0 else -1]:
      samples[name].append(contestants[name]())
  return samples


def beside_rlax(
  name: str,
  contestants: Mapping[str, Callable[[], Any]],
  repeats: int,
  warm_up: int = 1,
) -> Row:
  """Median microseconds of a call of `explorax` and of `rlax`; the calls alternate.

  Each contestant waits until its result is computed. The one of rlax may be missing.
  The `warm_up` calls, which compile, are not measured.
  """

  def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start

  seconds = in_turn(
    {name: functools.partial(timed, call) for name, call in contestants.items()},
    warm_up + repeats,
  )
  medians = {name: 1e6 * statistics.median(x[warm_up:]) for name, x in seconds.items()}
  row = {"name": name, **{f"{name}_us": value for name, value in medians.items()}}
  if "rlax" in medians:
    row["ratio"] = medians["rlax"] / medians["explorax"]
  return row


def side_by_side(contestants: Contestants, quick: bool) -> list[Row]:
  """A row of medians and extremes for each contestant; the first one is ours.

  Args:
    contestants: name → takes a sample with `steps_per_s`, or a `note` on why not, and
      perhaps `peak_mib`. Three samples of each are taken in turn.
    quick: whether to take only one of each.
  """
  samples = in_turn(contestants, 1 if quick else 3)
  speeds = {
    name: [row["steps_per_s"] for row in found if "steps_per_s" in row]
    for name, found in samples.items()
  }
  ours = speeds[next(iter(contestants))]
  rows = []
  for name, values in speeds.items():
    row: Row = {"program": name}
    if values:
      row |= {"steps_per_s": statistics.median(values)}
      row |= {"min": min(values), "max": max(values)}
    if values and ours:
      row["explorax_times_as_fast"] = statistics.median(
        a / b for a, b in zip(ours, values, strict=True)
      )
    if peaks := [each["peak_mib"] for each in samples[name] if "peak_mib" in each]:
      row["peak_mib"] = statistics.median(peaks)
    rows.append(row | {"samples": samples[name]})
    notes = {each["note"] for each in samples[name] if "note" in each}
    if notes:
      rows[-1]["note"] = notes.pop()
  return rows


def machine() -> Row:
  """A description of the machine."""
  from explorax.experiments import versions

  info = pathlib.Path("/proc/cpuinfo")
  lines = info.read_text().splitlines() if info.exists() else []
  names = [line.split(":", 1)[1].strip() for line in lines if line[:10] == "model name"]
  cpu = names[0] if names else platform_lib.processor() or platform_lib.machine()
  return {"cpu": cpu, **versions.collect()}


def peak_mib(process: int | str = "self") -> float:
  """The peak memory of a running process, by default this one, in MiB; needs Linux.

  `ru_maxrss` would include the peak of the process that started it. 0 if it has ended.
  """
  status = pathlib.Path(f"/proc/{process}/status").read_text()
  found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
  return int(found[1]) / 1024 if found else 0.0


def run_program(command: Sequence[str | os.PathLike[str]], **to: Any) -> Row:
  """Runs a program; returns its `stdout`, its peak memory and its seconds.

  Args:
    command: the program and its arguments.
    **to: of `subprocess.Popen`.

  Raises:
    RuntimeError: if it failed; the message has the end of its stderr.
  """
  start, peak = time.perf_counter(), 0.0
  pipe = subprocess.PIPE
  with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **to) as process:
    while True:
      try:
        stdout, stderr = process.communicate(timeout=_POLL)
        break
      except subprocess.TimeoutExpired:
        peak = max(peak, peak_mib(process.pid))
        if time.perf_counter() - start > _TIMEOUT:
          process.kill()
          raise
  if process.returncode:
    raise RuntimeError(
      f"`{' '.join(map(str, command))}` ended with code {process.returncode}:\n"
      f"{stderr[-2000:]}"
    )
  seconds = time.perf_counter() - start
  return {"stdout": stdout, "peak_mib": peak, "seconds": seconds}


def _run(
  command: Sequence[str], platform: str | None, python: str = sys.executable
) -> tuple[str, float]:
  """Runs Python with XLA's default settings; returns its stdout and peak memory."""
  environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
  environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
  if platform is not None:
    environment["JAX_PLATFORMS"] = platform
  done = run_program([python, *command], env=environment)
  return done["stdout"], done["peak_mib"]


def main() -> None:
  # In peers' environments, too, ours are of this checkout.
  sys.path.insert(0, str(FOLDER.parent / "src"))
  name, arguments = sys.argv[1:]
  module, _, function = name.partition(":")
  result = getattr(importlib.import_module(module), function)(**json.loads(arguments))
  print(json.dumps(result), flush=True)


if __name__ == "__main__":
  main()
