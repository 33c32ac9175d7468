"""The results of bsuite's sweeps: a file each, in place of a directory of runs.

  python docs/bsuite_results.py unpack results/bsuite/testing.csv.gz DIRECTORY
  python docs/bsuite_results.py pack DIRECTORY results/bsuite/testing.csv.gz

A file has the rows of bsuite's logs of all runs. `run` is a run's directory; its first
row has its settings, seed, versions and commit (`config`) and its summary, as JSON.
bsuite's own loader reads the unpacked directories.
"""

import csv
import gzip
import io
import pathlib
import sys
from typing import Any

_RECORDS = ("config", "summary")
_HEAD = ("run", "id", *_RECORDS)


def pack(directory: pathlib.Path, path: pathlib.Path) -> None:
  rows: list[dict[str, Any]] = []
  for config in sorted(directory.rglob("config.json")):
    (log,) = (config.parent / "bsuite").glob("*.csv")
    run = {"run": str(config.parent.relative_to(directory)), "id": log.stem}
    once = {name: (config.parent / f"{name}.json").read_text() for name in _RECORDS}
    for row in csv.DictReader(log.read_text().splitlines()):
      rows.append({**run, **once, **row})
      once = {}
  text = io.StringIO()
  columns = dict.fromkeys([*_HEAD, *(name for row in rows for name in row)])
  writer = csv.DictWriter(text, list(columns), lineterminator="\n")
  writer.writeheader()
  writer.writerows(rows)
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def unpack(path: pathlib.Path, directory: pathlib.Path) -> None:
  csv.field_size_limit(10**7)
  runs: dict[str, list[dict[str, str]]] = {}
  for row in csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode())):
    runs.setdefault(row["run"], []).append(row)
  for run, rows in runs.items():
    log = directory / run / "bsuite" / f"{rows[0]['id']}.csv"
    log.parent.mkdir(parents=True, exist_ok=True)
    for name in _RECORDS:
      (directory / run / f"{name}.json").write_text(rows[0][name])
    columns = [x for x in rows[0] if x not in (*_HEAD, "sweep") and rows[0][x] != ""]
    lines = [columns, *([row[x] for x in columns] for row in rows)]
    log.write_text("".join(f"{','.join(line)}\n" for line in lines))


if __name__ == "__main__":
  _, action, source, target = sys.argv
  {"pack": pack, "unpack": unpack}[action](pathlib.Path(source), pathlib.Path(target))
