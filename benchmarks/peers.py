"""Speed beside the libraries that users would pick: DQN, Atari, Deep Sea and bonuses.

  uv venv --python=3.11 .venv-peers
  uv pip install --python=.venv-peers -r benchmarks/peers.txt .
  echo gymnasium==0.29.1 > overrides
  uv pip install --python=.venv-peers --overrides=overrides gymnax==1.0.1
  git clone https://github.com/vwxyzjn/cleanrl .venv-peers/cleanrl
  git clone https://github.com/luchris429/purejaxrl .venv-peers/purejaxrl
  git clone https://github.com/EdanToledo/Stoix .venv-peers/stoix
  uv venv --python=3.11 .venv-peers/stoix/venv
  uv pip install --python=.venv-peers/stoix/venv -r benchmarks/stoix.txt
  git clone https://github.com/RLE-Foundation/rllte .venv-peers/rllte
  python benchmarks/run.py --only=peers

The peers run in `.venv-peers`, since their versions of gymnasium and of JAX differ from
ours; Stoix, which asks for JAX before 0.6, has an environment of its own. The row of a
peer that is not there says so.
"""

import functools
import importlib
import math
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import bench
import numpy as np

VENV = bench.FOLDER.parent / ".venv-peers"
PYTHON, CLEANRL = VENV / "bin" / "python", VENV / "cleanrl"
PUREJAXRL = VENV / "purejaxrl" / "purejaxrl" / "dqn.py"
STOIX = VENV / "stoix"

# CleanRL fixes the layers. After the warm-up there is an update in each step.
HIDDEN_SIZES, BATCH_SIZE, CAPACITY = (120, 84), 128, 10_000
LEARNING_STARTS, WARM_UP = 500, 1000
# (environments, their steps between two updates, seeds) on the device.
DEVICE_LOOPS = ((1, 1, 1), (10, 1, 1), (10, 1, 8), (10, 1000, 1))
NUM_GAMES = (1, 8, 32)
NUM_SEAS, SIZE = 2000, 10
RLEXPLORE, BONUSES = VENV / "rllte", ("RND", "ICM", "E3B")
GRID, NUM_GRIDS, ROLLOUT = "MiniGrid-DoorKey-8x8-v0", 16, 128
# RLeXplore's defaults; networks for vectors have one hidden layer of 256 units.
BONUS = {"latent_dim": 128, "lr": 1e-3, "batch_size": 256}


def measure_dqn(quick: bool = False) -> list[bench.Row]:
  """Environment steps per second of DQN on CartPole, with an update in each.

  Args:
    quick: one short sample of each, only to see that everything runs.
  """
  steps = 500 if quick else 20_000
  return bench.side_by_side(
    {
      "explorax, local runner": functools.partial(_our_dqn, steps),
      "Stable-Baselines3": functools.partial(_of_peer, "run_sb3", steps=steps),
      **{
        f"CleanRL, {script}": functools.partial(
          _of_peer, "run_cleanrl", script=script, steps=steps
        )
        for script in ("dqn.py", "dqn_jax.py")
      },
    },
    quick,
  )


def measure_device(quick: bool = False) -> list[bench.Row]:
  """Environment steps per second of DQN in CartPole on the device, all seeds.

  The peers are compiled loops that keep their results until the end; ours also reports
  each episode to the host. Stoix's trains one seed.
  """
  rows = []
  for envs, interval, seeds in DEVICE_LOOPS:
    of_loop = {"environments": envs, "steps_per_update": interval, "seeds": seeds}
    settings = {**SETTINGS, "updates_per_step": 1 / (envs * interval)}
    contestants: dict[str, Callable[[], bench.Row]] = {
      "explorax, device runner": functools.partial(
        _of_peer,
        "run_device",
        settings=settings,
        num_envs=envs,
        seeds=seeds,
        seconds=0.1 if quick else 5,
      ),
      "purejaxrl": functools.partial(
        _of_peer,
        "run_purejaxrl",
        num_envs=envs,
        interval=envs * interval,
        seeds=seeds,
        steps=(500 if quick else 20_000) * envs,
      ),
    }
    if seeds == 1:
      contestants["Stoix"] = functools.partial(
        _of_peer,
        "run_stoix",
        python=STOIX / "venv" / "bin" / "python",
        num_envs=envs,
        interval=interval,
        updates=math.ceil((500 if quick else 20_000) / interval),
      )
    rows += [{**of_loop, **row} for row in bench.side_by_side(contestants, quick)]
  return rows


