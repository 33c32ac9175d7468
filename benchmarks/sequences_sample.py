"""One measurement of the sequence agents, in a process of its own.

`sequences.py` starts it:

  python benchmarks/sequences_sample.py acting --agent=ngu --env=atari:Pong
  python benchmarks/sequences_sample.py replay --agent=ngu --env=atari:Pong
  python benchmarks/sequences_sample.py learner --agent=ngu --precision=tensorfloat32

The last line printed is the result as JSON.
"""

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any

import dm_env
import jax
import loops
import numpy as np
import processes

from explorax import environments
from explorax.agents import types
from explorax.agents.r2d2 import agent as r2d2_agent
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.agents.wiring import packing
from explorax.experiments import presets

# Of JAX's matrix products and convolutions (`jax_default_matmul_precision`). What the
# lower ones mean is the device's to decide: on a CPU nothing.
PRECISIONS = ("float32", "tensorfloat32", "bfloat16")


def _with_capacity(config: Any, env_steps: int) -> Any:
  """A config whose replay holds so many steps, or the few that it must hold."""
  least = config.batch_size * config.sequence_period
  return dataclasses.replace(
    config, replay_capacity=max(env_steps, least), min_replay_size=1
  )


def _make_store(agent: types.Agent) -> tuple[str, builder_lib.Replay]:
  """Reverb where there is one, and its name."""
  builder = builder_lib.Builder(agent)
  try:
    return "reverb", builder.make_replay_tables("reverb", seed=0)
  except ImportError:
    return "memory", builder.make_replay_tables("memory", seed=0)


def measure_acting(
  agent_name: str, env: str, rounds: int, steps: int, warm_up: int
) -> dict[str, Any]:
  """Steps per second of the bare environment and of an actor that fills replay.

  The two take turns in one process, `steps` environment steps a round each; the actor
  has the preset's settings there but for replay's capacity. Nothing is learnt.
  """
  preset = presets.PRESETS[agent_name]
  name = preset.environment_for(env)
  bare, acted = environments.make(name, seed=0), environments.make(name, seed=1)
  config = _with_capacity(preset.config_for(name), warm_up + rounds * steps)
  agent = preset.make_agent(config, environments.spec(acted))
  builder = builder_lib.Builder(agent)
  replay, store = _make_store(agent)
  learner_key, actor_key = jax.random.split(jax.random.PRNGKey(0))
  learner = builder.make_learner(learner_key, iter(()), store)
  adder = builder.make_adder(store)
  acting = loops.acting(acted, builder.make_actor(actor_key, learner, adder))
  bare_loop = loops.bare(bare, np.random.default_rng(0))
  bare_loop.run(warm_up)
  acting.run(warm_up)
  compilations = processes.CompilationCounter()
  speeds: dict[str, list[float]] = {"environment": [], "actor": []}
  for _ in range(rounds):
    speeds["environment"].append(bare_loop.run(steps))
    speeds["actor"].append(acting.run(steps))
  store.close()
  medians = {key: statistics.median(values) for key, values in speeds.items()}
  return {
    "replay": replay,
    "actor_steps_per_s": medians["actor"],
    "environment_steps_per_s": medians["environment"],
    "share": medians["actor"] / medians["environment"],
    "compilations": compilations.count,
    "windows": adder.num_windows,
    "samples": speeds,
  }


def fake_extras(
  agent: types.Agent, rng: np.random.Generator
) -> Iterator[Mapping[str, np.ndarray]]:
  """Extras without an actor, for ever: what it computes is drawn at random.

  The recurrent state and the novelty are new floats at every step, so that they do
  not compress; the others hardly vary in a run either.
  """
  fixed = {n: np.zeros(s.shape, s.dtype) for n, s in agent.extras_spec.items()}
  varying = [n for n in ("core_state", "r_int") if n in fixed]
  while True:
    drawn = {n: rng.standard_normal(fixed[n].shape, dtype=np.float32) for n in varying}
    yield {**fixed, **drawn}


def _raw_bytes_per_step(agent: types.Agent) -> float:
  """Of the columns as they are: each row once, the state once per window."""
  sizes = {
    name: packing.RecordPacker({name: column}).num_bytes
    for name, column in adder_lib.column_specs(agent).items()
  }
  first = sum(sizes.pop(name) for name in agent.replay.first_row_extras)
  return sum(sizes.values()) + first / agent.replay.period


