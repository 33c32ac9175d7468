"""Writes the tables of learning and the picture of docs/ from the runs that are kept.

  python -m explorax.papers.learning.page

The runs are those in `papers/learning/results`, each with its commit and versions:
`learning*.jsonl` of `runs.py`, and `expected.jsonl`, also of
`benchmarks/expected_peers.py`.
"""

import json
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from explorax.experiments.recording import drawing
from explorax.experiments.reports import markdown
from explorax.papers.learning import games, goals
from explorax.papers.learning import tables as tables_lib

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = tuple(DOCS / name for name in ("atari.md", "benchmarks.md", "expected.md"))
RESULTS = ROOT / "papers" / "learning" / "results"


def tables() -> dict[str, str]:
  """Each table in Markdown, by its name."""
  made = {
    path.stem: _with_versions(tables_lib.table, path)
    for path in sorted(RESULTS.glob("learning*.jsonl"))
  }
  made["expected"] = _with_versions(goals.table, RESULTS / "expected.jsonl")
  return made


def _with_versions(
  table: Callable[[Sequence[dict[str, Any]]], str], path: pathlib.Path
) -> str:
  rows = _runs(path)
  commits, versions = (
    dict.fromkeys(row[name] for row in rows) for name in ("commit", "versions")
  )
  return f"{table(rows)}\n\nCommit {', '.join(commits)}; {'; '.join(versions)}."


def _runs(path: pathlib.Path) -> list[dict[str, Any]]:
  return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


if __name__ == "__main__":
  for page in PAGES:
    text = page.read_text(encoding="utf-8")
    page.write_text(markdown.fill(text, tables()), encoding="utf-8")
  with open(DOCS / "atari.png", "wb") as file:
    drawing.save(file, games.draw(_runs(RESULTS / "learning_atari.jsonl")))