def measure_atari(quick: bool = False) -> list[bench.Row]:
  """Steps per second of Pong, all copies, beside EnvPool's with the same wrappers.

  Both have two threads, or one for a single game, and wait for all copies in each step;
  frames are 84 × 84, grey and not stacked, four to an action.
  """
  rows = []
  for games in NUM_GAMES:
    arguments = {"games": games, "steps": (500 if quick else 20_000) // games}
    contestants: bench.Contestants = {
      "explorax": functools.partial(bench.sample, "peers:run_atari", **arguments),
      "EnvPool": functools.partial(_of_peer, "run_envpool", **arguments),
    }
    rows += [{"games": games, **row} for row in bench.side_by_side(contestants, quick)]
  return rows


def measure_deep_sea(quick: bool = False) -> list[bench.Row]:
  """Steps per second of 2,000 Deep Seas at random actions, all of them, on one JAX."""
  steps = 100 if quick else 5000
  return bench.side_by_side(
    {
      "explorax": functools.partial(_of_peer, "run_deep_sea", steps=steps),
      "gymnax": functools.partial(_of_peer, "run_gymnax", steps=steps),
    },
    quick,
  )


def measure_bonuses(quick: bool = False) -> list[bench.Row]:
  """Steps per second of 16 MiniGrids at random actions, with a bonus that is learnt.

  The environments, networks and learning rates are the same, and each transition is
  learnt from once, in batches of 256: by ours every 16 steps, by RLeXplore after 128.
  """
  steps = ROLLOUT if quick else 8 * ROLLOUT
  rows = []
  for bonus in BONUSES:
    arguments = {"bonus": bonus, "steps": steps}
    contestants: bench.Contestants = {
      "explorax": functools.partial(_of_peer, "run_our_bonus", **arguments),
      "RLeXplore": functools.partial(_of_peer, "run_rlexplore", **arguments),
      "no bonus": functools.partial(_of_peer, "run_grids", steps=steps),
    }
    rows += [{"bonus": bonus, **row} for row in bench.side_by_side(contestants, quick)]
  return rows


def _of_peer(
  function: str, python: pathlib.Path = PYTHON, **arguments: Any
) -> bench.Row:
  """The function's result in a peer's environment; a `note` if that is not there."""
  if not python.exists():
    return {"note": f"not measured: there is no {python}; see benchmarks/peers.py"}
  return bench.sample(f"peers:{function}", python=str(python), **arguments)


SETTINGS = {
  "hidden_sizes": HIDDEN_SIZES,
  "batch_size": BATCH_SIZE,
  "replay_capacity": CAPACITY,
  "min_replay_size": LEARNING_STARTS,
  # Of the peers, in the place of our own for CartPole.
  "n_step": 1,
  "learning_rate": 2.5e-4,
  "target_update_period": 500,
}


def _our_dqn(steps: int) -> bench.Row:
  sizes = ",".join(map(str, HIDDEN_SIZES))
  settings = {**SETTINGS, "hidden_sizes": sizes, "updates_per_step": 1}
  flags = ["--agent=dqn", "--env=gym:CartPole-v1", f"--steps={WARM_UP + steps}"]
  flags += [f"--set={name}={value}" for name, value in settings.items()]
  found = bench.run_speed(flags, WARM_UP)
  if abs(found["env_steps"] - found["learner_updates"] - LEARNING_STARTS) > 1:
    raise RuntimeError(f"there was not an update for each step: {found}.")
  return found


def run_sb3(steps: int) -> bench.Row:
  """Stable-Baselines3's DQN."""
  import stable_baselines3 as sb3

  model = sb3.DQN(
    "MlpPolicy",
    "CartPole-v1",
    policy_kwargs={"net_arch": list(HIDDEN_SIZES)},
    batch_size=BATCH_SIZE,
    buffer_size=CAPACITY,
    learning_starts=LEARNING_STARTS,
    train_freq=1,
    gradient_steps=1,
    device="cpu",
  )
  model.learn(WARM_UP)
  start = time.perf_counter()
  model.learn(steps, reset_num_timesteps=False)
  seconds = time.perf_counter() - start
  if model._n_updates != WARM_UP + steps - LEARNING_STARTS:
    raise RuntimeError(f"there were {model._n_updates} updates, not one for each step.")
  return {"steps_per_s": steps / seconds, "peak_mib": bench.peak_mib()}


def run_cleanrl(script: str, steps: int) -> bench.Row:
  """A script of CleanRL: how much longer a run takes that has `steps` more steps."""
  path = CLEANRL / "cleanrl" / script
  if not path.exists():
    return {"note": f"not measured: there is no {path}"}
  short, long = (_run_script(path, n) for n in (WARM_UP, WARM_UP + steps))
  seconds = long["seconds"] - short["seconds"]
  return {"steps_per_s": steps / seconds, "peak_mib": long["peak_mib"]}


def _run_script(path: pathlib.Path, steps: int) -> bench.Row:
  flags = [f"--total-timesteps={steps}", f"--learning-starts={LEARNING_STARTS}"]
  flags += ["--train-frequency=1", f"--batch-size={BATCH_SIZE}"]
  flags += [f"--buffer-size={CAPACITY}"]
  with tempfile.TemporaryDirectory() as folder:  # For its TensorBoard files.
    environment = {**os.environ, "PYTHONPATH": str(CLEANRL)}
    command = [sys.executable, path, *flags]
    return bench.run_program(command, cwd=folder, env=environment)


def run_device(**arguments: Any) -> bench.Row:
  """Ours, of a whole run."""
  import scaling

  env = "gymnax:CartPole-v1"
  found = scaling.measure_run("dqn", env, runner="device", **arguments)
  return {"steps_per_s": found["steps/s"], "peak_mib": found["peak MiB"]}


def run_purejaxrl(num_envs: int, interval: int, seeds: int, steps: int) -> bench.Row:
  """purejaxrl's, with the changes that JAX 0.6 and gymnax 1.0 ask for."""
  import types

  import jax

  if not PUREJAXRL.exists():
    return {"note": f"not measured: there is no {PUREJAXRL}"}
  text = PUREJAXRL.read_text(encoding="utf-8").replace("jax.tree_map", "jax.tree.map")
  text = text.replace("done, info = vmap_step", "done, _, info = vmap_step")
  text = text.replace("_done, _ = env.step", "_done, _, _ = env.step")
  sys.modules["wandb"] = types.ModuleType("wandb")
  names: dict[str, Any] = {"__name__": "purejaxrl"}
  exec(compile(text, PUREJAXRL, "exec"), names)
  config = {
    "NUM_ENVS": num_envs,
    "BUFFER_SIZE": CAPACITY,
    "BUFFER_BATCH_SIZE": BATCH_SIZE,
    "TOTAL_TIMESTEPS": steps,
    "EPSILON_START": 0.1,
    "EPSILON_FINISH": 0.1,
    "EPSILON_ANNEAL_TIME": 1,
    "TARGET_UPDATE_INTERVAL": 500,
    "LR": 2.5e-4,
    "LEARNING_STARTS": 0,
    "TRAINING_INTERVAL": interval,
    "GAMMA": 0.99,
    "TAU": 1.0,
    "ENV_NAME": "CartPole-v1",
  }
  train = names["make_train"](config)
  keys = jax.random.split(jax.random.PRNGKey(0), seeds)
  train, keys = (jax.vmap(train), keys) if seeds > 1 else (train, keys[0])
  program = jax.jit(train).lower(keys).compile()
  jax.block_until_ready(program(keys))
  start = time.perf_counter()
  jax.block_until_ready(program(keys))
  seconds = time.perf_counter() - start
  return {"steps_per_s": steps * seeds / seconds, "peak_mib": bench.peak_mib()}


def run_stoix(num_envs: int, interval: int, updates: int) -> bench.Row:
  """Stoix's, without its loggers and evaluations, in a program of many updates."""
  from unittest import mock

  for name in ("wandb", "neptune", "neptune.utils", "tensorboard_logger"):
    sys.modules[name] = mock.MagicMock()
  sys.path.insert(0, str(STOIX))
  import hydra
  import jax
  from omegaconf import OmegaConf
  from stoix.systems.q_learning import ff_dqn
  from stoix.utils import total_timestep_checker

  settings = {
    "arch.total_num_envs": num_envs,
    "arch.num_updates": updates,
    "arch.total_timesteps": "null",
    "arch.num_evaluation": 1,
    "system.rollout_length": interval,
    "system.epochs": 1,  # Updates after each rollout.
    "system.warmup_steps": math.ceil(LEARNING_STARTS / num_envs),
    "system.total_buffer_size": CAPACITY,
    "system.total_batch_size": BATCH_SIZE,
    "network.actor_network.pre_torso.layer_sizes": list(HIDDEN_SIZES),
    "network.actor_network.pre_torso.activation": "relu",
    "hydra.searchpath": f"[file://{STOIX}/stoix/configs]",
  }
  folder = str(STOIX / "stoix" / "configs" / "default" / "anakin")
  with hydra.initialize_config_dir(folder, version_base=None):
    overrides = [f"{name}={value}" for name, value in settings.items()]
    config = hydra.compose("default_ff_dqn", overrides)
  OmegaConf.set_struct(config, False)
  config.num_devices = 1
  config = total_timestep_checker.check_total_timesteps(config)
  config.arch.num_updates_per_eval = updates
  env, _ = ff_dqn.environments.make(config=config)
  keys = jax.random.split(jax.random.PRNGKey(0))
  learn, _, state = ff_dqn.learner_setup(env, keys, config)
  state = jax.block_until_ready(learn(state)).learner_state
  start = time.perf_counter()
  jax.block_until_ready(learn(state))
  seconds = time.perf_counter() - start
  steps = num_envs * interval * updates
  return {"steps_per_s": steps / seconds, "peak_mib": bench.peak_mib()}


def run_atari(games: int, steps: int) -> bench.Row:
  """Our batched games."""
  from explorax import environments

  env = environments.make_batched("atari:Pong/dqn,stack=1", num_envs=games, seed=0)

  def step(actions: np.ndarray) -> None:
    env.send(actions)
    env.recv()

  env.reset()
  return _stepping(step, games, steps, env.action_spec().num_values)


def run_envpool(games: int, steps: int) -> bench.Row:
  """EnvPool's."""
  import envpool

  env = envpool.make(
    "Pong-v5",
    env_type="gymnasium",
    num_envs=games,
    num_threads=min(games, 2),
    stack_num=1,
    noop_max=30,
    use_fire_reset=False,
    reward_clip=False,
    episodic_life=False,
    repeat_action_probability=0.0,
  )
  env.reset()
  return _stepping(env.step, games, steps, env.action_space.n)


def _stepping(
  step: Callable[[np.ndarray], Any],
  games: int,
  steps: int,
  num_actions: int,
  warm_up: int | None = None,
) -> bench.Row:
  rng = np.random.default_rng(0)
  actions = rng.integers(num_actions, size=(steps, games)).astype(np.int32)
  for row in actions[: steps // 10 if warm_up is None else warm_up]:
    step(row)
  start = time.perf_counter()
  for row in actions:
    step(row)
  return {"steps_per_s": games * steps / (time.perf_counter() - start)}


def run_deep_sea(steps: int) -> bench.Row:
  """Ours; an episode's last step starts the next one, as gymnax's do."""
  import jax
  import jax.numpy as jnp

  from explorax.environments import jax_environments

  env, params = jax_environments.make(f"deep_sea/{SIZE}")

  def step(key: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
    state, timestep = env.step(key, state, action, params)
    new, first = env.reset(key, params)
    state, observation = jax.tree.map(
      lambda a, b: jnp.where(timestep.last(), a, b),
      (new, first.observation),
      (state, timestep.observation),
    )
    return state, observation, timestep.reward

  def reset(key: Any) -> Any:
    return env.reset(key, params)[0]

  return _scan(jax.vmap(reset), jax.vmap(step), steps)


def run_gymnax(steps: int) -> bench.Row:
  """gymnax's."""
  import gymnax
  import jax

  env, params = gymnax.make("DeepSea-bsuite", size=SIZE)

  def step(key: Any, state: Any, action: Any) -> tuple[Any, Any, Any]:
    observation, state, reward, *_ = env.step(key, state, action, params)
    return state, observation, reward

  def reset(key: Any) -> Any:
    return env.reset(key, params)[1]

  return _scan(jax.vmap(reset), jax.vmap(step), steps)


def _scan(reset: Callable[..., Any], step: Callable[..., Any], steps: int) -> bench.Row:
  """One compiled loop over `steps` steps of all seas; uses all that a step returns."""
  import jax
  import jax.numpy as jnp

  @jax.jit
  def run(key: Any) -> Any:
    def body(carry: Any, key: Any) -> tuple[Any, None]:
      states, observed, rewards = carry
      action_key, step_key = jax.random.split(key)
      actions = jax.random.randint(action_key, (NUM_SEAS,), 0, 2)
      keys = jax.random.split(step_key, NUM_SEAS)
      states, observations, reward = step(keys, states, actions)
      return (states, observed + observations, rewards + reward), None

    states = reset(jax.random.split(key, NUM_SEAS))
    observed = jnp.zeros((NUM_SEAS, SIZE, SIZE))
    carry = (states, observed, jnp.zeros(NUM_SEAS))
    (_, observed, rewards), _ = jax.lax.scan(body, carry, jax.random.split(key, steps))
    return observed.sum(0), rewards.mean()

  jax.block_until_ready(run(jax.random.key(0)))
  start = time.perf_counter()
  observed, _ = jax.block_until_ready(run(jax.random.key(1)))
  seconds = time.perf_counter() - start
  if not observed[0, 0] > 0:
    raise RuntimeError("no episode has begun again.")
  return {"steps_per_s": NUM_SEAS * steps / seconds}


def _grids() -> Any:
  """Stable-Baselines3's vector of the cells that the agent sees, as numbers."""
  import gymnasium
  from minigrid import wrappers
  from stable_baselines3.common import vec_env

  def make() -> Any:
    cells = wrappers.ImgObsWrapper(gymnasium.make(GRID))
    return gymnasium.wrappers.FlattenObservation(cells)

  return vec_env.DummyVecEnv([make] * NUM_GRIDS)


def run_grids(steps: int) -> bench.Row:
  """The vector alone."""
  envs = _grids()
  envs.reset()
  return _stepping(envs.step, NUM_GRIDS, steps, envs.action_space.n)


def run_our_bonus(bonus: str, steps: int) -> bench.Row:
  """Ours, around the vector."""
  from explorax.agents.bonuses import dynamics, e3b, icm, rnd
  from explorax.agents.bonuses.wrappers import sb3_wrapper

  model = dynamics.Dynamics(
    hidden_sizes=(256,),
    embedding_size=BONUS["latent_dim"],
    forward_weight=float(bonus == "ICM"),
    learning_rate=BONUS["lr"],
  )
  made = {
    "RND": rnd.RND(
      hidden_sizes=(256,),
      output_size=BONUS["latent_dim"],
      learning_rate=BONUS["lr"],
      normalisation="deviation",
      end="destination",
    ),
    "ICM": icm.ICM(model),
    "E3B": e3b.E3B(model),
  }[bonus]
  envs = sb3_wrapper.BonusVecEnv(
    _grids(),
    made,
    beta=1.0,
    normalise=bonus == "ICM",
    update_period=BONUS["batch_size"] // NUM_GRIDS,
  )
  envs.reset()
  return _stepping(envs.step, NUM_GRIDS, steps, envs.action_space.n, warm_up=steps)


def run_rlexplore(bonus: str, steps: int) -> bench.Row:
  """RLeXplore's, computed after each rollout, as in its example with PPO."""
  import types

  if not RLEXPLORE.exists():
    return {"note": f"not measured: there is no {RLEXPLORE}"}
  packages = ("", ".common", ".common.prototype", ".xplore", ".xplore.reward")
  for name in (f"rllte{package}" for package in packages):
    sys.modules[name] = module = types.ModuleType(name)  # Without what it imports.
    module.__path__ = [str(RLEXPLORE.joinpath(*name.split(".")))]
  prototype = importlib.import_module("rllte.common.prototype.base_reward")
  sys.modules["rllte.common.prototype"].BaseReward = prototype.BaseReward
  rewards = importlib.import_module(f"rllte.xplore.reward.{bonus.lower()}")
  import torch

  envs = _grids()
  made = getattr(rewards, bonus)(envs, obs_norm_type="none", **BONUS)
  latest = torch.as_tensor(envs.reset())
  rows: list[dict[str, Any]] = []

  def step(actions: np.ndarray) -> None:
    nonlocal latest
    reached, reward, done, _ = envs.step(actions)
    values = (latest, actions[:, None], reward, done, done, reached)
    row = {
      name: torch.as_tensor(value, dtype=torch.float32)
      for name, value in zip(_SAMPLES, values, strict=True)
    }
    made.watch(**row)
    rows.append(row)
    latest = row["next_observations"]
    if len(rows) == ROLLOUT:
      made.compute({name: torch.stack([x[name] for x in rows]) for name in _SAMPLES})
      rows.clear()

  return _stepping(step, NUM_GRIDS, steps, envs.action_space.n, warm_up=ROLLOUT)


_SAMPLES = (
  *("observations", "actions", "rewards"),
  *("terminateds", "truncateds", "next_observations"),
)

TABLES = (
  bench.Table(
    "DQN on CartPole: environment steps per second, an update in each", measure_dqn
  ),
  bench.Table(
    "DQN on CartPole on the device: environment steps per second, all seeds",
    measure_device,
  ),
  bench.Table("Pong: steps per second of all copies, two threads", measure_atari),
  bench.Table("2,000 Deep Seas of size 10: steps per second of all", measure_deep_sea),
  bench.Table("16 MiniGrids with a bonus: steps per second of all", measure_bonuses),
)
