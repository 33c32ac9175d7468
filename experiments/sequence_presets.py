"""The agents of the sequence engine: R2D2 and its variants, Never Give Up, paper 5's.

Each has settings for small problems, which are ours, and those of its paper for Atari,
where one process acts and learns: 16 environment steps an update, where the papers'
hundreds of actors made thousands.
"""

import dataclasses
from typing import Any, NamedTuple

from explorax import exploration
from explorax.agents import bonuses
from explorax.agents.ngu import novelty
from explorax.agents.r2d2 import config as r2d2_config

_R2D2_PAPER = "Kapturowski et al., 2019"
_PAPER_1 = "Dabney et al., 2021"
_PAPER_2 = "Badia et al., 2020"
_PAPER_4 = "Flennerhag et al., 2020"
_PAPER_5 = "Munos et al., 2016"


class Row(NamedTuple):
  """What a preset is made of; see `presets.Preset`."""

  name: str
  summary: str
  paper: str
  config: Any
  special: tuple[tuple[str, Any], ...]
  atari_profile: str


# Small problems: ours, with R2D2's loss and return.
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
_R2D2 = r2d2_config.R2D2Config()
# Paper 2, table 6.
_PAPER_2_ATARI = dataclasses.replace(
  _R2D2,
  target="retrace",
  lambda_=0.95,
  target_epsilon=0.01,
  evaluation_epsilon=0.01,
  optimizer_eps=1e-4,
  target_update_period=1500,
  burn_in=0,
  replay_capacity=5_000_000,
  min_replay_size=250_000,  # 6250 sequences, one every 40 steps.
  actor_update_period=100,
)
# Paper 1, appendix C and table 3: expected SARSA(λ). The policy of its expectation is
# not printed: greedy but for 0.01 is taken.
_PAPER_1_ATARI = dataclasses.replace(
  _R2D2,
  target="expected_sarsa_lambda",
  lambda_=0.7,
  target_epsilon=0.01,
  learning_rate=2e-4,
  target_update_period=400,
)
# Paper 4, appendix E, which does not print its λ: paper 1's is taken.
_PAPER_4_ATARI = dataclasses.replace(
  _R2D2, target="peng_q_lambda", lambda_=0.7, evaluation_epsilon=0.001
)
_NUM_HEADS = 8  # Paper 1's; paper 4 does not print how many exploiters it has.


# A preset's settings for small problems, for others by the prefix of their names, and
# how it sees Atari.
_Settings = tuple[Any, tuple[tuple[str, Any], ...], str]


def _and_atari(
  small: Any, atari: Any, *others: tuple[str, Any], profile: str = "ngu"
) -> _Settings:
  return small, (("atari:", atari), *others), profile


def _both(
  small: dict[str, Any], atari: Any, profile: str = "ngu", **changes: Any
) -> _Settings:
  """SMALL and `atari`, the one changed by `small` and both by `changes`."""
  return _and_atari(
    dataclasses.replace(SMALL, **{**small, **changes}),
    dataclasses.replace(atari, **changes),
    profile=profile,
  )


def _retrace(target: str, lambda_: float) -> _Settings:
  """R2D2 with one of paper 5's targets, as paper 2 has it."""
  small: dict[str, Any] = {"target_epsilon": 0.01}
  return _both(small, _PAPER_2_ATARI, target=target, lambda_=lambda_)


_SARSA: dict[str, Any] = {
  "target": "expected_sarsa_lambda",
  "lambda_": 0.7,
  "target_epsilon": 0.01,
}
_PENG: dict[str, Any] = {"target": "peng_q_lambda", "lambda_": 0.7}
_HEADS_EVERY_100 = exploration.Thompson(period_steps=100, epsilon=0.4, ladder=7.0)
_TDU: dict[str, Any] = {
  "num_members": _NUM_HEADS,
  "mask_prob": 0.5,
  "exploration": _HEADS_EVERY_100,
  "bonus": bonuses.TDUncertainty(),
  "beta": 1.0,
}

