"""A sweep's directory: results by task, bsuite's CSVs, a table and an index.

    tasks/AGENT/seed0/deep_sea-0-DIGEST.npz             a task's results (`tasks.store`)
    bsuite_csv/AGENT/seed0/bsuite_id_-_deep_sea-0.csv   for bsuite's own `csv_load`
    results.csv                                         one table of all results
    sweep.json                                          which tasks exist and are done

The first holds all results; the others are written from it.
"""

import csv
import datetime
import io
import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from explorax.environments import bsuite_sweeps
from explorax.experiments import errors, output
from explorax.experiments.reports import read
from explorax.experiments.tasks import store as store_lib
from explorax.experiments.tasks import types

REVISION = 2  # Of the task's computation and its format.
_PERIOD = 10.0  # Seconds between two writes of the index.
_NOT_DONE = "it has not been run yet"

Row = Mapping[str, Any]


class Run(NamedTuple):
  """A task of a sweep: an agent on one bsuite id with one seed."""

  agent: str
  bsuite_id: str
  seed: int

  def __str__(self) -> str:
    return f"{self.agent} on {self.bsuite_id}, seed {self.seed}"


def task(
  run: Run, identity: Any, cap: int | None, context: types.Settings
) -> types.Task:
  """The task of a run.

  Args:
    run: agent, id and seed.
    identity: what distinguishes versions of its agent, in JSON's types.
    cap: limits bsuite's own number of episodes; None for no limit.
    context: of the task.
  """
  own = bsuite_sweeps.num_episodes(run.bsuite_id)
  num_episodes = own if cap is None else min(own, cap)
  name = f"{folder(run.agent)}/seed{run.seed}/{run.bsuite_id.replace('/', '-')}"
  settings = {**run._asdict(), "num_episodes": num_episodes, "identity": identity}
  weight = num_episodes * bsuite_sweeps.steps_per_episode(run.bsuite_id)
  return types.Task(name, settings, weight, context)


def run_of(done: types.CompletedTask) -> Run:
  """The run of these results."""
  return Run(*(done.settings[name] for name in Run._fields))


def folder(agent: str) -> str:
  """An agent's name as a folder name: `my_agents.make` for `my_agents:make`."""
  return agent.replace(":", ".")


def store(directory: output.RunDirectory, cap: int | None) -> store_lib.Store:
  """The results of a sweep's tasks."""
  made_by = {"revision": REVISION, "episodes": cap}
  return store_lib.Store(directory, "tasks", made_by)


class Records:
  """All tasks ever requested in a directory, and their results.

  Attributes:
    done: the results of each run.
  """

  def __init__(
    self,
    directory: output.RunDirectory,
    store: store_lib.Store,
    identities: Mapping[str, Any],
    command: str,
  ):
    """Reads the existing results; an unreadable index is rewritten.

    Args:
      directory: of the sweep.
      store: of its tasks.
      identities: agent → what distinguishes its versions.
      command: the current command line.

    Raises:
      SetUpError: if there are results with other settings.
    """
    self.done: dict[Run, types.CompletedTask] = {}
    self._directory = directory
    self._store = store
    self._written = time.monotonic()
    for done, made_by in store.all():
      _check_same(directory, store, identities, done, made_by)
      self.done[run_of(done)] = done
      self._write_csv(done)
    before = _read_index(directory)
    self._commands = [*before.get("commands", []), command]
    # Each requested run → its entry without the status.
    self._asked = {_run(entry): entry for entry in before.get("tasks", [])}

  def ask(self, task: types.Task, reason: str = _NOT_DONE) -> None:
    """Adds a requested task, and why it has no results, if it has none."""
    entry = {**task.settings, "reason": self._store.failure(task) or reason}
    entry["status"] = "failed" if self._store.failure(task) else "missing"
    del entry["identity"]
    self._asked[_run(entry)] = entry

  def add(self, done: types.CompletedTask) -> None:
    """Adds a task's results."""
    self.done[run_of(done)] = done
    self._write_csv(done)
    if time.monotonic() - self._written > _PERIOD:
      self.write_index()

  def write(self) -> None:
    """Writes the index and the table.

    Raises:
      OutputError: if they cannot be written; earlier files are intact.
    """
    self.write_index()
    rows: list[Row] = []
    for run, done in sorted(self.done.items()):
      rows += [{**run._asdict(), **row} for row in done.results["rows"]]
    table = to_csv(rows)
    self._directory.write("results.csv", lambda file: file.write(table))

  def write_index(self) -> None:
    """Writes `sweep.json`."""
    versions: dict[str, tuple[int, Any]] = {}  # As JSON → (their number, the versions).
    entries = []
    for run in dict.fromkeys((*self._asked, *self.done)):
      if run in self.done:
        done = self.done[run]
        name = json.dumps(done.versions, sort_keys=True)
        number, _ = versions.setdefault(name, (len(versions), done.versions))
        entry = {
          **run._asdict(),
          "num_episodes": done.settings["num_episodes"],
          "status": "done",
          "seconds": done.seconds,
          "runner": done.results["runner"],
          "csv": _csv_name(run),
          "versions": number,
        }
      else:
        entry = self._asked[run]
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
        run.agent: done.settings["identity"] for run, done in self.done.items()
      },
      "tasks": entries,
    }
    self._directory.write_json(read.INDEX, content)
    self._written = time.monotonic()

  def _write_csv(self, done: types.CompletedTask) -> None:
    """Writes a run's CSV unless it exists."""
    name, content = _csv_name(run_of(done)), to_csv(done.results["rows"])
    path = self._directory.path / name
    if not path.exists() or path.read_bytes() != content:
      self._directory.write(name, lambda file: file.write(content))


def to_csv(rows: Iterable[Row]) -> bytes:
  """A CSV with a header of all columns, in the order of their first appearance."""
  rows = list(rows)
  columns = list(dict.fromkeys(name for row in rows for name in row))
  text = io.StringIO()
  writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
  writer.writeheader()
  writer.writerows(rows)
  return text.getvalue().encode()


def _csv_name(run: Run) -> str:
  file = bsuite_sweeps.csv_name(run.bsuite_id)
  return f"bsuite_csv/{folder(run.agent)}/seed{run.seed}/{file}"


def _check_same(
  directory: output.RunDirectory,
  store: store_lib.Store,
  identities: Mapping[str, Any],
  done: types.CompletedTask,
  made_by: Mapping[str, Any],
) -> None:
  """Raises a SetUpError if results were made with other settings."""
  run, where = run_of(done), directory.path
  if made_by != store.made_by:
    raise errors.SetUpError(
      f"--output={where} holds tasks of another sweep ({run}: "
      f"{store_lib.difference(made_by, store.made_by)}); choose another --output, or "
      f"delete {where} if you do not need it."
    )
  identity = done.settings["identity"]
  if identities.get(run.agent, identity) != identity:
    named = store_lib.difference(identity, identities[run.agent])
    raise errors.SetUpError(
      f"--output={where} holds tasks of {run.agent} with other settings ({named}); "
      f"choose another --output, or delete {where}/tasks/{folder(run.agent)} to run "
      "its tasks again."
    )


def _run(entry: Mapping[str, Any]) -> Run:
  return Run(*(entry[name] for name in Run._fields))


def _read_index(directory: output.RunDirectory) -> dict[str, Any]:
  """The index; empty if it cannot be read, since it is then rewritten."""
  try:
    content = read.index(directory.path)
  except errors.SetUpError:
    return {}
  for entry in content["tasks"]:
    if entry["status"] == "done":  # It counts as missing if its results are lost.
      entry |= {"status": "missing", "reason": _NOT_DONE}
  return content
