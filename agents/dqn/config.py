"""Settings of the transition-based engine, with their units and sources."""

import dataclasses
from typing import Annotated, Any, Literal

from explorax import exploration as exploration_lib
from explorax import networks, ranges
from explorax.agents import engine
from explorax.agents.bonuses import types as bonus_types
from explorax.agents.targets import one_step
from explorax.agents.targets import types as target_types
from explorax.exploration import schedules


@dataclasses.dataclass(frozen=True)
class DQNConfig(ranges.Checked):
  """An ensemble of action-value functions, learning from n-step transitions.

  The defaults are bsuite's JAX bootstrapped DQN (Osband et al., 2020), on which
  paper 4 builds, with one member and an ε-greedy policy: a plain DQN. Sources are
  abbreviated: bsuite (its baselines' defaults), P1 (Dabney et al., 2021), P3 (Chen et
  al., 2017), P4 (Flennerhag et al., 2020), QEX (its baseline, Simmons-Edler et al.,
  2019), DQN (Mnih et al., 2015), Rainbow (Hessel et al., 2018).
  """

  # The ensemble.
  # K, members that learn from the extrinsic reward.
  num_members: ranges.PositiveInt = 1
  # N more members, which learn from r + β r_int (P4, alg. 2).
  num_explorers: ranges.NonNegativeInt = 0
  # Whether explorers also get r; otherwise they learn only from β r_int (QEX).
  explorers_see_reward: bool = True
  # What comes first (`networks.make_torso`): convolutions for images, nothing for
  # vectors; then linear layers.
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  # Units of the linear layers (bsuite).
  hidden_sizes: tuple[ranges.PositiveInt, ...] = (50, 50)
  # Heads on one torso (P3), or separate networks (bsuite). Explorers' gradients reach a
  # shared torso, and so affect the exploiters (as in P4's Atari agent).
  shared_torso: bool = False
  # Hidden units of each head; 0: linear heads (P3, Rainbow: 512).
  head_size: ranges.NonNegativeInt = 0
  # Whether a head has separate hidden units for the value and the advantages
  # (Rainbow).
  duelling: bool = False
  # σ_0 of noisy heads; 0: without noise (Rainbow: 0.5).
  noisy_sigma: ranges.NonNegativeFloat = 0.0
  # Whether the torso's linear layers are also noisy (Fortunato et al., 2018).
  noisy_torso: bool = False
  # λ of Q_k = Q_θk + λ P_k; 0: no priors (P4, D.1).
  prior_scale: ranges.NonNegativeFloat = 0.0
  # Whether the target network's priors are the online ones (bsuite's code) or drawn
  # separately (P4's text). Distinct priors contribute to every TD error.
  target_prior: Literal["shared", "distinct"] = "shared"
  # ρ: a member learns from a transition (bsuite).
  mask_prob: Annotated[float, ranges.Range(gt=0, le=1)] = 1.0
  # D: members are samples of the index of one epinet (`networks.make_epinet`); 0: they
  # are an ensemble (Osband et al., 2023: 2).
  index_dim: ranges.NonNegativeInt = 0
  # Units of the epinet's hidden layers (enn_acme's bsuite agent).
  epinet_hidden_sizes: tuple[ranges.PositiveInt, ...] = (50,)

  # Acting.
  exploration: exploration_lib.Rule = dataclasses.field(
    default_factory=lambda: exploration_lib.EpsilonGreedy(epsilon=0.05)  # bsuite's DQN.
  )
  # Number of first environment steps with uniform actions (P3).
  random_steps: ranges.NonNegativeInt = 0
  # Of the greedy evaluation policy (P1: 0.001).
  evaluation_epsilon: ranges.Probability = 0.0

  # The intrinsic reward.
  bonus: bonus_types.Bonus | None = None
  # β in r + β r_int (`bonuses.scaling`); a schedule's time is in learner updates.
  beta: schedules.NonNegative = 0.0

  # Learning.
  # Q-learning (bsuite, whose settings P4's experiments use), double Q-learning (P3, and
  # P4's section 4), distributional (Rainbow), or any of `targets`.
  target: target_types.Target = dataclasses.field(default_factory=one_step.QLearning)
  discount: ranges.Probability = 0.99  # γ (bsuite).
  # Environment steps in a window, and of an n-step return (bsuite); multi-step targets
  # use each of them.
  n_step: ranges.PositiveInt = 1
  # Rewards are clipped to ± this (DQN: 1).
  max_abs_reward: ranges.PositiveFloat | None = None
  # Whether a transition's loss is the sum over members (P3, section 2.4); a shared
  # torso's gradient is then divided by M (Osband et al., 2016). Otherwise it is their
  # mean (P4, algorithm 2).
  sum_over_members: bool = False
  # TD errors beyond it have a linear loss: their gradient is clipped (DQN: 1).
  max_abs_td: ranges.PositiveFloat | None = None
  # Adam's (bsuite); a schedule's time is in learner updates.
  learning_rate: schedules.LearningRate = 1e-3
  adam_b2: ranges.BelowOne = 0.999  # Adam's β2 (bsuite; P3: 0.99).
  adam_eps: ranges.PositiveFloat = 1e-8  # Adam's ε (bsuite; P3: 1e-4).
  # Of all members together, including explorers; None: not clipped (bsuite).
  max_gradient_norm: ranges.PositiveFloat | None = None
  target_update_period: ranges.PositiveInt = 4  # Learner updates (bsuite).

  # Replay.
  replay_capacity: ranges.PositiveInt = 10_000  # Environment steps (bsuite).
  # Environment steps before the first update (bsuite).
  min_replay_size: ranges.PositiveInt = 128
  batch_size: ranges.PositiveInt = 128  # Transitions (bsuite).
  # Learner updates per environment step (bsuite).
  updates_per_step: ranges.PositiveFloat = 1.0
  # Of |δ|, averaged over members; 0: uniform (bsuite).
  priority_exponent: ranges.Probability = 0.0
  # Of 1 / (n p), for a prioritised replay; a schedule's time is in learner updates.
  importance_exponent: schedules.Probability = 0.0

  # Environment steps between two fetches of the actor's weights.
  actor_update_period: ranges.PositiveInt = 1

  def __post_init__(self) -> None:
    super().__post_init__()
    engine.check_ensemble(self)
    if self.duelling and not self.head_size:
      raise ValueError(
        "duelling is on, but head_size is 0: the value and the advantages would share "
        "all layers but one; give heads hidden units, or turn duelling off."
      )
    if self.noisy_torso and not self.noisy_sigma:
      raise ValueError(
        "noisy_torso is on, but noisy_sigma is 0, so there is no noise; set "
        "noisy_sigma, or turn noisy_torso off."
      )
    if not (self.explorers_see_reward or self.num_explorers):
      raise ValueError(
        "explorers_see_reward is off, but num_explorers is 0, so there are no "
        "explorers; set num_explorers, or leave it on."
      )
    if self.target_prior == "distinct" and self.prior_scale == 0:
      raise ValueError(
        "target_prior is 'distinct', but prior_scale is 0, so there are no priors; set "
        "prior_scale, or leave target_prior at 'shared'."
      )
    if self.target.is_multi_step and self.n_step == 1:
      raise ValueError(
        f"the target {self.target} needs several environment steps, but n_step is 1: "
        "raise it, or use a one-step target."
      )
    if self.target.atoms is not None and self.prior_scale:
      raise ValueError(
        f"the target {self.target} is distributional, but prior_scale is "
        f"{self.prior_scale} and priors are added to values; set it to 0, or use "
        "another target."
      )
    if self.target.atoms is not None and self.max_abs_td is not None:
      raise ValueError(
        f"max_abs_td is {self.max_abs_td}, but the loss of the target {self.target} "
        "has no TD errors; leave it at None."
      )
    if self.index_dim:
      self._check_epinet()

  def _check_epinet(self) -> None:
    """Refuses settings of ensembles whose members have parameters of their own."""
    if self.target.atoms is not None:
      raise ValueError(
        f"index_dim is {self.index_dim}, but the target {self.target} is "
        "distributional, and an epinet has values; use another target, or set "
        "index_dim to 0."
      )
    rule: Any = self.exploration
    while rule is not None:
      if isinstance(rule, exploration_lib.Ucb1):
        raise ValueError(
          f"index_dim is {self.index_dim}, but Ucb1 compares members over episodes, "
          "and an epinet's indices are new in each; use another rule, or set index_dim "
          "to 0."
        )
      rule = getattr(rule, "of", None)
    for name, needed in {
      "num_explorers": 0,
      "shared_torso": False,
      "head_size": 0,
      "noisy_sigma": 0.0,
      "mask_prob": 1.0,
    }.items():
      if getattr(self, name) != needed:
        raise ValueError(
          f"{name} is {getattr(self, name)}, but index_dim is {self.index_dim}, and "
          "the members of an epinet are samples of its index, without parameters of "
          f"their own; leave {name} at {needed}, or set index_dim to 0."
        )

  @property
  def ensemble_size(self) -> int:
    """M = K + N."""
    return self.num_members + self.num_explorers

  @property
  def has_linear_heads(self) -> bool:
    """Whether heads are a linear layer each, without noise or distributions."""
    return not (self.head_size or self.noisy_sigma or self.target.atoms is not None)
