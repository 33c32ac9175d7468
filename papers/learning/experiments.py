"""The experiments: which agents are compared where, and for how long."""

from collections.abc import Sequence
from typing import NamedTuple


class Experiment(NamedTuple):
  """Agents compared in environments.

  Attributes:
    envs: the environments' names.
    agents: label → (preset, settings for `--set` that differ from the preset).
    seeds: the number of seeds.
    first_seed: the first of them.
    episodes: the number of episodes of a run that is to solve the environment; None
      for a run of `steps` steps.
    steps: environment steps of training; None if `episodes` is given.
    eval_every: environment steps between two evaluations of the greedy policy; None
      for no evaluation: what is found in training counts.
    eval_episodes: episodes of each.
  """

  envs: tuple[str, ...]
  agents: dict[str, tuple[str, tuple[str, ...]]]
  seeds: int
  episodes: int | None = None
  steps: int | None = None
  eval_every: int | None = None
  eval_episodes: int = 100
  first_seed: int = 0


# Double DQN's settings for few frames of Atari: the network of data-efficient Rainbow
# (van Hasselt et al., 2019), and what paper 3's table does in millions of steps is done
# in ten thousands.
_FEW_FRAMES = (
  "torso=data_efficient",
  "hidden_sizes=256",
  "random_steps=0",
  "min_replay_size=10_000",
  "replay_capacity=100_000",
  "learning_rate=1e-4",
  "adam_b2=0.999",
  "target_update_period=500",
  "n_step=3",
)
# An update in each step, returns of ten steps, and Rainbow's replay and duelling heads.
_MANY_UPDATES = (
  "torso=data_efficient",
  "hidden_sizes=()",
  "head_size=256",
  "duelling=True",
  "random_steps=0",
  "min_replay_size=2_000",
  "replay_capacity=100_000",
  "priority_exponent=0.5",
  "importance_exponent=0.4",
  "learning_rate=1e-4",
  "adam_b2=0.999",
  "optimizer_eps=1e-8",
  "max_gradient_norm=10.0",
  "target_update_period=1000",
  "n_step=10",
  "updates_per_step=1.0",
  "exploration=EpsilonGreedy(Linear(1.0, 0.02, steps=20_000))",
)
# It would learn later.
_ACTING = ("random_steps=0", "min_replay_size=100_000", "replay_capacity=100_000")
# An epinet whose index is followed for an episode.
_EPINET = (
  "index_dim=8",
  "num_members=8",
  "head_size=0",
  "duelling=False",
  "prior_scale=1.0",
  "exploration=EpsilonGreedy(0.1, of=Thompson())",
)
_OF_MEMBERS = (
  "bootstrapped_r2d2",
  "bootstrapped_r2d2_peng",
  "tdu_r2d2",
  "tdu_r2d2_l",
  "tdu_r2d2_no_prior",
  "tdu_r2d2_no_prior_l",
)


def _decreasing(rule: str) -> str:
  """A setting: the rule with an ε that decreases from 1 to 0.01 in 100,000 steps."""
  return f"exploration={rule}(Linear(1.0, 0.01, steps=100_000))"


def _presets(*names: str) -> dict[str, tuple[str, tuple[str, ...]]]:
  return {name: (name, ()) for name in names}


def _on_gym(name: str, agents: Sequence[str], steps: int, seeds: int = 5) -> Experiment:
  """Ten evaluations of 5 episodes; seeds 0 and 1 had a part in the settings."""
  return Experiment(
    (f"gym:{name}",),
    _presets(*agents),
    seeds=seeds,
    first_seed=2,
    steps=steps,
    eval_every=steps // 10,
    eval_episodes=5,
  )


