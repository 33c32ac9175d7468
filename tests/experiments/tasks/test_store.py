"""Stored results of tasks: complete or absent, and never those of another task."""

import numpy as np
import pytest

from explorax.experiments import errors, output
from explorax.experiments.tasks import store as store_lib
from explorax.experiments.tasks import types

TASK = types.Task("dqn/seed0", {"n": 3, "sizes": (1, 2)})


def _store(path, **made_by) -> store_lib.Store:
  return store_lib.Store(output.RunDirectory.create(path), made_by=made_by)


def _done(task: types.Task = TASK) -> types.CompletedTask:
  results = {"rows": np.arange(3, dtype=np.int16), "text": ["a", None]}
  return types.CompletedTask(
    task.name, dict(task.settings), results, 1.5, {"python": "3"}
  )


def test_results_are_read_as_they_were_written(tmp_path):
  store = _store(tmp_path)
  assert store.read(TASK) is None
  store.write(TASK, _done())
  done = store.read(TASK)
  assert done.results.pop("rows").dtype == np.int16
  expected = _done()
  expected.results.pop("rows")
  assert done == expected._replace(settings={"n": 3, "sizes": [1, 2]})
  other = TASK._replace(settings={"n": 4})
  assert store.read(other) is None
  store.write(other, _done(other))
  assert store.read(other).settings["n"] == 4


@pytest.mark.parametrize("damage", [lambda b: b[:-30], lambda b: b"", lambda b: b"x"])
def test_damaged_results_are_not_used(tmp_path, damage):
  store = _store(tmp_path)
  store.write(TASK, _done())
  (path,) = tmp_path.rglob("*.npz")
  path.write_bytes(damage(path.read_bytes()))
  assert store.read(TASK) is None


def test_a_full_disk_leaves_what_was_there(tmp_path, small_disk):
  store = _store(tmp_path)
  store.write(TASK, _done())
  large = _done()._replace(results={"rows": np.random.default_rng(0).random(10**5)})
  with small_disk(2**14), pytest.raises(errors.OutputError, match=r"could not be writ"):
    store.write(TASK, large)
  assert store.read(TASK).results["rows"].tolist() == [0, 1, 2]
