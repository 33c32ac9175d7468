"""Tasks per hour of a sweep, beside bsuite's own agent started by hand for each id.

  python benchmarks/sweep.py --ids=deep_sea/0,deep_sea/5,catch/0,catch/1 --episodes=200

Both train twenty bootstrapped members with one update a step: ours is the preset
`bootstrapped_dqn` in one call of the sweep command, the peer bsuite's `boot_dqn` in its
own loop, one process after another as a loop in a shell has them, each with all cores.
Starting Python and Ray and compiling count in both, of which long tasks feel less. They
take turns, and the order is turned around in each round.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

_GOAL = 3.0

_PEER = """
import sys
from bsuite import bsuite
from bsuite.baselines import experiment
from bsuite.baselines.jax import boot_dqn

bsuite_id, num_episodes, folder = sys.argv[1:]
environment = bsuite.load_and_record(bsuite_id, folder)
specs = environment.observation_spec(), environment.action_spec()
experiment.run(boot_dqn.default_agent(*specs), environment, int(num_episodes))
"""


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--ids", default="deep_sea/0,deep_sea/5,catch/0,catch/1")
  parser.add_argument("--episodes", type=int, default=200)
  parser.add_argument("--rounds", type=int, default=3)
  args = parser.parse_args()
  ids = args.ids.split(",")
  contestants = {"by hand": _by_hand, "sweep": _sweep}
  seconds: dict[str, list[float]] = {name: [] for name in contestants}
  for i in range(args.rounds):
    for name in list(contestants)[:: 1 if i % 2 == 0 else -1]:
      with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        contestants[name](ids, args.episodes, pathlib.Path(folder))
        seconds[name].append(time.monotonic() - start)
    hand, ours = (values[-1] for values in seconds.values())
    print(
      f"round {i + 1}: {hand:.1f} s by hand, {ours:.1f} s as a sweep, "
      f"{hand / ours:.2f} times as many tasks",
      flush=True,
    )
  for name, values in seconds.items():
    tasks = 3600 * len(ids) / statistics.median(values)
    print(f"{name}: {tasks:.0f} tasks an hour")
  ratios = [a / b for a, b in zip(*seconds.values(), strict=True)]
  print(f"ratio: {statistics.median(ratios):.2f}, which means to be {_GOAL:g} or more")


def _by_hand(ids: list[str], episodes: int, folder: pathlib.Path) -> None:
  for bsuite_id in ids:
    _run("-c", _PEER, bsuite_id, str(episodes), str(folder))


def _sweep(ids: list[str], episodes: int, folder: pathlib.Path) -> None:
  _run(
    "-m",
    "explorax.experiments.sweep",
    "--agents=bootstrapped_dqn",
    f"--sweep={','.join(ids)}",
    f"--episodes={episodes}",
    f"--output={folder}",
  )


def _run(*argv: str) -> None:
  """Raises a RuntimeError, with what it said, if it fails."""
  environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
  done = subprocess.run(
    [sys.executable, "-P", *argv],
    env=environment,
    capture_output=True,
    text=True,
    check=False,
  )
  if done.returncode:
    raise RuntimeError(f"{argv[1]} failed:\n{done.stdout}{done.stderr}"[-2000:])


if __name__ == "__main__":
  main()
