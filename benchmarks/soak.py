"""Kills processes of a distributed run at random, and checks that it finishes.

  python benchmarks/soak.py                          # 20 minutes, to results/soak
  python benchmarks/soak.py --steps=20000 --kill_every=10 --output=results/short

DQN learns bsuite's Catch with two actors. Mostly an actor is killed, and sometimes the
run's own process, which the same command resumes. The checks are printed and written
to `soak.json`; the exit code is 0 if all passed.
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
from typing import Any

COMMAND = (
  sys.executable,
  "-m",
  "explorax.experiments.run",
  "--agent=dqn",
  "--env=bsuite:catch/0",
  "--runner=distributed",
  "--num_actors=2",
  "--eval_every=20000",
  "--eval_episodes=10",
  "--checkpoint_every=5000",
  "--checkpoint_replay",
  "--set=replay_capacity=10000",
)
_MARK = "EXPLORAX_SOAK"  # An environment variable that marks the run's processes.
_SHARE_OF_RUN = 0.2  # Of the kills that end the run itself.
_SECONDS_TO_END = 60.0
_RETURN = 0.5  # Of the last evaluations; Catch gives from -1 to 1.


class Run:
  """A distributed run in its own process, which can be disturbed and resumed."""

  def __init__(self, directory: pathlib.Path, *flags: str):
    self.directory = directory
    self._command = [*COMMAND, f"--output={directory}", *flags]
    self._environment = {**os.environ, _MARK: secrets.token_hex(16)}
    self.start()

  def start(self) -> None:
    """Starts or resumes the run."""
    with self.directory.with_suffix(".log").open("ab") as log:
      self._process = subprocess.Popen(
        self._command, stdout=log, stderr=subprocess.STDOUT, env=self._environment
      )

  @property
  def exit_code(self) -> int | None:
    return self._process.poll()

  def wait(self, seconds: float) -> None:
    """Waits until the run is over, at most this long."""
    with contextlib.suppress(subprocess.TimeoutExpired):
      self._process.wait(seconds)

  def pids(self, name: str = "") -> list[int]:
    """The living processes of the run whose command contains the name."""
    mark = f"{_MARK}={self._environment[_MARK]}".encode()
    pids = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
      with contextlib.suppress(OSError):
        is_ours = mark in (path / "environ").read_bytes()
        if is_ours and name.encode() in (path / "cmdline").read_bytes():
          pids.append(int(path.name))
    return pids

  def kill_actor(self, rng: random.Random) -> bool:
    """Kills one of its actors; returns whether there was one."""
    actors = self.pids("RolloutActor")
    if actors:
      os.kill(rng.choice(actors), signal.SIGKILL)
    return bool(actors)

  def kill(self) -> None:
    """Kills the run's own process, and resumes it."""
    self._process.kill()
    self._process.wait()
    self.start()

  def end(self) -> int:
    """Ends the run; kills the processes that outlive it, and returns their number."""
    if self.exit_code is None:
      self._process.send_signal(signal.SIGTERM)
      self.wait(_SECONDS_TO_END)
    until = time.monotonic() + _SECONDS_TO_END
    while self.pids() and time.monotonic() < until:
      time.sleep(0.1)
    left = self.pids()
    for pid in left:
      with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return len(left)


def disturb(run: Run, kill_every: float, seed: int) -> dict[str, int]:
  """Kills a process every so many seconds until the run is over; counts them."""
  rng, kills = random.Random(seed), {"actor": 0, "run": 0}
  while run.exit_code is None:
    run.wait(kill_every)
    if run.exit_code is not None:
      break
    if rng.random() < _SHARE_OF_RUN:
      run.kill()
      kills["run"] += 1
    else:
      kills["actor"] += run.kill_actor(rng)
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
    "the run finished": exit_code == 0 and summary["env_steps"] == num_steps,
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
  for what, holds in checks.items():
    print(f"{'passed' if holds else 'FAILED'}  {what}")
  report: dict[str, Any] = {"kills": kills, "checks": checks}
  (args.output / "soak.json").write_text(json.dumps(report, indent=1) + "\n")
  return 0 if all(checks.values()) else 1


if __name__ == "__main__":
  sys.exit(main())
