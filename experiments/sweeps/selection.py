"""What the names of a sweep stand for: bsuite's ids, and agents."""

from collections.abc import Mapping, Sequence
from typing import Any

from explorax.environments import bsuite_sweeps
from explorax.experiments import errors, overrides
from explorax.experiments.sweeps import agents, grids


def names(given: Mapping[str, Any]) -> Sequence[str]:
  """The names of the agents, each with its settings where there is a grid of them.

  Raises:
    SetUpError: if the flags name none, or a grid that does not exist.
  """
  if not given["agents"]:
    raise errors.SetUpError(
      "--agents is missing; `python -m explorax.experiments.run --list_agents` shows "
      "the names."
    )
  found = agents.split(given["agents"])
  config = given["sweep_config"]
  if config:
    return grids.variants(grids.load(config), config, found)
  if given["score"]:
    raise errors.SetUpError(
      f"--score={given['score']} is for --sweep_config; leave it out, or add that one."
    )
  return found


def ids(text: str | None) -> tuple[str, ...]:
  """bsuite's ids, each once, in the order in which they were named.

  Args:
    text: names separated by commas, each one of `bsuite_sweeps.groups()` in any case
      (`SWEEP`, `TESTING`, `deep_sea`, `memory`) or an id (`deep_sea/0`).

  Raises:
    SetUpError: for a name that bsuite does not have, with similar ones.
  """
  if not text:
    raise errors.SetUpError("--sweep is missing; --list shows the names.")
  groups = bsuite_sweeps.groups()
  by_lower = {name.lower(): ids for name, ids in groups.items()}
  known = set(groups["SWEEP"])
  selected: dict[str, None] = {}
  for name in (part.strip() for part in text.split(",")):
    if name in known:
      selected[name] = None
    elif name.lower() in by_lower:
      selected.update(dict.fromkeys(by_lower[name.lower()]))
    else:
      raise errors.SetUpError(_unknown(name, groups))
  return tuple(selected)


def listing() -> str:
  """The names of several ids, and how many each stands for."""
  groups = bsuite_sweeps.groups()
  width = max(map(len, groups))
  return "\n".join(f"{name:{width}}  {len(ids):3} ids" for name, ids in groups.items())


def _unknown(name: str, groups: dict[str, tuple[str, ...]]) -> str:
  own = groups.get(bsuite_sweeps.experiment(name).upper())
  if own and "/" in name:
    return f"bsuite has no id {name!r}; the last one of that kind is {own[-1]}."
  lower = {known.lower(): known for known in (*groups, *groups["SWEEP"])}
  near = overrides.nearest(name.lower(), list(lower))
  return (
    f"bsuite has no sweep, tag or id {name!r}.{near} --list shows all sweeps and tags."
  )
