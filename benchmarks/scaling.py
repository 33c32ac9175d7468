"""Speed, memory and use of a device, in rows that are kept.

  python benchmarks/scaling.py                           # all tables: `make bench-gpu`
  python benchmarks/scaling.py --only=environments,seeds
  python benchmarks/scaling.py --divisor=100             # only to see that all runs

Each row is measured in a process of its own, on JAX's default device, and written at
once to `results/DEVICE.json`: the same command again measures what is missing. The
tables of `SCALING` are a section of `benchmarks/run.py`, too.
"""

import argparse
import functools
import importlib.util
import json
import math
import pathlib
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import bench
import peers

SECONDS = 5.0  # Of each row, after compilation.
SCALING = ("environments", "seeds", "members", "replay")
_WITHOUT_END = 10**9  # Environment steps.


class Case(NamedTuple):
  """A row: the columns that identify it, and the call that measures the others."""

  columns: dict[str, Any]
  function: str
  arguments: dict[str, Any]

  def measure(self) -> bench.Row:
    return bench.sample(self.function, platform=None, **self.arguments)


def tables(divisor: int = 1) -> dict[str, tuple[str, list[Case]]]:
  """Name → (title, cases); sizes and seconds are divided by the divisor."""
  cartpole = _installed("gymnax:CartPole-v1", "jax:cartpole_swingup")
  room = _installed("navix:Navix-Empty-8x8-v0", "jax:gridworld/20")
  seconds = SECONDS / divisor

  def sizes(*numbers: int) -> list[int]:
    return sorted({math.ceil(number / divisor) for number in numbers})

  def run(
    env: str, agent: str = "double_dqn", num_envs: int = 1, seeds: int = 1, **to: Any
  ) -> Case:
    runner = "local" if env.startswith(("gym:", "bsuite:")) else "device"
    columns = {"runner": runner, "agent": agent, "environment": env}
    columns |= {"environments": num_envs, "seeds": seeds, **to}
    to |= {
      "updates_per_step": 1 / num_envs,
      "min_replay_size": math.ceil(1000 / divisor),
    }
    flags = {"runner": runner, "num_envs": num_envs, "seeds": seeds}
    arguments = {"agent": agent, "env": env, "settings": to, "seconds": seconds}
    return Case(columns, "scaling:measure_run", arguments | flags)

  def update(agent: str, env: str, **to: int) -> Case:
    to = {name: max(2, size // divisor) for name, size in to.items()}
    arguments = {"agent": agent, "env": env, "settings": to, "seconds": seconds}
    columns = {"agent": agent, "environment": env, **to}
    return Case(columns, "scaling:measure_updates", arguments)

  def beside(environments: int, steps_per_update: int, seeds: int) -> list[Case]:
    of_loop = {"environments": environments, "steps_per_update": steps_per_update}
    of_loop["seeds"] = seeds
    interval = environments * steps_per_update  # In steps of all environments.
    settings = {**peers.SETTINGS, "updates_per_step": 1 / interval}
    flags = {"runner": "device", "num_envs": environments, "seeds": seeds}
    ours = {"agent": "dqn", "env": "gymnax:CartPole-v1", "settings": settings, **flags}
    theirs = {"num_envs": environments, "interval": interval, "seeds": seeds}
    theirs["steps"] = math.ceil(20_000 / divisor) * environments
    return [
      Case(
        {"library": "explorax", **of_loop},
        "scaling:measure_run",
        {**ours, "seconds": seconds},
      ),
      Case({"library": "purejaxrl", **of_loop}, "scaling:measure_purejaxrl", theirs),
    ]

  sequences = {"sequence_length": 80, "sequence_period": 40}
  return {
    "environments": (
      "Environments of a run, with an update after a step of all",
      [run("gym:CartPole-v1", num_envs=n) for n in sizes(1, 8, 64)]
      + [run(cartpole, num_envs=n) for n in sizes(1, 16, 256, 4096)],
    ),
    "seeds": (
      "Seeds of a program: steps of all",
      [run(cartpole, seeds=n) for n in sizes(1, 4, 16, 64)],
    ),
    "members": (
      "Members of an ensemble on Deep Sea, N = 10",
      [
        run(env, "bootstrapped_dqn", num_members=n)
        for env in ("bsuite:deep_sea/0", "jax:deep_sea/10")
        for n in sizes(1, 10, 20, 40)
      ],
    ),
    "replay": (
      "Capacity of prioritised replay, in environment steps",
      [
        run(env, replay_capacity=n, priority_exponent=0.6)
        for env in ("gym:CartPole-v1", cartpole)
        for n in sizes(10_000, 100_000, 1_000_000)
      ],
    ),
    "acting": (
      "Environments on the device, with an update after a step of all",
      [
        run(env, agent, num_envs=n)
        for env in (cartpole, room)
        for agent in ("double_dqn", "ngu")
        for n in sizes(1, 16, 256, 4096)
      ],
    ),
    "peers": (
      "DQN beside purejaxrl, with the settings of `benchmarks/peers.py`",
      [case for loop in peers.DEVICE_LOOPS for case in beside(*loop)],
    ),
    "atari": (
      "Games that C++ threads step, with an update after a step of all",
      [
        run("atari:Pong", num_envs=n, replay_capacity=50_000) for n in sizes(8, 64, 256)
      ],
    ),
    "updates": (
      "Updates on one batch, and their share of the speed of a matrix product",
      [
        update("r2d2", "atari:Pong", batch_size=64, **sequences),
        update("ngu", "atari:Pong", batch_size=64, **sequences),
        update("tdu", "jax:deep_sea/50", batch_size=128, num_members=20),
      ],
    ),
  }


def _installed(first: str, second: str) -> str:
  """The first environment if its library is installed, else the second."""
  is_there = importlib.util.find_spec(first.partition(":")[0]) is not None
  return first if is_there else second


def measure_run(
  agent: str, env: str, settings: dict[str, Any], seconds: float, **flags: Any
) -> bench.Row:
  """Environment steps per second after compilation, and the peak of memory."""
  import explorax

  marks: list[bench.Mark] = []

  def on_log(row: Any) -> None:
    if row.seed == 0 and not math.isnan(row.steps_per_second):
      marks.append(bench.Mark(row.env_steps, row.learner_updates, row.wall_seconds))
      if len(marks) > 1 and marks[-1].seconds - marks[0].seconds >= seconds:
        raise explorax.StopTraining("measured")

  # JSON has made lists of tuples.
  settings = {k: tuple(x) if isinstance(x, list) else x for k, x in settings.items()}
  flags |= {"log_every": max(100, 10 * flags["num_envs"]), "eval_episodes": 0}
  made = explorax.make_agent(agent, env, **settings)
  explorax.train(made, env, steps=_WITHOUT_END, on_log=on_log, **flags)
  speed = bench.speed(marks, warm_up=0)["steps_per_s"] * flags["seeds"]
  return {"steps/s": speed, "peak MiB": _peak_mib()}


def measure_purejaxrl(**arguments: int) -> bench.Row:
  """Environment steps per second of its DQN."""
  found = peers.run_purejaxrl(**arguments)
  if "note" in found:
    raise RuntimeError(found["note"])
  return {"steps/s": found["steps_per_s"], "peak MiB": _peak_mib()}


def measure_updates(
  agent: str, env: str, settings: dict[str, int], seconds: float
) -> bench.Row:
  """Updates per second on one batch, and floating-point operations per second.

  XLA counts the operations in a loop's body once, such as those of an LSTM's step: the
  count is too small for recurrent networks.
  """
  import jax
  import jax.numpy as jnp

  import explorax
  from explorax.agents.replay import adder

  core = explorax.make_agent(agent, env, **settings).core
  spec, columns = core.replay, adder.column_specs(core)

  def filled(name: str, *rows: int) -> jax.Array:
    shape, dtype = columns[name]
    shape = (spec.batch_size, *rows, *shape)
    return jnp.full(shape, name in ("discount", "mask"), dtype)

  rows = dict.fromkeys([*columns], spec.window_rows)
  rows["observation"] = spec.window_frames
  sample = explorax.agents.types.Sample(
    {n: filled(n, r) for n, r in rows.items() if n not in spec.first_row_extras},
    {n: filled(n) for n in spec.first_row_extras},
    probabilities=jnp.ones(spec.batch_size),
    population=jnp.int32(spec.batch_size),
  )
  state = jax.jit(core.learner.init)(jax.random.PRNGKey(0))
  update = jax.jit(core.learner.update, donate_argnums=0).lower(state, sample).compile()
  costs: Any = update.cost_analysis()
  flops = (costs[0] if isinstance(costs, list) else costs)["flops"]

  def step() -> Any:
    nonlocal state
    state, output = update(state, sample)
    return output.metrics

  speed = _calls_per_second(step, seconds)
  edge = 4096 if seconds >= SECONDS else 256
  product = functools.partial(jax.jit(jnp.matmul), *[jnp.ones((edge, edge))] * 2)
  fastest = 2 * edge**3 * _calls_per_second(product, seconds)
  return {
    "updates/s": speed,
    "Tflop/s": flops * speed / 1e12,
    "share": flops * speed / fastest,
    "peak MiB": _peak_mib(),
  }


def _calls_per_second(call: Callable[[], Any], seconds: float) -> float:
  import jax

  jax.block_until_ready(call())
  start, count = time.perf_counter(), 0
  while count < 2 or time.perf_counter() - start < seconds:
    results = [call() for _ in range(3)]  # The device does not wait for the host.
    jax.block_until_ready(results)
    count += len(results)
  return count / (time.perf_counter() - start)


def _peak_mib() -> float:
  """Of the device's memory where JAX knows it, else of the process's."""
  import jax

  stats = jax.devices()[0].memory_stats() or {}
  return stats["peak_bytes_in_use"] / 2**20 if stats else bench.peak_mib()


def describe() -> dict[str, str]:
  """The device; its machine and commit, for the page."""
  import jax

  device, on = jax.devices()[0].device_kind, bench.machine()
  where = f"{device}, {on['cpu']}, {on['cpus']} cores, jax {on['packages']['jax']}"
  commit = on["git_commit"] or "unknown"
  return {
    "device": re.sub(r"[^a-z0-9]+", "_", device.lower()),
    "machine": where,
    "commit": commit[:7] + "+" * commit.endswith("+"),
  }


def complete(names: Sequence[str], divisor: int, folder: pathlib.Path) -> list[str]:
  """Measures what the file of this device lacks; returns what fails, and why."""
  on = bench.sample("scaling:describe", platform=None)
  folder.mkdir(parents=True, exist_ok=True)
  path = folder / f"{on.pop('device')}.json"
  found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
  missing = []
  for name in names:
    title, cases = tables(divisor)[name]
    rows = found.setdefault(name, {"title": title, "rows": []})["rows"]
    for case in cases:
      if any(case.columns.items() <= row.items() for row in rows):
        continue
      label = f"{name}: {', '.join(f'{k} {x}' for k, x in case.columns.items())}"
      try:
        measured = case.measure()
      except RuntimeError as error:  # For example without memory, or a package.
        missing.append(f"{label}: {str(error).strip().splitlines()[-1][:200]}")
        continue
      rows.append(case.columns | measured | on)
      path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
      print(f"{label}: {', '.join(f'{x:.4g} {k}' for k, x in measured.items())}")
  return missing


# The section of `benchmarks/run.py`.
TABLES = tuple(
  bench.Table(
    tables()[name][0],
    lambda quick, name=name: [
      case.columns | case.measure() for case in tables(100 if quick else 1)[name][1]
    ],
  )
  for name in SCALING
)


def main() -> int:
  """Returns 1 if a row is missing."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--only", default=",".join(tables()), metavar="TABLE,...")
  parser.add_argument("--divisor", type=int, default=1, help="of all sizes")
  parser.add_argument("--output", type=pathlib.Path, default=bench.FOLDER / "results")
  args = parser.parse_args()
  if missing := complete(args.only.split(","), args.divisor, args.output):
    print("\nNot measured:", *missing, sep="\n  ")
  return bool(missing)


if __name__ == "__main__":
  sys.exit(main())
