"""The command: on Ray as a process of its own, and without Ray in this one."""

import contextlib
import csv
import importlib.util
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from bsuite.logging import csv_load

from explorax.experiments import errors, output, ray_cluster, sweep
from explorax.experiments.sweeps import lock, perform, pool

needs_ray = pytest.mark.skipif(
  importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)

AGENTS = """
import os
import pathlib
import time
import numpy as np


class Random:
  def __init__(self, observation_spec, action_spec, seed):
    self.rng = np.random.default_rng(seed)
    self.num_actions = action_spec.num_values
    self.seed = seed

  def select_action(self, timestep):
    return self.rng.integers(self.num_actions)

  def update(self, timestep, action, new_timestep):
    pass


class Broken(Random):
  def update(self, timestep, action, new_timestep):
    if self.seed == 1:
      raise RuntimeError("it broke")


class Flaky(Random):
  def update(self, timestep, action, new_timestep):
    before = pathlib.Path("died")
    if self.seed == 0 and not before.exists():
      before.touch()
      os._exit(1)


class Hangs(Random):
  def update(self, timestep, action, new_timestep):
    if self.seed == 0:
      time.sleep(1000)
"""


def _command(*argv):
  return [sys.executable, "-P", "-m", "explorax.experiments.sweep", *argv]


def _environment():
  return {**os.environ, "JAX_PLATFORMS": "cpu"}


def _sweep(folder, *argv, code=0):
  done = subprocess.run(
    _command(*argv, "--output=out"),
    cwd=folder,
    env=_environment(),
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == code, done.stdout + done.stderr
  return done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path):
  (tmp_path / "my_agents.py").write_text(AGENTS)
  return tmp_path


def _table(folder: pathlib.Path) -> list[dict[str, str]]:
  with open(folder / "out/results.csv", newline="") as file:
    return list(csv.DictReader(file))


def _index(folder: pathlib.Path) -> dict:
  return json.loads((folder / "out/sweep.json").read_text())


@pytest.mark.slow
@needs_ray
def test_on_ray_failing_tasks_are_tried_twice_and_stop_no_others(folder):
  argv = ("--sweep=catch/0", "--seeds=2", "--episodes=5", "--workers=2")
  agents = ("Random", "Broken", "Flaky", "Hangs")
  named = f"--agents={','.join(f'my_agents:{agent}' for agent in agents)}"
  out, err = _sweep(folder, *argv, named, "--task_minutes=0.05", code=1)
  assert "8 tasks (4 agents, 1 id, 2 seeds), into out" in out
  assert re.search(r"3 tasks are done; the other 5 will take about \d+:\d\d", out)

  line = r"my_agents:{} on catch/0, seed {} failed: {}.*; it is {}\."
  for agent, seed, problem, times in (
    ("Broken", 1, r"RuntimeError: it broke \(.*my_agents\.py, line \d+\)", 2),
    ("Flaky", 0, "its process ended", 1),
    ("Hangs", 0, r"it was not done in 0\.05 minutes", 2),
  ):
    again = re.findall(line.format(agent, seed, problem, "tried again"), err)
    left = re.findall(line.format(agent, seed, problem, "left"), err)
    assert (len(again), len(left)) == (1, times - 1), err
  assert "2 tasks failed" in err
  assert _index(folder)["counts"] == {"done": 6, "failed": 2, "missing": 0}
  entries = {
    (e["agent"], e["bsuite_id"], e["seed"]): e for e in _index(folder)["tasks"]
  }
  assert "Traceback" in entries["my_agents:Broken", "catch/0", 1]["details"]
  assert entries["my_agents:Hangs", "catch/0", 0]["attempts"] == 2

  # What was broken off has the values of what was not: Flaky is Random otherwise.
  rows = _table(folder)
  values = {
    agent: sorted(
      tuple(value for name, value in row.items() if name != "agent")
      for row in rows
      if row["agent"] == f"my_agents:{agent}"
    )
    for agent in agents
  }
  assert values["Random"] == values["Flaky"]
  assert len(values["Random"]) == len(set(values["Random"])) == 2 * 5
  assert len(values["Broken"]) == len(values["Hangs"]) == 5
  frame, _ = csv_load.load_bsuite(
    {
      seed: str(folder / f"out/bsuite_csv/my_agents.Flaky/seed{seed}")
      for seed in (0, 1)
    }
  )
  assert len(frame) == 2 * 5


