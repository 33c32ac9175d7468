"""The DQNs of Stable-Baselines3 and CleanRL on CartPole, with their own settings.

  .venv-peers/bin/python benchmarks/expected_peers.py

prints a run of each seed as JSON, with the fields of the runs of
`papers/learning/runs.py`. The head of `peers.py` says how to set up `.venv-peers`.
"""

import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

STEPS = 50_000
EPISODES = 5  # Of an evaluation, as in `papers/learning/runs.py`.
_CLEANRL = pathlib.Path(__file__).parents[1] / ".venv-peers" / "cleanrl"
# hyperparams/dqn.yml of rl-baselines3-zoo, CartPole-v1.
SETTINGS = {
  "learning_rate": 2.3e-3,
  "batch_size": 64,
  "buffer_size": 100_000,
  "learning_starts": 1000,
  "gamma": 0.99,
  "target_update_interval": 10,
  "train_freq": 256,
  "gradient_steps": 128,
  "exploration_fraction": 0.16,
  "exploration_final_eps": 0.04,
  "policy_kwargs": {"net_arch": [256, 256]},
}


def run_sb3(seed: int, steps: int, num_evaluations: int = 10) -> dict[str, Any]:
  """Trains with one thread, with evaluations like those of `papers/learning`."""
  try:
    import stable_baselines3
    import torch
  except ImportError as error:
    raise SystemExit(
      f"{error.name} is not installed; run this script in .venv-peers, which the "
      "head of benchmarks/peers.py sets up."
    ) from error
  from stable_baselines3.common import callbacks, evaluation

  torch.set_num_threads(1)
  began = time.process_time()
  evaluations = []

  class Evaluate(callbacks.BaseCallback):
    """Evaluates now and then."""

    def _on_step(self) -> bool:
      if self.num_timesteps % (steps // num_evaluations) == 0:
        mean, _ = evaluation.evaluate_policy(self.model, test_env, EPISODES)
        evaluations.append((self.num_timesteps, float(mean)))
      return True

  model = stable_baselines3.DQN(
    "MlpPolicy", "CartPole-v1", seed=seed, device="cpu", **SETTINGS
  )
  test_env = stable_baselines3.common.env_util.make_vec_env(
    "CartPole-v1", seed=seed + 1000
  )
  model.learn(steps, callback=Evaluate())
  return {
    **_row(f"Stable-Baselines3 {stable_baselines3.__version__}, DQN", seed),
    "env_steps": model.num_timesteps,
    "learner_updates": model._n_updates,
    "cpu_seconds": round(time.process_time() - began, 1),
    "evaluations": evaluations,
  }


def run_cleanrl(seed: int, steps: int) -> dict[str, Any]:
  """Trains with CleanRL's script and one thread; evaluates its last greedy policy."""
  import gymnasium
  import torch

  script = _CLEANRL / "cleanrl" / "dqn.py"
  if not script.exists():
    raise SystemExit(
      f"there is no {script}; the head of benchmarks/peers.py sets it up."
    )
  began = _cpu_seconds_of_children()
  with tempfile.TemporaryDirectory() as folder:
    # The script ends with an evaluation of its own, which fails without moviepy.
    flags = [f"--total-timesteps={steps}", f"--seed={seed}", "--save-model"]
    finished = subprocess.run(
      [sys.executable, script, *flags],
      cwd=folder,
      env={**os.environ, "PYTHONPATH": str(_CLEANRL), "OMP_NUM_THREADS": "1"},
      capture_output=True,
      text=True,
      check=False,
    )
    saved = [*pathlib.Path(folder).glob("runs/*/*.cleanrl_model")]
    if not saved:
      raise SystemExit(f"{script} saved no network; it ended with:\n{finished.stderr}")
    weights = torch.load(saved[0])
  seconds = _cpu_seconds_of_children() - began
  layers = []
  for index in (0, 2, 4):
    out, size = weights[f"network.{index}.weight"].shape
    layers += [torch.nn.Linear(size, out), torch.nn.ReLU()]
  network = torch.nn.Sequential(*layers[:-1])
  network.load_state_dict(
    {name.removeprefix("network."): value for name, value in weights.items()}
  )
  env = gymnasium.make("CartPole-v1")
  returns = []
  for episode in range(EPISODES):
    observation, _ = env.reset(seed=None if episode else seed + 1000)
    total, ended = 0.0, False
    while not ended:
      action = int(network(torch.as_tensor(observation)).argmax())
      observation, reward, terminated, truncated, _ = env.step(action)
      total, ended = total + float(reward), terminated or truncated
    returns.append(total)
  return {
    **_row("CleanRL, dqn.py", seed),
    "env_steps": steps,
    "cpu_seconds": round(seconds, 1),
    "evaluations": [(steps, statistics.fmean(returns))],
  }


def _cpu_seconds_of_children() -> float:
  used = resource.getrusage(resource.RUSAGE_CHILDREN)
  return used.ru_utime + used.ru_stime


def _row(label: str, seed: int) -> dict[str, Any]:
  env = "gym:CartPole-v1"
  head = ["git", "-C", os.path.dirname(__file__) or ".", "rev-parse", "--short", "HEAD"]
  return {
    "experiment": "cartpole",
    "label": label,
    "env": env,
    "seed": seed,
    "command": "python benchmarks/expected_peers.py",
    "commit": subprocess.check_output(head, text=True).strip(),
    "versions": "benchmarks/peers.txt",
  }


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--seeds", type=int, default=5)
  parser.add_argument("--steps", type=int, default=STEPS)
  args = parser.parse_args()
  for seed in range(args.seeds):
    print(json.dumps(run_sb3(seed, args.steps)), flush=True)
    print(json.dumps(run_cleanrl(seed, args.steps)), flush=True)
