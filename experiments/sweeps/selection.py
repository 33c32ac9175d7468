"""Resolves the names of a sweep: bsuite's ids, agents and seeds."""

from collections.abc import Mapping, Sequence
from typing import Any

from explorax.environments import bsuite_sweeps
from explorax.experiments import errors
from explorax.experiments.sweeps import agents, grids

_TUNING = 1_000_000  # The first seed of a tuning; other sweeps use lower ones.
MAX_SEED = _TUNING - 1


def names(given: Mapping[str, Any]) -> Sequence[str]:
  """The names of the agents, each with its settings if there is a grid.

  Raises:
    SetUpError: if the flags give no agent, or an unknown grid.
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
      f"--score={given['score']} has no effect without --sweep_config; add it, or "
      "leave out --score."
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
    raise errors.SetUpError(
      "--sweep is missing; --list lists the names (--envs takes environments of any "
      "kind)."
    )
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


def seeds(given: Mapping[str, Any]) -> range:
  """The seeds; a tuning uses separate ones.

  Raises:
    SetUpError: if they exceed the largest seed.
  """
  first, count = given["seed"], given["seeds"]
  if first + count - 1 > MAX_SEED:
    raise errors.SetUpError(
      f"--seed={first} and --seeds={count} exceed the largest seed, {MAX_SEED}; use a "
      "smaller --seed."
    )
  start = first + (_TUNING if given["sweep_config"] else 0)
  return range(start, start + count)


def listing() -> str:
  """The names of groups of ids, with the size of each."""
  groups = bsuite_sweeps.groups()
  width = max(map(len, groups))
  return "\n".join(f"{name:{width}}  {len(ids):3} ids" for name, ids in groups.items())


def _unknown(name: str, groups: dict[str, tuple[str, ...]]) -> str:
  own = groups.get(bsuite_sweeps.experiment(name).upper())
  if own and "/" in name:
    return f"bsuite has no id {name!r}; the last one of its experiment is {own[-1]}."
  lower = {known.lower(): known for known in (*groups, *groups["SWEEP"])}
  near = errors.nearest(name.lower(), list(lower))
  return (
    f"bsuite has no sweep, tag or id {name!r}.{near} --list lists all sweeps and tags."
  )
