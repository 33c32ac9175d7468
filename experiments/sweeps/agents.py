"""The agents of a sweep by name: presets, presets with changed settings, or your own.

tdu                       a preset
tdu@beta=0.5@n_step=3     a preset with changed settings, as with --set of `run`
my_agents:make            a function of your own
"""

import json
import re
from typing import Any

from explorax import environments
from explorax.experiments import errors, overrides, presets
from explorax.experiments.sweeps import user_agents

# A comma inside a tuple without brackets is followed by a number; one between agents is
# followed by a name.
_COMMA = re.compile(r",(?=\s*[A-Za-z_])")


def split(names: str) -> list[str]:
  """Splits a list of names and removes duplicates; commas within values are kept."""
  parts = [""]
  for piece in _COMMA.split(names):
    is_open = parts[-1].count("(") > parts[-1].count(")")
    if is_open:
      parts[-1] += f",{piece}"
    else:
      parts.append(piece)
  return list(dict.fromkeys(name.strip() for name in parts[1:]))


def is_preset(name: str) -> bool:
  """Whether the agent is one of ours."""
  return overrides.split_name(name)[0] in presets.PRESETS


def identity(name: str) -> dict[str, Any]:
  """What distinguishes versions of an agent, in JSON's types: its settings or source.

  Raises:
    SetUpError: if there is no such agent, or no such setting.
  """
  if is_preset(name):
    settings = overrides.to_dict(_config(name, "bsuite:"))
  elif ":" in name:
    settings = user_agents.settings(name)
  else:
    preset, _ = overrides.split_name(name)
    near = errors.nearest(preset, list(presets.PRESETS))
    raise errors.SetUpError(
      f"there is no agent {preset!r}.{near} `python -m explorax.experiments.run "
      "--list_agents` lists all agents; write module:function for your own."
    )
  return json.loads(json.dumps(settings))


def make(
  name: str, bsuite_id: str, environment: environments.StandardEnvironment
) -> Any:
  """One of ours, for an environment."""
  config = _config(name, f"bsuite:{bsuite_id}")
  preset = presets.PRESETS[overrides.split_name(name)[0]]
  return preset.make_agent(config, environments.spec(environment))


def _config(name: str, environment_name: str) -> Any:
  preset, assignments = overrides.split_name(name)
  if not all(assignments):
    raise errors.SetUpError(
      f"the agent {name!r} has an empty setting; write {preset}, or "
      f"{preset}@name=value."
    )
  config = presets.PRESETS[preset].config_for(environment_name)
  try:
    return overrides.apply(config, assignments)
  except ValueError as error:
    raise errors.SetUpError(
      f"the agent {name!r} has an invalid setting: {error}"
    ) from error
