"""The peers' samples: the libraries that users would pick.

  uv venv --python=3.11 .venv-peers
  uv pip install --python=.venv-peers -r benchmarks/peers.txt .
  echo gymnasium==0.29.1 > overrides
  uv pip install --python=.venv-peers --overrides=overrides gymnax==1.0.1
  git clone https://github.com/vwxyzjn/cleanrl .venv-peers/cleanrl
  git clone https://github.com/luchris429/purejaxrl .venv-peers/purejaxrl
  git clone https://github.com/RLE-Foundation/rllte .venv-peers/rllte

They run there, since their versions of gymnasium and of JAX differ from ours; bsuite
and rlax (`rlax_pairs.py`) run beside ours.
"""

import importlib
import os
import resource
import subprocess
import sys
import tempfile
import time
import types
from typing import Any

import bench
import ours

VENV = bench.FOLDER.parent / ".venv-peers"
PYTHON = str(VENV / "bin" / "python")
_CLEANRL, _RLEXPLORE = VENV / "cleanrl", VENV / "rllte"
_PUREJAXRL = VENV / "purejaxrl" / "purejaxrl" / "dqn.py"


def bsuite(size: int, warm_up: int, steps: int) -> dict[str, float]:
  """bsuite's JAX agent in bsuite's loop; an episode of Deep Sea has N steps."""
  import bsuite as bsuite_lib
  from bsuite.baselines import experiment
  from bsuite.baselines.jax import boot_dqn

  env = bsuite_lib.load_from_id(f"deep_sea/{(size - 10) // 2}")
  agent = boot_dqn.default_agent(env.observation_spec(), env.action_spec())
  experiment.run(agent, env, warm_up // size)
  episodes = steps // size
  return bench.rate(episodes * size, lambda: experiment.run(agent, env, episodes))


def sb3(steps: int, warm_up: int, dqn: dict[str, Any]) -> dict[str, float]:
  """Stable-Baselines3's DQN on CartPole."""
  import stable_baselines3

  model = stable_baselines3.DQN(
    "MlpPolicy",
    "CartPole-v1",
    policy_kwargs={"net_arch": dqn["hidden_sizes"]},
    batch_size=dqn["batch_size"],
    buffer_size=dqn["replay_capacity"],
    learning_starts=dqn["min_replay_size"],
    train_freq=1,
    gradient_steps=1,
    device="cpu",
  )
  model.learn(warm_up)
  measures = bench.rate(steps, lambda: model.learn(steps, reset_num_timesteps=False))
  if model._n_updates != warm_up + steps - dqn["min_replay_size"]:
    raise RuntimeError(f"there were {model._n_updates} updates, not one for each step.")
  return measures


def cleanrl(steps: int, warm_up: int, dqn: dict[str, Any]) -> dict[str, float]:
  """CleanRL's dqn_jax.py: how much longer a run takes that has `steps` more steps."""
  script = bench.existing(_CLEANRL / "cleanrl" / "dqn_jax.py")
  flags = ["--train-frequency=1", f"--learning-starts={dqn['min_replay_size']}"]
  flags += [f"--batch-size={dqn['batch_size']}"]
  flags += [f"--buffer-size={dqn['replay_capacity']}"]

  def seconds(num_steps: int) -> float:
    command = [sys.executable, script, *flags, f"--total-timesteps={num_steps}"]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:  # For its TensorBoard files.
      to = {"cwd": folder, "env": {**os.environ, "PYTHONPATH": str(_CLEANRL)}}
      subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **to)
    return time.perf_counter() - start

  longer = -seconds(warm_up) + seconds(warm_up + steps)
  peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
  return {"steps/s": steps / longer, "peak MiB": peak}


