"""Speed and memory of agents on Deep Sea, beside bsuite's own.

The peer is bsuite's JAX agent, `boot_dqn.default_agent`: twenty members, hidden layers
of 50 and 50 units, batches of 128, one update of every member per step. The presets
`bootstrapped_dqn`, with the same settings, and `epinet` run from the command line, with
both replays and on the device.

  python benchmarks/run.py --only=deep_sea
"""

import functools
import tempfile
import time

import bench
import bsuite

from explorax.experiments import run

# N → environment steps of a sample, and of one on the device.
SIZES = {10: (800, 3000), 50: (250, 1000)}
NUM_SEEDS = (1, 8)
# Environment steps, which compile; on the device of each seed.
WARM_UP, DEVICE_WARM_UP = 200, 600
_FIRST_UPDATE = 128  # The environment step with the first of one update per step.


def measure_speed(quick: bool = False) -> list[bench.Row]:
  """Environment steps per second, acting and learning, after compilation.

  Args:
    quick: whether to take one short sample of each, only to see that everything runs.

  Raises:
    RuntimeError: if a sample did not make one update per step.
  """
  rows = []
  for size, (steps, device_steps) in SIZES.items():
    steps = WARM_UP + (2 * size if quick else steps)
    env = f"--env=bsuite:{_bsuite_id(size)}"
    contestants: bench.Contestants = {
      f"{agent}, {replay}": functools.partial(
        bench.run_speed,
        (f"--agent={agent}", env, f"--replay={replay}", f"--steps={steps}"),
        WARM_UP,
      )
      for agent, replay in (
        ("bootstrapped_dqn", "memory"),
        ("bootstrapped_dqn", "reverb"),
        ("epinet", "memory"),
      )
    } | {
      f"bootstrapped_dqn, device, {seeds} seeds": functools.partial(
        device_speed, size, seeds, 500 if quick else device_steps
      )
      for seeds in NUM_SEEDS
    }
    contestants["bsuite"] = functools.partial(
      bench.sample, "deep_sea:run_peer", size=size, steps=steps
    )
    found = bench.side_by_side(contestants, quick)
    for each in [sample for row in found for sample in row["samples"]]:
      if abs(each["env_steps"] - each["learner_updates"] - _FIRST_UPDATE) > size:
        raise RuntimeError(f"a sample did not make one update per step: {each}.")
    rows += [{"N": size, **row} for row in found]
  return rows


def device_speed(size: int, seeds: int, steps: int) -> bench.Row:
  """The speed of a run on the device, summed over its seeds."""
  flags = ["--agent=bootstrapped_dqn", "--runner=device", f"--env=jax:deep_sea/{size}"]
  flags += [f"--seeds={seeds}", f"--steps={DEVICE_WARM_UP + steps}"]
  return bench.run_speed(flags, DEVICE_WARM_UP)


def run_peer(size: int, steps: int) -> bench.Row:
  """bsuite's agent in the loop of `bsuite.baselines.experiment`, for whole episodes."""
  # Imported here, so that it does not add to the memory of other measurements.
  from bsuite.baselines.jax import boot_dqn

  environment = bsuite.load_from_id(_bsuite_id(size))
  specs = environment.observation_spec(), environment.action_spec()
  agent = boot_dqn.default_agent(*specs)
  marks: list[bench.Mark] = []
  num_steps = 0
  while num_steps < steps:
    timestep = environment.reset()
    while not timestep.last():
      action = agent.select_action(timestep)
      new_timestep = environment.step(action)
      agent.update(timestep, action, new_timestep)
      timestep = new_timestep
      num_steps += 1
    # The updates of one member; all members have the same number. It is not public.
    updates = int(agent._ensemble[0].step)
    marks.append(bench.Mark(num_steps, updates, time.perf_counter()))
  return bench.speed(marks, WARM_UP)


def measure_memory(quick: bool = False) -> list[bench.Row]:
  """Peak memory of a run at N = 50, with TensorFlow, Reverb and learning."""
  flags = ["--agent=bootstrapped_dqn", "--replay=reverb"]
  flags += [f"--env=bsuite:{_bsuite_id(50)}", f"--steps={1000 if quick else 10_000}"]
  peak = bench.sample("deep_sea:run_for_its_peak", flags=flags)
  return [{"N": 50, "replay": "reverb", "peak_mib": peak}]


def run_for_its_peak(flags: list[str]) -> float:
  """Runs the command in this process; returns the process's peak memory in MiB."""
  with tempfile.TemporaryDirectory() as folder:
    if code := run.main([*flags, f"--output={folder}/run"]):
      raise RuntimeError(f"the run ended with code {code}.")
  return bench.peak_mib()


def _bsuite_id(size: int) -> str:
  return f"deep_sea/{(size - 10) // 2}"


TABLES = (
  bench.Table("Deep Sea: environment steps per second, all seeds", measure_speed),
  bench.Table("Peak memory of a run on Deep Sea", measure_memory),
)
