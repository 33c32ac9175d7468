"""Measures speed and memory, beside those of other libraries.

  python benchmarks/run.py                          # all, to results/bench/bench.json
  python benchmarks/run.py --only=deep_sea,losses
  python benchmarks/run.py --quick                  # only to see that everything runs

Ratios compare samples that were taken in turn, in one run on one machine.
"""

import argparse
import datetime
import importlib
import json
import os
import pathlib
from collections.abc import Iterable

import bench

from explorax.experiments.reports import markdown

# Modules of this folder, each with its `TABLES`.
SECTIONS = (
  "deep_sea",
  "losses",
  "novelty",
  "peers",
  "distributed",
  "scaling",
)


def measure(sections: Iterable[str], quick: bool, output: pathlib.Path) -> bench.Row:
  """Measures the sections; prints each table, and writes all tables so far."""
  started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
  report = {"started": started, "quick": quick, "machine": bench.machine()}
  report["tables"] = tables = []
  on = report["machine"]
  print(f"{on['cpu']}, {on['cpus']} cores, jax {on['packages']['jax']}", flush=True)
  for section in sections:
    for table in importlib.import_module(section).TABLES:
      rows = table.rows(quick)
      origin = {"section": section, "commit": on["git_commit"]}
      tables.append({**origin, "title": table.title, "rows": rows})
      print(f"\n{table.title}\n\n{markdown.table(rows)}", flush=True)
      output.mkdir(parents=True, exist_ok=True)
      path = output / "bench.json"
      path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
  return report


def parse_sections(text: str) -> list[str]:
  """The names in a comma-separated list of sections.

  Raises:
    argparse.ArgumentTypeError: if a name is unknown.
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
    help=f"only these of {', '.join(SECTIONS)}",
  )
  parser.add_argument(
    "--quick",
    action="store_true",
    help="take short samples, whose numbers mean nothing",
  )
  args = parser.parse_args()
  # Otherwise JAX would reserve three quarters of a GPU's memory for this process, and
  # leave only the rest to the samples' processes.
  os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
  measure(args.only, args.quick, args.output)
  print(f"\nAll samples: {args.output / 'bench.json'}")


if __name__ == "__main__":
  main()
