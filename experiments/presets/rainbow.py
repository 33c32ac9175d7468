"""Rainbow (Hessel et al., 2018)."""

import dataclasses
import functools

from explorax import exploration
from explorax.agents.q import config as q_config
from explorax.agents.targets import categorical
from explorax.experiments.presets import dqn, types

# Rainbow's parts with bsuite's settings for small problems. Atoms within ±10 suit
# returns of that size.
SMALL = q_config.QConfig(
  hidden_sizes=(50,),
  head_size=50,
  duelling=True,
  noisy_sigma=0.5,
  exploration=exploration.Greedy(),
  target=categorical.CategoricalDoubleQ(num_atoms=51, max_abs_value=10.0),
  n_step=3,
  priority_exponent=0.5,
  importance_exponent=0.4,
)
# Table 1, converted to actions of four frames and to updates (one per four actions);
# the importance exponent rises over 200 million frames.
ATARI = dataclasses.replace(
  SMALL,
  hidden_sizes=(),
  head_size=512,
  evaluation_epsilon=0.001,  # Paper 1, appendix C.
  max_abs_reward=1.0,
  learning_rate=6.25e-5,
  optimizer_eps=1.5e-4,
  target_update_period=2_000,
  replay_capacity=1_000_000,
  min_replay_size=20_000,
  batch_size=32,
  updates_per_step=0.25,
  importance_exponent=exploration.Linear(0.4, 1.0, steps=12_495_000),
)

# In training, the loss of a life is terminal (table 3).
preset = functools.partial(dqn.preset, atari_profile="dqn,life_loss=true")

RAINBOW = types.Pair(SMALL, ATARI)
PRESETS = (
  preset(
    "rainbow",
    "double, duelling, distributional, noisy, prioritised, 3-step DQN",
    "Hessel et al., 2018",
    RAINBOW,
  ),
)
