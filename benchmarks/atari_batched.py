"""Steps per second of DQN on Pong: one game in turn, or games stepped together.

  python benchmarks/atari_batched.py

The local runner (memory replay) against the device runner, on what JAX takes as its
device, with learning at the preset's ratio of updates to steps, and with the learner
asleep. Each number is the median of `--repeats` runs, compilation left out.
"""

import argparse
import dataclasses
import statistics
import time

import jax

from explorax import environments
from explorax.experiments import config as config_lib
from explorax.experiments import presets
from explorax.experiments.runners import core, device, local

_ENV = "atari:Pong"
_CAPACITY = 20_000  # Of replay, in environment steps.


class _Stopwatch:
  """Asked by a runner after each of its steps; begins after `warm_up` of them."""

  def __init__(self, warm_up: int):
    self._left = warm_up
    self.began = float("nan")

  def __call__(self) -> bool:
    self._left -= 1
    if self._left == 0:
      self.began = time.monotonic()
    return False


def steps_per_second(num_envs: int, learns: bool, num_steps: int) -> float:
  """Of one run.

  Args:
    num_envs: games stepped together; 0 for one, by the local runner.
    learns: whether there are updates.
    num_steps: measured, after as many to fill replay and to compile.
  """
  preset = presets.PRESETS["dqn"]
  name = preset.environment_for(_ENV)
  config = dataclasses.replace(
    preset.config_for(name),
    replay_capacity=_CAPACITY,
    min_replay_size=num_steps // 2 if learns else _CAPACITY,
  )
  watch = _Stopwatch(num_steps // max(num_envs, 1))
  hooks, steps = core.Hooks(stop=watch), 2 * num_steps
  if num_envs:
    batch = environments.make_batched(name, num_envs=num_envs, seed=0)
    agent = preset.make_agent(config, environments.spec(batch))
    run_config = config_lib.RunConfig(runner="device", steps=steps)
    result = device.run(agent, batch, run_config, hooks)
  else:
    # The local runner goes on to its episode's end: the frames bound its length.
    single = environments.make(f"{name},max_frames={4 * num_steps}", seed=0)
    agent = preset.make_agent(config, environments.spec(single))
    run_config = config_lib.RunConfig(replay="memory", steps=steps)
    result = local.run(agent, single, run_config, hooks)
  return (result.env_steps - num_steps) / (time.monotonic() - watch.began)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--num_envs", type=int, default=8)
  parser.add_argument("--steps", type=int, default=800)
  parser.add_argument("--repeats", type=int, default=3)
  given = parser.parse_args()
  print(f"DQN on Pong, {jax.devices()[0].device_kind}, environment steps per second")
  print(f"{'runner':26}{'learning':>10}{'asleep':>10}")
  for title, num_envs in (
    ("local, memory replay", 0),
    (f"device, {given.num_envs} games", given.num_envs),
  ):
    medians = [
      statistics.median(
        steps_per_second(num_envs, learns, given.steps) for _ in range(given.repeats)
      )
      for learns in (True, False)
    ]
    print(f"{title:26}{medians[0]:10.1f}{medians[1]:10.1f}", flush=True)


if __name__ == "__main__":
  main()
