"""Kills random processes of a distributed run, and checks that it finishes.

  python benchmarks/soak.py                          # 20 minutes, to results/soak
  python benchmarks/soak.py --steps=20000 --kill_every=10 --output=results/short

DQN learns bsuite's Catch with two actors, an evaluator and Reverb. After the death of
the board, the run must end, and the same command must resume it. The checks are printed
and written to `soak.json`; the exit code is 0 if all passed.
"""

import argparse
import contextlib
import csv
import json
import os
import pathlib
import random
import secrets
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

COMMAND = (
  sys.executable,
  "-m",
  "explorax.experiments.run",
  "--agent=dqn",
  "--env=bsuite:catch/0",
  "--runner=distributed",
  "--num_actors=2",
  "--eval_every=2000",
  "--eval_episodes=10",
  "--checkpoint_every=5000",
  "--checkpoint_replay",
  "--set=replay_capacity=10000",
)
ROLES = ("actor 0", "actor 1", "learner", "replay 0", "evaluator", "board")
_MARK = "EXPLORAX_SOAK"  # An environment variable that marks the run's processes.
_SECONDS_BETWEEN_LOOKS = 0.1
_SECONDS_TO_REPLACE = 120.0
_SECONDS_TO_END = 60.0
_RETURN = 0.5  # Of the last evaluations; Catch gives from -1 to 1.


class Run:
  """A distributed run in its own process, which can be disturbed and resumed."""

  def __init__(self, directory: pathlib.Path, *flags: str):
    self.directory = directory
    self._command = [*COMMAND, f"--output={directory}", *flags]
    self._token = secrets.token_hex(16)
    self.start()

  def start(self) -> None:
    """Starts or resumes the run."""
    environment = {**os.environ, _MARK: self._token}
    (self.directory / "processes.json").unlink(missing_ok=True)
    with self.directory.with_suffix(".log").open("ab") as log:
      self._process = subprocess.Popen(
        self._command, stdout=log, stderr=subprocess.STDOUT, env=environment
      )

  @property
  def exit_code(self) -> int | None:
    return self._process.poll()

  def wait(self, seconds: float) -> None:
    """Waits until the run is over, at most this long."""
    with contextlib.suppress(subprocess.TimeoutExpired):
      self._process.wait(seconds)

  def pid(self, role: str) -> int | None:
    """The process of a role, once it has started."""
    with contextlib.suppress(OSError, ValueError):
      text = (self.directory / "processes.json").read_text(encoding="utf-8")
      return json.loads(text).get(role)
    return None

  def kill(self, role: str) -> float | None:
    """Kills a process, and resumes the run if that ends it.

    Returns: seconds until another one has its role; None if none has after two minutes.
    """
    before, began = self.pid(role), time.monotonic()
    if before is None:
      return None
    os.kill(before, signal.SIGKILL)
    while (waited := time.monotonic() - began) < _SECONDS_TO_REPLACE:
      if self.pid(role) not in (before, None):
        return waited
      if role == "board" and self.exit_code == 1:
        self.start()
      time.sleep(_SECONDS_BETWEEN_LOOKS)
    return None

  def pids(self) -> list[int]:
    """The living processes of the run: its own and all that it started."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
      with contextlib.suppress(OSError):
        if f"{_MARK}={self._token}".encode() in (path / "environ").read_bytes():
          found.append(int(path.name))
    return found

  def end(self) -> int:
    """Ends the run; kills the processes that outlive it, and returns their number."""
    if self.exit_code is None:
      self._process.send_signal(signal.SIGTERM)
      self.wait(_SECONDS_TO_END)
    until = time.monotonic() + _SECONDS_TO_END
    while self.pids() and time.monotonic() < until:
      time.sleep(_SECONDS_BETWEEN_LOOKS)
    left = self.pids()
    for pid in left:
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return len(left)


def victims(seed: int) -> Iterator[str]:
  """Roles in random order, each once in a round."""
  rng = random.Random(seed)
  while True:
    yield from rng.sample(ROLES, len(ROLES))


def disturb(run: Run, kill_every: float, seed: int) -> list[dict[str, Any]]:
  """Kills a process every so many seconds until the run is over."""
  kills: list[dict[str, Any]] = []
  for role in victims(seed):
    run.wait(kill_every)
    while run.exit_code is None and run.pid(role) not in run.pids():
      run.wait(1.0)
    if run.exit_code is not None:
      break
    kills.append({"role": role, "seconds": run.kill(role)})
    print(f"killed {role}, replaced after {kills[-1]['seconds']} s", flush=True)
  return kills


def check(
  directory: pathlib.Path, exit_code: int | None, num_steps: int
) -> dict[str, bool]:
  """The checks of a run that is over: what is checked → whether it holds."""
  summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
  rows = _rows(directory / "metrics.csv")
  evaluations = _rows(directory / "evaluation.csv")
  steps = [int(row["env_steps"]) for row in rows]
  lengths = [int(row["episode_length"]) for row in rows]
  evaluated = [(int(row["env_steps"]), int(row["episode"])) for row in evaluations]
  returns = [float(row["episode_return"]) for row in evaluations[-30:]]
  return {
    "the run finished": exit_code == 0 and summary["env_steps"] >= num_steps,
    "episodes are counted once": (
      [int(row["episode"]) for row in rows] == list(range(1, len(rows) + 1))
      and summary["episodes"] == len(rows)
      and steps == sorted(steps)
    ),
    "no step is counted twice": summary["env_steps"] >= sum(lengths),
    "evaluations are counted once": evaluated == sorted(set(evaluated)),
    "it learned": bool(returns) and statistics.fmean(returns) >= _RETURN,
  }


def _rows(path: pathlib.Path) -> list[dict[str, str]]:
  with path.open(encoding="utf-8") as file:
    return list(csv.DictReader(file))


def main() -> int:
  """Returns the exit code."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--steps", type=int, default=800_000)
  parser.add_argument("--kill_every", type=float, default=20, help="seconds")
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--output", type=pathlib.Path, default="results/soak")
  args = parser.parse_args()
  args.output.mkdir(parents=True)
  run = Run(args.output / "run", f"--steps={args.steps}")
  try:
    kills = disturb(run, args.kill_every, args.seed)
  finally:
    left = run.end()
  checks = check(run.directory, run.exit_code, args.steps)
  checks["no process is left"] = not left
  # The run may end before the last one is replaced.
  checks["killed processes were replaced"] = all(k["seconds"] for k in kills[:-1])
  for what, holds in checks.items():
    print(f"{'passed' if holds else 'FAILED'}  {what}")
  text = json.dumps({"kills": kills, "checks": checks}, indent=1) + "\n"
  (args.output / "soak.json").write_text(text, encoding="utf-8")
  return 0 if all(checks.values()) else 1


if __name__ == "__main__":
  sys.exit(main())
