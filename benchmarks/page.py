"""Writes the tables of docs/benchmarks.md from the rows in `results/`.

python benchmarks/page.py
"""

import json
import statistics
from typing import Any

import bench

from explorax.experiments.reports import markdown

PAGE = bench.FOLDER.parent / "docs" / "benchmarks.md"


def tables() -> dict[str, str]:
  """`MACHINE_TABLE` → the table in Markdown, with its command, commits and machine."""
  made = {}
  for path in sorted(bench.RESULTS.glob("*.json")):
    kept = json.loads(path.read_text(encoding="utf-8"))
    for name in dict.fromkeys(row["table"] for row in kept):
      rows = [row for row in kept if row["table"] == name]
      table = markdown.table([line for row in rows for line in _lines(row)])
      commits, machines = (
        "; ".join(dict.fromkeys(row[key] for row in rows))
        for key in ("commit", "machine")
      )
      origin = (
        f"`python benchmarks/bench.py --only={name}`, commit {commits}, {machines}."
      )
      made[f"{path.stem}_{name}"] = f"{table}\n\n{origin}"
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
    if samples is not first:
      pairs = zip(first, samples, strict=True)
      ratio = statistics.median(a["steps/s"] / b["steps/s"] for a, b in pairs)
      line["first, times as fast"] = f"{ratio:.2f}"
    lines.append(line)
  return lines


def _text(value: float) -> str:
  return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
  text = PAGE.read_text(encoding="utf-8")
  PAGE.write_text(markdown.fill(text, tables()), encoding="utf-8")
