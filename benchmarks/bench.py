"""Speed and memory, beside the peers, in rows that are kept.

  python benchmarks/bench.py                          # all tables: `make bench`
  python benchmarks/bench.py --only=deep_sea,losses
  python benchmarks/bench.py --quick                  # only to see that everything runs
  python benchmarks/bench.py --page                   # only writes the page

`tables.py` lists the rows. The programs of a row run in turn, each sample in a fresh
process, so that they share no threads, caches or memory. A row is written to
`results/MACHINE.json` as soon as it is measured; the same command again measures the
rows that are missing there. Then the tables of docs/benchmarks.md are written.
"""

import argparse
import functools
import importlib
import json
import os
import pathlib
import platform
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

FOLDER = pathlib.Path(__file__).resolve().parent
RESULTS, PAGE = FOLDER / "results", FOLDER.parent / "docs" / "benchmarks.md"
_TIMEOUT = 1800  # Seconds of one sample.


class Call(NamedTuple):
  """A sample: `module:function` of this folder → its measures, such as `steps/s`."""

  function: str
  arguments: Mapping[str, Any]
  python: str | None = None  # The interpreter; None for this one.


class Row(NamedTuple):
  """A row of a table: the columns that identify it, and the programs to compare."""

  columns: Mapping[str, Any]
  programs: Mapping[str, Call]


def take(call: Call) -> dict[str, Any]:
  """A sample of a fresh process; a RuntimeError has the last line of its stderr."""
  python = existing(pathlib.Path(call.python or sys.executable))
  command = [python, __file__, call.function, json.dumps(call.arguments)]
  done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT)
  if done.returncode:  # The last line of an exception says which.
    raise RuntimeError(done.stderr.strip().splitlines()[-1][:200])
  return json.loads(done.stdout.splitlines()[-1])


def existing(path: pathlib.Path) -> pathlib.Path:
  """The path; a RuntimeError if nothing is there."""
  if not path.exists():
    raise RuntimeError(f"there is no {path}; the head of peers.py sets it up")
  return path


def in_turn(programs: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list]:
  """Calls the programs in turn, every second round in the opposite order."""
  samples: dict[str, list[Any]] = {name: [] for name in programs}
  for i in range(rounds):
    for name in list(programs)[:: 1 if i % 2 == 0 else -1]:
      samples[name].append(programs[name]())
  return samples


def rate(steps: int, call: Callable[[], Any]) -> dict[str, float]:
  """Steps per second of a call that takes so many, and the peak of memory."""
  start = time.perf_counter()
  call()
  return {"steps/s": steps / (time.perf_counter() - start), "peak MiB": peak_mib()}


def peak_mib() -> float:
  """The peak of this process's memory; on a GPU or TPU of the device's, if known."""
  if "jax" in sys.modules:
    import jax

    stats = jax.devices()[0].memory_stats() or {}
    if stats:
      return stats["peak_bytes_in_use"] / 2**20
  # `ru_maxrss` would include the peak of the process that started this one.
  status = pathlib.Path("/proc/self/status").read_text()
  return int(re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)[0]) / 1024


def describe() -> dict[str, str]:
  """The name of the machine's file, and the machine and commit of its rows."""
  import jax

  from explorax.experiments import versions

  info = pathlib.Path("/proc/cpuinfo").read_text()
  models = re.findall(r"model name\s*:\s*(.*)", info)
  on, device = versions.collect(), jax.devices()[0]
  names = [device.device_kind] if device.platform != "cpu" else []
  names.append(models[0] if models else platform.machine())
  return {
    "file": re.sub(r"[^a-z0-9]+", "_", names[0].lower()).strip("_"),
    "machine": f"{', '.join(names)}, {on['cpus']} cores, jax {jax.__version__}",
    "commit": (on["git_commit"] or "unknown")[:7],
  }