# Paper 5's agents have no memory, and DQN's network. The policy of its targets is the
# one that explores. Its sixteen threads with replays of their own and shared RMSProp
# are one actor, one replay and one optimiser here.
_NO_MEMORY: dict[str, Any] = {
  "lstm_size": 0,
  "head_size": 0,
  "sequence_length": 16,
  "sequence_period": 16,
  "burn_in": 0,
  "transform_eps": None,
  "double": False,
  "priority_exponent": 0.0,
  "importance_exponent": 0.0,
  "max_abs_reward": 1.0,
  "max_abs_td": 1.0,
  "mean_over_time": True,
  "lambda_": 1.0,
}
_PAPER_5_PROFILE = "dqn,life_loss=true"
_PAPER_5_SMALL = dataclasses.replace(
  SMALL,
  **_NO_MEMORY,
  batch_size=8,
  exploration=exploration.EpsilonGreedy(epsilon=0.1),
)
_PAPER_5_ATARI = dataclasses.replace(
  _R2D2,
  **_NO_MEMORY,
  exploration=exploration.AlternatingEpsilonGreedy(),
  evaluation_epsilon=0.001,
  discount=0.99,
  optimizer="rmsprop",
  learning_rate=9.12e-5,
  learning_rate_steps=4_687_500,  # Updates in 3 · 10⁸ frames.
  optimizer_eps=3.68e-5,
  max_gradient_norm=None,
  batch_size=4,
  replay_capacity=1_000_000,  # Sixteen times 62 500.
  min_replay_size=50_000,
  updates_per_step=1 / 16,
  target_update_period=2500,
  actor_update_period=4,
)
# The control: one-step Q-learning on minibatches of 64 transitions. What is "clamped
# into [−1, 1] prior to gradient calculation" is read as the errors, as in DQN: with
# γ = 0.99, values that are clamped there could not tell one reward from two.
_CONTROL_ATARI = dataclasses.replace(
  _PAPER_5_ATARI,
  target="n_step",
  n_step=1,
  learning_rate=4.39e-5,
  optimizer_eps=1e-3,
)


def _paper_5(target: str, lambda_: float = 1.0) -> _Settings:
  both: dict[str, Any] = {"target": target, "lambda_": lambda_, "target_epsilon": None}
  return _and_atari(
    dataclasses.replace(_PAPER_5_SMALL, **both),
    dataclasses.replace(_PAPER_5_ATARI, **both),
    profile=_PAPER_5_PROFILE,
  )


# Paper 2, table 6; a mixture for one actor, which draws a policy for each episode.
_NGU_ATARI = dataclasses.replace(
  _PAPER_2_ATARI,
  bonus=novelty.NeverGiveUp(),
  beta=0.3,
  num_policies=32,
  min_discount=0.99,
)
_NGU_SMALL = dataclasses.replace(
  SMALL,
  target="retrace",
  target_epsilon=0.01,
  bonus=novelty.NeverGiveUp(
    hidden_sizes=(64,), memory_capacity=5000, embedding_learning_rate=1e-3
  ),
  beta=0.3,
  num_policies=8,
  min_discount=0.97,
)
# Paper 2 does not print how its baseline normalises: as the original does.
_RND = bonuses.RND(
  hidden_sizes=(64,), output_size=128, learning_rate=5e-4, normalisation="deviation"
)
_RND_ATARI = dataclasses.replace(_RND, hidden_sizes=())
# Paper 1 divides by the variance, and does not print its β: paper 2's is taken.
_RND_PAPER_1: dict[str, Any] = {"normalisation": "variance"}

