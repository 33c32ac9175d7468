"""Paper 4's figures 6 and 7, of those of its agents that were swept.

Flennerhag et al. (2020), appendix D.2. Figure 6 has overall scores: on the left of TDU
with several β (β = 0 is Bootstrapped DQN), on the right of TDU, QU and Q+UCB. Figure 7
has the same β, and TDU with its members chosen by UCB1 ("bandit"), task by task. The
paper's text does not say how a score is made an overall one; it is read as bsuite's
scores by tag, which its discussion of the figure speaks of.
"""

from collections.abc import Mapping
from typing import Any

from explorax.experiments.reports import results

_BETAS = ("bootstrapped_dqn", "tdu")
_SIGNALS = ("tdu", "qu", "q_ucb")
_BANDIT = ("tdu_bandit",)

# Figure → what it compares, and the agents that it has.
FIGURES = {
  "6, left": ("TDU by β", _BETAS),
  "6, right": ("TDU, QU and Q+UCB", _SIGNALS),
  "7": ("each experiment, by β and with UCB1", (*_BETAS, *_BANDIT)),
}

_NAMES = {
  "bootstrapped_dqn": "BDQN, β = 0",
  "tdu": "TDU",
  "qu": "QU",
  "q_ucb": "Q+UCB",
  "tdu_bandit": "TDU bandit",
}


def agents(figure: str, found: results.Results) -> list[str]:
  """Those of the figure's agents that were swept, in the figure's order."""
  return [agent for agent in FIGURES[figure][1] if agent in found.agents]


def absent(figure: str, found: results.Results) -> list[str]:
  """Those that were not."""
  return [agent for agent in FIGURES[figure][1] if agent not in found.agents]


def can_be_drawn(figure: str, found: results.Results) -> bool:
  """Whether there is something to compare."""
  return len(agents(figure, found)) > 1


def label(agent: str, settings: Mapping[str, Any]) -> str:
  """`TDU, β = 1`: the paper's name of an agent, with the β that was swept."""
  beta = settings.get("beta")
  return f"{_NAMES[agent]}, β = {beta:g}" if beta else _NAMES[agent]
