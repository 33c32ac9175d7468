"""Settings of Successor Uncertainties, with their units and sources."""

import dataclasses
from typing import Annotated

from explorax import networks, ranges
from explorax.exploration import schedules


@dataclasses.dataclass(frozen=True)
class SuccessorConfig(ranges.Checked):
  """Successor features, and a posterior of the weights that turn them into values.

  Sources are abbreviated: bsuite (its bootstrapped DQN's defaults, Osband et al., 2020,
  which P4's baselines share), SU (Janz et al., 2019, the published settings of its
  tabular code on Deep Sea, which P4 refers to), P4 (Flennerhag et al., 2020, Table 3,
  whose best values are not printed; in our tuning, in docs/bsuite, none was clearly
  better than SU's).
  """

  ## Networks of φ and of ψ, which share no parameters
  # Layers before the linear ones (`networks.make_torso`).
  torso: Annotated[str, ranges.OneOf(networks.TORSOS)] = "auto"
  # D, of φ and ψ (SU; P4's hidden size, of {20, 64}).
  feature_size: ranges.PositiveInt = 20
  # Units of φ's linear layers (SU: D).
  hidden_sizes: tuple[ranges.PositiveInt, ...] = (20,)
  # Units of ψ's. Without hidden layers, ψ is linear: a table for one-hot observations
  # (SU).
  psi_hidden_sizes: tuple[ranges.PositiveInt, ...] = ()

  ## Regression of rewards on φ
  # θ (SU; of {10⁻³, 10⁻¹, 1, 10, 10³} in P4).
  prior_variance: ranges.PositiveFloat = 1.0
  # β (SU; of {10⁻², …, 10²} in P4).
  likelihood_variance: ranges.PositiveFloat = 0.01
  # Per learner update, of batches' weights (ours); 0: only the last batch.
  regression_decay: ranges.BelowOne = 0.99

  # ε of the greedy policy on the posterior's mean.
  evaluation_epsilon: ranges.Probability = 0.0

  ## Learning
  discount: ranges.Probability = 0.99  # γ (bsuite).
  # Adam's (bsuite, SU); a schedule's time is in learner updates.
  learning_rate: schedules.LearningRate = 1e-3
  target_update_period: ranges.PositiveInt = 4  # Learner updates (bsuite).

  ## Replay
  replay_capacity: ranges.PositiveInt = 10_000  # Environment steps (bsuite, SU).
  # Environment steps before the first update (bsuite).
  min_replay_size: ranges.PositiveInt = 128
  batch_size: ranges.PositiveInt = 128  # Transitions (bsuite).
  # Learner updates per environment step (bsuite).
  updates_per_step: ranges.PositiveFloat = 1.0

  # Environment steps between two fetches of the actor's weights.
  actor_update_period: ranges.PositiveInt = 1