# Paper 2, table 7, with the rest of table 6. The sizes of the LSTM and the heads, ε and
# how often one actor updates are ours. One policy alone: its γ is the exploring one's.
_MAZE = "jax:disco_maze/"
_ON_MAZE = dataclasses.replace(
  _PAPER_2_ATARI,
  torso="small",
  hidden_sizes=(),
  lstm_size=64,
  head_size=64,
  exploration=exploration.EpsilonGreedy(epsilon=0.05, ladder=7.0),
  evaluation_epsilon=0.0,
  bonus=novelty.NeverGiveUp(
    torso="small",
    memory_capacity=5000,
    kernel_epsilon=0.01,
    embedding_learning_rate=1e-3,
  ),
  beta=0.5,
  discount=0.99,
  lambda_=0.97,
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
_RND_MAZE = dataclasses.replace(_RND_ATARI, learning_rate=1e-3)

ROWS = (
  Row(
    "r2d2",
    "a recurrent DQN on prioritised sequences, with n-step returns",
    _R2D2_PAPER,
    *_and_atari(SMALL, _R2D2),
  ),
  Row(
    "r2d2_retrace",
    "R2D2 with Retrace(λ)",
    _PAPER_2,
    *_retrace("retrace", 0.95),
  ),
  Row(
    "r2d2_tree_backup",
    "R2D2 with tree-backup(λ)",
    _PAPER_5,
    *_retrace("tree_backup", 0.95),
  ),
  Row(
    "r2d2_harutyunyan",
    "R2D2 with Harutyunyan's Q(λ)",
    _PAPER_5,
    *_retrace("harutyunyan_q_lambda", 0.5),
  ),
  Row(
    "r2d2_sarsa_lambda",
    "R2D2 with expected SARSA(λ)",
    _PAPER_1,
    *_both(_SARSA, _PAPER_1_ATARI, "rgb"),
  ),
  Row(
    "r2d2_peng",
    "R2D2 with Peng's Q(λ)",
    _PAPER_4,
    *_both(_PENG, _PAPER_4_ATARI),
  ),
  Row(
    "r2d2_ez",
    "R2D2 with expected SARSA(λ) and temporally-extended ε-greedy exploration",
    _PAPER_1,
    *_and_atari(
      dataclasses.replace(
        SMALL, **_SARSA, exploration=exploration.EzGreedy(epsilon=0.1, ladder=7.0)
      ),
      dataclasses.replace(
        _PAPER_1_ATARI, exploration=exploration.EzGreedy(epsilon=0.4, ladder=7.0)
      ),
      profile="rgb",
    ),
  ),
  Row(
    "r2d2_rnd",
    "R2D2 with Retrace(λ) and random network distillation",
    _PAPER_2,
    *_and_atari(
      dataclasses.replace(
        SMALL, target="retrace", target_epsilon=0.01, bonus=_RND, beta=0.3
      ),
      dataclasses.replace(_PAPER_2_ATARI, bonus=_RND_ATARI, beta=0.3),
      (_MAZE, dataclasses.replace(_ON_MAZE, bonus=_RND_MAZE)),
    ),
  ),
  Row(
    "r2d2_sarsa_lambda_rnd",
    "R2D2 with expected SARSA(λ) and random network distillation",
    _PAPER_1,
    *_and_atari(
      dataclasses.replace(
        SMALL, **_SARSA, bonus=dataclasses.replace(_RND, **_RND_PAPER_1), beta=0.3
      ),
      dataclasses.replace(
        _PAPER_1_ATARI, bonus=dataclasses.replace(_RND_ATARI, **_RND_PAPER_1), beta=0.3
      ),
      profile="rgb",
    ),
  ),
  Row(
    "bootstrapped_r2d2",
    "R2D2 with eight heads, one followed per episode",
    _PAPER_1,
    *_both(
      _SARSA,
      _PAPER_1_ATARI,
      "rgb",
      num_members=_NUM_HEADS,
      mask_prob=0.5,
      mask_per_step=True,
      exploration=exploration.Thompson(epsilon=0.4, ladder=7.0),
      # A head drawn at each step is the average of the heads' ε-greedy policies.
      evaluation=exploration.Thompson(period_steps=1, epsilon=0.01),
    ),
  ),
  Row(
    "bootstrapped_r2d2_peng",
    "R2D2 with Peng's Q(λ), priors and eight heads, one followed for 100 steps",
    _PAPER_4 + ", appendix E",
    *_both(
      _PENG,
      _PAPER_4_ATARI,
      num_members=_NUM_HEADS,
      prior_scale=0.1,
      mask_prob=0.5,
      exploration=_HEADS_EVERY_100,
    ),
  ),
  Row(
    "tdu_r2d2",
    "R2D2 with priors, eight exploiters, and two explorers of their uncertainty",
    _PAPER_4 + ", appendix E",
    *_both(_PENG, _PAPER_4_ATARI, **_TDU, num_explorers=2, prior_scale=0.1),
  ),
  Row(
    "tdu_r2d2_no_prior",
    "R2D2 with eight exploiters, and five explorers of their uncertainty",
    _PAPER_4 + ", appendix E",
    *_both(_PENG, _PAPER_4_ATARI, **_TDU, num_explorers=5),
  ),
  Row(
    "ngu",
    "Never Give Up: a mixture of policies rewarded for episodic novelty",
    _PAPER_2,
    *_and_atari(_NGU_SMALL, _NGU_ATARI, (_MAZE, _ON_MAZE)),
  ),
  Row(
    "retrace_dqn",
    "DQN on sequences, with Retrace(λ)",
    _PAPER_5,
    *_paper_5("retrace"),
  ),
  Row(
    "tree_backup_dqn",
    "DQN on sequences, with tree-backup(λ)",
    _PAPER_5,
    *_paper_5("tree_backup"),
  ),
  Row(
    "harutyunyan_dqn",
    "DQN on sequences, with Harutyunyan's Q(λ)",
    _PAPER_5,
    *_paper_5("harutyunyan_q_lambda", 0.5),
  ),
  Row(
    "one_step_dqn",
    "paper 5's control: one-step Q-learning on the same sequences",
    _PAPER_5,
    *_and_atari(
      dataclasses.replace(_PAPER_5_SMALL, target="n_step", n_step=1),
      _CONTROL_ATARI,
      profile=_PAPER_5_PROFILE,
    ),
  ),
)
