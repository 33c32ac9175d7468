"""bsuite's stored logs, and sweeps made of them by the sweep's own writers."""

import io
import pathlib
import tarfile

import numpy as np
import pytest
from bsuite import sweep as bsuite_sweep

from explorax.environments import bsuite_sweeps
from explorax.experiments import output
from explorax.experiments.reports import read
from explorax.experiments.sweeps import index, tasks

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
      log = read.parse_log(archive.extractfile(member).read(), experiment)
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
    store = tasks.Store(directory, settings, cap)
    table = index.Index(directory, store, command="python -m the.sweep --agents=…")
    store.versions = {
      "python": "3.11.99",
      "packages": {"jax": "9.8.7", "dm-reverb": None},
      "platform": "a machine",
      "git_commit": "0123abc",
    }
    for (agent, bsuite_id, seed), log in done.items():
      task = tasks.Task(agent, bsuite_id, seed, cap)
      rows = [dict(zip(log, row, strict=True)) for row in np.array([*log.values()]).T]
      store.write(task, [{k: float(v) for k, v in r.items()} for r in rows], 2.0, "own")
      assert table.done(task)
    for (agent, bsuite_id, seed), reason in dict(missing).items():
      table.missing(tasks.Task(agent, bsuite_id, seed, cap), reason)
    table.write()
    return path

  return write
