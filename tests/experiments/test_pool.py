"""The pool, in this process, in several and on Ray, with the same tasks."""

import importlib.util
import pathlib

import pytest

from explorax.experiments import errors, pool, processes

# What a task does the first time.
MODULE = """
import os, pathlib, signal, time


def compute(argument):
  folder, kind = argument
  path = pathlib.Path(folder, kind)
  if path.exists():
    return kind
  path.write_text("")
  if kind == "raises":
    raise ValueError("it broke.")
  if kind == "exits":
    raise SystemExit("enough")
  if kind == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
  while kind == "hangs":
    time.sleep(0.05)
  return kind
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
  """A module of the user's, in the current directory."""
  (tmp_path / f"tasks_of_{tmp_path.name}.py").write_text(MODULE)
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  return importlib.import_module(f"tasks_of_{tmp_path.name}")


def _outcomes(module, *kinds: str, **how) -> dict[str, object]:
  folder = str(pathlib.Path.cwd())
  tasks = [pool.Task(kind, (folder, kind)) for kind in kinds]
  return {
    task.name: outcome for task, outcome in pool.compute(module.compute, tasks, **how)
  }


def _check_failures(found, module) -> None:
  raised = found["raises"]
  assert raised.problem.startswith("ValueError: it broke (")
  assert f"{module.__name__}.py, line " in raised.problem
  assert "Traceback" in raised.details
  assert found["exits"].problem.startswith("SystemExit: enough")
  assert found["fine"] == "fine"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_failed_task_stops_no_others(module, workers):
  killed = ["killed"] if workers > 1 else []
  found = _outcomes(module, *killed, "raises", "exits", "fine", workers=workers)
  _check_failures(found, module)
  assert all("died" in found[kind].problem for kind in killed)


def test_it_stops_between_tasks_and_ends_processes(module):
  begun = pathlib.Path("hangs")
  for workers, kinds in ((1, ("fine", "fine")), (2, ("hangs", "fine"))):
    found = []
    stop = lambda: bool(found) and (workers == 1 or begun.exists())  # noqa: B023, E731
    tasks = [pool.Task(kind, (".", kind)) for kind in kinds]
    for task, _ in pool.compute(module.compute, tasks, workers=workers, stop=stop):
      found.append(task.name)
    assert found == ["fine"]


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray")
def test_a_cluster_computes_the_same(module):
  with processes.connect(None, 2):  # `auto` is this one.
    found = _outcomes(module, "raises", "exits", "fine", ray_address="auto")
  _check_failures(found, module)


def test_an_address_where_nothing_listens_is_refused_at_once():
  with (
    pytest.raises(errors.SetUpError, match=r"--ray_address=127\.0\.0\.1:1 "),
    processes.connect("127.0.0.1:1", None),
  ):
    pass


def test_a_ray_that_was_imported_before_its_settings_is_not_started(monkeypatch):
  pytest.importorskip("ray")
  monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
  with (
    pytest.raises(errors.SetUpError, match="imported before"),
    processes.connect(None, 1),
  ):
    pass
