"""Writes the tables of docs/benchmarks.md from the measurements that are kept.

  python benchmarks/page.py

`results/measured.json` has the measurements of `benchmarks/run.py` and `make soak`,
with the command, the commit and the machine of each table.
"""

import json

import bench

from explorax.experiments.reports import markdown

PAGE = bench.FOLDER.parent / "docs" / "benchmarks.md"


def tables() -> dict[str, str]:
  """Each table in Markdown, by its name."""
  path = bench.FOLDER / "results" / "measured.json"
  measured = json.loads(path.read_text(encoding="utf-8"))
  return {name: _with_origin(table) for name, table in measured.items()}


def _with_origin(table: bench.Row) -> str:
  origin = f"`{table['command']}`, commit {table['commit']}, {table['machine']}."
  return f"{markdown.table(table['rows'])}\n\n{origin}"


if __name__ == "__main__":
  text = PAGE.read_text(encoding="utf-8")
  PAGE.write_text(markdown.fill(text, tables()), encoding="utf-8")
