"""Scores that others have published, to set beside a sweep's."""

from typing import NamedTuple


class Score(NamedTuple):
  """A published score.

  Attributes:
    agent: the preset that is meant to be the same agent.
    name: of an experiment or a tag.
    value: as printed.
    source: where it is from.
  """

  agent: str
  name: str
  value: float
  source: str


# Cited to two decimals and without intervals; the table that each was printed in, and
# so its seeds, is not known here.
_SOURCE = (
  "bootstrapped DQN in bsuite's paper (Osband et al., 2020, Behaviour Suite for "
  "Reinforcement Learning) or a later one; number of seeds not known here"
)

SCORES = (
  Score("bootstrapped_dqn", "deep_sea", 1.00, _SOURCE),
  Score("bootstrapped_dqn", "deep_sea_stochastic", 0.90, _SOURCE),
  Score("bootstrapped_dqn", "exploration", 0.68, _SOURCE),
)
