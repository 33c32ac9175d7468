"""Resolves the names of a sweep: agents, environments and bsuite's ids.

An agent is a preset, a preset with changed settings (`tdu@beta=0.5@n_step=3`), or
`module:function` of the user's own.
"""

import re
from collections.abc import Mapping
from typing import Any

from explorax import environments as envs_lib
from explorax.environments import atari57, atari_profiles
from explorax.experiments import errors

# A comma inside a tuple without brackets is followed by a number; one between agents is
# followed by a name.
_BEFORE_AGENT = re.compile(r",(?=\s*[A-Za-z_])")
# A comma between environments is followed by a kind or a group; one within a profile is
# followed by a setting.
_BEFORE_ENV = re.compile(r",(?=\s*(?:[\w.]+:|\w+(?:[/,]|\s*$)))")


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
    given: the flags `sweep` (names of bsuite) and `envs`, which may have groups of
      `atari57.groups()`: `atari57_sparse_reward/sticky=0.25`.

  Raises:
    SetUpError: if there is none, or for a name that does not exist.
  """
  names = [f"bsuite:{bsuite_id}" for bsuite_id in ids(given["sweep"])]
  for name in _BEFORE_ENV.split(given["envs"] or ""):
    names += _expand(name.strip())
  found = list(dict.fromkeys(names))
  if not found:
    raise errors.SetUpError(
      "--sweep and --envs are missing: the first takes names of bsuite (--list), the "
      "second environments of any kind (`run --list_envs`)."
    )
  return found


def _expand(name: str) -> list[str]:
  """The environments of a group, or of a name with its kind; none of ''."""
  if not name or ":" in name:
    return [name] if name else []
  group, slash, settings = name.partition("/")
  groups = atari57.groups()
  if group not in groups:
    raise errors.SetUpError(
      f"{name!r} is neither an environment, written 'kind:name', nor a group of Atari "
      f"games.{errors.nearest(group, list(groups))}"
    )
  games = map(atari_profiles.camel_case, groups[group])
  return [f"atari:{game}{slash}{settings}" for game in games]


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
  groups = envs_lib.bsuite_sweeps.groups()
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
  """The names of groups of ids and of Atari games, with the size of each."""
  groups = envs_lib.bsuite_sweeps.groups()
  rows = [(name, f"{len(x):3} ids") for name, x in groups.items()]
  rows += [(name, f"{len(x):3} games") for name, x in atari57.groups().items()]
  width = max(len(name) for name, _ in rows)
  return "\n".join(f"{name:{width}}  {size}" for name, size in rows)


def _unknown(name: str, groups: dict[str, tuple[str, ...]]) -> str:
  ids_of = groups.get(name.partition("/")[0].upper())
  if ids_of and "/" in name:
    return f"bsuite has no id {name!r}; the last one of its experiment is {ids_of[-1]}."
  lower = {known.lower(): known for known in (*groups, *groups["SWEEP"])}
  near = errors.nearest(name.lower(), list(lower))
  return (
    f"bsuite has no sweep, tag or id {name!r}.{near} --list lists all sweeps and tags."
  )
