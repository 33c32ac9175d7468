"""Settings of Successor Uncertainties, with their units and sources."""

import dataclasses
import math

from explorax import networks


@dataclasses.dataclass(frozen=True)
class SuccessorConfig:
  """Successor features, and a posterior of the weights that make values of them.

  Sources are abbreviated: bsuite (its DQN's defaults, Osband et al., 2020, which P4's
  baselines share), SU (Janz et al., 2019, the published settings of its tabular code on
  Deep Sea, which P4 refers to), P4 (Flennerhag et al., 2020, Table 3, whose best values
  are not printed; in our tuning, in docs/bsuite, none was clearly better than SU's).
  """

  # The networks of φ and of ψ, which share nothing.
  torso: str = "auto"  # What comes before the linear layers (`networks.make_torso`).
  feature_size: int = 20  # D, of φ and ψ (SU; P4's hidden size, of {20, 64}).
  hidden_sizes: tuple[int, ...] = (20,)  # Units of φ's linear layers (SU: D).
  # Units of ψ's. With none, ψ is linear, that is a table where observations are one-hot
  # (SU).
  psi_hidden_sizes: tuple[int, ...] = ()

  # The regression of rewards on φ.
  prior_variance: float = 1.0  # θ (SU; of {10⁻³, 10⁻¹, 1, 10, 10³} in P4).
  likelihood_variance: float = 0.01  # β (SU; of {10⁻², …, 10²} in P4).
  regression_decay: float = 0.99  # Per learner update, of batches' weights (ours).

  evaluation_epsilon: float = 0.0  # Of the policy greedy on the posterior's mean.

  # Learning.
  discount: float = 0.99  # γ (bsuite).
  learning_rate: float = 1e-3  # Adam's (bsuite, SU).
  target_update_period: int = 4  # Learner updates (bsuite).

  # Replay.
  replay_capacity: int = 10_000  # Environment steps (bsuite, SU).
  min_replay_size: int = 128  # Environment steps before the first update (bsuite).
  batch_size: int = 128  # Transitions (bsuite).
  updates_per_step: float = 1.0  # Learner updates per environment step (bsuite).

  # Environment steps between two fetches of the actor's weights.
  actor_update_period: int = 1

  def __post_init__(self):
    if self.torso not in networks.TORSOS:
      raise ValueError(
        f"torso is {self.torso!r}; use one of {', '.join(networks.TORSOS)}."
      )
    for name in ("feature_size", "target_update_period", "actor_update_period"):
      if getattr(self, name) < 1:
        raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1.")
    for name in (
      "prior_variance",
      "likelihood_variance",
      "learning_rate",
      "updates_per_step",
    ):
      if not 0 < getattr(self, name) < math.inf:
        raise ValueError(
          f"{name} is {getattr(self, name)}; it must be positive and finite."
        )
    if not 0 <= self.regression_decay < 1:
      raise ValueError(
        f"regression_decay is {self.regression_decay}; it must be in [0, 1) (0: the "
        "last batch is all that counts)."
      )
    for name in ("discount", "evaluation_epsilon"):
      if not 0 <= getattr(self, name) <= 1:
        raise ValueError(f"{name} is {getattr(self, name)}; it must be in [0, 1].")
    for name in ("batch_size", "min_replay_size"):
      if not 0 < getattr(self, name) <= self.replay_capacity:
        raise ValueError(
          f"{name} is {getattr(self, name)} with a replay_capacity of "
          f"{self.replay_capacity}; use at least 1, and no more than the capacity."
        )
