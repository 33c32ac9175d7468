"""Writes the tables of docs/benchmarks.md from the measurements that are kept.

  python benchmarks/page.py

`results/measured.json` has the measurements of `benchmarks/run.py` and `make soak`,
with the command, the commit and the machine of each table; `results/DEVICE.json` those
of `benchmarks/scaling.py` on a device, with the commit and the machine of each row.
"""

import json

import bench

from explorax.experiments.reports import markdown

PAGE = bench.FOLDER.parent / "docs" / "benchmarks.md"
RESULTS = bench.FOLDER / "results"
_NOT_OF_A_DEVICE = ("measured", "peers")


def tables() -> dict[str, str]:
  """Each table in Markdown, by its name."""
  path = RESULTS / "measured.json"
  measured = json.loads(path.read_text(encoding="utf-8"))
  found = {name: _with_origin(table) for name, table in measured.items()}
  others = []
  for path in sorted(RESULTS.glob("*.json")):
    if path.stem in _NOT_OF_A_DEVICE:
      continue
    of_device = json.loads(path.read_text(encoding="utf-8")).items()
    drawn = {f"{path.stem}_{name}": _of_device(table) for name, table in of_device}
    if path.stem == "cpu":
      found |= drawn
    else:
      others += [f"#### {path.stem}", *drawn.values()]
  others = others or ["Nothing was measured on a GPU or a TPU."]
  return {**found, "accelerators": "\n\n".join(others)}


def _with_origin(table: bench.Row) -> str:
  origin = f"`{table['command']}`, commit {table['commit']}, {table['machine']}."
  return f"{markdown.table(table['rows'])}\n\n{origin}"


def _of_device(table: bench.Row) -> str:
  """A table of a device; what is the same in all rows is in the line above it."""
  rows = [dict(row) for row in table["rows"]]
  origins = {f"commit {row.pop('commit')}, {row.pop('machine')}" for row in rows}
  same = {k: x for k, x in rows[0].items() if all(row.get(k) == x for row in rows)}
  kept = [{k: x for k, x in row.items() if k not in same} for row in rows]
  title = ", ".join([table["title"], *(f"{k} {x}" for k, x in same.items())])
  return f"{title}:\n\n{markdown.table(kept)}\n\n{'; '.join(sorted(origins))}."


if __name__ == "__main__":
  text = PAGE.read_text(encoding="utf-8")
  PAGE.write_text(markdown.fill(text, tables()), encoding="utf-8")
