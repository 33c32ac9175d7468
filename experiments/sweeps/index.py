"""`sweep.json`: of what a sweep consists, what was done, what is missing and why."""

import datetime
import json
from collections.abc import Iterable, Mapping
from typing import Any

from explorax.experiments import output
from explorax.experiments.sweeps import tasks

_NAME = "sweep.json"
NOT_BEGUN = "it has not been done yet"


class Index:
  """All tasks that were ever asked for in a directory, and what came of them.

  Attributes:
    versions: of what the tasks are made with.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    store: tasks.Store,
    *,
    command: str,
  ):
    """Reads what earlier calls have left; where that is not possible, begins anew.

    Args:
      directory: of the sweep.
      store: of its tasks.
      command: by which it was called this time.
    """
    self._directory = directory
    self._store = store
    before = _read(directory)
    self.versions: Mapping[str, Any] = before.get("versions", {})
    self._commands = [*before.get("commands", []), command]
    self._entries: dict[tuple[Any, ...], dict[str, Any]] = {
      _key(entry): entry for entry in before.get("tasks", [])
    }

  def done(self, task: tasks.Task) -> bool:
    """Whether the task was done before; what it left is entered."""
    marker = self._store.read(task)
    if marker is None:
      self.missing(task, NOT_BEGUN)
      return False
    self._enter(
      task,
      "done",
      **{name: marker[name] for name in ("seconds", "runner", "csv", "settings")},
    )
    return True

  def missing(self, task: tasks.Task, reason: str) -> None:
    """The task has no results."""
    self._enter(task, "missing", reason=reason)

  def failed(self, task: tasks.Task, reason: str, details: str, attempts: int) -> None:
    """The task has no results, and not for want of trying."""
    self._enter(task, "failed", reason=reason, details=details, attempts=attempts)

  def write(self) -> None:
    """Writes the file.

    Raises:
      OutputError: if it cannot be written; what was there is intact.
    """
    content = {
      "commands": self._commands,
      "versions": self.versions,
      "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
      "counts": {
        status: sum(entry["status"] == status for entry in self._entries.values())
        for status in ("done", "failed", "missing")
      },
      "tasks": list(self._entries.values()),
    }
    self._directory.write_json(_NAME, content)

  def _enter(self, task: tasks.Task, status: str, **facts: Any) -> None:
    entry = {
      "agent": task.agent,
      "bsuite_id": task.bsuite_id,
      "seed": task.seed,
      "num_episodes": task.num_episodes,
      "status": status,
      **facts,
    }
    self._entries[_key(entry)] = entry


def _key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
  return entry["agent"], entry["bsuite_id"], entry["seed"]


def _read(directory: output.RunDirectory) -> dict[str, Any]:
  try:
    content = json.loads((directory.path / _NAME).read_text())
    entries: Iterable[Mapping[str, Any]] = content["tasks"]
    for entry in entries:
      _key(entry)
  except (OSError, ValueError, KeyError, TypeError):
    return {}
  return content