# Starts a sweep again and again, forked from a process that has imported all, so that
# a start takes no seconds; with its pool's place taken by one that is not Ray's. Each
# kills itself at a random one of the moments at which it is about to open, to rename or
# to remove a file, so that no timing matters.
LIVES = """
import contextlib, os, random, signal, sys

from explorax.experiments import ray_cluster, sweep
from explorax.experiments.sweeps import agents, index, perform, pool
from explorax.experiments.sweeps import selection, tasks, unfinished, user_agents

MOMENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir")


class Inline:
  def __init__(self, size, start_worker, *, time_limit):
    self.size = size

  def compute(self, todo, *, on_progress, stop):
    for number, task in enumerate(todo):
      outcome = perform.perform(task, "", lambda share: None)
      yield pool.Report(number, outcome, 1, False)

  def close(self):
    pass


pool.Pool = Inline
ray_cluster.check_installed = lambda: None
ray_cluster.connect = lambda address, workers: contextlib.nullcontext(1)


def live(output, last_moment=None):
  pid = os.fork()
  if pid:
    return os.waitpid(pid, 0)[1]
  sys.stdout = sys.stderr = open(os.devnull, "w")
  passed = 0

  def hook(event, args):
    nonlocal passed
    if event in MOMENTS and output in str(args[0]):
      passed += 1
      if passed == last_moment:
        os.kill(os.getpid(), signal.SIGKILL)

  sys.addaudithook(hook)
  code = sweep.main([*argv, f"--output={output}"])
  os.write(pipe[1], b"%d " % passed)
  os._exit(code)


argv = sys.argv[1:]
pipe = os.pipe()
assert live("alone") == 0
most = int(os.read(pipe[0], 100)) // 4
rng = random.Random(0)
kills = 0
while kills < 20:
  kills += os.WIFSIGNALED(live("killed", rng.randint(1, most)))
  print(sum(len(names) for _, _, names in os.walk("killed/tasks")))
assert live("killed") == 0
"""


def _results(path: pathlib.Path) -> dict[str, bytes]:
  files = (*path.glob("bsuite_csv/*/*/*"), path / "results.csv")
  return {str(file.relative_to(path)): file.read_bytes() for file in files}