def measure_replay(agent_name: str, env: str, steps: int) -> dict[str, Any]:
  """How much this process grows from an empty Reverb server to `steps` steps in it.

  Actions are random. All that grows is counted, what the first insertion allocates
  once and the writer's open chunks included. Without Reverb there is only a `note`.
  """
  preset = presets.PRESETS[agent_name]
  name = preset.environment_for(env)
  environment = environments.make(name, seed=0)
  config = _with_capacity(preset.config_for(name), 2 * steps)
  agent = preset.make_agent(config, environments.spec(environment))
  try:
    store = builder_lib.Builder(agent).make_replay_tables("reverb", seed=0)
  except ImportError as error:
    return {"note": f"not measured: {error}"}
  rng = np.random.default_rng(0)
  writer = store.writer()
  adder = adder_lib.WindowAdder(agent, writer)
  extras = fake_extras(agent, rng)
  num_actions = agent.spec.actions.num_values

  def begin(timestep: dm_env.TimeStep) -> None:
    adder.add_first(timestep._replace(observation=agent.encoding(timestep.observation)))

  def observe(action: Any, timestep: dm_env.TimeStep) -> None:
    observation = agent.encoding(timestep.observation)
    adder.add(action, timestep._replace(observation=observation), next(extras))
    if timestep.last():
      adder.add_last(next(extras))

  # What an emulator allocates once is no replay's.
  loops.bare(environment, rng).run(min(steps, 500))
  before = processes.status_mib("VmRSS")
  loops.Loop(environment, begin, lambda _: rng.integers(num_actions), observe).run(
    steps
  )
  writer.flush()
  grown = processes.status_mib("VmRSS") - before
  store.close()
  return {
    "env_steps": steps,
    "windows": adder.num_windows,
    "raw_bytes_per_step": _raw_bytes_per_step(agent),
    "bytes_per_step": grown * 2**20 / steps,
    "mib_per_100k_steps": grown * 1e5 / steps,
  }


class _Waited:
  """An iterator that adds up, in `seconds`, how long it was waited for."""

  def __init__(self, iterator: Iterator[Any]):
    self._iterator = iterator
    self.seconds = 0.0

  def __iter__(self) -> "_Waited":
    return self

  def __next__(self) -> Any:
    start = time.perf_counter()
    try:
      return next(self._iterator)
    finally:
      self.seconds += time.perf_counter() - start


def _fill(agent: types.Agent, store: builder_lib.Replay, num_steps: int) -> None:
  """Inserts one episode of noise: what an update costs, no frame has a say in."""
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


def measure_learner(
  config: Any, precision: str, updates: int, seconds: float, warm_up: int
) -> dict[str, Any]:
  """Updates per second on frames of 84 × 84, on whatever device JAX has.

  The learner takes its batches from the memory replay, and gives it their priorities,
  as in a run; no emulator is needed, and no Reverb.

  Args:
    config: of the sequence engine; its replay's capacity is lowered.
    precision: of `PRECISIONS`.
    updates: that are measured at most.
    seconds: after which, two updates having been made, no more are.
    warm_up: updates before those.
  """
  spec = types.EnvironmentSpec(
    dm_env.specs.Array((84, 84, 1), np.uint8),
    dm_env.specs.DiscreteArray(18),  # Atari's full set.
  )
  config = _with_capacity(config, 2 * config.batch_size * config.sequence_period)
  with jax.default_matmul_precision(precision):
    agent = r2d2_agent.make_agent(config, spec)
    builder = builder_lib.Builder(agent)
    store = builder.make_replay_tables("memory", seed=0)
    _fill(agent, store, config.replay_capacity)
    batches = _Waited(builder.make_dataset_iterator(store))
    learner = builder.make_learner(jax.random.PRNGKey(0), batches, store)

    def finish() -> None:
      jax.block_until_ready(learner.get_variables(["params"]))

    for _ in range(warm_up):
      learner.step()
    finish()
    compilations = processes.CompilationCounter()
    batches.seconds = 0.0
    made, start = 0, time.perf_counter()
    while made < updates and (made < 2 or time.perf_counter() - start < seconds):
      learner.step()
      made += 1
    finish()
    elapsed = time.perf_counter() - start
  if not learner.is_finite():
    raise FloatingPointError(f"an update in {precision} was not finite.")
  device = jax.devices()[0]
  return {
    "device": device.device_kind,
    "platform": device.platform,
    "precision": precision,
    "batch": f"{config.batch_size} x {config.sequence_length}",
    "updates": made,
    "updates_per_s": made / elapsed,
    "share_waiting_for_replay": batches.seconds / elapsed,
    "compilations": compilations.count,
  }


def _parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  commands = parser.add_subparsers(dest="what", required=True)
  acting = commands.add_parser("acting")
  acting.add_argument("--rounds", type=int, default=7)
  acting.add_argument("--steps", type=int, default=500, help="in a round")
  acting.add_argument("--warm_up", type=int, default=900, help="environment steps")
  replay = commands.add_parser("replay")
  replay.add_argument("--steps", type=int, default=100_000, help="environment steps")
  for command in (acting, replay):
    command.add_argument("--env", default="atari:Pong")
  learner = commands.add_parser("learner")
  learner.add_argument("--precision", choices=PRECISIONS, default=PRECISIONS[0])
  learner.add_argument("--updates", type=int, default=500, help="at most")
  learner.add_argument("--seconds", type=float, default=20.0, help="for the updates")
  learner.add_argument("--warm_up", type=int, default=2, help="updates")
  for command in (acting, replay, learner):
    command.add_argument("--agent", default="ngu", help="of the sequence engine")
  return parser.parse_args()


def main() -> None:
  args = _parse()
  if args.what == "acting":
    result = measure_acting(args.agent, args.env, args.rounds, args.steps, args.warm_up)
  elif args.what == "replay":
    result = measure_replay(args.agent, args.env, args.steps)
  else:
    config = presets.PRESETS[args.agent].config_for("atari:")
    result = measure_learner(
      config, args.precision, args.updates, args.seconds, args.warm_up
    )
  print(json.dumps(result), flush=True)


if __name__ == "__main__":
  main()
