"""Settings of the engine, with their units and sources."""

import dataclasses
from typing import Annotated, Literal

import numpy as np

from explorax import exploration as exploration_lib
from explorax import networks, ranges
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.q import combinations
from explorax.agents.targets import one_step
from explorax.agents.targets import types as target_types
from explorax.exploration import schedules


@dataclasses.dataclass(frozen=True)
class QConfig(ranges.Checked):
  """An ensemble of action-value functions, learning from windows of steps.

  The defaults are bsuite's JAX bootstrapped DQN (Osband et al., 2020), on which paper 4
  builds, with one member and an ε-greedy policy: a plain DQN, whose windows are single
  transitions. R2D2's settings are in `presets/r2d2.py`. Sources are abbreviated: bsuite
  (its baselines' defaults), P1 (Dabney et al., 2021), P2 (Badia et al., 2020), P3 (Chen
  et al., 2017), P4 (Flennerhag et al., 2020), P5 (Munos et al., 2016), QEX (its
  baseline, Simmons-Edler et al., 2019), DQN (Mnih et al., 2015), Rainbow (Hessel et
  al., 2018), R2D2 (Kapturowski et al., 2019).
  """

  ## Network
  # Layers before the linear ones (`networks.make_torso`); auto: by the observations.
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  # Units of the linear layers (bsuite).
  hidden_sizes: tuple[ranges.PositiveInt, ...] = (50, 50)
  lstm_size: ranges.NonNegativeInt = 0  # Units (R2D2: 512); 0: a feed-forward network.
  # Hidden units of each head; 0: linear heads (P3, Rainbow, R2D2: 512).
  head_size: ranges.NonNegativeInt = 0
  # Whether a head has separate hidden units for the value and the advantages (Rainbow,
  # R2D2).
  duelling: bool = False
  # σ_0 of noisy heads; 0: without noise (Rainbow: 0.5).
  noisy_sigma: ranges.NonNegativeFloat = 0.0
  # β of white noise N(0, β) (P4, D.1); None: factorised noise (Rainbow).
  noise_variance: ranges.PositiveFloat | None = None
  # Whether the torso's linear layers are also noisy (Fortunato et al., 2018).
  noisy_torso: bool = False
  # D: members are samples of the index of one epinet (`networks.make_epinet`), and
  # explorers of another's; 0: they are an ensemble (Osband et al., 2023: 2).
  index_dim: ranges.NonNegativeInt = 0
  # Units of the epinet's hidden layers (enn_acme's bsuite agent).
  epinet_hidden_sizes: tuple[ranges.PositiveInt, ...] = (50,)

  ## Ensemble
  # K, members that learn from the extrinsic reward.
  num_members: ranges.PositiveInt = 1
  # N more members, which learn from r + β r_int (P4, alg. 2).
  num_explorers: ranges.NonNegativeInt = 0
  # Whether explorers also get r; otherwise they learn only from β r_int (QEX).
  explorers_see_reward: bool = True
  # Heads on one torso and LSTM (P1, P3, P4 with R2D2), or separate networks (bsuite).
  # Explorers' gradients reach a shared torso, and so affect the exploiters (as in P4's
  # Atari agent).
  shared_torso: bool = False
  # λ of Q_k = Q_θk + λ P_k; 0: no priors (P4, D.1).
  prior_scale: ranges.NonNegativeFloat = 0.0
  # Of the priors' layers, a share of the network's.
  prior_width: Annotated[float, ranges.Range(gt=0, le=1)] = 1.0
  # Whether the target network's priors are the online ones (bsuite's code) or drawn
  # separately (P4's text). Distinct priors contribute to every TD error.
  target_prior: Literal["shared", "distinct"] = "shared"
  # ρ: a member learns from a window (bsuite, P4) or a step (P1).
  mask_prob: Annotated[float, ranges.Range(gt=0, le=1)] = 1.0
  mask_per_step: bool = False  # Masks are drawn for each step (P1), not each window.

  ## Acting
  # The rule that chooses actions in training (bsuite's DQN).
  exploration: exploration_lib.Rule = dataclasses.field(
    default_factory=lambda: exploration_lib.EpsilonGreedy(epsilon=0.05)
  )
  # Number of first environment steps with uniform actions (P3).
  random_steps: ranges.NonNegativeInt = 0
  # The rule of evaluations; None: greedy on the exploiters' mean.
  evaluation: exploration_lib.Rule | None = None
  # ε of the greedy rule in evaluations (P1: 0.001).
  evaluation_epsilon: ranges.Probability = 0.0

  ## Bonus, and mixture of policies (P2)
  bonus: bonus_types.Bonus | None = None  # The intrinsic reward r_int.
  # β in r + β r_int (`bonuses.scaling`); in a mixture, the greatest one. A schedule's
  # time is in learner updates.
  beta: schedules.NonNegative = 0.0
  num_policies: ranges.PositiveInt = 1  # N policies, with a β and a γ each.
  # Share of a batch relabelled with another policy.
  cross_mixture_ratio: ranges.Probability = 0.0
  # The policy of a mixture that is evaluated: 0 has β_0 = 0, as in P2's tables; −1 is
  # the most exploratory, β_{N−1} (P2, figures 6 and 14).
  evaluation_policy: int = 0

  ## Learning
  # Q-learning (bsuite, whose settings P4's experiments use), double Q-learning (P3, and
  # P4's section 4), distributional (Rainbow), or any other target.
  target: target_types.Target = dataclasses.field(default_factory=one_step.QLearning)
  discount: ranges.Probability = 0.99  # γ (bsuite); in a mixture, the greatest one.
  # γ of a mixture's last policy; None: `discount`.
  min_discount: ranges.BelowOne | None = None
  # ε of the value transformation h (R2D2: 1e-3); None: no transformation.
  transform_eps: ranges.PositiveFloat | None = None
  # Rewards are clipped to ± this (DQN: 1).
  max_abs_reward: ranges.PositiveFloat | None = None
  # Of the extrinsic reward; 0: only the bonus counts.
  reward_scale: ranges.NonNegativeFloat = 1.0
  # Whether a transition's loss is the sum over members (P3, section 2.4); a shared
  # torso's gradient is then divided by M (Osband et al., 2016). Otherwise it is their
  # mean (P4, algorithm 2).
  sum_over_members: bool = False
  # What the loss of a batch is the mean over, and otherwise the sum: its windows (R2D2,
  # and DQN's transitions), the rows of a window (P5's multi-step agents), both
  # ("transitions"), or neither (P5's control).
  loss_mean_over: Literal["windows", "time", "transitions", "nothing"] = "windows"
  # TD errors beyond it have a linear loss: their gradient is clipped (DQN, P5: 1).
  max_abs_td: ranges.PositiveFloat | None = None
  optimizer: Literal["adam", "rmsprop"] = "adam"  # Or rmsprop (P5).
  # (bsuite); a schedule's time is in learner updates.
  learning_rate: schedules.LearningRate = 1e-3
  adam_b2: ranges.BelowOne = 0.999  # Adam's β2 (bsuite; P3: 0.99).
  optimizer_eps: ranges.PositiveFloat = 1e-8  # ε of the optimiser (bsuite; P3: 1e-4).
  # Of all members together, including explorers; None: not clipped (bsuite).
  max_gradient_norm: ranges.PositiveFloat | None = None
  target_update_period: ranges.PositiveInt = 4  # Learner updates (bsuite).

  ## Replay, whose windows are `burn_in + sequence_length + n_step` rows
  # Trained rows of a window (R2D2: 80); 1: a transition.
  sequence_length: ranges.PositiveInt = 1
  # Rows after the trained ones, and environment steps in the return of a one-step
  # target (bsuite). Multi-step targets use each step.
  n_step: ranges.PositiveInt = 1
  # Rows before the trained ones, unrolled without a gradient (R2D2: 40).
  burn_in: ranges.NonNegativeInt = 0
  # Rows between the starts of two windows (R2D2: 40).
  sequence_period: ranges.PositiveInt = 1
  replay_capacity: ranges.PositiveInt = 10_000  # Environment steps (bsuite).
  # Environment steps before the first update (bsuite).
  min_replay_size: ranges.PositiveInt = 128
  batch_size: ranges.PositiveInt = 128  # Windows (bsuite).
  # Learner updates per environment step (bsuite).
  updates_per_step: ranges.PositiveFloat = 1.0
  priority_exponent: ranges.Probability = 0.0  # Of a window's |δ|; 0: uniform (bsuite).
  # η of η max_t |δ| + (1 − η) mean_t |δ|; actors compute the priorities of new windows
  # (R2D2: 0.9). None: the mean, and new windows have a priority of 1.
  priority_eta: ranges.Probability | None = None
  # Of 1 / (n p), for a prioritised replay; a schedule's time is in learner updates.
  importance_exponent: schedules.Probability = 0.0

  # Environment steps between two fetches of the actor's weights (R2D2: 400).
  actor_update_period: ranges.PositiveInt = 1

  def __post_init__(self) -> None:
    super().__post_init__()
    combinations.check(self)

  @property
  def ensemble_size(self) -> int:
    """M = K + N."""
    return self.num_members + self.num_explorers

  @property
  def sees_reward(self) -> np.ndarray:
    """bool `[M]`: which members learn from the extrinsic reward."""
    return (
      np.arange(self.ensemble_size) < self.num_members
    ) | self.explorers_see_reward

  @property
  def sees_bonus(self) -> np.ndarray:
    """bool `[M]`: the explorers if there are any, else all members."""
    first = self.num_members if self.num_explorers else 0
    return np.arange(self.ensemble_size) >= first

  @property
  def learns_from_transitions(self) -> bool:
    """Whether a window is trained at a single row, without a recurrent state."""
    return self.sequence_length == 1 and not self.lstm_size
