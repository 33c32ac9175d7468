"""Settings of Successor Uncertainties, with their units and sources."""

import dataclasses

from explorax import exploration
from explorax.agents import engine, ranges


@dataclasses.dataclass(frozen=True)
class SuccessorConfig:
  """Successor features, and a posterior of the weights that turn them into values.

  Sources are abbreviated: bsuite (its bootstrapped DQN's defaults, Osband et al., 2020,
  which P4's baselines share), SU (Janz et al., 2019, the published settings of its
  tabular code on Deep Sea, which P4 refers to), P4 (Flennerhag et al., 2020, Table 3,
  whose best values are not printed; in our tuning, in docs/bsuite, none was clearly
  better than SU's).
  """

  # The networks of φ and of ψ, which share no parameters.
  torso: str = "auto"  # Before the linear layers (`networks.make_torso`).
  feature_size: int = 20  # D, of φ and ψ (SU; P4's hidden size, of {20, 64}).
  hidden_sizes: tuple[int, ...] = (20,)  # Units of φ's linear layers (SU: D).
  # Units of ψ's. Without hidden layers, ψ is linear: a table for one-hot observations
  # (SU).
  psi_hidden_sizes: tuple[int, ...] = ()

  # The regression of rewards on φ.
  prior_variance: float = 1.0  # θ (SU; of {10⁻³, 10⁻¹, 1, 10, 10³} in P4).
  likelihood_variance: float = 0.01  # β (SU; of {10⁻², …, 10²} in P4).
  regression_decay: float = (
    0.99  # Per learner update, of batches' weights (ours); 0: only the last batch.
  )

  evaluation_epsilon: float = 0.0  # Of the policy greedy on the posterior's mean.

  # Learning.
  discount: float = 0.99  # γ (bsuite).
  # Adam's (bsuite, SU); a schedule's time is in learner updates.
  learning_rate: exploration.Setting = 1e-3
  target_update_period: int = 4  # Learner updates (bsuite).

  # Replay.
  replay_capacity: int = 10_000  # Environment steps (bsuite, SU).
  min_replay_size: int = 128  # Environment steps before the first update (bsuite).
  batch_size: int = 128  # Transitions (bsuite).
  updates_per_step: float = 1.0  # Learner updates per environment step (bsuite).

  # Environment steps between two fetches of the actor's weights.
  actor_update_period: int = 1

  def __post_init__(self) -> None:
    engine.check_learning(self)
    ranges.at_least(self, 1, "feature_size")
    ranges.positive(self, "prior_variance", "likelihood_variance")
    ranges.below_one(self, "regression_decay")
