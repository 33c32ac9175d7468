"""Packs the results of a figure that has been declared anew.

  python -m explorax.papers.moving tdu/scaling

Reads the files of its tasks in docs/figures/raw, writes results/figures/NAME.npz, and
prints what is missing. `convert` also renames settings. Deleted with the last of them.
"""

import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from explorax.papers import figures, reproduce

ROOT = pathlib.Path(__file__).resolve().parents[1]


def convert(
  name: str,
  rename: Callable[[dict[str, Any]], dict[str, Any]] = lambda settings: settings,
  results: Callable[[dict[str, Any]], dict[str, Any]] = lambda results: results,
) -> None:
  """Packs the figure's old results; `rename`: old settings → new ones."""
  figure = figures.every()[name]
  old = {}
  for path in sorted((ROOT / "docs/figures/raw" / figure.file_name).glob("*.npz")):
    arrays = dict(np.load(path))
    meta = json.loads(str(arrays.pop("__task__")))
    settings = rename(meta["settings"])
    every = results({**meta["results"], **arrays})
    every = {k: np.asarray(v) for k, v in every.items()}
    key = json.dumps(settings, sort_keys=True)
    versions = meta["versions"]
    old[key] = figures.CompletedTask(settings, every, meta["seconds"], versions)

  def complete(tasks: Any) -> figures.Table | None:
    missing = [task.name for task in tasks if task.key not in old]
    print(f"{len(tasks)} tasks, {len(missing)} missing", *missing[:5], sep="\n  ")
    for task in tasks:
      used.add(task.key)
    return None if missing else figures.Table(old[task.key] for task in tasks)

  used: set[str] = set()
  table = figure.stages({}, complete)
  print(f"{len(old.keys() - used)} not used", *[*(old.keys() - used)][:5], sep="\n  ")
  if table is not None:
    path = ROOT / "results/figures" / f"{figure.file_name}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(reproduce.packed(table))


if __name__ == "__main__":
  for figure_name in sys.argv[1:]:
    convert(figure_name)
