"""The small learners: tables, linear features, and a model; jitted, many at a time.

A `Learner` learns from single steps; `run` is its loop with any exploration rule in an
environment written in JAX, and `run_seeds` that of many seeds.
"""

from explorax.agents.tabular.fourier import Features, FourierBasis
from explorax.agents.tabular.q_learning import QLearning
from explorax.agents.tabular.r_max import RMax
from explorax.agents.tabular.sarsa import SarsaLambda
from explorax.agents.tabular.training import Record, run, run_seeds
from explorax.agents.tabular.types import Learner, Transition

__all__ = [
  "Features",
  "FourierBasis",
  "Learner",
  "QLearning",
  "RMax",
  "Record",
  "SarsaLambda",
  "Transition",
  "run",
  "run_seeds",
]
