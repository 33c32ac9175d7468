"""Settings of the transition-based engine, with their units and sources."""

import dataclasses
import math

from explorax import exploration as exploration_lib
from explorax.agents import bonuses

TARGETS = ("q_learning", "double_q")
TARGET_PRIORS = ("shared", "distinct")


@dataclasses.dataclass(frozen=True)
class DQNConfig:
  """An ensemble of action-value functions, learning from n-step transitions.

  The defaults are bsuite's JAX bootstrapped DQN (Osband et al., 2020), on which
  paper 4 builds, with one member and an ε-greedy policy: a plain DQN. Sources are
  abbreviated: bsuite (its baselines' defaults), P3 (Chen et al., 2017), P4
  (Flennerhag et al., 2020).
  """

  # The ensemble.
  num_members: int = 1  # K, members that learn from the extrinsic reward.
  num_explorers: int = 0  # N more, that learn from r + β r_int (P4, algorithm 2).
  hidden_sizes: tuple[int, ...] = (50, 50)  # Units (bsuite).
  # Heads on one torso (P3), or networks apart (bsuite). What explorers learn reaches a
  # shared torso, and with it the exploiters (as in P4's Atari agent).
  shared_torso: bool = False
  prior_scale: float = 0.0  # λ of Q_k = Q_θk + λ P_k; 0: no priors (P4, D.1).
  # Whether the target network's priors are the online ones (bsuite's code) or drawn
  # anew (P4's text). Distinct ones leave a difference in every target.
  target_prior: str = "shared"
  mask_prob: float = 1.0  # ρ, of a member to learn from a transition (bsuite).

  # Acting.
  exploration: exploration_lib.Rule = dataclasses.field(
    default_factory=lambda: exploration_lib.EpsilonGreedy(epsilon=0.05)  # bsuite's DQN.
  )

  # The intrinsic reward.
  bonus: bonuses.Bonus = dataclasses.field(default_factory=bonuses.NoBonus)
  beta: float = 0.0  # β in r + β r_int.

  # Learning.
  # q_learning (bsuite, whose settings P4's experiments take over) or double_q (P3, and
  # P4's section 4).
  target: str = "q_learning"
  discount: float = 0.99  # γ (bsuite).
  n_step: int = 1  # Environment steps in a return (bsuite).
  learning_rate: float = 1e-3  # Adam's (bsuite).
  adam_b2: float = 0.999  # Adam's β2 (bsuite; P3: 0.99).
  adam_eps: float = 1e-8  # Adam's ε (bsuite; P3: 1e-4).
  # Of all members together, explorers included; None: not clipped (bsuite).
  max_gradient_norm: float | None = None
  target_update_period: int = 4  # Learner updates (bsuite).

  # Replay.
  replay_capacity: int = 10_000  # Environment steps (bsuite).
  min_replay_size: int = 128  # Environment steps before the first update (bsuite).
  batch_size: int = 128  # Transitions (bsuite).
  updates_per_step: float = 1.0  # Learner updates per environment step (bsuite).
  priority_exponent: float = 0.0  # Of |δ|, averaged over members; 0: uniform (bsuite).
  importance_exponent: float = 0.0  # Of 1 / (n p), for a prioritised replay.

  # Environment steps between two fetches of the actor's weights.
  actor_update_period: int = 1

  def __post_init__(self):
    self._check_ensemble()
    self._check_learning()

  def _check_ensemble(self) -> None:
    if self.num_members < 1:
      raise ValueError(
        f"num_members is {self.num_members}; an ensemble needs at least one member "
        "(K = 1 is a plain DQN)."
      )
    if self.num_explorers < 0:
      raise ValueError(f"num_explorers is {self.num_explorers}; use 0 for none.")
    if not 0 <= self.beta < math.inf:
      raise ValueError(
        f"beta is {self.beta}; a bonus's scale is finite and not negative (0 turns it "
        "off)."
      )
    if self.beta and isinstance(self.bonus, bonuses.NoBonus):
      raise ValueError(
        f"beta is {self.beta}, but there is no bonus to scale; set one, or leave beta "
        "at 0."
      )
    if not 0 <= self.prior_scale < math.inf:
      raise ValueError(
        f"prior_scale is {self.prior_scale}; it is finite and not negative (0: no "
        "priors)."
      )
    if not 0 < self.mask_prob <= 1:
      raise ValueError(
        f"mask_prob is {self.mask_prob}; members learn with a probability in (0, 1]."
      )
    if self.target_prior not in TARGET_PRIORS:
      raise ValueError(
        f"target_prior is {self.target_prior!r}; use one of {', '.join(TARGET_PRIORS)}."
      )
    if self.target_prior == "distinct" and self.prior_scale == 0:
      raise ValueError(
        "target_prior is 'distinct', but prior_scale is 0, so there are no priors; set "
        "prior_scale, or leave target_prior at 'shared'."
      )
    spread = isinstance(self.bonus, (bonuses.TDUncertainty, bonuses.QUncertainty))
    if spread and self.num_members < 2:
      raise ValueError(
        f"{type(self.bonus).__name__} is a deviation over the members, but "
        f"num_members is {self.num_members}; use at least 2."
      )
    if self.num_explorers and isinstance(self.bonus, bonuses.NoBonus):
      raise ValueError(
        f"num_explorers is {self.num_explorers}, but there is no bonus for them to "
        "learn from; set one, or count them in num_members."
      )

  def _check_learning(self) -> None:
    if self.target not in TARGETS:
      raise ValueError(f"target is {self.target!r}; use one of {', '.join(TARGETS)}.")
    if not 0 <= self.discount <= 1:
      raise ValueError(f"discount is {self.discount}; γ is in [0, 1].")
    for name in ("n_step", "target_update_period", "actor_update_period"):
      if getattr(self, name) < 1:
        raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1.")
    if not self.learning_rate > 0:
      raise ValueError(f"learning_rate is {self.learning_rate}; it must be positive.")
    if not 0 <= self.adam_b2 < 1:
      raise ValueError(f"adam_b2 is {self.adam_b2}; it must be in [0, 1).")
    if not self.adam_eps > 0:
      raise ValueError(f"adam_eps is {self.adam_eps}; it must be positive.")
    if self.max_gradient_norm is not None and not self.max_gradient_norm > 0:
      raise ValueError(
        f"max_gradient_norm is {self.max_gradient_norm}; use a positive one, or None."
      )
    if not 0 <= self.priority_exponent < math.inf:
      raise ValueError(
        f"priority_exponent is {self.priority_exponent}; use 0 for uniform sampling."
      )
    if not 0 <= self.importance_exponent <= 1:
      raise ValueError(
        f"importance_exponent is {self.importance_exponent}; it is in [0, 1]."
      )
    if self.importance_exponent and not self.priority_exponent:
      raise ValueError(
        f"importance_exponent is {self.importance_exponent}, but replay is uniform; "
        "set priority_exponent as well, or leave it at 0."
      )
    if not 0 < self.batch_size <= self.replay_capacity:
      raise ValueError(
        f"batch_size is {self.batch_size} with a replay_capacity of "
        f"{self.replay_capacity}; use a batch of at least 1 that the capacity holds."
      )
    if not 0 < self.min_replay_size <= self.replay_capacity:
      raise ValueError(
        f"min_replay_size is {self.min_replay_size} with a replay_capacity of "
        f"{self.replay_capacity}; learning would never start; choose one in between."
      )
    if not 0 < self.updates_per_step < math.inf:
      raise ValueError(
        f"updates_per_step is {self.updates_per_step}; it must be positive and finite."
      )

  @property
  def ensemble_size(self) -> int:
    """M = K + N."""
    return self.num_members + self.num_explorers
