"""Which of bsuite's ids the names of a sweep stand for."""

from explorax.environments import bsuite_sweeps
from explorax.experiments import errors, overrides


def select(names: str) -> tuple[str, ...]:
  """The ids, each once, in the order in which they were named.

  Args:
    names: separated by commas, each one of `bsuite_sweeps.groups()` in any case
      (`SWEEP`, `TESTING`, `deep_sea`, `memory`) or an id (`deep_sea/0`).

  Raises:
    SetUpError: for a name that bsuite does not have, with those that resemble it.
  """
  groups = bsuite_sweeps.groups()
  by_lower = {name.lower(): ids for name, ids in groups.items()}
  known = set(groups["SWEEP"])
  selected: dict[str, None] = {}
  for name in (part.strip() for part in names.split(",")):
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
    return f"bsuite has no id {name!r}; those of {own[0]}'s kind end with {own[-1]}."
  lower = {known.lower(): known for known in (*groups, *groups["SWEEP"])}
  near = overrides.nearest(name.lower(), list(lower))
  return (
    f"bsuite has no sweep, tag or id {name!r}.{near} --list shows all sweeps and tags."
  )
