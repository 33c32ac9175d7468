"""The sequence agents at full size on Atari: acting, memory of replay, and learning.

  python benchmarks/run.py --only=sequences
  python benchmarks/bench.py sequences:learner '{"agent": "ngu"}'  # for a GPU

Acting is measured from the command line without learning, and compared with the
environment alone. Acting and replay are measured on the CPU, learning on JAX's default
device.
"""

import dataclasses
import functools
import importlib.util
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any

import bench
import dm_env
import jax
import loops
import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.agents.r2d2 import agent as r2d2_agent
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.agents.wiring import packing
from explorax.experiments import presets

AGENTS = ("r2d2", "r2d2_retrace", "ngu")
# Game → (environment steps to insert, goal in MiB for 100 000 steps).
GAMES: dict[str, tuple[int, float | None]] = {
  "Pong": (100_000, 150.0),
  "MontezumaRevenge": (20_000, None),
  "MsPacman": (20_000, None),
}
# Precisions of JAX's matrix products and convolutions. On a CPU all are float32.
PRECISIONS = ("float32", "tensorfloat32", "bfloat16")
UPDATES_GOAL = 50.0  # Per second, on a GPU, with lower precision.
_WARM_UP = 900  # Environment steps; the actor fetches weights twice in them.
_NEVER = 1_000_000  # A minimum size of replay that no sample reaches.


def measure_acting(quick: bool = False) -> list[bench.Row]:
  """Steps per second of a run on Pong without learning, and of the environment alone.

  Args:
    quick: whether to make few steps, only to see that everything runs.
  """
  rows = []
  steps, rounds = (500, 1) if quick else (3000, 3)
  replay = "reverb" if importlib.util.find_spec("reverb") else "memory"
  for agent in AGENTS:
    # Episodes end after at most 500 steps, because the time is recorded at their ends.
    env = f"{presets.PRESETS[agent].environment_for('atari:Pong')},max_frames=2000"
    flags = [f"--agent={agent}", f"--env={env}", f"--steps={_WARM_UP + steps}"]
    flags += [f"--replay={replay}", f"--set=min_replay_size={_NEVER}"]
    contestants = {
      "agent": functools.partial(bench.run_speed, flags, _WARM_UP),
      "environment": functools.partial(
        bench.sample, "sequences:environment_speed", env=env, steps=steps
      ),
    }
    samples = bench.in_turn(contestants, rounds)
    speeds = {
      name: statistics.median(each["steps_per_s"] for each in found)
      for name, found in samples.items()
    }
    rows.append(
      {
        "agent": agent,
        "replay": replay,
        "agent_steps_per_s": speeds["agent"],
        "environment_steps_per_s": speeds["environment"],
        "share": speeds["agent"] / speeds["environment"],
        "samples": samples,
      }
    )
  return rows


def environment_speed(env: str, steps: int) -> bench.Row:
  """Steps per second of an environment with random actions."""
  loop = loops.bare(environments.make(env, seed=0), np.random.default_rng(0))
  loop.run(_WARM_UP)
  return {"steps_per_s": loop.run(steps)}


def measure_replay_memory(quick: bool = False) -> list[bench.Row]:
  """MiB of 100 000 Atari steps in Reverb, without the process and its empty server.

  Sequences of 80 steps overlap by 40, as for `ngu`. Games with fewer inserted steps are
  extrapolated.
  """
  rows = []
  for game, (steps, goal) in GAMES.items():
    number = min(steps, 5000) if quick else steps
    arguments = {"agent": "ngu", "env": f"atari:{game}", "steps": number}
    row = {"game": game} | bench.sample("sequences:replay_memory", **arguments)
    rows.append(row if goal is None or "note" in row else {**row, "goal_mib": goal})
  return rows


def replay_memory(agent: str, env: str, steps: int) -> bench.Row:
  """Growth of this process's memory when `steps` steps are inserted into Reverb.

  Actions are random. The growth includes what the first insertion allocates once, and
  the writer's open chunks. Without Reverb, the result has only a `note`.
  """
  preset = presets.PRESETS[agent]
  name = preset.environment_for(env)
  environment = environments.make(name, seed=0)
  config = _with_capacity(preset.config_for(name), 2 * steps)
  made = preset.make_agent(config, environments.spec(environment))
  extras = fake_extras(made, np.random.default_rng(0))
  try:
    num_bytes, num_windows = loops.growth_of_replay(
      environment, made, "reverb", steps, lambda: next(extras)
    )
  except ImportError as error:
    return {"note": f"not measured: {error}"}
  return {
    "env_steps": steps,
    "windows": num_windows,
    "raw_bytes_per_step": _raw_bytes_per_step(made),
    "bytes_per_step": num_bytes,
    "mib_per_100k_steps": num_bytes * 1e5 / 2**20,
  }