def test_twenty_kills_change_nothing(folder):
  (folder / "lives.py").write_text(LIVES)
  argv = ["--agents=my_agents:Random", "--sweep=bandit,catch", "--seeds=2"]
  done = subprocess.run(
    [sys.executable, "-P", "lives.py", *argv, "--episodes=20"],
    cwd=folder,
    env=_environment(),
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  counts = [int(line) for line in done.stdout.split()]
  assert counts == sorted(counts) and len(counts) >= 20
  assert len(set(counts)) >= 5  # They came while it was at work.
  assert not [*folder.glob("*/unfinished")]
  assert _results(folder / "alone") == _results(folder / "killed")
  indices = [
    json.loads((folder / name / "sweep.json").read_text())
    for name in ("alone", "killed")
  ]
  assert indices[0]["counts"] == indices[1]["counts"]
  assert indices[0]["counts"]["done"] == len(indices[1]["tasks"]) == 2 * 40


class _Inline:
  """A pool that does its tasks in this process; a signal comes where it is told."""

  signal_after = -1

  def __init__(self, size, start_worker, *, time_limit):
    del start_worker, time_limit
    self.size = size

  def compute(self, todo, *, on_progress, stop):
    for index, task in enumerate(todo):
      if index == self.signal_after:
        signal.raise_signal(signal.SIGTERM)
      if stop():
        return
      on_progress({index: 0.5})
      yield pool.Report(index, perform.perform(task, "", lambda share: None), 1, False)

  def close(self):
    """There is nothing to end."""


@pytest.fixture
def inline(folder, monkeypatch):
  """`main` in this process, without Ray; in the folder of the agents."""
  monkeypatch.chdir(folder)
  module = f"agents_{folder.name}"
  (folder / f"{module}.py").write_text(AGENTS)
  monkeypatch.setattr(pool, "Pool", _Inline)
  monkeypatch.setattr(ray_cluster, "check_installed", lambda: None)
  monkeypatch.setattr(
    ray_cluster, "connect", lambda address, workers: contextlib.nullcontext(2)
  )
  return lambda *argv: sweep.main([f"--agents={module}:Random", *argv, "--output=out"])


SMALL = ("--sweep=catch/0,bandit/0,bandit/1,bandit/2,bandit/3", "--episodes=3")


def test_a_signal_stops_it_and_the_same_call_goes_on(
  inline, folder, monkeypatch, capsys
):
  monkeypatch.setattr(_Inline, "signal_after", 2)
  assert inline(*SMALL) == 143
  assert "the same call goes on" in capsys.readouterr().err
  assert _index(folder)["counts"] == {"done": 2, "failed": 0, "missing": 3}
  assert len(_table(folder)) == 2 * 3
  monkeypatch.setattr(_Inline, "signal_after", -1)
  assert inline(*SMALL) == 0
  out = capsys.readouterr().out
  assert "5 tasks (1 agent, 5 ids, 1 seed), into out; 2 of them done before" in out
  assert len(_table(folder)) == 5 * 3
  assert len(_index(folder)["commands"]) == 2
  assert inline(*SMALL) == 0
  assert "all of them are done" in capsys.readouterr().out


def test_it_ends_when_its_time_is_up(inline, folder, capsys):
  assert inline(*SMALL, "--max_hours=1e-9") == 3
  assert "the time is up, with 5 tasks to go; the same" in capsys.readouterr().err
  assert _index(folder)["counts"] == {"done": 0, "failed": 0, "missing": 5}


def test_time_that_is_up_is_told_beside_failures(inline, folder, monkeypatch, capsys):
  def compute(self, todo, *, on_progress, stop):
    yield pool.Report(0, perform.Outcome(None, "it broke", "", 1.0, ""), 2, False)
    yield pool.Report(1, perform.perform(todo[1], "", lambda share: None), 1, False)

  monkeypatch.setattr(_Inline, "compute", compute)
  assert inline(*SMALL) == 3
  err = capsys.readouterr().err
  assert "1 task failed" in err and "the time is up, with 3 tasks to go" in err
  assert _index(folder)["counts"] == {"done": 1, "failed": 1, "missing": 3}


def test_it_says_how_long_it_will_take(inline, capsys):
  assert inline(*SMALL) == 0
  assert re.search(r"3 tasks are done; the other 2 will take", capsys.readouterr().out)


def test_mnist_without_data_is_left_out_and_said_once(inline, folder, capsys):
  argv = ("--sweep=TESTING,mnist", "--episodes=1", f"--mnist_dir={folder}")
  assert inline(*argv) == 0
  out = capsys.readouterr().out
  assert out.count("20 mnist ids left out: train-images-idx3-ubyte.gz and ") == 1
  assert "12 tasks (1 agent, 32 ids, 1 seed)" in out
  content = _index(folder)
  assert content["counts"] == {"done": 12, "failed": 0, "missing": 20}
  reasons = {e["bsuite_id"]: e.get("reason", "") for e in content["tasks"]}
  assert "must be in" in reasons["mnist/7"] and not reasons["catch/0"]


def test_mnist_that_was_done_stays_done_without_data(
  inline, folder, monkeypatch, capsys
):
  rows = [{"episode": 1, "steps": 1, "total_return": 0.0, "total_regret": 1.0}]
  done = perform.Outcome(rows, "", "", 1.0, "local")
  with monkeypatch.context() as patch:
    patch.setattr(perform, "perform", lambda *_: done)
    patch.setattr(
      "explorax.experiments.sweeps.plan.bsuite_mnist.problem", lambda directory: ""
    )
    assert inline("--sweep=mnist/0", "--episodes=1") == 0
  argv = ("--episodes=1", f"--mnist_dir={folder}")
  assert inline("--sweep=mnist/0", *argv) == 0
  assert "all of them are done" in capsys.readouterr().out
  assert inline("--sweep=mnist/0,mnist/1,bandit/0", *argv) == 0
  assert "1 mnist id left out" in capsys.readouterr().out
  assert _index(folder)["counts"] == {"done": 2, "failed": 0, "missing": 1}


def test_a_tuning_names_the_best_settings(inline, folder, monkeypatch, capsys):
  def perform_task(task, mnist_dir, tick):
    beta = float(task.agent.rpartition("=")[2])
    rows = [
      {"episode": e, "steps": e, "total_return": e * beta, "total_regret": 0.0}
      for e in (1, 2, 3)
    ]
    return perform.Outcome(rows, "", "", 1.0, "local")

  monkeypatch.setattr(perform, "perform", perform_task)
  (folder / "grid.json").write_text('{"qex": {"beta": [1, 3.5, 0.25]}}')
  argv = ["--agents=qex", "--sweep=bandit/0", "--episodes=3", "--output=out"]
  argv += ["--seeds=2", "--sweep_config=grid.json", "--score=return"]
  assert sweep.main(argv) == 0
  out = capsys.readouterr().out
  assert "6 tasks (3 agents, 1 id, 2 seeds)" in out
  assert "best: --agent=qex --set=beta=3.5\n" in out
  assert {row["seed"] for row in _table(folder)} == {"1000000", "1000001"}
  with open(folder / "out/tuning.csv", newline="") as file:
    assert [row["settings"] for row in csv.DictReader(file) if row["is_best"] == "True"]
  # The winner, as it was told, is an agent of a sweep on other seeds.
  assert sweep.main([*argv[1:4], "--agents=qex@beta=3.5"]) == 0
  assert {row["seed"] for row in _table(folder)} == {"0", "1000000", "1000001"}
  assert sweep.main(argv) == 0
  assert "all of them are done.\n\nqex: return of 3" in capsys.readouterr().out


def test_a_full_disk_ends_it_and_keeps_what_is_done(
  inline, folder, monkeypatch, capsys
):
  real = output.RunDirectory.write

  def full(self, name, write):
    if name.endswith("bandit-1.csv"):
      raise errors.OutputError(f"{name} could not be written because the disk is full.")
    real(self, name, write)

  monkeypatch.setattr(output.RunDirectory, "write", full)
  assert inline(*SMALL) == 1
  err = capsys.readouterr().err
  assert "the disk is full" in err and err.count("\n") == 1
  assert _index(folder)["counts"]["done"] == 2 and len(_table(folder)) == 2 * 3


def test_another_sweep_in_the_directory_is_refused(inline, folder, capsys):
  (folder / "out").mkdir()
  with lock.hold(folder / "out"):
    assert inline(*SMALL) == 2
  assert f"(process {os.getpid()} on " in capsys.readouterr().err


def test_a_directory_of_other_settings_is_refused(inline, capsys):
  assert inline(*SMALL) == 0
  assert inline(*SMALL, "--episodes=4") == 2
  err = capsys.readouterr().err
  assert "made with episodes=3" in err and "would be episodes=4" in err
  assert inline(*SMALL, "--seeds=2") == 0  # But more of the same may be added.
  assert "10 tasks" in capsys.readouterr().out


@pytest.mark.parametrize(
  ("argv", "message"),
  [
    (("--sweep=catch/0",), "--agents is missing"),
    (("--agents=dqn",), "--sweep is missing"),
    (("--agents=dqm", "--sweep=catch/0"), "Did you mean dqn"),
    (("--agents=dqn", "--sweep=cach/0"), "Did you mean catch/0"),
    (("--agents=none:make", "--sweep=catch/0"), "cannot be imported"),
    (("--agents=.mine:make", "--sweep=catch/0"), "not of the form module:function"),
    (("--agents=:make", "--sweep=catch/0"), "not of the form module:function"),
    (("--agents=dqn@", "--sweep=catch/0"), "'dqn@' has an empty setting; write dqn"),
    (("--agents=dqm@beta=1", "--sweep=catch/0"), "Did you mean dqn"),
    (("--agents=dqn@bta=1", "--sweep=catch/0"), "Did you mean beta"),
    (("--agents=dqn@beta=x", "--sweep=catch/0"), "the agent 'dqn@beta=x' has no such"),
    (("--agents=dqn", "--sweep=catch/0", "--score=return"), "is for --sweep_config"),
    (("--agents=tdy", "--sweep=catch/0", "--sweep_config=table3"), "Did you mean tdu"),
    (("--agents=dqn", "--sweep=mnist/0", "--mnist_dir=/none"), "must be in /none"),
    (("--agents=dqn", "--sweep=catch/0", "--max_hours=0"), "a number above 0"),
    (
      ("--agents=dqn", "--sweep=catch/0", "--ray_address=127.0.0.1:1"),
      "no Ray cluster answers at --ray_address=127.0.0.1:1",
    ),
    (
      ("--agents=dqn", "--sweep=catch/0", "--seed=999999", "--seeds=2"),
      "go beyond",
    ),
  ],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, capsys, argv, message):
  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr("explorax.experiments.ray_cluster.check_installed", lambda: None)
  assert sweep.main(argv) == 2
  err = capsys.readouterr().err
  assert message in err and err.startswith("explorax: ") and err.count("\n") == 1


def test_without_ray_it_says_so(tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  real = importlib.util.find_spec
  monkeypatch.setattr(
    importlib.util, "find_spec", lambda name: None if name == "ray" else real(name)
  )
  assert sweep.main(["--agents=dqn", "--sweep=catch/0"]) == 2
  assert "install explorax[distributed]" in capsys.readouterr().err
  assert not [*tmp_path.iterdir()]


def test_help_and_list(capsys):
  assert sweep.main(["--help"]) == 0
  text = capsys.readouterr().out
  assert all(len(line) <= 88 for line in text.splitlines())
  assert sweep.main(["--list"]) == 0
  assert "DEEP_SEA" in capsys.readouterr().out
