"""Settings of the sequence engine, with their units and sources."""

import dataclasses
import math

from explorax import exploration as exploration_lib
from explorax.agents import members
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.targets import greedy
from explorax.agents.targets import types as target_types
from explorax.exploration import schedules


@dataclasses.dataclass(frozen=True)
class R2D2Config:
  """Action-value functions of histories, learning from windows of steps.

  The defaults are R2D2's on Atari, acted by one actor. Sources are abbreviated: R2D2
  (Kapturowski et al., 2019), P1 (Dabney et al., 2021), P2 (Badia et al., 2020), P4
  (Flennerhag et al., 2020), P5 (Munos et al., 2016); "ours" where no paper says.
  """

  # The network.
  torso: str = "auto"  # See `networks.make_torso`; auto: what fits the observations.
  hidden_sizes: tuple[int, ...] = (512,)  # Units of the torso's linear layers (R2D2).
  lstm_size: int = 512  # Units (R2D2); 0: a feed-forward network (P5).
  head_size: int = 512  # Units of the duelling heads (R2D2); 0: linear heads (P5).

  # The ensemble, its heads on one torso (P1, P4).
  num_members: int = 1  # K, members that learn from the extrinsic reward.
  num_explorers: int = 0  # N more, that learn from r + β r_int (P4).
  prior_scale: float = 0.0  # λ of Q_k = Q_θk + λ P_k; 0: no priors (P4).
  prior_width: float = (
    0.25  # Of the priors' layers, as a share of the network's (ours).
  )
  mask_prob: float = 1.0  # ρ, of a member to learn from a sequence (P4) or a step (P1).
  mask_per_step: bool = False  # Drawn for each step (P1), not for each sequence (P4).

  # Acting. ε of a single actor; with more, R2D2's ladder (R2D2, table 2).
  exploration: exploration_lib.Rule = dataclasses.field(
    default_factory=lambda: exploration_lib.EpsilonGreedy(epsilon=0.4, ladder=7.0)
  )
  # For evaluation; None: greedy on the exploiters' mean, but for `evaluation_epsilon`.
  evaluation: exploration_lib.Rule | None = None
  evaluation_epsilon: float = 0.0  # Of the greedy evaluation policy (ours).

  # The intrinsic reward, and the mixture of policies (P2).
  bonus: bonus_types.Bonus | None = None
  # β in r + β r_int (`bonuses.scaling`); of a mixture, the greatest.
  beta: float = 0.0
  num_policies: int = 1  # N policies, with a β and a γ each.
  cross_mixture_ratio: float = 0.0  # Share of a batch relabelled with another policy.
  reward_scale: float = 1.0  # Of the extrinsic reward; 0: only the bonus counts.

  # Learning.
  target: target_types.Target = dataclasses.field(  # Any of `agents/targets`.
    default_factory=lambda: greedy.NStep(n=5)  # (R2D2).
  )
  transform_eps: float | None = 1e-3  # ε of h (R2D2); None: values as they are.
  discount: float = 0.997  # γ (R2D2); of a mixture, the greatest.
  min_discount: float | None = (
    None  # γ of a mixture's last policy; None: as `discount`.
  )
  max_abs_reward: float | None = None  # Rewards are clipped to ± this (P5); None: not.
  max_abs_td: float | None = None  # TD errors in the gradient, likewise (P5).
  mean_over_time: bool = False  # The loss of a sequence: its mean (P5), not its sum.
  optimizer: str = "adam"  # Or rmsprop (P5).
  # (R2D2); a schedule's time is in learner updates.
  learning_rate: exploration_lib.Setting = 1e-4
  optimizer_eps: float = 1e-3  # ε of the optimiser (R2D2).
  max_gradient_norm: float | None = 40.0  # (P2, table 6); None: not clipped.
  target_update_period: int = 2500  # Learner updates (R2D2).

  # Replay.
  sequence_length: int = 80  # Rows that are trained on (R2D2).
  burn_in: int = 40  # Rows before them, unrolled without a gradient (R2D2).
  sequence_period: int = 40  # Rows between the starts of two sequences (R2D2).
  replay_capacity: int = 4_000_000  # Environment steps (R2D2).
  min_replay_size: int = 200_000  # Environment steps before the first update (ours).
  batch_size: int = 64  # Sequences (R2D2).
  updates_per_step: float = 1 / 16  # Learner updates per environment step (ours).
  priority_exponent: float = 0.9  # (R2D2); 0: uniform.
  priority_eta: float = 0.9  # η of η max |δ| + (1 − η) mean |δ| (R2D2).
  # Of 1 / (n p) (R2D2); a schedule's time is in learner updates.
  importance_exponent: exploration_lib.Setting = 0.6

  # Environment steps between two fetches of the actor's weights (R2D2: 400).
  actor_update_period: int = 400

  def __post_init__(self):
    self._check_network()
    self._check_ensemble()
    self._check_mixture()
    self._check_target()
    self._check_optimizer()
    self._check_replay()

  def _check_network(self) -> None:
    if self.lstm_size < 0 or self.head_size < 0:
      raise ValueError(
        f"lstm_size is {self.lstm_size} and head_size {self.head_size}; they are "
        "numbers of units, 0 standing for no LSTM and for linear heads."
      )
    if not 0 < self.prior_width <= 1:
      raise ValueError(
        f"prior_width is {self.prior_width}; it is a share of the network's widths, in "
        "(0, 1]."
      )
    if not 0 <= self.evaluation_epsilon <= 1:
      raise ValueError(
        f"evaluation_epsilon is {self.evaluation_epsilon}; it is a probability."
      )
    if self.evaluation_epsilon and self.evaluation is not None:
      raise ValueError(
        f"evaluation_epsilon is {self.evaluation_epsilon}, but the evaluation has a "
        "rule of its own; set the rule's epsilon, and leave this one at 0."
      )

  def _check_ensemble(self) -> None:
    members.check_ensemble(self)
    if self.mask_per_step and self.mask_prob == 1:
      raise ValueError(
        "mask_per_step is True, but mask_prob is 1: every member learns from all; "
        "lower mask_prob, or leave mask_per_step at False."
      )

  def _check_mixture(self) -> None:
    if self.num_policies < 1:
      raise ValueError(f"num_policies is {self.num_policies}; use at least 1.")
    if not 0 <= self.cross_mixture_ratio <= 1:
      raise ValueError(
        f"cross_mixture_ratio is {self.cross_mixture_ratio}; it is a share of a batch, "
        "in [0, 1]."
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
    for name in ("discount", "min_discount"):
      value = getattr(self, name)
      if value is not None and not 0 <= value < 1:
        raise ValueError(f"{name} is {value}; γ is in [0, 1).")
    if self.min_discount is not None and self.min_discount > self.discount:
      raise ValueError(
        f"min_discount is {self.min_discount}, above the discount of {self.discount}; "
        "lower it."
      )
    if not 0 <= self.reward_scale < math.inf:
      raise ValueError(
        f"reward_scale is {self.reward_scale}; it is finite and not negative."
      )

  def _check_target(self) -> None:
    members.check_target(self)
    if self.target.atoms is not None:
      raise ValueError(
        f"the target is {self.target}, of distributions, which this engine's networks "
        "do not have; use it with the transition engine (agents/dqn)."
      )
    for name in ("transform_eps", "max_abs_reward", "max_abs_td", "max_gradient_norm"):
      value = getattr(self, name)
      if value is not None and not 0 < value < math.inf:
        raise ValueError(f"{name} is {value}; use a positive one, or None.")
    if self.target_update_period < 1:
      raise ValueError(
        f"target_update_period is {self.target_update_period}; it must be at least 1."
      )

  def _check_optimizer(self) -> None:
    if self.optimizer not in ("adam", "rmsprop"):
      raise ValueError(f"optimizer is {self.optimizer!r}; use 'adam' or 'rmsprop'.")
    schedules.check_learning_rate("learning_rate", self.learning_rate)
    for name in ("optimizer_eps", "updates_per_step"):
      if not 0 < getattr(self, name) < math.inf:
        raise ValueError(f"{name} is {getattr(self, name)}; it must be positive.")

  def _check_replay(self) -> None:
    if self.sequence_length < 2:
      raise ValueError(
        f"sequence_length is {self.sequence_length}; a sequence needs at least 2 rows "
        "to train on after its burn-in."
      )
    if self.burn_in < 0:
      raise ValueError(f"burn_in is {self.burn_in}; use 0 for none.")
    if self.burn_in and not self.lstm_size:
      raise ValueError(
        f"burn_in is {self.burn_in}, but without an LSTM there is no state to warm up; "
        "set it to 0."
      )
    if not 1 <= self.sequence_period <= self.sequence_length:
      raise ValueError(
        f"sequence_period is {self.sequence_period} and sequence_length "
        f"{self.sequence_length}; the period is at least 1 and at most the length, or "
        "some steps would never be trained on."
      )
    if self.actor_update_period < 1:
      raise ValueError(
        f"actor_update_period is {self.actor_update_period}; it must be at least 1."
      )
    if not 0 <= self.priority_eta <= 1:
      raise ValueError(f"priority_eta is {self.priority_eta}; it is in [0, 1].")
    schedules.check("importance_exponent", self.importance_exponent, 1.0)
    if self.importance_exponent and not self.priority_exponent:
      raise ValueError(
        f"importance_exponent is {self.importance_exponent}, but replay is uniform; "
        "set priority_exponent as well, or leave it at 0."
      )

  @property
  def ensemble_size(self) -> int:
    """M = K + N."""
    return self.num_members + self.num_explorers