def purejaxrl(
  num_envs: int, interval: int, seeds: int, steps: int, dqn: dict[str, Any]
) -> dict[str, float]:
  """purejaxrl's DQN, with the changes that JAX 0.6 and gymnax 1.0 ask for."""
  import jax

  text = bench.existing(_PUREJAXRL).read_text(encoding="utf-8")
  text = text.replace("jax.tree_map", "jax.tree.map")
  text = text.replace("done, info = vmap_step", "done, _, info = vmap_step")
  text = text.replace("_done, _ = env.step", "_done, _, _ = env.step")
  sys.modules["wandb"] = types.ModuleType("wandb")
  names: dict[str, Any] = {"__name__": "purejaxrl"}
  exec(compile(text, _PUREJAXRL, "exec"), names)
  config: dict[str, Any] = {"NUM_ENVS": num_envs, "TOTAL_TIMESTEPS": steps}
  config |= {"BUFFER_SIZE": dqn["replay_capacity"], "LR": dqn["learning_rate"]}
  config |= {"BUFFER_BATCH_SIZE": dqn["batch_size"], "TRAINING_INTERVAL": interval}
  config |= {"TARGET_UPDATE_INTERVAL": dqn["target_update_period"], "TAU": 1.0}
  config |= {"EPSILON_START": 0.1, "EPSILON_FINISH": 0.1, "EPSILON_ANNEAL_TIME": 1}
  train = names["make_train"](
    {**config, "ENV_NAME": "CartPole-v1", "LEARNING_STARTS": 0, "GAMMA": 0.99}
  )
  keys = jax.random.split(jax.random.PRNGKey(0), seeds)
  train, keys = (jax.vmap(train), keys) if seeds > 1 else (train, keys[0])
  program = jax.jit(train).lower(keys).compile()
  jax.block_until_ready(program(keys))
  return bench.rate(steps * seeds, lambda: jax.block_until_ready(program(keys)))


def envpool(games: int, steps: int) -> dict[str, float]:
  """EnvPool's Pong with the wrappers of ours, on at most two threads."""
  import envpool as envpool_lib

  game = {"stack_num": 1, "noop_max": 30, "use_fire_reset": False}
  game |= {
    "reward_clip": False,
    "episodic_life": False,
    "repeat_action_probability": 0.0,
  }
  threads = {"num_envs": games, "num_threads": min(games, 2)}
  env = envpool_lib.make("Pong-v5", env_type="gymnasium", **threads, **game)
  env.reset()
  return ours.step_at_random(env.step, games, steps, env.action_space.n)


def rlexplore(
  bonus: str, num_envs: int, steps: int, settings: dict[str, Any]
) -> dict[str, float]:
  """RLeXplore's bonus, computed after each rollout, as in its example with PPO."""
  for package in ("", ".common", ".common.prototype", ".xplore", ".xplore.reward"):
    name = f"rllte{package}"
    sys.modules[name] = module = types.ModuleType(name)  # Without what it imports.
    module.__path__ = [str(bench.existing(_RLEXPLORE.joinpath(*name.split("."))))]
  prototype = importlib.import_module("rllte.common.prototype.base_reward")
  sys.modules["rllte.common.prototype"].BaseReward = prototype.BaseReward
  rewards = importlib.import_module(f"rllte.xplore.reward.{bonus.lower()}")
  import torch

  envs = ours.grids(num_envs)
  made = getattr(rewards, bonus)(envs, obs_norm_type="none", **settings)
  latest = torch.as_tensor(envs.reset())
  names = ("observations", "actions", "rewards")
  names += ("terminateds", "truncateds", "next_observations")
  rows: list[dict[str, Any]] = []

  def step(actions: Any) -> None:
    nonlocal latest
    reached, reward, done, _ = envs.step(actions)
    values = (latest, actions[:, None], reward, done, done, reached)
    pairs = zip(names, values, strict=True)
    row = {name: torch.as_tensor(x, dtype=torch.float32) for name, x in pairs}
    made.watch(**row)
    rows.append(row)
    latest = row["next_observations"]
    if len(rows) == 128:
      made.compute({name: torch.stack([x[name] for x in rows]) for name in names})
      rows.clear()

  return ours.step_at_random(step, num_envs, steps, envs.action_space.n, warm_up=128)
