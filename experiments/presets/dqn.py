"""DQN and its direct descendants, on which the papers' agents build."""

import dataclasses
from collections.abc import Callable
from typing import Any

from explorax import exploration
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.targets import categorical, one_step
from explorax.experiments.presets import types

BSUITE = "Osband et al., 2020 (bsuite's baseline)"
PAPER_3 = "Chen et al., 2017"
PAPER_4 = "Flennerhag et al., 2020"

# What replaces bsuite's settings on other environments, whose returns may be in the
# hundreds. From rl-baselines3-zoo's tuned DQN for CartPole-v1 (hyperparams/dqn.yml): ε,
# the first learning rate, the first update, the batch and the updates per step. From
# our sweep on CartPole (seeds 100 to 103): the returns of 10 steps, the decrease of the
# learning rate, the target network's period, and layers of 64 units. In the sweep,
# values with the zoo's Huber loss diverged, and a replay of 50,000 steps was worse than
# bsuite's of 10,000.
GYM_EPSILON = exploration.Linear(1.0, 0.04, steps=8_000)
_GYM: dict[str, Any] = {
  "learning_rate": exploration.Linear(2.3e-3, 1e-4, steps=15_000),
  "target_update_period": 50,
  "min_replay_size": 1_000,
  "batch_size": 64,
  "updates_per_step": 0.5,
}
# The span of CleanRL's C51 on CartPole (cleanrl/c51.py, with 101 atoms).
_GYM_SPAN = 100.0


def with_gym_epsilon(rule: Any) -> Any:
  """The rule with the ε of `gym:` environments, if it has an ε."""
  if not hasattr(rule, "epsilon"):
    return rule
  return dataclasses.replace(rule, epsilon=GYM_EPSILON)


def _on_gym(config: q_config.QConfig) -> q_config.QConfig:
  """The settings of a small problem's agent on `gym:` environments."""
  target = config.target
  if isinstance(target, categorical.CategoricalDoubleQ):
    target = dataclasses.replace(target, max_abs_value=_GYM_SPAN)
  return dataclasses.replace(
    config,
    hidden_sizes=(64,) * len(config.hidden_sizes),
    exploration=with_gym_epsilon(config.exploration),
    target=target,
    n_step=10,
    max_abs_reward=None,
    **_GYM,
  )


def preset(
  name: str,
  summary: str,
  paper: str,
  settings: types.Pair,
  *,
  atari_profile: str = "dqn",
  on_gym: Callable[[q_config.QConfig], q_config.QConfig] = _on_gym,
  maze: q_config.QConfig | None = None,
) -> types.Preset:
  """A preset of the engine in `agents/q`.

  Args:
    name, summary, paper, atari_profile: of the preset.
    settings: for small problems and Atari.
    on_gym: the settings for small problems → those for `gym:` environments.
    maze: for the disco maze, if they differ from those of small problems.
  """
  on = {"gym:": on_gym(settings.small), "atari:": settings.atari}
  if maze is not None:
    on["jax:disco_maze/"] = maze
  make = q_agent.make_agent
  return types.Preset(name, summary, paper, settings.small, make, on, atari_profile)


# The defaults are bsuite's bootstrapped DQN with one member. Paper 4's agents and
# baselines share its settings (appendices C and D have one table of them), and so do
# the agents that are compared with ensembles here.
SMALL = q_config.QConfig()
# bsuite's own DQN has other ones (bsuite/baselines/jax/dqn/agent.py, `default_agent`).
BSUITE_DQN = dataclasses.replace(
  SMALL, hidden_sizes=(64, 64), batch_size=32, min_replay_size=100
)

# Paper 3, Table 1, on Atari, whose schedules count actions: learning starts at action
# 50 000, with an update every fourth action, so that the learning rate decreases from
# action 10⁶ to action 5 · 10⁶. Rewards and TD errors are clipped as in DQN (Mnih et
# al., 2015).
DOUBLE_ATARI = q_config.QConfig(
  hidden_sizes=(512,),
  exploration=exploration.EpsilonGreedy(
    exploration.Piecewise(values=(1.0, 0.1, 0.01), steps=(1_000_000, 5_000_000))
  ),
  random_steps=50_000,
  target=one_step.DoubleQ(),
  max_abs_reward=1.0,
  max_abs_td=1.0,
  learning_rate=exploration.Linear(1e-4, 5e-5, steps=1_000_000, begin=237_500),
  adam_b2=0.99,
  optimizer_eps=1e-4,
  target_update_period=10_000,
  replay_capacity=1_000_000,
  min_replay_size=50_000,
  batch_size=32,
  updates_per_step=0.25,
)
ATARI = dataclasses.replace(DOUBLE_ATARI, target=one_step.QLearning())
DOUBLE = types.Pair(dataclasses.replace(SMALL, target=one_step.DoubleQ()), DOUBLE_ATARI)
# Ten heads of 512 hidden units each on shared convolutions, as in Osband et al. (2016),
# whose network paper 3 uses. The losses of the heads are summed (section 2.4).
ENSEMBLE_ATARI = dataclasses.replace(
  DOUBLE_ATARI,
  num_members=10,
  hidden_sizes=(),
  head_size=512,
  shared_torso=True,
  sum_over_members=True,
)

PLAIN = types.Pair(SMALL, ATARI)
# Paper 4 (Flennerhag et al., 2020), appendix D, which is its TDU with β = 0: twenty
# members, priors of scale 3 (5 in bsuite's own agent). On Atari they are heads of paper
# 3's network.
BOOTSTRAPPED = types.Pair(SMALL, ENSEMBLE_ATARI).replace(
  num_members=20, prior_scale=3.0, exploration=exploration.Thompson()
)

# Fortunato et al. (2018), section 3.2; σ_0 is no worse than those of paper 4's Table 3
# in our tuning (docs/bsuite).
NOISY = PLAIN.replace(
  noisy_sigma=0.5, noisy_torso=True, exploration=exploration.Greedy()
)
# "Approximate Thompson Sampling via Epistemic Neural Networks", and the public code of
# its bsuite agent: twenty samples of the index for each batch.
EPINET = PLAIN.replace(
  num_members=20,
  index_dim=2,
  prior_scale=1.0,
  max_abs_reward=1.0,
  exploration=exploration.Thompson(),
)

PRESETS = (
  preset("dqn", "DQN with ε-greedy exploration", BSUITE, types.Pair(BSUITE_DQN, ATARI)),
  preset(
    "double_dqn",
    "double DQN with ε-greedy exploration",
    "van Hasselt et al., 2016",
    DOUBLE,
  ),
  preset(
    "noisy_dqn",
    "DQN with factorised noise in all its linear layers",
    "Fortunato et al., 2018",
    NOISY,
  ),
  preset(
    "bootstrapped_dqn",
    "an ensemble with random priors, one member followed per episode",
    "Osband et al., 2018",
    BOOTSTRAPPED,
  ),
  preset(
    "epinet",
    "a network with a random index, one value of it followed per episode",
    "Osband et al., 2023",
    EPINET,
  ),
)
