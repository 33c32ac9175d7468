"""What a sweep has left behind, checked, for its report."""

import csv
import dataclasses
import io
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
from explorax.experiments.sweeps import tasks

_INDEX = "sweep.json"
_FACTS = {"agent": str, "bsuite_id": str, "seed": int, "status": str}


@dataclasses.dataclass(frozen=True)
class Sweep:
  """A sweep's directory.

  Attributes:
    path: of the directory.
    commands: by which the sweep was called, in turn.
    versions: with which the tasks were made, as `versions.collect` has them: each set
      of them, and of how many tasks it is.
    written: when the index was, ISO 8601.
    cap: on the episodes of each task; None for bsuite's own numbers.
    agents: in the order in which they were asked for.
    settings: of each agent that has done a task, as JSON.
    logs: (agent, bsuite id, seed) → what bsuite logged, of all tasks that are done.
    seconds: what these tasks took, added up.
    full_seconds: what they would take without the cap, in proportion to the episodes.
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
    """Of all tasks that are done."""
    return sorted({seed for _, _, seed in self.logs})


def read(path: pathlib.Path) -> Sweep:
  """Reads a sweep's directory, as far as the sweep has got.

  Args:
    path: the sweep's --output.

  Raises:
    SetUpError: if it is no sweep's directory, holds no task that is done, is of another
      version of explorax, or holds a file that is not as the sweep wrote it.
  """
  index = _read_index(path)
  entries = index["tasks"]
  done = [entry for entry in entries if entry["status"] == "done"]
  if not done:
    raise errors.SetUpError(
      f"no task of the sweep in {path} is done yet, so there is nothing to report; "
      "wait, or let its call go on (`commands` in sweep.json has it)."
    )
  settings: dict[str, Any] = {}
  logs: dict[tuple[str, str, int], scores.Log] = {}
  made_by: dict[str, Any] | None = None
  versions: dict[str, tuple[Mapping[str, Any], int]] = {}
  seconds = full_seconds = 0.0
  store = tasks.Store(output.RunDirectory(path, []), {}, None)
  for entry in done:
    task = tasks.Task(entry["agent"], entry["bsuite_id"], entry["seed"], None)
    marker = store.read(task)
    if marker is None:
      raise errors.SetUpError(
        f"the files of {task} in {path} are missing, or not as the sweep wrote them, "
        f"though {_INDEX} says that it is done; the sweep's own call does it again."
      )
    if made_by is None:
      made_by = marker["made_by"]
      _check_version(path, made_by)
    elif made_by != marker["made_by"]:
      raise errors.SetUpError(
        f"{path} holds tasks of different versions ({_versions(made_by)}, and "
        f"{_versions(marker['made_by'])}), which cannot be compared; sweep anew into "
        "another directory."
      )
    settings[entry["agent"]] = marker["settings"]
    key = (entry["agent"], entry["bsuite_id"], entry["seed"])
    logs[key] = _read_log(path, marker)
    name = json.dumps(marker["versions"], sort_keys=True)
    versions[name] = marker["versions"], versions.get(name, ({}, 0))[1] + 1
    seconds += marker["seconds"]
    capped = dataclasses.replace(task, episodes=made_by.get("episodes"))
    full_seconds += marker["seconds"] * task.num_episodes / capped.num_episodes
  assert made_by is not None
  return Sweep(
    path=path,
    commands=tuple(index["commands"]),
    versions=tuple(versions.values()),
    written=index["written"],
    cap=made_by.get("episodes"),
    agents=tuple(dict.fromkeys(entry["agent"] for entry in entries)),
    settings=settings,
    logs=logs,
    seconds=seconds,
    full_seconds=full_seconds,
    lacking=[entry for entry in entries if entry["status"] != "done"],
  )


def parse_log(content: bytes, experiment: str) -> scores.Log:
  """A log of bsuite's, from its CSV.

  Args:
    content: of the file; empty cells are NaN.
    experiment: of which it is, and whose score needs certain columns.

  Raises:
    ValueError: with what is wrong.
  """
  rows = list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))
  if len(rows) < 2:
    raise ValueError("it has no rows")
  header, *rows = rows
  missing = [name for name in scores.columns(experiment) if name not in header]
  if missing:
    raise ValueError(f"it has no column {missing[0]!r}")
  if any(len(row) != len(header) for row in rows):
    raise ValueError("its rows differ in length")
  values = np.array(
    [[float(cell) if cell else math.nan for cell in row] for row in rows]
  )
  log = dict(zip(header, values.T, strict=True))
  for name in scores.columns(experiment):
    if not np.isfinite(log[name]).all():
      raise ValueError(f"its column {name!r} has a cell that is no number")
  if log["episode"][0] < 1 or (np.diff(log["episode"]) <= 0).any():
    raise ValueError("its episodes do not rise from 1 on")
  bad = log.get("total_bad_episodes", log["episode"])
  if ((bad < 0) | (bad > log["episode"])).any():
    raise ValueError("it has more bad episodes than episodes")
  return log


def _read_index(path: pathlib.Path) -> dict[str, Any]:
  file = path / _INDEX
  if not path.is_dir():
    raise errors.SetUpError(
      f"there is no directory {path}; name the --output of a sweep "
      "(`python -m explorax.experiments.sweep`)."
    )
  try:
    content = json.loads(file.read_text(encoding="utf-8"))
  except FileNotFoundError as error:
    raise errors.SetUpError(
      f"{path} is no sweep's directory, for it has no {_INDEX}; name the --output of "
      "`python -m explorax.experiments.sweep`."
    ) from error
  except OSError as error:
    raise errors.SetUpError(
      f"{file} cannot be read ({error.strerror}); change its permissions."
    ) from error
  except ValueError as error:
    raise errors.SetUpError(_damaged(file)) from error
  names = {"commands": list, "written": str, "tasks": list}
  if not isinstance(content, dict) or not all(
    isinstance(content.get(name), kind) for name, kind in names.items()
  ):
    raise errors.SetUpError(_damaged(file))
  known = bsuite_sweeps.groups()["SWEEP"]
  for entry in content["tasks"]:
    whole = isinstance(entry, dict) and all(
      isinstance(entry.get(name), kind) for name, kind in _FACTS.items()
    )
    if not whole or entry["bsuite_id"] not in known:
      raise errors.SetUpError(_damaged(file))
  return content


def _damaged(file: pathlib.Path) -> str:
  return (
    f"{file} is not as a sweep writes it (damaged, or of another version); the sweep's "
    "own call writes it anew."
  )


def _read_log(path: pathlib.Path, marker: Mapping[str, Any]) -> scores.Log:
  file = path / marker["csv"]
  try:
    experiment = bsuite_sweeps.experiment(marker["bsuite_id"])
    return parse_log(file.read_bytes(), experiment)
  except OSError as error:
    problem = str(error.strerror).lower()
  except (ValueError, csv.Error) as error:
    problem = str(error)
  raise errors.SetUpError(
    f"{file} is no log of bsuite's ({problem}); move it away, and the sweep's own call "
    "does its task again."
  )


def _check_version(path: pathlib.Path, made_by: Mapping[str, Any]) -> None:
  ours = metadata.version("explorax")
  if made_by.get("explorax") != ours:
    raise errors.SetUpError(
      f"the sweep in {path} was made by explorax {made_by.get('explorax')}, and this "
      f"is {ours}: report it with that version, or sweep anew into another directory."
    )


def _versions(made_by: Mapping[str, Any]) -> str:
  return ", ".join(f"{name} {value}" for name, value in made_by.items())
