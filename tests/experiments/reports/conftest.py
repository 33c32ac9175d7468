"""bsuite's stored logs, and sweeps made of them by the sweep's own writers."""

import csv
import io
import pathlib
import tarfile

import numpy as np
import pytest
from bsuite import sweep as bsuite_sweep

from explorax.environments import bsuite_sweeps
from explorax.experiments import output
from explorax.experiments.reports import read
from explorax.experiments.sweeps import records
from explorax.experiments.tasks import types

DATA = pathlib.Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def logs():
  """Set → experiment → id → log."""
  found = {}
  content = (DATA / "logs.tar.gz").read_bytes()
  with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
    for member in archive.getmembers():
      name, file = member.name.split("/")
      bsuite_id = next(
        i for i in bsuite_sweep.SWEEP if bsuite_sweeps.csv_name(i) == file
      )
      experiment = bsuite_id.partition("/")[0]
      text = archive.extractfile(member).read().decode()
      rows = [
        {name: float(cell or "nan") for name, cell in row.items()}
        for row in csv.DictReader(io.StringIO(text))
      ]
      log = read.log(rows, experiment)
      found.setdefault(name, {}).setdefault(experiment, {})[bsuite_id] = log
  return found


@pytest.fixture(scope="session")
def write_sweep():
  """Writes a sweep's directory.

  Called with (path, done, settings, cap, missing): done is (agent, id, seed) → log,
  missing (agent, id, seed) → why.
  """

  def write(path, done, settings, cap=None, missing=()):
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr("os.fsync", lambda descriptor: None)  # It need not outlast us.
      return write_all(path, done, settings, cap, missing)

  def write_all(path, done, settings, cap, missing):
    directory = output.RunDirectory.create(path)
    store = records.store(directory, cap)
    versions = {
      "python": "3.11.99",
      "packages": {"jax": "9.8.7", "dm-reverb": None},
      "platform": "a machine",
      "git_commit": "0123abc",
    }
    table = records.Records(
      directory, store, settings, "python -m the.sweep --agents=…"
    )
    for key, log in done.items():
      run = records.Run(*key)
      task = records.task(run, settings[run.agent], cap, {})
      rows = [dict(zip(log, row, strict=True)) for row in np.array([*log.values()]).T]
      rows = [{k: float(v) for k, v in row.items()} for row in rows]
      results = {"rows": rows, "runner": "own"}
      kept = types.CompletedTask(task.name, task.settings, results, 2.0, versions)
      store.write(task, kept)
      table.add(kept)
    for key, reason in dict(missing).items():
      run = records.Run(*key)
      table.ask(records.task(run, settings.get(run.agent), cap, {}), reason)
    table.write_index()
    return path

  return write
