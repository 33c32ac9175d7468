"""Measures speed and memory side by side with the peers.

  python benchmarks/run.py                          # all, to results/bench/bench.json
  python benchmarks/run.py --only=deep_sea,memory
  python benchmarks/run.py --quick                  # only to see that everything runs

Ratios compare what was measured in turn in one run on one machine. Goals are printed
beside what was measured, and never make this fail.
"""

import argparse
import datetime
import importlib.util
import json
import math
import os
import pathlib
import platform
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

Row = dict[str, Any]


class Table(NamedTuple):
  """A table of the report."""

  title: str
  measure: Callable[[bool], list[Row]]  # quick → rows


def _load(name: str) -> types.ModuleType:
  """A module beside this file.

  By its path: as a plain name, `losses` could as well be the library's folder.
  """
  path = pathlib.Path(__file__).resolve().with_name(f"{name}.py")
  spec = importlib.util.spec_from_file_location(f"explorax_benchmarks_{name}", path)
  if spec is None or spec.loader is None:
    raise ImportError(f"{path} cannot be loaded.")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _deep_sea() -> list[Table]:
  deep_sea = _load("deep_sea")
  return [
    Table(
      "Bootstrapped DQN on Deep Sea: environment steps per second",
      deep_sea.measure_speed,
    ),
    Table("Milliseconds of a step, by part", deep_sea.measure_parts),
  ]


def _device() -> list[Table]:
  device = _load("device")
  title = "The device runner on Deep Sea: environment steps per second, all seeds"
  return [Table(title, device.measure)]


def _memory() -> list[Table]:
  deep_sea = _load("deep_sea")
  return [
    Table("Peak memory of a run on Deep Sea", deep_sea.measure_memory),
    Table("Memory of a transition in replay", deep_sea.measure_replay_memory),
  ]


def _losses() -> list[Table]:
  losses = _load("losses")

  def measure(quick: bool) -> list[Row]:
    return losses.measure(repeats=30 if quick else 300)

  return [Table("Losses, beside rlax", measure)]


def _novelty() -> list[Table]:
  novelty = _load("novelty")

  def measure(quick: bool) -> list[Row]:
    return novelty.measure(num_steps=50 if quick else 500)

  return [Table("A step of episodic novelty, beside rlax", measure)]


def _sequences() -> list[Table]:
  sequences = _load("sequences")
  return [
    Table("Acting on Pong: steps per second", sequences.measure_acting),
    Table("Replay of frames in Reverb", sequences.measure_replay_memory),
    Table("Learner of ngu", sequences.measure_learner),
  ]


def _distributed() -> list[Table]:
  distributed = _load("distributed")
  return [
    Table(
      "The distributed runner's actors while its learner sleeps: environment steps per "
      "second of all",
      distributed.measure_acting,
    ),
    Table("Shares of the learner's time, with two actors", distributed.measure_learner),
    Table("Weights through Ray's object store", distributed.measure_weights),
    Table("Seconds after a kill", distributed.measure_recovery),
    Table(
      "R2D2 on Pong with 256 actors and one GPU, on paper", distributed.measure_scaling
    ),
  ]


# Modules are loaded when they are asked for: what compares with the peers needs them.
SECTIONS: dict[str, Callable[[], list[Table]]] = {
  "deep_sea": _deep_sea,
  "device": _device,
  "memory": _memory,
  "losses": _losses,
  "novelty": _novelty,
  "sequences": _sequences,
  "distributed": _distributed,
}


def machine() -> dict[str, Any]:
  """What all of it was measured on."""
  from explorax.experiments import versions

  return {"cpu": _cpu_model(), **versions.collect()}


def _cpu_model() -> str:
  info = pathlib.Path("/proc/cpuinfo")
  lines = info.read_text().splitlines() if info.exists() else []
  names = [line.split(":", 1)[1].strip() for line in lines if line[:10] == "model name"]
  return names[0] if names else platform.processor() or platform.machine()


def format_value(value: Any) -> str:
  """Four significant digits, and no exponent where none is needed."""
  if not isinstance(value, float) or not math.isfinite(value):
    return str(value)
  return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def format_table(rows: list[Row]) -> str:
  """Rows as a Markdown table; what is itself a list or a dict is left to the JSON."""
  columns = list(
    dict.fromkeys(
      name
      for row in rows
      for name, value in row.items()
      if not isinstance(value, (dict, list, tuple))
    )
  )
  cells = [columns] + [
    [format_value(row[c]) if c in row else "–" for c in columns] for row in rows
  ]
  widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]

  def join(line: Iterable[str]) -> str:
    padded = (cell.ljust(w) for cell, w in zip(line, widths, strict=True))
    return "| " + " | ".join(padded) + " |"

  rule = join("-" * w for w in widths)
  return "\n".join([join(cells[0]), rule, *map(join, cells[1:])])


def measure(sections: Iterable[str], quick: bool, output: pathlib.Path) -> Row:
  """Measures the sections; prints each table, and writes what there is so far."""
  started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
  report: Row = {"started": started, "quick": quick, "machine": machine(), "tables": []}
  on = report["machine"]
  print(f"{on['cpu']}, {on['cpus']} cores, jax {on['packages']['jax']}", flush=True)
  for section in sections:
    for table in SECTIONS[section]():
      rows = table.measure(quick)
      report["tables"].append({"section": section, "title": table.title, "rows": rows})
      print(f"\n{table.title}\n\n{format_table(rows)}", flush=True)
      output.mkdir(parents=True, exist_ok=True)
      path = output / "bench.json"
      path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
  return report


def parse_sections(text: str) -> list[str]:
  """A list with commas, every name known.

  Raises:
    argparse.ArgumentTypeError: at an unknown name.
  """
  names = [name.strip() for name in text.split(",")]
  for name in names:
    if name not in SECTIONS:
      raise argparse.ArgumentTypeError(
        f"there is no section {name!r}; choose from {', '.join(SECTIONS)}."
      )
  return names


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--output", type=pathlib.Path, default="results/bench")
  parser.add_argument(
    "--only",
    type=parse_sections,
    default=list(SECTIONS),
    metavar="SECTION,...",
    help=f"of {', '.join(SECTIONS)}",
  )
  parser.add_argument(
    "--quick", action="store_true", help="short samples: not for reporting"
  )
  args = parser.parse_args()
  # JAX would take three quarters of a GPU for this process, and leave the samples,
  # which are processes of their own, what remains.
  os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
  measure(args.only, args.quick, args.output)
  print(f"\nAll samples: {args.output / 'bench.json'}")


if __name__ == "__main__":
  main()
