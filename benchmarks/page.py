"""Writes the tables of three pages of docs/ from the files in benchmarks/results.

  python benchmarks/page.py

`results/measured.json` has the measurements of `benchmarks/run.py` and `make soak`,
with the command, the commit and the machine of each table. `results/learning*.jsonl`
have the runs of `benchmarks/learning.py`, and `results/expected.jsonl` those of
docs/expected.md (`expected.py`), each with its commit and versions. A comment with a
table's name marks the table's place in the page. The picture of docs/atari.md is drawn
from its runs, too (`atari.py`).
"""

import json
import pathlib
import re
from collections.abc import Callable, Sequence

import atari
import bench
import expected
import learning

from explorax.experiments.recording import drawing

DOCS = bench.FOLDER.parent / "docs"
PAGES = tuple(DOCS / name for name in ("atari.md", "benchmarks.md", "expected.md"))
RESULTS = bench.FOLDER / "results"
_MARKED = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def tables() -> dict[str, str]:
  """Each table in Markdown, by its name."""
  measured = json.loads((RESULTS / "measured.json").read_text(encoding="utf-8"))
  made = {name: _with_origin(table) for name, table in measured.items()}
  for path in sorted(RESULTS.glob("learning*.jsonl")):
    made[path.stem] = _with_versions(learning.table, path)
  made["expected"] = _with_versions(expected.table, RESULTS / "expected.jsonl")
  return made


def fill(page: str) -> str:
  """The text of the page with its tables replaced by those of the files.

  Raises:
    KeyError: if the page names a table that is in no file.
  """
  made = tables()
  return _MARKED.sub(
    lambda mark: f"<!-- table: {mark[1]} -->\n{made[mark[1]]}\n<!-- end -->", page
  )


def _with_origin(table: bench.Row) -> str:
  origin = f"`{table['command']}`, commit {table['commit']}, {table['machine']}."
  return f"{bench.format_table(table['rows'])}\n\n{origin}"


def _with_versions(
  table: Callable[[Sequence[bench.Row]], str], path: pathlib.Path
) -> str:
  runs = _runs(path)
  commits, versions = (
    dict.fromkeys(run[name] for run in runs) for name in ("commit", "versions")
  )
  return f"{table(runs)}\n\nCommit {', '.join(commits)}; {'; '.join(versions)}."


def _runs(path: pathlib.Path) -> list[bench.Row]:
  return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
  for page in PAGES:
    page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")
  with open(DOCS / "atari.png", "wb") as file:
    drawing.save(file, atari.draw(_runs(RESULTS / "learning_atari.jsonl")))
