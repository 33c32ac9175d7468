"""Paper 4's figures 6 and 7, of those of its agents that were run.

Flennerhag et al. (2020), appendix D.2. Figure 6 has overall scores: on the left of TDU
with several β (β = 0 is Bootstrapped DQN), on the right of TDU, QU and Q+UCB, each with
its best β, which is 1. Figure 7 has the β of figure 6, and TDU with its members chosen
by UCB1 ("bandit"), task by task. The paper's text does not say how a score is made an
overall one; it is read as bsuite's scores by tag, which its discussion of the figure
speaks of.
"""

from collections.abc import Iterable, Mapping

from explorax.experiments import overrides

# Figure → what it compares, and its presets; TDU with several β in some.
_BETAS = ("bootstrapped_dqn", "tdu")
FIGURES = {
  "6, left": ("TDU by β", _BETAS),
  "6, right": ("TDU, QU and Q+UCB", ("tdu", "qu", "q_ucb")),
  "7": ("each experiment, by β and with UCB1", (*_BETAS, "tdu_bandit")),
}
_WITH_BETAS = ("6, left", "7")

_NAMES = {
  "bootstrapped_dqn": "BDQN, β = 0",
  "tdu": "TDU",
  "qu": "QU",
  "q_ucb": "Q+UCB",
  "tdu_bandit": "TDU bandit",
}


def agents(
  figure: str, names: Iterable[str], betas: Mapping[str, float]
) -> dict[str, str]:
  """Those of the figure's agents that were run → the paper's name, in its order.

  They are presets as they are, and TDU with another β, `tdu@beta=0.1`, where the figure
  has several.

  Args:
    figure: one of `FIGURES`.
    names: of all agents.
    betas: the β of each agent.
  """
  _, presets = FIGURES[figure]
  chosen = []
  for agent in names:
    preset, assignments = overrides.split_name(agent)
    if preset not in presets:
      continue
    only_beta = all(assignment.startswith("beta=") for assignment in assignments)
    if not assignments or (figure in _WITH_BETAS and preset == "tdu" and only_beta):
      beta = betas[agent]
      value = f", β = {beta:g}" if beta or assignments else ""
      chosen.append((presets.index(preset), beta, agent, f"{_NAMES[preset]}{value}"))
  return {agent: name for _, _, agent, name in sorted(chosen)}
