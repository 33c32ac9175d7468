"""Resolves the names of a sweep: agents, environments and bsuite's ids.

An agent is a preset, a preset with changed settings (`tdu@beta=0.5@n_step=3`), or
`module:function` of the user's own.
"""

import re
from collections.abc import Mapping
from typing import Any

from explorax.experiments import errors

# A comma inside a tuple without brackets is followed by a number; one between agents is
# followed by a name.
_BEFORE_AGENT = re.compile(r",(?=\s*[A-Za-z_])")
# A comma between environments is followed by a kind; one within a profile is not.
_BEFORE_ENV = re.compile(r",(?=\s*[\w.]+:)")


def agents(names: str | None) -> list[str]:
  """Splits a list of agents; commas within values are kept.

  Raises:
    SetUpError: if there is none.
  """
  if not names:
    raise errors.SetUpError(
      "--agents is missing; `python -m explorax.experiments.run --list_agents` shows "
      "the names."
    )
  parts = [""]
  for piece in _BEFORE_AGENT.split(names):
    is_open = parts[-1].count("(") > parts[-1].count(")")
    if is_open:
      parts[-1] += f",{piece}"
    else:
      parts.append(piece)
  return list(dict.fromkeys(name.strip() for name in parts[1:]))


def environments(given: Mapping[str, Any]) -> list[str]:
  """The names `kind:name` of all environments, without duplicates.

  Args:
    given: the flags `sweep` (names of bsuite) and `envs`.

  Raises:
    SetUpError: if there is none, or for a name that bsuite does not have.
  """
  names = [f"bsuite:{bsuite_id}" for bsuite_id in ids(given["sweep"])]
  names += [name.strip() for name in _BEFORE_ENV.split(given["envs"] or "")]
  found = [name for name in dict.fromkeys(names) if name]
  if not found:
    raise errors.SetUpError(
      "--sweep and --envs are missing: the first takes names of bsuite (--list), the "
      "second environments of any kind (`run --list_envs`)."
    )
  return found


def ids(text: str | None) -> tuple[str, ...]:
  """bsuite's ids without duplicates, in the given order.

  Args:
    text: names separated by commas, each one of `bsuite_sweeps.groups()` in any case
      (`SWEEP`, `TESTING`, `deep_sea`, `memory`) or an id (`deep_sea/0`).

  Raises:
    SetUpError: for a name that bsuite does not have; the message suggests similar ones.
  """
  if not text:
    return ()
  from explorax.environments import bsuite_sweeps

  groups = bsuite_sweeps.groups()
  by_lower = {name.lower(): ids for name, ids in groups.items()}
  known = set(groups["SWEEP"])
  selected: dict[str, None] = {}
  for name in filter(None, (part.strip() for part in text.split(","))):
    if name in known:
      selected[name] = None
    elif name.lower() in by_lower:
      selected.update(dict.fromkeys(by_lower[name.lower()]))
    else:
      raise errors.SetUpError(_unknown(name, groups))
  return tuple(selected)


def listing() -> str:
  """The names of groups of ids, with the size of each."""
  from explorax.environments import bsuite_sweeps

  groups = bsuite_sweeps.groups()
  width = max(map(len, groups))
  return "\n".join(f"{name:{width}}  {len(ids):3} ids" for name, ids in groups.items())


def _unknown(name: str, groups: dict[str, tuple[str, ...]]) -> str:
  ids_of = groups.get(name.partition("/")[0].upper())
  if ids_of and "/" in name:
    return f"bsuite has no id {name!r}; the last one of its experiment is {ids_of[-1]}."
  lower = {known.lower(): known for known in (*groups, *groups["SWEEP"])}
  near = errors.nearest(name.lower(), list(lower))
  return (
    f"bsuite has no sweep, tag or id {name!r}.{near} --list lists all sweeps and tags."
  )
