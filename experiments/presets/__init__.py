"""All agents by name: a config and the paper that describes the agent.

Each file has the agents of one paper. To add an agent, add a `Preset` to a file.
"""

from explorax import notation
from explorax.experiments import errors
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
  if name not in PRESETS:
    near = notation.nearest(name, PRESETS)
    raise errors.SetUpError(
      f"there is no agent {name!r}.{near} --list_agents lists all agents."
    )
  return PRESETS[name]
