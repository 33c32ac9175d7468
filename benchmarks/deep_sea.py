"""Speed and memory of Bootstrapped DQN on Deep Sea, compared with bsuite's agent.

The peer is bsuite's own JAX agent, `boot_dqn.default_agent`: twenty members, hidden
layers of 50 and 50 units, batches of 128, one update of every member per step. Ours is
`python -m explorax.experiments.run --agent=bootstrapped_dqn`, which has the same
settings. The comparison fails if the two made different numbers of updates.
"""

import dataclasses
import functools
import tempfile
import time
from collections.abc import Callable, Mapping

import bench
import bsuite
import loops

from explorax import environments
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import packing
from explorax.experiments import presets, run

# N → (bsuite's id, environment steps of a sample).
SIZES = {10: ("deep_sea/0", 800), 50: ("deep_sea/20", 250)}
# (N, replay) → the goal: our speed divided by the peer's.
GOALS = {
  (10, "reverb"): 3.5,
  (50, "reverb"): 5.0,
  (10, "memory"): 4.0,
  (50, "memory"): 6.0,
}
WARM_UP = 200  # Environment steps.
PEAK_GOAL_MIB = 1536.0


def beside_bsuite(
  bsuite_id: str,
  steps: int,
  ours: Mapping[str, Callable[[], bench.Row]],
  quick: bool,
  *,
  same: bool = True,
) -> dict[str, bench.Row]:
  """Compares each of `ours` with bsuite's agent; returns `bench.compare` by name."""
  peer = {"bsuite_id": bsuite_id, "steps": steps}
  contestants = {
    "bsuite": functools.partial(bench.sample, "deep_sea:run_peer", **peer),
    **ours,
  }
  samples = bench.in_turn(contestants, 1 if quick else 3)
  return {
    name: bench.compare(samples[name], samples["bsuite"], same=same) for name in ours
  }


def measure_speed(quick: bool = False) -> list[bench.Row]:
  """Environment steps per second, acting and learning, after compilation.

  Args:
    quick: whether to take one short sample of each, only to see that everything runs.
  """
  rows = []
  for size, (bsuite_id, steps) in SIZES.items():
    total = WARM_UP + (2 * size if quick else steps)
    flags = _flags(bsuite_id, total)
    ours = {
      replay: functools.partial(
        bench.run_speed, (*flags, f"--replay={replay}"), WARM_UP
      )
      for replay in ("reverb", "memory")
    }
    for replay, row in beside_bsuite(bsuite_id, total, ours, quick).items():
      goal = GOALS[size, replay]
      rows.append({"N": size, "replay": replay, **row, "goal": goal})
  return rows


def _flags(bsuite_id: str, steps: int) -> tuple[str, ...]:
  return ("--agent=bootstrapped_dqn", f"--env=bsuite:{bsuite_id}", f"--steps={steps}")


def run_peer(bsuite_id: str, steps: int) -> bench.Row:
  """bsuite's agent in the loop of `bsuite.baselines.experiment`, for whole episodes."""
  # Imported here, so that it does not add to the memory of other measurements.
  from bsuite.baselines.jax import boot_dqn

  environment = bsuite.load_from_id(bsuite_id)
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
  flags = _flags(SIZES[50][0], 1000 if quick else 10_000)
  peak = bench.sample("deep_sea:run_for_its_peak", flags=flags)
  return [{"N": 50, "replay": "reverb", "peak_mib": peak, "goal_mib": PEAK_GOAL_MIB}]


def run_for_its_peak(flags: list[str]) -> float:
  """Runs the command in this process; returns the process's peak memory in MiB."""
  with tempfile.TemporaryDirectory() as folder:
    if code := run.main([*flags, f"--output={folder}/run"]):
      raise RuntimeError(f"the run ended with code {code}.")
  return bench.status_mib("VmHWM")


def measure_replay_memory(quick: bool = False) -> list[bench.Row]:
  """Bytes of a transition in replay at N = 50, where an observation is an index."""
  # Enough steps that their memory is large beside the rest of the process.
  steps = {"reverb": 10_000 if quick else 50_000, "memory": 200_000}
  return [
    {"N": 50, "replay": replay}
    | bench.sample("deep_sea:replay_memory", replay=replay, steps=number)
    for replay, number in steps.items()
  ]


def replay_memory(replay: str, steps: int) -> bench.Row:
  """Bytes of a transition in replay: of its row, and by the growth of the process."""
  environment = environments.make(f"bsuite:{SIZES[50][0]}", seed=0)
  preset = presets.PRESETS["bootstrapped_dqn"]
  config = dataclasses.replace(preset.config, replay_capacity=2 * steps)
  agent = preset.make_agent(config, environments.spec(environment))
  num_bytes = loops.growth_of_replay(
    environment, agent, replay, steps, warm_up=steps // 10
  )
  return {
    "transitions": steps,
    "row_bytes": packing.RecordPacker(adder_lib.column_specs(agent)).num_bytes,
    "bytes_per_transition": num_bytes,
  }


TABLES = (
  bench.Table(
    "Bootstrapped DQN on Deep Sea from the command line, beside bsuite's: environment "
    "steps per second",
    measure_speed,
  ),
  bench.Table("Peak memory of a run on Deep Sea", measure_memory),
  bench.Table("Memory of a transition in replay", measure_replay_memory),
)
