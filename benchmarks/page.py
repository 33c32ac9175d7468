"""Writes the tables of docs/benchmarks.md from the measurements that are kept.

  python benchmarks/page.py

`results/measured.json` has the measurements of `benchmarks/run.py` and `make soak`,
with the command, the commit and the machine of each table; `results/peers.json` is the
report of `benchmarks/run.py --only=peers`; `results/DEVICE.json` has the measurements
of `benchmarks/scaling.py` on a device, with the commit and the machine of each row.
"""

import json

import bench
import peers

from explorax.experiments.reports import markdown

PAGE = bench.FOLDER.parent / "docs" / "benchmarks.md"
RESULTS = bench.FOLDER / "results"
_NOT_OF_A_DEVICE = ("measured", "peers")
# The places of the tables of `peers.TABLES`, in their order.
_PEERS = ("peers_dqn", "peers_device", "peers_atari", "peers_deep_sea", "peers_bonuses")


def tables() -> dict[str, str]:
  """Each table in Markdown, by its name."""
  path = RESULTS / "measured.json"
  measured = json.loads(path.read_text(encoding="utf-8"))
  found = {name: _with_origin(table) for name, table in measured.items()}
  found |= _beside_peers()
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


def _beside_peers() -> dict[str, str]:
  """The tables of the last report; those that it lacks are missing here, too."""
  report = json.loads((RESULTS / "peers.json").read_text(encoding="utf-8"))
  on = report["machine"]
  found = {}
  of_title = {table["title"]: table for table in report["tables"]}
  for name, table in zip(_PEERS, peers.TABLES, strict=True):
    if measured := of_title.get(table.title):
      commit = measured["commit"]
      found[name] = _with_origin(
        {
          "command": "python benchmarks/run.py --only=peers",
          "commit": commit[:7] + "+" * commit.endswith("+"),
          "machine": f"{on['cpu']}, {on['cpus']} cores",
          "rows": [*map(_beside_peer, measured["rows"])],
        }
      )
  return found


def _beside_peer(row: bench.Row) -> bench.Row:
  """A row of `bench.side_by_side`, with the columns that come before it."""
  names = list(row)
  shown = {name: row[name] for name in names[: names.index("program")]}
  shown["library"] = row["program"]
  if "steps_per_s" not in row:
    return shown | {"steps/s": row["note"]}
  median, least, most = (_count(row[name]) for name in ("steps_per_s", "min", "max"))
  ratio = row["explorax_times_as_fast"]
  is_ours = row["program"].startswith("explorax")
  shown["steps/s"] = f"{median} ({least} to {most})"
  shown["explorax, times as fast"] = "–" if is_ours else f"{ratio:.2f}"
  if "peak_mib" in row:
    shown["peak, MiB"] = _count(row["peak_mib"])
  return shown


def _count(number: float) -> str:
  return f"{number / 1e6:.1f} M" if number >= 1e6 else f"{number:,.0f}"


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
