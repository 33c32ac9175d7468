"""The pool, in this process and on Ray, with the same tasks."""

import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from explorax.experiments import output
from explorax.experiments.recording import console
from explorax.experiments.tasks import pool as pool_lib
from explorax.experiments.tasks import store as store_lib
from explorax.experiments.tasks import types

needs_ray = pytest.mark.skipif(
  importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)
EVERYWHERE = (1, pytest.param(2, marks=needs_ray))

# The function of the tasks: settings say what goes wrong, and how often.
MODULE = """
import os, pathlib, signal, time


def compute(settings, context):
  path = pathlib.Path(settings["folder"], settings["name"])
  attempt = len(path.read_text()) if path.exists() else 0
  path.write_text("x" * (attempt + 1))
  kind = settings["kind"] if attempt < settings.get("times", 1) else "fine"
  context.report(0.5)
  if kind == "raises":
    raise ValueError("it broke.")
  if kind == "exits":
    raise SystemExit("enough")
  if kind == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
  if kind == "hangs":
    for _ in range(1000):
      time.sleep(0.05)
      context.report(0.5)
  if kind == "signals":
    signal.raise_signal(signal.SIGTERM)
    context.report(0.75)
  return {"attempt": attempt}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """A current directory with the module `tasks_of_FOLDER`."""
  (tmp_path / f"tasks_of_{tmp_path.name}.py").write_text(MODULE)
  monkeypatch.chdir(tmp_path)
  monkeypatch.syspath_prepend(tmp_path)
  return tmp_path


def _tasks(folder: pathlib.Path, **kinds) -> list[types.Task]:
  return [
    types.Task(name, {"folder": str(folder), "name": name, "kind": kind, **more})
    for name, (kind, more) in (
      (name, value if isinstance(value, tuple) else (value, {}))
      for name, value in kinds.items()
    )
  ]


def _compute(folder, tasks, **arguments):
  text = io.StringIO()
  store = store_lib.Store(output.RunDirectory.create(folder / "out"))
  with pool_lib.Pool(console.Console(text), **arguments) as pool:
    done = pool.compute(f"tasks_of_{folder.name}:compute", tasks, store)
  return done, pool


@pytest.mark.parametrize("workers", EVERYWHERE)
def test_a_failed_task_stops_no_others(folder, capsys, workers):
  kinds = {"a": "fine", "b": "raises", "c": "exits"}
  kinds |= {"d": "killed" if workers > 1 else "fine", "e": ("killed", {"times": 2})}
  tasks = _tasks(folder, **kinds)[: 4 if workers == 1 else 5]
  done, pool = _compute(folder, tasks, workers=workers)
  attempts = [each and each.results["attempt"] for each in done]
  # Ray starts a task once more if its process died.
  assert attempts == [0, None, None, *((0,) if workers == 1 else (1, None))]
  assert (pool.failed, pool.exit_code) == (len(tasks) - 2, 1)
  err = capsys.readouterr().err
  module = f"tasks_of_{folder.name}.py, line "
  assert "b failed: ValueError: it broke (" in err and module in err
  assert err.count("failed: ") == len(tasks) - 2
  assert "Traceback" in next((folder / "out").rglob("b-*.failed.txt")).read_text()
  # The same again computes those that failed alone.
  done, pool = _compute(folder, tasks, workers=1)
  attempts = [each.results["attempt"] for each in done]
  assert attempts == [0, 1, 1, *((0,) if workers == 1 else (1, 2))]
  assert pool.exit_code == 0 and not [*(folder / "out").rglob("*.failed.txt")]


def test_a_signal_stops_it(folder, capsys):
  tasks = _tasks(folder, a="fine", b="signals", c="fine")
  done, pool = _compute(folder, tasks, workers=1)
  assert [each is None for each in done] == [False, True, True]
  assert pool.exit_code == 128 + signal.SIGTERM and pool.failed == 0
  done, pool = _compute(folder, tasks, workers=1)
  assert [each.results["attempt"] for each in done] == [0, 1, 0]


def test_damaged_results_are_computed_again(folder):
  tasks = _tasks(folder, a="fine", b="fine")
  _compute(folder, tasks, workers=1)
  next((folder / "out").rglob("a-*.npz")).write_bytes(b"damaged")
  done, _ = _compute(folder, tasks, workers=1)
  assert [each.results["attempt"] for each in done] == [1, 0]


LIFE = """
import json, os, pathlib, sys
from explorax.experiments import output
from explorax.experiments.recording import console
from explorax.experiments.tasks import pool, store, types

function, tasks = json.loads(sys.argv[1])
store = store.Store(output.RunDirectory.create("out"))
with pool.Pool(console.Console(sys.stdout), workers=2) as pool:
  print("begun", flush=True)
  pool.compute(function, [types.Task(*task) for task in tasks], store)
sys.exit(pool.exit_code)
"""


@needs_ray
def test_what_is_done_survives_the_end_of_the_command(folder):
  tasks = _tasks(folder, a="fine", b="hangs")
  argument = json.dumps([f"tasks_of_{folder.name}:compute", tasks])
  life = subprocess.Popen(
    [sys.executable, "-c", LIFE, argument],
    env={**os.environ, "PYTHONPATH": str(folder)},
    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
  )
  while not ([*folder.rglob("a-*.npz")] and (folder / "b").exists()):
    assert life.poll() is None
    time.sleep(0.05)
  life.send_signal(signal.SIGINT)
  assert life.wait(90) == 130
  done, _ = _compute(folder, tasks, workers=1)
  assert [each.results["attempt"] for each in done] == [0, 1]
