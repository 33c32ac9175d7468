"""The tasks of a sweep, and what is kept of each: whole, or not at all.

    bsuite_csv/AGENT/seed0/bsuite_id_-_deep_sea-0.csv   for bsuite's `csv_load`
    tasks/AGENT/seed0/deep_sea-0.json                   that it is done, and how

The second file is written when the first is on disk, and holds its checksum: a task is
done if both are there and agree.
"""

import csv
import dataclasses
import hashlib
import io
import json
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

from explorax.environments import bsuite_sweeps
from explorax.experiments import errors, output

REVISION = 1  # Of what a task computes with settings that stay the same.

Row = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Task:
  """An agent on one of bsuite's ids with one seed.

  Attributes:
    agent: a preset, or `module:function`.
    bsuite_id: of the environment.
    seed: of everything random in both.
    episodes: caps the number that bsuite has; None for no cap.
  """

  agent: str
  bsuite_id: str
  seed: int
  episodes: int | None

  @property
  def num_episodes(self) -> int:
    own = bsuite_sweeps.num_episodes(self.bsuite_id)
    return own if self.episodes is None else min(own, self.episodes)

  @property
  def weight(self) -> float:
    """About how many environment steps it has."""
    return self.num_episodes * bsuite_sweeps.steps_per_episode(self.bsuite_id)

  def __str__(self) -> str:
    return f"{self.agent} on {self.bsuite_id}, seed {self.seed}"


def file_name(agent: str) -> str:
  """An agent's name as that of a folder: `my_agents.make`, for `my_agents:make`."""
  return agent.replace(":", ".")


class Store:
  """What a sweep's directory holds of its tasks.

  Attributes:
    versions: with which the tasks are done that are written next.
  """

  def __init__(
    self, directory: output.RunDirectory, agents: Mapping[str, Any], cap: int | None
  ):
    """Looks nothing up yet.

    Args:
      directory: of the sweep.
      agents: name → what tells its versions apart, as JSON has it.
      cap: on the episodes of each task.
    """
    self.versions: Mapping[str, Any] = {}
    self._directory = directory
    self._agents = agents
    self._made_by = {
      "explorax": metadata.version("explorax"),
      "revision": REVISION,
      "episodes": cap,
    }

  def check(self) -> None:
    """Refuses to add to tasks that were done with other settings.

    Raises:
      SetUpError: with what differs.
    """
    where = self._directory.path
    what_to_do = f"choose another --output, or delete {where} if it is not needed"
    for path, marker in self._markers():
      made_by = marker["made_by"]
      for name, value in self._made_by.items():
        if made_by.get(name) != value:
          raise errors.SetUpError(
            f"--output={where} holds tasks made with {name}={made_by.get(name)} "
            f"({path.name} of {marker['agent']}), and this would be {name}={value}; "
            f"{what_to_do}."
          )
      agent = marker["agent"]
      if agent in self._agents and marker["settings"] != self._agents[agent]:
        named = _difference(marker["settings"], self._agents[agent])
        raise errors.SetUpError(
          f"--output={where} holds tasks of {agent} with other settings ({named}); "
          f"choose another --output, or delete {where}/tasks/{file_name(agent)} to do "
          "its tasks again."
        )

  def read(self, task: Task) -> dict[str, Any] | None:
    """What was written of a task that is done; None if it is not, or was damaged."""
    marker = _read_marker(self._marker(task))
    if marker is None or self._rows(marker) is None:
      return None
    return marker

  def write(self, task: Task, rows: Sequence[Row], seconds: float, runner: str) -> None:
    """Keeps what a task has logged, and marks it as done.

    Raises:
      OutputError: if it cannot be written; it then counts as not done.
    """
    content = _to_csv(rows)
    name = (
      f"bsuite_csv/{file_name(task.agent)}/seed{task.seed}/"
      f"{bsuite_sweeps.csv_name(task.bsuite_id)}"
    )
    # The marker of what was there, if anything, no longer fits.
    self._directory.write(name, lambda file: file.write(content))
    self._directory.write_json(
      str(self._marker(task).relative_to(self._directory.path)),
      {
        "agent": task.agent,
        "bsuite_id": task.bsuite_id,
        "seed": task.seed,
        "num_episodes": task.num_episodes,
        "made_by": self._made_by,
        "settings": self._agents[task.agent],
        "versions": self.versions,
        "runner": runner,
        "seconds": seconds,
        "csv": name,
        "sha256": hashlib.sha256(content).hexdigest(),
      },
    )

  def done(self) -> Iterator[dict[str, Any]]:
    """What was written of each task that is done."""
    for _, marker in self._markers():
      if self._rows(marker) is not None:
        yield marker

  def table(self) -> bytes:
    """One tidy table, as CSV: a row for each that a task which is done has logged."""
    rows: list[dict[str, Any]] = []
    for _, marker in self._markers():
      named = {name: marker[name] for name in ("agent", "bsuite_id", "seed")}
      rows += [{**named, **row} for row in self._rows(marker) or ()]
    return _to_csv(rows)

  def _rows(self, marker: Mapping[str, Any]) -> list[dict[str, str]] | None:
    """Those of the CSV; None if it is not the one that was written."""
    try:
      content = (self._directory.path / marker["csv"]).read_bytes()
    except OSError:
      return None
    if hashlib.sha256(content).hexdigest() != marker["sha256"]:
      return None
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))

  def _marker(self, task: Task) -> pathlib.Path:
    folder = self._directory.path / "tasks" / file_name(task.agent)
    return folder / f"seed{task.seed}" / f"{task.bsuite_id.replace('/', '-')}.json"

  def _markers(self) -> Iterator[tuple[pathlib.Path, dict[str, Any]]]:
    for path in sorted((self._directory.path / "tasks").glob("*/seed*/*.json")):
      marker = _read_marker(path)
      if marker is not None:
        yield path, marker


_FIELDS = {
  "agent": str,
  "bsuite_id": str,
  "seed": int,
  "num_episodes": int,
  "made_by": dict,
  "settings": dict,
  "versions": dict,
  "runner": str,
  "seconds": float,
  "csv": str,
  "sha256": str,
}


def _read_marker(path: pathlib.Path) -> dict[str, Any] | None:
  try:
    marker = json.loads(path.read_text())
  except (OSError, ValueError):
    return None
  whole = isinstance(marker, dict) and all(
    isinstance(marker.get(name), kind) for name, kind in _FIELDS.items()
  )
  return marker if whole else None


def _to_csv(rows: Iterable[Row]) -> bytes:
  """With a header of all columns, in the order in which they turn up."""
  rows = list(rows)
  columns = list(dict.fromkeys(name for row in rows for name in row))
  text = io.StringIO()
  writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
  writer.writeheader()
  writer.writerows(rows)
  return text.getvalue().encode()


def _difference(old: Any, new: Any, name: str = "") -> str:
  """`batch_size was 32 and is 64`: the first setting that differs."""
  if isinstance(old, dict) and isinstance(new, dict):
    for key in (*old, *new):
      if old.get(key) != new.get(key):
        return _difference(old.get(key), new.get(key), f"{name}.{key}".lstrip("."))
  return f"{name} was {old} and is {new}"
