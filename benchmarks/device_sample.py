"""One measurement of the device runner, in a process of its own.

  python benchmarks/device_sample.py --size=10 --seeds=8 --steps=4000

Bootstrapped DQN with the settings of bsuite's `default_agent`, on Deep Sea in JAX. The
last line printed is the result as JSON.
"""

import argparse
import json
import time
from typing import Any

import deep_sea_sample
import jax
import processes

from explorax import environments
from explorax.experiments import config as config_lib
from explorax.experiments.runners import core, device


def measure(size: int, num_seeds: int, warm_up: int, steps: int) -> dict[str, Any]:
  """Environment steps per second of all seeds, acting and learning.

  The clock runs between two reports of the runner, when the device has done all that
  was asked of it.
  """
  environment = environments.make(f"jax:deep_sea/{size}", seed=0)
  agent = deep_sea_sample.make_agent(environment)
  compilations = processes.CompilationCounter()
  # At each report: steps of each seed up to its last episode's end, updates, seconds,
  # compilations.
  marks: list[tuple[int, int, float, int]] = []
  last = (0, 0)

  def on_episode(episode: core.Episode) -> None:
    nonlocal last
    last = (episode.env_steps, episode.learner_updates)

  def stop() -> bool:
    marks.append((*last, time.perf_counter(), compilations.count))
    return False

  device.run_seeds(
    agent,
    environment,
    config_lib.RunConfig(runner="device", num_seeds=num_seeds, steps=warm_up + steps),
    core.Hooks(on_episode=on_episode, stop=stop),
  )
  (start, *_, end) = [mark for mark in marks if mark[0] >= warm_up]
  env_steps, updates = end[0] - start[0], end[1] - start[1]
  if abs(env_steps - updates) > size:
    raise RuntimeError(
      f"there were {updates} updates in {env_steps} steps, not as many."
    )
  return {
    "device": jax.devices()[0].device_kind,
    # One update for each step, and the updates are counted to the report's end.
    "steps_per_second": num_seeds * updates / (end[2] - start[2]),
    "learner_updates": updates,
    "compilations": end[3] - start[3],
  }


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("what", choices=("speed",))
  parser.add_argument("--size", type=int, required=True, help="N")
  parser.add_argument("--seeds", type=int, default=1)
  parser.add_argument("--warm_up", type=int, default=600, help="steps of each seed")
  parser.add_argument("--steps", type=int, default=2000, help="steps of each seed")
  args = parser.parse_args()
  print(json.dumps(measure(args.size, args.seeds, args.warm_up, args.steps)))


if __name__ == "__main__":
  main()
