"""Reads and checks a sweep's directory for its report."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from explorax.environments import bsuite_sweeps
from explorax.experiments import errors, output
from explorax.experiments.reports import scores
from explorax.experiments.tasks import store as store_lib

INDEX = "sweep.json"
# A task that is done according to the index but has no results.
_LOST = {"status": "missing", "reason": "its results are lost or damaged"}
_KEY = ("agent", "bsuite_id", "seed")


@dataclasses.dataclass(frozen=True)
class Sweep:
  """A sweep's directory.

  Attributes:
    path: of the directory.
    commands: the sweep's command lines, in order.
    versions: the versions that made the tasks, as from `versions.collect`: each set of
      versions, and its number of tasks.
    written: the time of the index, ISO 8601.
    cap: the limit on each task's episodes; None for bsuite's own numbers.
    agents: in the order of the request.
    settings: of each agent with a finished task, as JSON.
    logs: (agent, bsuite id, seed) → bsuite's log, of all finished tasks.
    seconds: the total duration of these tasks.
    full_seconds: their estimated duration without the cap.
    lacking: the entries of all other tasks, with `status` and `reason`.
  """

  path: pathlib.Path
  commands: tuple[str, ...]
  versions: Sequence[tuple[Mapping[str, Any], int]]
  written: str
  cap: int | None
  agents: tuple[str, ...]
  settings: Mapping[str, Any]
  logs: Mapping[tuple[str, str, int], scores.Log]
  seconds: float
  full_seconds: float
  lacking: Sequence[Mapping[str, Any]]

  @property
  def seeds(self) -> list[int]:
    """Of all finished tasks."""
    return sorted({seed for _, _, seed in self.logs})


def read(path: pathlib.Path) -> Sweep:
  """Reads the directory of a sweep, which may still be running.

  Args:
    path: the sweep's --output.

  Raises:
    SetUpError: if it is not a sweep's directory, has no finished task, or was made by
      another version of explorax.
  """
  content = index(path)
  settings: dict[str, Any] = {}
  logs: dict[tuple[str, str, int], scores.Log] = {}
  made_by: Mapping[str, Any] | None = None
  versions: dict[str, tuple[Mapping[str, Any], int]] = {}
  seconds = full_seconds = 0.0
  for done, its_made_by in store_lib.Store(output.RunDirectory(path)).all():
    if made_by is None:
      made_by = its_made_by
    elif made_by != its_made_by:
      raise errors.SetUpError(
        f"{path} holds tasks of different versions "
        f"({store_lib.difference(made_by, its_made_by)}), which cannot be compared; "
        "run the sweep again into another directory."
      )
    agent, bsuite_id, seed = (done.settings[name] for name in _KEY)
    settings[agent] = done.settings["identity"]
    experiment = bsuite_sweeps.experiment(bsuite_id)
    logs[agent, bsuite_id, seed] = log(done.results["rows"], experiment)
    name = json.dumps(done.versions, sort_keys=True)
    versions[name] = done.versions, versions.get(name, ({}, 0))[1] + 1
    seconds += done.seconds
    own = bsuite_sweeps.num_episodes(bsuite_id)
    full_seconds += done.seconds * own / done.settings["num_episodes"]
  if made_by is None:
    raise errors.SetUpError(
      f"no task of the sweep in {path} is done yet, so there is nothing to report; "
      "wait, or run its command again (`commands` in sweep.json)."
    )
  if made_by.get("explorax") != (ours := metadata.version("explorax")):
    raise errors.SetUpError(
      f"explorax {made_by.get('explorax')} made the sweep in {path}, but this is "
      f"{ours}; use that version for the report, or run the sweep again into another "
      "directory."
    )
  entries = content["tasks"]
  lacking = [
    {**e, **_LOST} if e["status"] == "done" else e
    for e in entries
    if tuple(e[name] for name in _KEY) not in logs
  ]
  return Sweep(
    path=path,
    commands=tuple(content["commands"]),
    versions=tuple(versions.values()),
    written=content["written"],
    cap=made_by.get("episodes"),
    agents=tuple(dict.fromkeys((*(entry["agent"] for entry in entries), *settings))),
    settings=settings,
    logs=logs,
    seconds=seconds,
    full_seconds=full_seconds,
    lacking=lacking,
  )


def log(rows: Sequence[Mapping[str, Any]], experiment: str) -> scores.Log:
  """The columns of bsuite's log; missing cells are NaN.

  Args:
    rows: in the order of their episodes.
    experiment: determines the columns that the score needs.

  Raises:
    ValueError: describing an invalid log.
  """
  if not rows:
    raise ValueError("it has no rows")
  names = dict.fromkeys(name for row in rows for name in row)
  columns = {
    name: np.array([row.get(name, math.nan) for row in rows], np.float64)
    for name in names
  }
  for name in scores.columns(experiment):
    if name not in columns:
      raise ValueError(f"it has no column {name!r}")
    if not np.isfinite(columns[name]).all():
      raise ValueError(f"its column {name!r} has a cell that is not a number")
  if columns["episode"][0] < 1 or (np.diff(columns["episode"]) <= 0).any():
    raise ValueError("its episodes do not increase from 1")
  return columns


def index(path: pathlib.Path) -> dict[str, Any]:
  """The content of a sweep's `sweep.json`.

  Raises:
    SetUpError: if it is missing or invalid.
  """
  file = path / INDEX
  known = bsuite_sweeps.groups()["SWEEP"]
  content: dict[str, Any] = {}
  try:
    content = json.loads(file.read_text(encoding="utf-8"))
    commands, written = content["commands"], content["written"]
    whole = isinstance(commands, list) and isinstance(written, str)
    for entry in content["tasks"]:
      facts = [entry[name] for name in (*_KEY, "status", "num_episodes")]
      whole = whole and entry["bsuite_id"] in known and hash(tuple(facts)) is not None
  except FileNotFoundError as error:
    raise errors.SetUpError(
      f"{path} is not the directory of a sweep: it has no {INDEX}; give the --output "
      "of `python -m explorax.experiments.sweep`."
    ) from error
  except (OSError, ValueError, KeyError, TypeError):
    whole = False
  if not whole:
    raise errors.SetUpError(
      f"{file} is invalid (damaged, or from another version); run the sweep's command "
      "again to rewrite it."
    )
  return content
