"""Settings of the sequence engine, with their units and sources."""

import dataclasses
from typing import Annotated, Literal

from explorax import exploration as exploration_lib
from explorax import networks, ranges
from explorax.agents import engine
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.targets import greedy
from explorax.agents.targets import types as target_types
from explorax.exploration import schedules


@dataclasses.dataclass(frozen=True)
class R2D2Config(ranges.Checked):
  """Action-value functions of histories, trained on windows of steps.

  The defaults are R2D2's on Atari, with one actor. Sources are abbreviated: R2D2
  (Kapturowski et al., 2019), P1 (Dabney et al., 2021), P2 (Badia et al., 2020), P4
  (Flennerhag et al., 2020), P5 (Munos et al., 2016); "ours" without a source.
  """

  # The network.
  # See `networks.make_torso`; auto: depends on the observations.
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  # Units of the torso's linear layers (R2D2).
  hidden_sizes: tuple[ranges.PositiveInt, ...] = (512,)
  # Units (R2D2); 0: a feed-forward network (P5).
  lstm_size: ranges.NonNegativeInt = 512
  # Units of the duelling heads (R2D2); 0: linear heads (P5).
  head_size: ranges.NonNegativeInt = 512

  # The ensemble, with heads on one torso (P1, P4).
  # K, members that learn from the extrinsic reward.
  num_members: ranges.PositiveInt = 1
  # N more members, which learn from r + β r_int (P4).
  num_explorers: ranges.NonNegativeInt = 0
  # λ of Q_k = Q_θk + λ P_k; 0: no priors (P4).
  prior_scale: ranges.NonNegativeFloat = 0.0
  # Of the priors' layers, a share of the network's (ours).
  prior_width: Annotated[float, ranges.Range(gt=0, le=1)] = 0.25
  # ρ: a member learns from a sequence (P4) or a step (P1).
  mask_prob: Annotated[float, ranges.Range(gt=0, le=1)] = 1.0
  mask_per_step: bool = False  # Drawn for each step (P1), not for each sequence (P4).

  # Acting. ε of a single actor; with more, R2D2's ladder (R2D2, table 2).
  exploration: exploration_lib.Rule = dataclasses.field(
    default_factory=lambda: exploration_lib.EpsilonGreedy(epsilon=0.4, ladder=7.0)
  )
  # For evaluation; None: greedy on the exploiters' mean, but for `evaluation_epsilon`.
  evaluation: exploration_lib.Rule | None = None
  # Of the greedy evaluation policy (ours).
  evaluation_epsilon: ranges.Probability = 0.0
  # The policy of a mixture that is evaluated: 0 has β_0 = 0, as in P2's tables; −1 is
  # the most exploratory, β_{N−1} (P2, figures 6 and 14).
  evaluation_policy: int = 0

  # The intrinsic reward, and the mixture of policies (P2).
  bonus: bonus_types.Bonus | None = None
  # β in r + β r_int (`bonuses.scaling`); in a mixture, the greatest one. Schedules
  # count learner updates.
  beta: schedules.NonNegative = 0.0
  num_policies: ranges.PositiveInt = 1  # N policies, with a β and a γ each.
  # Share of a batch relabelled with another policy.
  cross_mixture_ratio: ranges.Probability = 0.0
  # Of the extrinsic reward; 0: only the bonus counts.
  reward_scale: ranges.NonNegativeFloat = 1.0

  # Learning.
  target: target_types.Target = dataclasses.field(  # Any of `agents/targets`.
    default_factory=lambda: greedy.NStep(n=5)  # (R2D2).
  )
  # ε of h (R2D2); None: no transformation.
  transform_eps: ranges.PositiveFloat | None = 1e-3
  discount: ranges.BelowOne = 0.997  # γ (R2D2); in a mixture, the greatest one.
  # γ of a mixture's last policy; None: `discount`.
  min_discount: ranges.BelowOne | None = None
  # Rewards are clipped to ± this (P5); None: not.
  max_abs_reward: ranges.PositiveFloat | None = None
  # Bound of TD errors in the gradient (P5); None: none.
  max_abs_td: ranges.PositiveFloat | None = None
  mean_over_time: bool = False  # The loss of a sequence: its mean (P5), not its sum.
  optimizer: Literal["adam", "rmsprop"] = "adam"  # RMSProp: P5.
  # (R2D2); a schedule's time is in learner updates.
  learning_rate: schedules.LearningRate = 1e-4
  optimizer_eps: ranges.PositiveFloat = 1e-3  # ε of the optimiser (R2D2).
  # (P2, table 6); None: not clipped.
  max_gradient_norm: ranges.PositiveFloat | None = 40.0
  target_update_period: ranges.PositiveInt = 2500  # Learner updates (R2D2).

  # Replay.
  sequence_length: ranges.AtLeastTwo = 80  # Trained rows (R2D2).
  # Rows before them, unrolled without a gradient (R2D2).
  burn_in: ranges.NonNegativeInt = 40
  # Rows between the starts of two sequences (R2D2).
  sequence_period: ranges.PositiveInt = 40
  replay_capacity: ranges.PositiveInt = 4_000_000  # Environment steps (R2D2).
  # Environment steps before the first update (ours).
  min_replay_size: ranges.PositiveInt = 200_000
  batch_size: ranges.PositiveInt = 64  # Sequences (R2D2).
  # Learner updates per environment step (ours).
  updates_per_step: ranges.PositiveFloat = 1 / 16
  priority_exponent: ranges.Probability = 0.9  # (R2D2); 0: uniform.
  priority_eta: ranges.Probability = 0.9  # η of η max |δ| + (1 − η) mean |δ| (R2D2).
  # Of 1 / (n p) (R2D2); a schedule's time is in learner updates.
  importance_exponent: schedules.Probability = 0.6

  # Environment steps between two fetches of the actor's weights (R2D2: 400).
  actor_update_period: ranges.PositiveInt = 400

  def __post_init__(self) -> None:
    super().__post_init__()
    engine.check_ensemble(self)
    if not -self.num_policies <= self.evaluation_policy < self.num_policies:
      raise ValueError(
        f"evaluation_policy is {self.evaluation_policy}, but num_policies is "
        f"{self.num_policies}; use 0 to {self.num_policies - 1}, or -1 for the last."
      )
    if self.evaluation_epsilon and self.evaluation is not None:
      raise ValueError(
        f"evaluation_epsilon is {self.evaluation_epsilon}, but the evaluation has its "
        "own rule; set the rule's epsilon, and leave evaluation_epsilon at 0."
      )
    if self.mask_per_step and self.mask_prob == 1:
      raise ValueError(
        "mask_per_step is True, but mask_prob is 1: every member learns from all; "
        "lower mask_prob, or leave mask_per_step at False."
      )
    if self.cross_mixture_ratio and self.num_policies == 1:
      raise ValueError(
        f"cross_mixture_ratio is {self.cross_mixture_ratio}, but with num_policies 1 "
        "there is no other policy to relabel with; leave it at 0, or use more policies."
      )
    if self.num_policies > 1 and self.ensemble_size > 1:
      raise ValueError(
        f"num_policies is {self.num_policies} with an ensemble of {self.ensemble_size}:"
        " an actor follows a policy of a mixture or a member of an ensemble; use one."
      )
    if self.min_discount is not None and self.min_discount > self.discount:
      raise ValueError(
        f"min_discount is {self.min_discount}, above the discount of {self.discount}; "
        "lower it."
      )
    if self.target.atoms is not None:
      raise ValueError(
        f"the target is {self.target}, of distributions, which this engine's networks "
        "do not have; use it with the transition engine (agents/dqn)."
      )
    if self.burn_in and not self.lstm_size:
      raise ValueError(
        f"burn_in is {self.burn_in}, but without an LSTM there is no state to warm up; "
        "set it to 0."
      )

  @property
  def ensemble_size(self) -> int:
    """M = K + N."""
    return self.num_members + self.num_explorers