def fake_extras(
  agent: types.Agent, rng: np.random.Generator
) -> Iterator[Mapping[str, np.ndarray]]:
  """An endless iterator over extras, without an actor.

  The recurrent state and the novelty are random at every step, so that they do not
  compress. The other extras, which hardly vary in a run, are zeros.
  """
  fixed = {n: np.zeros(s.shape, s.dtype) for n, s in agent.extras_spec.items()}
  varying = [n for n in ("core_state", "r_int") if n in fixed]
  while True:
    drawn = {n: rng.standard_normal(fixed[n].shape, dtype=np.float32) for n in varying}
    yield {**fixed, **drawn}


def measure_learner(quick: bool = False) -> list[bench.Row]:
  """Updates per second of `ngu`, in float32 and, on a GPU, in lower precisions."""
  arguments = {"agent": "ngu"} | ({"updates": 1, "warm_up": 1} if quick else {})
  first = bench.sample("sequences:learner", platform=None, **arguments)
  rows = [first]
  for precision in PRECISIONS[1:] if first["platform"] == "gpu" else ():
    row = bench.sample(
      "sequences:learner", platform=None, precision=precision, **arguments
    )
    rows.append({**row, "goal": UPDATES_GOAL})
  return rows


def learner(
  agent: str = "ngu",
  precision: str = "float32",
  updates: int = 500,
  seconds: float = 20.0,
  warm_up: int = 2,
) -> bench.Row:
  """Updates per second on frames of 84 × 84, on JAX's default device.

  As in a run, the learner samples batches from replay and updates their priorities.
  Replay is in memory and filled with noise, without an emulator and without Reverb.

  Args:
    agent: a preset with the engine of `r2d2`.
    precision: JAX's precision of matrix products.
    updates: the number of updates to measure.
    seconds: the measurement ends after this time, but not before two updates.
    warm_up: the number of updates before the measurement.

  Raises:
    FloatingPointError: if the weights are not finite at the end.
  """
  spec = types.EnvironmentSpec(
    dm_env.specs.Array((84, 84, 1), np.uint8),
    dm_env.specs.DiscreteArray(18),  # Atari's full set.
  )
  config = presets.PRESETS[agent].config_for("atari:")
  config = _with_capacity(config, 2 * config.batch_size * config.sequence_period)
  with jax.default_matmul_precision(precision):
    made = r2d2_agent.make_agent(config, spec)
    builder = builder_lib.Builder(made)
    store = builder.make_replay_tables("memory", seed=0)
    _fill(made, store, config.replay_capacity)
    learner = builder.make_learner(
      jax.random.PRNGKey(0), builder.make_dataset_iterator(store), store
    )

    def update(most: int, limit: float) -> tuple[int, float]:
      """Makes updates; returns their number and the seconds that they took."""
      number, start = 0, time.perf_counter()
      while number < most and (number < 2 or time.perf_counter() - start < limit):
        learner.step()
        number += 1
      jax.block_until_ready(learner.get_variables(["params"]))
      return number, time.perf_counter() - start

    update(warm_up, 1e9)
    compilations = bench.CompilationCounter()
    number, elapsed = update(updates, seconds)
  if not learner.is_finite():
    raise FloatingPointError(f"an update in {precision} was not finite.")
  device = jax.devices()[0]
  return {
    "device": device.device_kind,
    "platform": device.platform,
    "precision": precision,
    "batch": f"{config.batch_size} x {config.sequence_length}",
    "updates": number,
    "updates_per_s": number / elapsed,
    "compilations": compilations.count,
  }


def _fill(agent: types.Agent, store: builder_lib.Replay, num_steps: int) -> None:
  """Inserts one episode of noise; an update takes the same time on real frames."""
  rng = np.random.default_rng(0)
  shape = agent.encoding.spec.shape
  adder = builder_lib.Builder(agent).make_adder(store)
  extras = fake_extras(agent, rng)

  def observation() -> np.ndarray:
    return rng.integers(256, size=shape, dtype=np.uint8)

  adder.add_first(dm_env.restart(observation()))
  for i in range(num_steps):
    make = dm_env.termination if i + 1 == num_steps else dm_env.transition
    timestep = make(float(rng.integers(-1, 2)), observation())
    action = rng.integers(agent.spec.actions.num_values)
    adder.add(action, timestep, {**next(extras), "behaviour_prob": np.float32(1)})
  adder.add_last(next(extras))


def _with_capacity(config: Any, env_steps: int) -> Any:
  """The config with a replay of `env_steps` steps, or of the smallest allowed size."""
  least = config.batch_size * config.sequence_period
  return dataclasses.replace(
    config, replay_capacity=max(env_steps, least), min_replay_size=1
  )


def _raw_bytes_per_step(agent: types.Agent) -> float:
  """Bytes per step without compression: each row once, the state once per window."""
  sizes = {
    name: packing.RecordPacker({name: column}).num_bytes
    for name, column in adder_lib.column_specs(agent).items()
  }
  first = sum(sizes.pop(name) for name in agent.replay.first_row_extras)
  return sum(sizes.values()) + first / agent.replay.period


TABLES = (
  bench.Table("Acting on Pong: steps per second", measure_acting),
  bench.Table("Replay of frames in Reverb", measure_replay_memory),
  bench.Table("Learner of ngu", measure_learner),
)