def complete(
  tables: Mapping[str, Sequence[Row]], rounds: int, folder: pathlib.Path
) -> int:
  """Measures rows of which a program is missing; returns how many programs fail."""
  on = take(Call("bench:describe", {}))
  folder.mkdir(parents=True, exist_ok=True)
  path = folder / f"{on.pop('file')}.json"
  kept: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
  num_failures, flags = 0, {k: x for k, x in os.environ.items() if k == "XLA_FLAGS"}

  def try_to(program: str, call: Call) -> dict[str, Any]:
    try:
      measures = take(call)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
      measures = {"failed": str(error)}
    print(head["table"], *head["columns"].values(), program, measures, flush=True)
    return measures

  for table, row in ((name, row) for name, rows in tables.items() for row in rows):
    head = {"table": table, "columns": {**row.columns, **flags}}
    mine = [x for x in kept if head.items() <= x.items()]
    if any(row.programs.keys() <= x["samples"].keys() for x in mine):
      continue
    programs = {k: functools.partial(try_to, k, x) for k, x in row.programs.items()}
    samples = in_turn(programs, rounds)
    good = {k: x for k, x in samples.items() if not any("failed" in y for y in x)}
    num_failures += len(samples) - len(good)
    if good:
      kept = [x for x in kept if x not in mine] + [{**head, "samples": good, **on}]
      path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
  return num_failures


def page_tables() -> dict[str, str]:
  """`MACHINE_TABLE` → the table in Markdown, with its command, commits and machine."""
  from explorax.experiments.reports import markdown

  made = {}
  for path in sorted(RESULTS.glob("*.json")):
    kept = json.loads(path.read_text(encoding="utf-8"))
    for name in dict.fromkeys(row["table"] for row in kept):
      rows = [row for row in kept if row["table"] == name]
      table = markdown.table([line for row in rows for line in _lines(row)])
      on = {x: "; ".join({row[x]: 0 for row in rows}) for x in ("commit", "machine")}
      origin = f"`python benchmarks/bench.py --only={name}`, commit {on['commit']}"
      made[f"{path.stem}_{name}"] = f"{table}\n\n{origin}, {on['machine']}."
  return made


def _lines(row: dict[str, Any]) -> list[dict[str, str]]:
  """A line for each program: its measures, and how many times as fast the first is."""
  first = next(iter(row["samples"].values()))
  lines = []
  for program, samples in row["samples"].items():
    line = {k: str(x) for k, x in row["columns"].items()}
    line |= {"program": program} if len(row["samples"]) > 1 else {}
    for measure in samples[0]:
      values = [sample[measure] for sample in samples]
      low, high = min(values), max(values)
      line[measure] = _text(statistics.median(values))
      line[measure] += f" ({_text(low)} to {_text(high)})" if high > low else ""
    if samples is not first and "steps/s" in samples[0]:
      pairs = zip(first, samples, strict=True)
      ratio = statistics.median(a["steps/s"] / b["steps/s"] for a, b in pairs)
      line["first, times as fast"] = f"{ratio:.2f}"
    lines.append(line)
  return lines


def _text(value: float) -> str:
  return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main() -> int:
  """Returns 1 if a program could not be measured."""
  import tables

  names = list(tables.make())
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--only", default=",".join(names), metavar="TABLE,...")
  parser.add_argument("--rounds", type=int, help="samples of each program")
  parser.add_argument("--quick", action="store_true", help="samples that mean nothing")
  parser.add_argument("--page", action="store_true", help="only write the page")
  args = parser.parse_args()
  chosen = args.only.split(",")
  if unknown := set(chosen) - set(names):
    parser.error(f"no table is called {unknown.pop()!r}; they are {', '.join(names)}.")
  output = pathlib.Path("results/bench_quick") if args.quick else RESULTS
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # And its sample ends.
  made, num_failures = tables.make(quick=args.quick), 0
  if not args.page:
    rounds = args.rounds or (1 if args.quick else 3)
    num_failures = complete({n: made[n] for n in chosen}, rounds, output)
  if args.page or output == RESULTS:
    from explorax.experiments.reports import markdown

    text = markdown.fill(PAGE.read_text(encoding="utf-8"), page_tables())
    PAGE.write_text(text, encoding="utf-8")
  return bool(num_failures)


def _sample(function: str, arguments: str) -> None:
  # In a peer's environment, too, ours is of this checkout.
  sys.path.insert(0, str(FOLDER.parent / "src"))
  module, _, name = function.partition(":")
  measures = getattr(importlib.import_module(module), name)(**json.loads(arguments))
  print(json.dumps(measures), flush=True)


if __name__ == "__main__":
  if len(sys.argv) == 3 and ":" in sys.argv[1]:
    _sample(*sys.argv[1:])
  else:
    sys.exit(main())
