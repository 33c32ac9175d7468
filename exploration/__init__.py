"""Choosing actions, and the novelty signals computed while acting.

Pure functions of arrays with small pytrees for what lasts between steps, and the
rules (`Rule`) that wrap them for agents.
"""

from explorax.exploration.alternating import AlternatingEpsilonGreedy
from explorax.exploration.counts import (
  count_bonus,
  count_visit,
  hash_observation,
  init_counts,
)
from explorax.exploration.density import (
  MAX_DEPTH,
  DensityModel,
  init_density,
  observe_picture,
  pseudo_count_bonus,
  shrink,
)
from explorax.exploration.durations import (
  sample_exponential,
  sample_uniform,
  sample_zeta,
)
from explorax.exploration.ensemble_rules import (
  MajorityVote,
  QUcb,
  Thompson,
  Ucb,
  Ucb1,
)
from explorax.exploration.members import (
  ThompsonState,
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
  update_ema_moments,
  update_moments,
)
from explorax.exploration.novelty import (
  EpisodicMemory,
  clear_episodic_memory,
  episodic_novelty,
  init_episodic_memory,
)
from explorax.exploration.regression import (
  Regression,
  WeightPosterior,
  init_regression,
  sample_weights,
  update_regression,
  weight_posterior,
)
from explorax.exploration.repeats import EzState, ez_greedy, init_ez_state
from explorax.exploration.rules import (
  Boltzmann,
  Dithering,
  EpsilonGreedy,
  EzGreedy,
  Greedy,
)
from explorax.exploration.selection import (
  boltzmann,
  epsilon_greedy,
  majority_vote,
  ucb,
)
from explorax.exploration.staged import StagedEpsilonGreedy
from explorax.exploration.types import Place, Rule

__all__ = [
  "MAX_DEPTH",
  "AlternatingEpsilonGreedy",
  "Boltzmann",
  "DensityModel",
  "Dithering",
  "EpisodicMemory",
  "EpsilonGreedy",
  "EzGreedy",
  "EzState",
  "Greedy",
  "MajorityVote",
  "Moments",
  "Place",
  "QUcb",
  "Regression",
  "Rule",
  "StagedEpsilonGreedy",
  "Thompson",
  "ThompsonState",
  "Ucb",
  "Ucb1",
  "Ucb1State",
  "WeightPosterior",
  "boltzmann",
  "clear_episodic_memory",
  "count_bonus",
  "count_visit",
  "episodic_novelty",
  "epsilon_greedy",
  "ez_greedy",
  "hash_observation",
  "init_counts",
  "init_density",
  "init_episodic_memory",
  "init_ez_state",
  "init_moments",
  "init_regression",
  "init_thompson",
  "init_ucb1",
  "majority_vote",
  "mixture_betas",
  "mixture_discounts",
  "normalise",
  "observe_picture",
  "pseudo_count_bonus",
  "sample_exponential",
  "sample_uniform",
  "sample_weights",
  "sample_zeta",
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
