"""R2D2 (Kapturowski et al., 2019), on which the sequence agents build.

Each agent has our settings for small problems, and its paper's settings for Atari. One
process acts and learns, with 16 environment steps per update; the hundreds of actors in
the papers made thousands.
"""

import functools

from explorax import exploration
from explorax.agents.r2d2 import agent as r2d2_agent
from explorax.agents.r2d2 import config as r2d2_config
from explorax.experiments.presets import types

preset = functools.partial(
  types.Preset, make_agent=r2d2_agent.make_agent, atari_profile="ngu"
)

# Our settings for small problems, with R2D2's loss and return.
SMALL = r2d2_config.R2D2Config(
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
ATARI = r2d2_config.R2D2Config()

PRESETS = (
  preset(
    name="r2d2",
    summary="a recurrent DQN on prioritised sequences, with n-step returns",
    paper="Kapturowski et al., 2019",
    config=SMALL,
    on={"atari:": ATARI},
  ),
)
