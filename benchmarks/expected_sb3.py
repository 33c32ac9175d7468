"""Stable-Baselines3's DQN on CartPole, with rl-baselines3-zoo's tuned settings.

  .venv-peers/bin/python benchmarks/expected_sb3.py

prints a run of each seed as JSON, with the fields of the runs of `learning.py`. The
head of `peers.py` says how to set up `.venv-peers`.
"""

import argparse
import json
import time
from typing import Any

# hyperparams/dqn.yml of rl-baselines3-zoo, CartPole-v1.
STEPS = 50_000
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


def run(
  seed: int, steps: int, num_evaluations: int = 10, episodes: int = 5
) -> dict[str, Any]:
  """Trains with one thread; evaluates the greedy policy as `learning.py` does."""
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
        mean, _ = evaluation.evaluate_policy(self.model, test_env, episodes)
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
    "experiment": "cartpole",
    "label": f"Stable-Baselines3 {stable_baselines3.__version__}, DQN",
    "env": "gym:CartPole-v1",
    "seed": seed,
    "env_steps": model.num_timesteps,
    "learner_updates": model._n_updates,
    "cpu_seconds": round(time.process_time() - began, 1),
    "metric": "return",
    "evaluations": evaluations,
  }


if __name__ == "__main__":
  parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
  parser.add_argument("--seeds", type=int, default=3)
  parser.add_argument("--steps", type=int, default=STEPS)
  args = parser.parse_args()
  for seed in range(args.seeds):
    print(json.dumps(run(seed, args.steps)), flush=True)
