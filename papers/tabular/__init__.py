"""Small learners: tables, linear features, and a model, jitted and for many seeds.

A `Learner` learns from single steps. `run` trains it with any exploration rule in an
environment written in JAX; `run_seeds` does so for many seeds.
"""

from explorax.papers.tabular.fourier import Features, FourierBasis
from explorax.papers.tabular.q_learning import QLearning
from explorax.papers.tabular.r_max import RMax
from explorax.papers.tabular.sarsa import SarsaLambda
from explorax.papers.tabular.training import Record, run, run_seeds
from explorax.papers.tabular.types import Learner, Transition

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
