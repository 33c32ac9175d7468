"""Our samples: runs, updates on one batch, games, and bonuses around a vector."""

import gzip
import json
import math
import re
import tempfile
import time
from collections.abc import Callable
from typing import Any

import bench
import numpy as np

_WITHOUT_END = 10**9  # Environment steps.


def train(
  agent: str, env: str, seconds: float = 5.0, settings: Any = None, **flags: Any
) -> dict[str, float]:
  """Environment steps per second of a run, of all seeds, after compilation."""
  import explorax

  marks: list[Any] = []

  def on_log(row: Any) -> None:
    if row.seed == 0 and not math.isnan(row.steps_per_second):
      marks.append(row)
      if len(marks) > 1 and row.wall_seconds - marks[0].wall_seconds >= seconds:
        raise explorax.StopTraining("measured")

  # JSON has made lists of tuples.
  settings = settings or {}
  settings = {k: tuple(x) if isinstance(x, list) else x for k, x in settings.items()}
  flags = {"log_every": max(100, 10 * flags.get("num_envs", 1)), **flags}
  made = explorax.make_agent(agent, env, **settings)
  with tempfile.TemporaryDirectory() as folder:
    flags |= {"eval_episodes": 0, "output": f"{folder}/run"}
    explorax.train(made, env, steps=_WITHOUT_END, on_log=on_log, **flags)
  first, last = marks[0], marks[-1]
  steps = last.env_steps - first.env_steps
  updates = last.learner_updates - first.learner_updates
  asked = settings.get("updates_per_step")
  if asked and abs(updates / steps / asked - 1) > 0.05:
    raise RuntimeError(f"there were {updates} updates in {steps} steps, not {asked}.")
  speed = steps * flags.get("seeds", 1) / (last.wall_seconds - first.wall_seconds)
  return {"steps/s": speed, "peak MiB": bench.peak_mib()}


def update(
  agent: str, env: str, settings: dict[str, int], seconds: float
) -> dict[str, float]:
  """Updates/s, operations/s, and their share of those of a large matrix product."""
  import jax
  import jax.numpy as jnp

  import explorax
  from explorax.agents.replay import device as device_replay

  core, key = explorax.make_agent(agent, env, **settings).core, jax.random.PRNGKey(0)
  replay = device_replay.DeviceReplay(core, num_envs=1)
  _, shapes = jax.eval_shape(replay.sample, jax.eval_shape(replay.init), key)
  sample = jax.tree.map(lambda x: jnp.ones(x.shape, x.dtype), shapes)
  state = jax.jit(core.learner.init)(key)
  traced = jax.jit(core.learner.update, donate_argnums=0).trace(state, sample)
  compiled = traced.lower().compile()
  costs: Any = compiled.cost_analysis()
  flops = (costs[0] if isinstance(costs, list) else costs)["flops"]
  flops += _repeated_flops(traced.jaxpr)

  def next_update() -> Any:
    nonlocal state
    state, output = compiled(state, sample)
    return output

  speed = _calls_per_second(next_update, seconds)
  memory, multiply, matrix = bench.peak_mib(), jax.jit(jnp.dot), jnp.ones((4096, 4096))
  peak = 2 * 4096**3 * _calls_per_second(lambda: multiply(matrix, matrix), seconds)
  measures = {"updates/s": speed, "Tflop/s": flops * speed / 1e12, "peak MiB": memory}
  return measures | {"share of the peak, %": 100 * flops * speed / peak}


def _repeated_flops(jaxpr: Any, times: int = 1) -> int:
  """Operations of products in loops, without first iterations: XLA counts those."""
  total = 0
  for equation in jaxpr.eqns:
    parameters = equation.params
    if equation.primitive.name == "dot_general":
      (contracted, _), _ = parameters["dimension_numbers"]
      left, out = (x[0].aval.shape for x in (equation.invars, equation.outvars))
      total += 2 * (times - 1) * math.prod((*out, *(left[x] for x in contracted)))
    inner = [x for x in parameters.values() if hasattr(x, "eqns")]
    total += sum(_repeated_flops(x, times * parameters.get("length", 1)) for x in inner)
  return total


def _calls_per_second(call: Callable[[], Any], seconds: float) -> float:
  """Of a jitted function, three to a wait, so that the device never waits long."""
  import jax

  jax.block_until_ready(call())
  start, count = time.perf_counter(), 0
  while time.perf_counter() - start < seconds:
    jax.block_until_ready([call() for _ in range(3)])
    count += 3
  return count / (time.perf_counter() - start)


