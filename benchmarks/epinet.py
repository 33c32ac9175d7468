"""An epinet beside the ensemble of twenty, on Deep Sea: an update, an action, a run.

Both presets have batches of 128 and one update per step. Calls and runs alternate, so
that whatever else the machine does disturbs both alike.
"""

import functools
import statistics
import time
from collections.abc import Callable

import bench
import jax
import jax.numpy as jnp
import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.experiments import presets

AGENTS = ("epinet", "bootstrapped_dqn")
# N → environment steps of a run.
SIZES = {10: 800, 50: 400}
WARM_UP = 200  # Environment steps.
NUM_CALLS = 200


def measure_calls(quick: bool = False) -> list[bench.Row]:
  """Median milliseconds of an update, and of the choice of an action."""
  rows = []
  for size in SIZES:
    calls = {agent: _calls(agent, size) for agent in AGENTS}
    for what in ("update", "action"):
      timed = {
        agent: functools.partial(_seconds, call[what]) for agent, call in calls.items()
      }
      seconds = bench.in_turn(timed, 5 if quick else NUM_CALLS)
      # The first two compile.
      found = {agent: 1e3 * statistics.median(x[2:]) for agent, x in seconds.items()}
      rows.append({"N": size, "what": what, **_ratio(found, "ms")})
  return rows


def measure_runs(quick: bool = False) -> list[bench.Row]:
  """Median environment steps per second of runs, acting and learning."""
  rows = []
  for size, steps in SIZES.items():
    flags = (f"--env=bsuite:deep_sea/{(size - 10) // 2}", "--replay=memory")
    total = WARM_UP + (3 * size if quick else steps)
    runs = {
      agent: functools.partial(
        bench.run_speed, (*flags, f"--agent={agent}", f"--steps={total}"), WARM_UP
      )
      for agent in AGENTS
    }
    samples = bench.in_turn(runs, 1 if quick else 3)
    found = {
      agent: statistics.median(sample["steps_per_s"] for sample in of_agent)
      for agent, of_agent in samples.items()
    }
    rows.append({"N": size, **_ratio(found, "steps/s")})
  return rows


def _ratio(found: dict[str, float], unit: str) -> bench.Row:
  ours, ensemble = (found[agent] for agent in AGENTS)
  quotient = ensemble / ours if unit == "ms" else ours / ensemble
  return {**{f"{k}, {unit}": v for k, v in found.items()}, "times as fast": quotient}


def _seconds(call: Callable[[], object]) -> float:
  start = time.perf_counter()
  jax.block_until_ready(call())
  return time.perf_counter() - start


def _calls(name: str, size: int) -> dict[str, Callable[[], object]]:
  """An update on a batch, and a choice of an action, as calls without arguments."""
  environment = environments.make(f"jax:deep_sea/{size}", seed=0)
  preset = presets.PRESETS[name]
  agent = preset.make_agent(preset.config, environments.spec(environment))
  core = agent.actor()
  state = jax.jit(agent.learner.init)(jax.random.PRNGKey(0))
  actor_state = core.init(jax.random.PRNGKey(1), 0, 1)
  params = types.ActorParams(agent.learner.params(state), np.int32(1000))
  timestep = environment.reset()._replace(reward=np.float32(0), discount=np.float32(1))
  timestep = timestep._replace(observation=agent.encoding(timestep.observation))
  # As in runs, an update overwrites the learner's state; the actor has its own weights.
  params = jax.tree.map(jnp.copy, params)
  update = jax.jit(agent.learner.update, donate_argnums=0)
  select = jax.jit(core.select_action)
  sample = _sample(size, preset.config.batch_size)

  def update_state() -> object:
    nonlocal state
    state, output = update(state, sample)
    return state, output

  return {
    "update": update_state,
    "action": lambda: select(params, timestep, actor_state),
  }


def _sample(size: int, batch_size: int) -> types.Sample:
  rng = np.random.default_rng(0)
  shape = (batch_size, 2)
  rows = {
    "observation": rng.integers(0, size**2, shape).astype(np.int32),
    "action": rng.integers(0, 2, shape).astype(np.int32),
    "reward": rng.normal(size=shape).astype(np.float32),
    "discount": np.ones(shape, np.float32),
    "mask": np.ones(shape, np.float32),
  }
  uniform = np.full(batch_size, 1 / 10_000, np.float32)
  return types.Sample(rows, {}, uniform, np.int32(10_000))


TABLES = (
  bench.Table(
    "An epinet beside the ensemble of twenty: an update, and an action", measure_calls
  ),
  bench.Table(
    "The same in runs from the command line: environment steps per second", measure_runs
  ),
)
