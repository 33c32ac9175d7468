"""Kills processes of a distributed run at random, and checks that it finishes.

  python benchmarks/soak.py                          # 20 minutes, to results/soak
  python benchmarks/soak.py --steps=20000 --kill_every=10 --output=results/short

DQN learns bsuite's Catch with two actors. Mostly an actor is killed, and sometimes the
run's own process, which the same command resumes. The exit code is 0 if all passed.
"""

import argparse
import contextlib
import json
import os
import pathlib
import random
import secrets
import subprocess
import sys

import psutil

from explorax.experiments.recording import rows

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
        rng.choice(actors).kill()


def processes(mark: str, name: str = "") -> list[psutil.Process]:
  """The living processes of the run whose command contains the name."""
  found = []
  for process in psutil.process_iter():
    with contextlib.suppress(psutil.Error):
      if process.environ().get(_MARK) == mark and name in str(process.cmdline()):
        found.append(process)
  return found


def check(directory: pathlib.Path, exit_code: int, num_steps: int) -> dict[str, bool]:
  """What is checked of a run that is over → whether it holds."""
  summary = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
  columns = rows.read(directory / rows.METRICS)
  returns = rows.read(directory / rows.EVALUATION)["episode_return"][-30:]
  numbers, steps = columns["episode"].tolist(), columns["env_steps"].tolist()
  return {
    "the run finished": exit_code == 0 and summary["env_steps"] == num_steps,
    "episodes are counted once": numbers == list(range(1, len(numbers) + 1))
    and summary["episodes"] == len(numbers)
    and steps == sorted(steps),
    "no step is counted twice": summary["env_steps"] >= sum(columns["episode_length"]),
    "it learned": len(returns) > 0 and returns.mean() >= _RETURN,
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
  # Ray's agents may look for a killed run for a minute.
  for _ in range(3):
    psutil.wait_procs(processes(mark), timeout=30)
  checks["no process is left"] = not (left := processes(mark))
  for process in left:
    process.kill()
  for what, holds in checks.items():
    print(f"{'passed' if holds else 'FAILED'}  {what}")
  print(f"killed: {kills['actor']} actors, {kills['run']} times the run itself")
  return 0 if all(checks.values()) else 1


if __name__ == "__main__":
  sys.exit(main())