def structure(agent: str, env: str, of: str) -> dict[str, float]:
  """What the device runner's program `of` a CPU or accelerator has, and its time here.

  An accelerator's host waits for conditionals and for loops of unknown length. The
  profile of 20 rounds is kept in results/profiles, for Perfetto or TensorBoard.
  """
  import jax

  import explorax
  from explorax import accelerators, environments
  from explorax.experiments.runners import device, device_program

  accelerators.may_branch = lambda: of == "CPU"
  pure, params = device.pure(environments.make(env, seed=0))
  core = explorax.make_agent(agent, env).core
  program = device_program.ScannedProgram(core, pure, 8, 1, max_steps=10_000)
  state = program.init(jax.random.PRNGKey(0), params)
  numbers = 20, program.steps_per_round, program.updates_per_round, 0
  text = program._advance.lower(state, *numbers).compile().as_text()
  dynamic = [x for x in re.findall(r" while\(.*", text) if "known_trip_count" not in x]
  kinds = ("while", "conditional", "sort", "fusion", "dot")
  counts = {f"{kind}s": len(re.findall(rf" {kind}\(", text)) for kind in kinds}
  folder = bench.FOLDER.parent / "results" / "profiles" / f"{agent}_{of}"
  state, *_ = jax.block_until_ready(program.learn(state, 20))
  with jax.profiler.trace(folder):
    rate = bench.rate(20, lambda: jax.block_until_ready(program.learn(state, 20)))
  content = gzip.decompress(max(folder.rglob("*.trace.json.gz")).read_bytes())
  events = json.loads(content)["traceEvents"]
  named = [(x.get("args", {}).get("hlo_op", "call"), x) for x in events]
  steps = [x["dur"] for name, x in named if not re.match("while|call|cond", name)]
  micros = {"µs a round": 1e6 / rate["steps/s"], "µs of operations": sum(steps) / 20}
  micros["operations a round"] = len(steps) / 20
  return {"whiles, dynamic": len(dynamic), **counts, **micros}


def atari(games: int, steps: int) -> dict[str, float]:
  """Batched games at random actions."""
  from explorax import environments

  env = environments.make_batched("atari:Pong/dqn,stack=1", num_envs=games, seed=0)

  def step(actions: np.ndarray) -> None:
    env.send(actions)
    env.recv()

  env.reset()
  return step_at_random(step, games, steps, env.action_spec().num_values)


def step_at_random(
  step: Callable[[np.ndarray], Any],
  num_envs: int,
  steps: int,
  num_actions: int,
  warm_up: int | None = None,
) -> dict[str, float]:
  """Steps per second of all environments, at random actions."""
  rng = np.random.default_rng(0)
  actions = rng.integers(num_actions, size=(steps, num_envs)).astype(np.int32)
  for row in actions[: steps // 10 if warm_up is None else warm_up]:
    step(row)
  return bench.rate(num_envs * steps, lambda: [step(row) for row in actions])


def grids(num_envs: int) -> Any:
  """Stable-Baselines3's vector of the cells that MiniGrid's agent sees, as numbers."""
  import gymnasium
  from minigrid import wrappers
  from stable_baselines3.common import vec_env

  def make() -> Any:
    cells = wrappers.ImgObsWrapper(gymnasium.make("MiniGrid-DoorKey-8x8-v0"))
    return gymnasium.wrappers.FlattenObservation(cells)

  return vec_env.DummyVecEnv([make] * num_envs)


def bonus(
  bonus: str | None, num_envs: int, steps: int, settings: dict[str, Any]
) -> dict[str, float]:
  """A vector with a bonus that is learnt; None: the vector alone."""
  from explorax.agents.bonuses import dynamics, e3b, icm, rnd
  from explorax.agents.bonuses.wrappers import sb3_wrapper

  envs, size, rate = grids(num_envs), settings["latent_dim"], settings["lr"]
  network = {"hidden_sizes": (256,), "learning_rate": rate}
  like = {"normalisation": "deviation", "end": "destination"}
  model = dynamics.Dynamics(
    embedding_size=size, forward_weight=float(bonus == "ICM"), **network
  )
  rewards = {"ICM": icm.ICM(model), "E3B": e3b.E3B(model)}
  rewards["RND"] = rnd.RND(output_size=size, **like, **network)
  if bonus is not None:
    envs = sb3_wrapper.BonusVecEnv(
      envs,
      rewards[bonus],
      beta=1.0,
      normalise=bonus == "ICM",
      update_period=settings["batch_size"] // num_envs,
    )
  envs.reset()
  return step_at_random(envs.step, num_envs, steps, envs.action_space.n, warm_up=steps)
