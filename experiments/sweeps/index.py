"""`sweep.json`: of what a sweep consists, what was done, what is missing and why."""

import datetime
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from explorax.experiments import output
from explorax.experiments.sweeps import tasks

_NAME = "sweep.json"
NOT_BEGUN = "it has not been done yet"
PERIOD = 10.0  # Seconds between two writings.


class Index:
  """All tasks that were ever asked for in a directory, and what came of them."""

  def __init__(
    self,
    directory: output.RunDirectory,
    store: tasks.Store,
    *,
    command: str,
  ):
    """Reads what earlier calls have left; where that is not possible, begins anew.

    A call that was killed has left tasks of which the file does not tell that they are
    done: that is looked up.

    Args:
      directory: of the sweep.
      store: of its tasks.
      command: by which it was called this time.
    """
    self._directory = directory
    self._store = store
    self._changed = True
    self._written = time.monotonic()
    before = _read(directory)
    self._commands = [*before.get("commands", []), command]
    self._entries: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in before.get("tasks", []):
      if entry["status"] == "done":
        entry = {name: entry[name] for name in _IDENTITY}
        entry |= {"status": "missing", "reason": NOT_BEGUN}
      self._entries[_key(entry)] = entry
    for marker in store.done():
      self._enter_done(marker)

  def done(self, task: tasks.Task) -> bool:
    """Whether the task is done; what it has left is entered."""
    marker = self._store.read(task)
    if marker is not None:
      self._enter_done(marker)
      return True
    entry = self._entries.get((task.agent, task.bsuite_id, task.seed))
    if entry is None or entry["status"] != "failed":  # Of which more is known.
      self.missing(task, NOT_BEGUN)
    return False

  def missing(self, task: tasks.Task, reason: str) -> None:
    """The task has no results."""
    self._enter(_identity(task), "missing", reason=reason)

  def failed(self, task: tasks.Task, reason: str, details: str, attempts: int) -> None:
    """The task has no results, and not for want of trying."""
    self._enter(
      _identity(task), "failed", reason=reason, details=details, attempts=attempts
    )

  def write(self) -> None:
    """Writes the file.

    Raises:
      OutputError: if it cannot be written; what was there is intact.
    """
    versions: dict[str, tuple[int, Any]] = {}  # As JSON → their number, and themselves.
    entries = []
    for entry in self._entries.values():
      if entry["status"] == "done":
        name = json.dumps(entry["versions"], sort_keys=True)
        number, _ = versions.setdefault(name, (len(versions), entry["versions"]))
        entry = {**entry, "versions": number}
        del entry["settings"]
      entries.append(entry)
    content = {
      "commands": self._commands,
      "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
      "counts": {
        status: sum(entry["status"] == status for entry in entries)
        for status in ("done", "failed", "missing")
      },
      "versions": [each for _, each in versions.values()],
      "settings": {
        entry["agent"]: entry["settings"]
        for entry in self._entries.values()
        if entry["status"] == "done"
      },
      "tasks": entries,
    }
    self._directory.write_json(_NAME, content)
    self._changed = False
    self._written = time.monotonic()

  def keep_up(self) -> None:
    """Writes the file if it has changed, and was not written a moment ago."""
    if self._changed and time.monotonic() - self._written > PERIOD:
      self.write()

  def _enter_done(self, marker: Mapping[str, Any]) -> None:
    facts = {name: marker[name] for name in _OF_MARKER}
    self._enter({name: marker[name] for name in _IDENTITY}, "done", **facts)

  def _enter(self, identity: Mapping[str, Any], status: str, **facts: Any) -> None:
    entry = {**identity, "status": status, **facts}
    if self._entries.get(_key(entry)) != entry:
      self._entries[_key(entry)] = entry
      self._changed = True


_IDENTITY = ("agent", "bsuite_id", "seed", "num_episodes")
_OF_MARKER = ("seconds", "runner", "csv", "settings", "versions")


def _identity(task: tasks.Task) -> dict[str, Any]:
  return {name: getattr(task, name) for name in _IDENTITY}


def _key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
  return entry["agent"], entry["bsuite_id"], entry["seed"]


def _read(directory: output.RunDirectory) -> dict[str, Any]:
  try:
    content = json.loads((directory.path / _NAME).read_text())
    entries: Iterable[Mapping[str, Any]] = content["tasks"]
    for entry in entries:
      hash(tuple(entry[name] for name in (*_IDENTITY, "status")))
  except (OSError, ValueError, KeyError, TypeError):
    return {}
  return content if isinstance(content.get("commands"), list) else {}
