"""All agents by name: a config and the paper that describes the agent.

Each file has the agents of one paper. To add an agent, add a `Preset` to a file.
"""

from explorax.experiments import config
from explorax.experiments.presets import (
  bonuses,
  dqn,
  ez_greedy,
  ngu,
  r2d2,
  rainbow,
  retrace,
  tdu,
  types,
  ucb,
)

Preset = types.Preset

PRESETS = {
  preset.name: preset
  for group in (dqn, rainbow, r2d2, ez_greedy, ngu, ucb, tdu, retrace, bonuses)
  for preset in group.PRESETS
}


def find(name: str) -> Preset:
  """The agent of this name.

  Raises:
    SetUpError: if there is none, with names that resemble it.
  """
  config.check_agent(name)
  return PRESETS[name]
