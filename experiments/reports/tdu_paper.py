"""Paper 4's figures 6 and 7, of those of its agents that were run.

Flennerhag et al. (2020), appendix D.2. Figure 6 has overall scores: on the left of TDU
with several β (β = 0 is Bootstrapped DQN), on the right of TDU, QU and Q+UCB, each with
its best β, which is 1. Figure 7 has the β of figure 6, and TDU with its members chosen
by UCB1 ("bandit"), task by task. The paper's text does not say how a score is made an
overall one; it is read as bsuite's scores by tag, which its discussion of the figure
speaks of.
"""

from collections.abc import Mapping

from explorax.experiments import overrides
from explorax.experiments.reports import results

_BETAS = ("bootstrapped_dqn", "tdu")
_SIGNALS = ("tdu", "qu", "q_ucb")
_BANDIT = ("tdu_bandit",)

# Figure → what it compares, the presets that it has, and whether with several β.
FIGURES = {
  "6, left": ("TDU by β", _BETAS, True),
  "6, right": ("TDU, QU and Q+UCB", _SIGNALS, False),
  "7": ("each experiment, by β and with UCB1", (*_BETAS, *_BANDIT), True),
}

_NAMES = {
  "bootstrapped_dqn": "BDQN, β = 0",
  "tdu": "TDU",
  "qu": "QU",
  "q_ucb": "Q+UCB",
  "tdu_bandit": "TDU bandit",
}


def agents(
  figure: str, found: results.Results, betas: Mapping[str, float]
) -> list[str]:
  """Those of the figure's agents that were run, in its order and by β.

  They are presets as they are, and TDU with another β, `tdu@beta=0.1`, where the figure
  has several.

  Args:
    figure: one of `FIGURES`.
    found: the scores.
    betas: the β of each agent.
  """
  _, names, with_betas = FIGURES[figure]
  chosen = []
  for agent in found.agents:
    preset, assignments = overrides.split_name(agent)
    if preset not in names:
      continue
    only_beta = all(assignment.startswith("beta=") for assignment in assignments)
    if not assignments or (with_betas and preset == "tdu" and only_beta):
      chosen.append((names.index(preset), betas[agent], agent))
  return [agent for _, _, agent in sorted(chosen)]


def absent(figure: str, drawn: list[str]) -> list[str]:
  """The figure's presets that are not among these agents."""
  presets = {overrides.split_name(agent)[0] for agent in drawn}
  return [name for name in FIGURES[figure][1] if name not in presets]


def label(agent: str, beta: float) -> str:
  """`TDU, β = 1`: the paper's name of an agent, with its β."""
  preset, assignments = overrides.split_name(agent)
  shown = f", β = {beta:g}" if beta or assignments else ""
  return f"{_NAMES[preset]}{shown}"
