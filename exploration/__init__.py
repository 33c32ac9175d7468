"""Choosing actions, and the novelty signals computed while acting.

Pure functions of arrays, with small pytrees for the state between steps, and the rules
(`Rule`) by which agents act.
"""

from explorax.exploration.counts import (
  EpisodicCounts,
  clear_episodic_counts,
  count_bonus,
  count_episodic_visit,
  count_visit,
  hash_observation,
  init_counts,
  init_episodic_counts,
)
from explorax.exploration.density import (
  MAX_DEPTH,
  DensityModel,
  init_density,
  observe_picture,
  pseudo_count_bonus,
  shrink,
)
from explorax.exploration.dithering import Boltzmann, EpsilonGreedy
from explorax.exploration.durations import (
  Duration,
  ExponentialDuration,
  UniformDuration,
  ZetaDuration,
)
from explorax.exploration.ellipsoid import elliptical_bonus, init_ellipsoid
from explorax.exploration.following import (
  Explorers,
  Thompson,
  ThompsonState,
  Ucb1,
  Ucb1State,
  init_thompson,
  init_ucb1,
  thompson,
  ucb1,
  update_ucb1,
)
from explorax.exploration.mixtures import mixture_betas, mixture_discounts
from explorax.exploration.moments import (
  Moments,
  init_moments,
  normalise,
  over_deviation,
  update_ema_moments,
  update_moments,
)
from explorax.exploration.novelty import (
  EpisodicMemory,
  clear_episodic_memory,
  episodic_novelty,
  init_episodic_memory,
  nearest_distance,
)
from explorax.exploration.persistence import EzGreedy, EzState, ez_greedy, init_ez_state
from explorax.exploration.regression import (
  Regression,
  WeightPosterior,
  init_regression,
  sample_weights,
  update_regression,
  weight_posterior,
)
from explorax.exploration.rules import Policy, Score, Wrapper
from explorax.exploration.schedules import (
  Alternating,
  Linear,
  Piecewise,
  Schedule,
  Setting,
)
from explorax.exploration.scores import Greedy, MajorityVote, Ucb
from explorax.exploration.selection import boltzmann, epsilon_greedy, majority_vote, ucb
from explorax.exploration.types import ActorIndex, Rule

__all__ = [
  "MAX_DEPTH",
  "ActorIndex",
  "Alternating",
  "Boltzmann",
  "DensityModel",
  "Duration",
  "EpisodicCounts",
  "EpisodicMemory",
  "EpsilonGreedy",
  "Explorers",
  "ExponentialDuration",
  "EzGreedy",
  "EzState",
  "Greedy",
  "Linear",
  "MajorityVote",
  "Moments",
  "Piecewise",
  "Policy",
  "Regression",
  "Rule",
  "Schedule",
  "Score",
  "Setting",
  "Thompson",
  "ThompsonState",
  "Ucb",
  "Ucb1",
  "Ucb1State",
  "UniformDuration",
  "WeightPosterior",
  "Wrapper",
  "ZetaDuration",
  "boltzmann",
  "clear_episodic_counts",
  "clear_episodic_memory",
  "count_bonus",
  "count_episodic_visit",
  "count_visit",
  "elliptical_bonus",
  "episodic_novelty",
  "epsilon_greedy",
  "ez_greedy",
  "hash_observation",
  "init_counts",
  "init_density",
  "init_ellipsoid",
  "init_episodic_counts",
  "init_episodic_memory",
  "init_ez_state",
  "init_moments",
  "init_regression",
  "init_thompson",
  "init_ucb1",
  "majority_vote",
  "mixture_betas",
  "mixture_discounts",
  "nearest_distance",
  "normalise",
  "observe_picture",
  "over_deviation",
  "pseudo_count_bonus",
  "sample_weights",
  "shrink",
  "thompson",
  "ucb",
  "ucb1",
  "update_ema_moments",
  "update_moments",
  "update_regression",
  "update_ucb1",
  "weight_posterior",
]
