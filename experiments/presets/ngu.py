"""Paper 2: Never Give Up (Badia et al., 2020), and its baselines."""

import dataclasses

from explorax import exploration
from explorax.agents.bonuses import ngu, rnd
from explorax.agents.targets import off_policy
from explorax.experiments.presets import dqn, r2d2, types

_PAPER = "Badia et al., 2020"

# Table 6, here and in the following settings for Atari.
RETRACE = off_policy.Retrace(lambda_=0.95, epsilon=0.01)
SMALL = dataclasses.replace(r2d2.SMALL, target=RETRACE)
ATARI = dataclasses.replace(
  r2d2.ATARI,
  target=RETRACE,
  evaluation_epsilon=0.01,
  optimizer_eps=1e-4,
  target_update_period=1500,
  burn_in=0,
  replay_capacity=5_000_000,
  min_replay_size=250_000,  # 6250 sequences, one every 40 steps.
  actor_update_period=100,
)
# Table 6, "for all losses", and appendix A: the predictor learns from the last 5 frames
# of a sequence. The paper says neither how the baseline's error is normalised nor which
# observation it is of: we use the error of the next observation (Burda et al., 2018),
# divided by its running standard deviation, as that of α, since the start.
RND = rnd.RND(
  hidden_sizes=(64,),
  output_size=128,
  learning_rate=5e-4,
  optimizer_eps=1e-4,
  max_gradient_norm=40.0,
  normalisation="deviation",
  decay=None,
  end="destination",
  num_trained=5,
)
RND_ATARI = dataclasses.replace(RND, hidden_sizes=())

# The settings of table 7, and those of table 6 for the rest. Some are our own, because
# a run has only one process: an LSTM and heads of 64 units, batches of 16 sequences (64
# in table 6), a start of learning at step 2,000 (at 6250 sequences in table 6), and 4
# environment steps per update. ε is ours too, because the paper does not give it for
# the maze. The only policy has the γ of the paper's exploratory policy.
_MAZE = dataclasses.replace(
  ATARI,
  torso="small",
  hidden_sizes=(),
  lstm_size=64,
  head_size=64,
  exploration=exploration.EpsilonGreedy(epsilon=0.05, ladder=7.0),
  evaluation_epsilon=0.0,
  bonus=ngu.NeverGiveUp(
    torso="small",
    memory_capacity=5000,
    kernel_epsilon=0.01,
    embedding_learning_rate=1e-3,
  ),
  beta=0.5,
  discount=0.99,
  target=dataclasses.replace(RETRACE, lambda_=0.97),
  transform_eps=None,
  learning_rate=1e-3,
  target_update_period=100,
  sequence_length=50,
  sequence_period=50,
  replay_capacity=1_000_000,
  min_replay_size=2_000,
  batch_size=16,
  updates_per_step=0.25,
)

SETTINGS = types.Pair(SMALL, ATARI)
_RND = SETTINGS.replace(bonus=types.Pair(RND, RND_ATARI), beta=0.3)
_BONUS = types.Pair(
  ngu.NeverGiveUp(
    hidden_sizes=(64,), memory_capacity=5000, embedding_learning_rate=1e-3
  ),
  ngu.NeverGiveUp(),
)
# Table 6. The single actor draws a policy of the mixture for each episode.
_NGU = SETTINGS.replace(
  bonus=_BONUS,
  beta=0.3,
  num_policies=types.Pair(8, 32),
  min_discount=types.Pair(0.97, 0.99),
)
# Ours: the bonus and the mixture of `ngu` on a feed-forward DQN, whose values are not
# transformed and whose replay holds single transitions.
_DQN = dqn.DOUBLE.replace(
  hidden_sizes=types.Pair((64, 64), dqn.DOUBLE_ATARI.hidden_sizes),
  bonus=_BONUS,
  beta=0.3,
  num_policies=types.Pair(8, 32),
  min_discount=0.97,
)

PRESETS = (
  r2d2.preset("r2d2_retrace", "R2D2 with Retrace(λ)", _PAPER, SETTINGS),
  # Table 7's learning rate of 1e-3 is for "R2D2 and action prediction". RND keeps the
  # 5e-4 of table 6.
  r2d2.preset(
    "r2d2_rnd",
    "R2D2 with Retrace(λ) and random network distillation",
    _PAPER,
    _RND,
    maze=dataclasses.replace(_MAZE, bonus=RND_ATARI),
  ),
  r2d2.preset(
    "ngu",
    "Never Give Up: a mixture of policies rewarded for episodic novelty",
    _PAPER,
    _NGU,
    maze=_MAZE,
  ),
  dqn.preset(
    "ngu_dqn",
    "double DQN with the intrinsic reward and the mixture of Never Give Up",
    "ours, after " + _PAPER,
    _DQN,
  ),
)
