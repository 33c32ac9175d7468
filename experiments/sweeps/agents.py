"""The agents of a sweep by name: presets, with other settings if wanted, or users' own.

tdu                       a preset
tdu@beta=0.5@n_step=3     with settings of its own, named as by --set of `run`
my_agents:make            a function of the user's
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from explorax import environments
from explorax.experiments import errors, overrides, presets
from explorax.experiments.sweeps import user_agents

_MARK = "@"
# A comma within a tuple is followed by a number, one between agents by a name.
_COMMA = re.compile(r",(?=\s*[A-Za-z_])")


def split(names: str) -> list[str]:
  """The names of a list, each once; commas within values are part of them."""
  return list(dict.fromkeys(name.strip() for name in _COMMA.split(names)))


def join(preset: str, assignments: Sequence[str]) -> str:
  """The name of a preset with settings of its own."""
  return _MARK.join((preset, *assignments))


def parts(name: str) -> tuple[str, tuple[str, ...]]:
  """What `join` was given."""
  preset, *assignments = name.split(_MARK)
  return preset, tuple(assignments)


def is_preset(name: str) -> bool:
  """Whether the agent is one of ours."""
  return parts(name)[0] in presets.PRESETS


def identity(name: str) -> dict[str, Any]:
  """What tells versions of an agent apart, as JSON has it: its settings or its source.

  Raises:
    SetUpError: if there is no such agent, with those whose names resemble it, or no
      such settings.
  """
  if is_preset(name):
    settings = overrides.to_dict(_config(name, "bsuite:"))
  elif ":" in name:
    settings = user_agents.settings(name)
  else:
    preset, _ = parts(name)
    near = overrides.nearest(preset, list(presets.PRESETS))
    raise errors.SetUpError(
      f"there is no agent {preset!r}.{near} `python -m explorax.experiments.run "
      "--list_agents` shows all of them; your own are named module:function."
    )
  return json.loads(json.dumps(settings))


def identities(names: Sequence[str]) -> Mapping[str, dict[str, Any]]:
  """Name → `identity`."""
  return {name: identity(name) for name in names}


def make(
  name: str, bsuite_id: str, environment: environments.StandardEnvironment
) -> Any:
  """One of ours, for an environment."""
  config = _config(name, f"bsuite:{bsuite_id}")
  preset = presets.PRESETS[parts(name)[0]]
  return preset.make_agent(config, environments.spec(environment))


def _config(name: str, environment_name: str) -> Any:
  preset, assignments = parts(name)
  if not all(assignments):
    raise errors.SetUpError(
      f"the agent {name!r} has an empty setting; write {preset}, or "
      f"{preset}{_MARK}name=value."
    )
  config = presets.PRESETS[preset].config_for(environment_name)
  try:
    return overrides.apply(config, assignments)
  except ValueError as error:
    raise errors.SetUpError(
      f"the agent {name!r} has no such settings: {error}"
    ) from error
