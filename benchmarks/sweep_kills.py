"""A sweep that is killed again and again, beside one that is left alone.

  python benchmarks/sweep_kills.py --kills=20 --seed=0

Tiny tasks, of the device runner, the local runner and a user's agent, on Ray. At random
moments (seeded) the sweep's own process or one of its workers gets SIGKILL, and the
same call is given again. At the end both directories must hold the same tasks, with the
same bytes in each task's CSV and in the table.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

AGENT = """
import time
import numpy as np


class Slow:
  def __init__(self, num_actions, seed):
    self.rng, self.num_actions = np.random.default_rng(seed), num_actions

  def select_action(self, timestep):
    time.sleep(0.004)
    return self.rng.integers(self.num_actions)

  def update(self, timestep, action, new_timestep):
    pass


def make(observation_spec, action_spec, seed):
  return Slow(action_spec.num_values, seed)
"""

_ARGV = (
  "--agents=dqn,slow_agent:make",
  "--sweep=deep_sea/0,catch/0",
  "--episodes=150",
  "--checkpoint_minutes=0.01",
)
_TRIES = 5
_AT_ITS_START, _OF_WORKERS = 0.25, 0.6  # Shares of kills.
_IS_THERE = "Ray is there"
_WORKER = b"ray::Worker"


def main() -> int:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--kills", type=int, default=20)
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--seeds", type=int, default=2, help="of each agent and id")
  args = parser.parse_args()
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "slow_agent.py").write_text(AGENT)
    argv = (*_ARGV, f"--seeds={args.seeds}")
    starting, working = _to_the_end(folder, argv, "alone")
    print(f"left alone: {starting:.0f} s and {working:.0f} s of work", flush=True)
    rng = random.Random(args.seed)
    killed = 0
    while killed < args.kills:
      killed += _one_life(folder, argv, rng, starting, working / 3, args.kills - killed)
      print(f"{killed} kills; {_counts(folder / 'killed')}", flush=True)
    _to_the_end(folder, argv, "killed")
    problems = differences(folder / "alone", folder / "killed")
    print("\n".join(problems) or f"after {killed} kills all is the same", flush=True)
    return 1 if problems else 0


def _to_the_end(
  folder: pathlib.Path, argv: tuple[str, ...], output: str
) -> tuple[float, float]:
  """Seconds that a call takes to start, and to work, if it is left alone.

  Raises:
    RuntimeError: if it fails again and again: Ray may, on a very busy machine.
  """
  for _ in range(_TRIES):
    began = there = time.monotonic()
    process = _start(folder, argv, output)
    for line in process.stdout:
      print(line, end="", flush=True)
      if _IS_THERE in line:
        there = time.monotonic()
    if not process.wait():
      return there - began, time.monotonic() - there
  raise RuntimeError(f"the sweep did not end well in {_TRIES} calls.")


def _start(folder: pathlib.Path, argv: tuple[str, ...], output: str):
  command = [sys.executable, "-P", "-m", "explorax.experiments.sweep", *argv]
  return subprocess.Popen(
    [*command, f"--output={output}"],
    cwd=folder,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
  )


def _one_life(
  folder: pathlib.Path,
  argv: tuple[str, ...],
  rng: random.Random,
  starting: float,
  working: float,
  most_kills: int,
) -> int:
  """From a call to its end, by a signal if it is not done before.

  Args:
    folder: in which it works.
    argv: of the sweep.
    rng: of when and whom to kill.
    starting: seconds, at the most, until one that comes while it starts.
    working: seconds, at the most, between two others.
    most_kills: after which it ends.

  Returns:
    How many kills there were.
  """
  process = _start(folder, argv, "killed")
  kills = 0
  if rng.random() < _AT_ITS_START or not _under_way(folder / "killed"):
    time.sleep(rng.uniform(0, starting))
  else:
    for line in process.stdout:
      if _IS_THERE in line:
        break
    time.sleep(rng.uniform(0, working))
    while rng.random() < _OF_WORKERS and kills < most_kills - 1:
      kills += _kill(rng.choice(_workers(process.pid) or [0]))
      time.sleep(rng.uniform(0, working))
  if process.poll() is None:
    kills += _kill(process.pid)
  process.communicate()
  return kills


def _kill(pid: int) -> int:
  """1, or 0 if there is no such process any more."""
  try:
    if pid:
      os.kill(pid, signal.SIGKILL)
  except ProcessLookupError:
    return 0
  return int(pid > 0)


def _under_way(path: pathlib.Path) -> bool:
  """Whether there is still something to do."""
  try:
    counts = json.loads((path / "sweep.json").read_text())["counts"]
  except OSError:
    return True
  return counts["done"] < sum(counts.values())


def _workers(pid: int) -> list[int]:
  """The processes below this one that do tasks."""
  children: dict[int, list[int]] = {}
  for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
    try:
      fields = path.read_text().rpartition(")")[2].split()
      children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    except (OSError, IndexError):
      continue
  found, left = [], [pid]
  while left:
    for child in children.get(left.pop(), ()):
      left.append(child)
      try:
        title = pathlib.Path(f"/proc/{child}/cmdline").read_bytes()
      except OSError:
        continue
      if title.startswith(_WORKER):
        found.append(child)
  return found


def _counts(path: pathlib.Path) -> str:
  done = len([*path.glob("tasks/*/*/*.json")])
  under_way = len({p.parent for p in path.glob("unfinished/*/*/*/step_*")})
  return f"{done} tasks done, {under_way} with checkpoints"


def differences(alone: pathlib.Path, killed: pathlib.Path) -> list[str]:
  """What differs in the directories of two sweeps but times and commands."""
  contents = [
    {
      str(p.relative_to(path)): p.read_bytes()
      for p in (*path.glob("bsuite_csv/*/*/*"), path / "results.csv")
    }
    for path in (alone, killed)
  ]
  problems = [
    f"{name} differs"
    for name in sorted({*contents[0], *contents[1]})
    if contents[0].get(name) != contents[1].get(name)
  ]
  for path in (alone, killed):
    left = [p.name for p in (path / "unfinished").glob("*/*/*")]
    problems += [f"{path.name} holds unfinished {', '.join(left)}"] if left else []
  sets = []
  for path in (alone, killed):
    entries = json.loads((path / "sweep.json").read_text())["tasks"]
    names = ("agent", "bsuite_id", "seed", "status", "num_episodes", "csv")
    sets.append(sorted(tuple(e.get(name) for name in names) for e in entries))
  if sets[0] != sets[1]:
    problems.append("sweep.json names other tasks")
  return problems


if __name__ == "__main__":
  sys.exit(main())