# bsuite:deep_sea/0 has N = 10.
EXPERIMENTS = {
  "distinct_priors": Experiment(
    ("bsuite:deep_sea/0",),
    {
      "tdu": ("tdu", ()),
      "tdu, distinct target priors": ("tdu", ("target_prior=distinct",)),
    },
    seeds=5,
    episodes=2000,
  ),
  "memory": Experiment(
    ("bsuite:memory_len/9",),
    _presets(
      "dqn",
      "r2d2",
      "r2d2_retrace",
      "r2d2_peng",
      "r2d2_tree_backup",
      "r2d2_harutyunyan",
      "r2d2_sarsa_lambda",
      *_OF_MEMBERS,
    ),
    seeds=3,
    steps=11_000,
    eval_every=2_200,
  ),
  # Parts of DQN with an LSTM.
  "recurrent_heads": Experiment(
    ("bsuite:memory_len/9",),
    {
      "r2d2, noisy heads": ("r2d2", ("noisy_sigma=0.5", "exploration=Greedy()")),
      "r2d2, distributional": (
        "r2d2",
        ("target=CategoricalDoubleQ(51, 2.0)", "transform_eps=None", "n_step=5"),
      ),
      "r2d2, epinet": ("r2d2", _EPINET),
    },
    seeds=3,
    steps=11_000,
    eval_every=2_200,
  ),
  # Exploration of ensembles on sequences, with Retrace.
  "recurrent_retrace": Experiment(
    ("bsuite:deep_sea/0",),
    {
      "r2d2_retrace": ("r2d2_retrace", ()),
      "r2d2_retrace, epinet": ("r2d2_retrace", _EPINET),
      "tdu_r2d2_l, Retrace": ("tdu_r2d2_l", ("target=Retrace(0.95)",)),
      "bootstrapped_r2d2_peng, Retrace, UCB": (
        "bootstrapped_r2d2_peng",
        ("target=Retrace(0.95)", "exploration=EpsilonGreedy(0.1, of=Ucb(1.0))"),
      ),
    },
    seeds=3,
    episodes=2000,
  ),
  # Never Give Up without an LSTM.
  "rooms": Experiment(
    ("jax:gridworld/30,time_limit=150",),
    {
      **_presets("double_dqn", "ngu_dqn"),
      "ngu_dqn, one policy": ("ngu_dqn", ("num_policies=1",)),
    },
    seeds=10,
    steps=20_000,
    eval_every=5_000,
  ),
  "sparse": Experiment(
    ("jax:gridworld/30,time_limit=150",),
    _presets("r2d2_ez", "r2d2", "r2d2_sarsa_lambda", "r2d2_sarsa_lambda_rnd"),
    seeds=10,
    steps=20_000,
    eval_every=5_000,
  ),
  "recurrent": Experiment(
    ("bsuite:deep_sea/0",),
    _presets("r2d2", "r2d2_peng", *_OF_MEMBERS),
    seeds=3,
    episodes=2000,
  ),
  "breakout": Experiment(
    ("jax:breakout",),
    _presets("double_dqn", "rainbow", "rainbow_epsilon", "rainbow_ez", "rainbow_cts"),
    seeds=3,
    steps=20_000,
    eval_every=5_000,
    eval_episodes=20,
  ),
  "pong": Experiment(
    ("atari:Pong",),
    {"double_dqn": ("double_dqn", _MANY_UPDATES)},
    seeds=1,
    steps=400_000,
    eval_every=25_000,
    eval_episodes=3,
  ),
  "freeway": Experiment(
    ("atari:Freeway",),
    {
      label: ("double_dqn", (*_FEW_FRAMES, _decreasing(rule)))
      for label, rule in (("ε-greedy", "EpsilonGreedy"), ("εz-greedy", "EzGreedy"))
    },
    seeds=3,
    steps=150_000,
    eval_every=15_000,
    eval_episodes=3,
  ),
  "montezuma": Experiment(
    ("atari:MontezumaRevenge/ngu,max_frames=18_000",),
    {
      "random actions": ("double_dqn", (*_ACTING, "exploration=EpsilonGreedy(1.0)")),
      "random actions, repeated": (
        "double_dqn",
        (*_ACTING, "exploration=EzGreedy(1.0)"),
      ),
      # β: Bellemare et al. (2016).
      "counts": (
        "double_dqn",
        (
          *_FEW_FRAMES,
          "exploration=EpsilonGreedy(Linear(1.0, 0.05, steps=10_000))",
          "bonus=PseudoCounts()",
          "beta=0.05",
        ),
      ),
      # Only the policy of the greatest β explores: there is one.
      "ngu": (
        "ngu",
        (
          "torso=data_efficient",
          "hidden_sizes=256",
          "lstm_size=256",
          "head_size=256",
          "num_policies=1",
          "discount=0.99",
          "exploration=EpsilonGreedy(0.05)",
          "replay_capacity=60_000",
          "min_replay_size=2_000",
          "batch_size=8",
          "sequence_length=40",
          "sequence_period=40",
        ),
      ),
    },
    seeds=3,
    steps=50_000,
  ),
  "cartpole": _on_gym(
    "CartPole-v1",
    ("double_dqn", "rainbow", "tdu", "bootstrapped_dqn", "r2d2"),
    steps=50_000,
  ),
  "mountain_car": _on_gym("MountainCar-v0", ("dqn_ez", "dqn"), steps=50_000),
  "acrobot": _on_gym("Acrobot-v1", ("double_dqn",), steps=50_000),
  "lunar_lander": _on_gym("LunarLander-v3", ("double_dqn",), steps=100_000, seeds=10),
}
