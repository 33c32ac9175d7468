"""Kills processes of a distributed run at random, and checks that it finishes.

  python benchmarks/soak.py                          # 20 minutes, to results/soak
  python benchmarks/soak.py --steps=20000 --kill_every=10 --output=results/short

DQN learns bsuite's Catch with two actors. Mostly an actor is killed, and sometimes the
run's own process, which the same command resumes. The exit code is 0 if all passed.
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

COMMAND = [sys.executable, "-m", "explorax.experiments.run"]
COMMAND += ["--agent=dqn", "--env=bsuite:catch/0", "--set=replay_capacity=10000"]
COMMAND += ["--runner=distributed", "--num_actors=2", "--checkpoint_every=5000"]
COMMAND += ["--checkpoint_replay", "--eval_every=20000", "--eval_episodes=10"]
_MARK = "EXPLORAX_SOAK"  # An environment variable that marks the run's processes.
_SHARE_OF_RUN = 0.2  # Of the kills that end the run itself.
_RETURN = 0.5  # Of the last evaluations; Catch gives from -1 to 1.


def disturb(
  command: list[str], mark: str, log: pathlib.Path, kill_every: float
) -> tuple[int, dict[str, int]]:
  """Runs the command to its end, killing a process now and then.

  Returns:
    its exit code, and the number of kills of actors and of the run itself.
  """
  rng, kills = random.Random(0), {"actor": 0, "run": 0}
  environment = {**os.environ, _MARK: mark}
  while True:
    with log.open("ab") as file:
      run = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    while run.poll() is None:
      with contextlib.suppress(subprocess.TimeoutExpired):
        return run.wait(kill_every), kills
      if rng.random() < _SHARE_OF_RUN:
        kills["run"] += 1
        run.kill()
        run.wait()
      elif actors := processes(mark, "RolloutActor"):
        kills["actor"] += 1
        os.kill(rng.choice(actors), signal.SIGKILL)


def processes(mark: str, name: str = "") -> list[int]:
  """The living processes of the run whose command contains the name."""
  pids = []
  for path in pathlib.Path("/proc").glob("[0-9]*"):
    with contextlib.suppress(OSError):
      is_ours = f"{_MARK}={mark}".encode() in (path / "environ").read_bytes()
      if is_ours and name.encode() in (path / "cmdline").read_bytes():
        pids.append(int(path.name))
  return pids


def check(directory: pathlib.Path, exit_code: int, num_steps: int) -> dict[str, bool]:
  """What is checked of a run that is over → whether it holds."""
  summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
  rows, evaluations = (
    list(csv.DictReader((directory / name).open(encoding="utf-8")))
    for name in ("metrics.csv", "evaluation.csv")
  )
  steps = [int(row["env_steps"]) for row in rows]
  returns = [float(row["episode_return"]) for row in evaluations[-30:]]
  numbers = [int(row["episode"]) for row in rows]
  return {
    "the run finished": exit_code == 0 and summary["env_steps"] == num_steps,
    "episodes are counted once": numbers == list(range(1, len(rows) + 1))
    and summary["episodes"] == len(rows)
    and steps == sorted(steps),
    "no step is counted twice": summary["env_steps"]
    >= sum(int(row["episode_length"]) for row in rows),
    "it learned": bool(returns) and statistics.fmean(returns) >= _RETURN,
  }


def main() -> int:
  """Returns the exit code."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--steps", type=int, default=800_000)
  parser.add_argument("--kill_every", type=float, default=20, help="seconds")
  parser.add_argument("--output", type=pathlib.Path, default="results/soak")
  args = parser.parse_args()
  args.output.mkdir(parents=True)
  run, mark = args.output / "run", secrets.token_hex(16)
  command = [*COMMAND, f"--output={run}", f"--steps={args.steps}"]
  code, kills = disturb(command, mark, args.output / "run.log", args.kill_every)
  checks = check(run, code, args.steps)
  deadline = time.monotonic() + 90  # Ray's agents may look for a killed run a minute.
  while (left := processes(mark)) and time.monotonic() < deadline:
    time.sleep(1)
  checks["no process is left"] = not left
  for pid in left:
    os.kill(pid, signal.SIGKILL)
  for what, holds in checks.items():
    print(f"{'passed' if holds else 'FAILED'}  {what}")
  print(f"killed: {kills['actor']} actors, {kills['run']} times the run itself")
  return 0 if all(checks.values()) else 1


if __name__ == "__main__":
  sys.exit(main())
