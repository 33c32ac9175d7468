"""R2D2 (Kapturowski et al., 2019), on which the sequence agents build.

Each agent has our settings for small problems, and its paper's settings for Atari. One
process acts and learns, with 16 environment steps per update; the hundreds of actors in
the papers made thousands.
"""

import dataclasses
import functools
from typing import Any

from explorax import exploration
from explorax.agents.q import config as q_config
from explorax.agents.targets import greedy
from explorax.experiments.presets import dqn, types

# What replaces the settings of small problems on other environments; see `dqn._GYM`.
# Of 18 settings with an LSTM that we tried on CartPole (seed 100), the one with this
# learning rate was the only one whose evaluations stayed at 500 over the last third.
_GYM: dict[str, Any] = {
  "learning_rate": exploration.Linear(5e-4, 1e-4, steps=12_500),
  "replay_capacity": 50_000,
}


def _on_gym(config: q_config.QConfig) -> q_config.QConfig:
  """The settings of a small problem's agent on `gym:` environments."""
  target = config.target
  if isinstance(target, greedy.NStep) and target.n > 1:
    target = dataclasses.replace(target, n=10)
  rule = dqn.with_gym_epsilon(config.exploration)
  return dataclasses.replace(
    config, exploration=rule, target=target, max_abs_reward=None, **_GYM
  )


preset = functools.partial(dqn.preset, on_gym=_on_gym, atari_profile="ngu")

# R2D2's settings on Atari (table 2), with one actor; ours where it has none.
ATARI = q_config.QConfig(
  hidden_sizes=(512,),
  lstm_size=512,
  head_size=512,
  duelling=True,
  shared_torso=True,  # Of agents with heads (papers 1 and 4).
  prior_width=0.25,  # Ours; paper 4, appendix E.1, has "reduced widths".
  # ε of a single actor; with more, R2D2's ladder.
  exploration=exploration.EpsilonGreedy(epsilon=0.4, ladder=7.0),
  target=greedy.NStep(n=5),
  transform_eps=1e-3,
  discount=0.997,
  learning_rate=1e-4,
  optimizer_eps=1e-3,
  max_gradient_norm=40.0,  # Paper 2, table 6.
  target_update_period=2_500,
  sequence_length=80,
  burn_in=40,
  sequence_period=40,
  replay_capacity=4_000_000,
  min_replay_size=200_000,  # Ours.
  batch_size=64,
  updates_per_step=1 / 16,  # Ours.
  priority_exponent=0.9,
  priority_eta=0.9,
  importance_exponent=0.6,
  actor_update_period=400,
)
# Our settings for small problems, with R2D2's loss and return.
SMALL = dataclasses.replace(
  ATARI,
  hidden_sizes=(64,),
  lstm_size=64,
  head_size=64,
  exploration=exploration.EpsilonGreedy(epsilon=0.1, ladder=7.0),
  discount=0.99,
  learning_rate=1e-3,
  optimizer_eps=1e-4,
  target_update_period=100,
  sequence_length=20,
  burn_in=0,
  sequence_period=10,
  replay_capacity=100_000,
  min_replay_size=1_000,
  batch_size=32,
  updates_per_step=0.25,
  actor_update_period=1,
)

R2D2 = types.Pair(SMALL, ATARI)
PRESETS = (
  preset(
    "r2d2",
    "a recurrent DQN on prioritised sequences, with n-step returns",
    "Kapturowski et al., 2019",
    R2D2,
  ),
)
