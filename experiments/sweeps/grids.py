"""The settings that a tuning tries: paper 4's Table 3, or a grid from a TOML file.

A grid has a table for each preset, with a list of values for each setting:

    [qex]
    beta = [0.01, 0.1, 1.0]

    [noisy_dqn]
    noisy_sigma = [0.1, 0.5]
    hidden_sizes = [[50, 50], [20]]

Every combination of an agent's values is tried. On the command line the same is
`--set qex.beta=0.01,0.1,1.0`.
"""

import itertools
import pathlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from explorax.experiments import errors, overrides, presets

TABLE3 = "table3"
# Commas outside of parentheses: hidden_sizes=(50,50),(20,).
_COMMAS = re.compile(r",(?![^()]*\))")

Grid = Mapping[str, Mapping[str, Sequence[Any]]]

# Flennerhag et al. (2020), appendix D.1, Table 3. Our copy of the text lacks the best
# values and some signs: the first β of QEX and of CTS is read as 10⁻⁴, and values are
# sorted here. The paper's names: QEX, CTS, RND (x-dim m, decay α, and whether to
# normalise), BDQN (λ), SU (hidden size, β, θ), NNS (the scale of the noise, read as
# σ_0) and TDU (λ, β).
_TABLE3: Grid = {
  "qex": {"beta": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 5.0, 10.0, 100.0, 1000.0)},
  "dqn_counts": {"beta": (1e-4, 1e-3, 1e-2, 0.1, 1.0, 5.0, 10.0, 100.0, 1000.0)},
  "dqn_rnd": {
    "beta": (0.01, 0.1, 0.5, 1.0, 5.0, 10.0, 100.0),
    "bonus.output_size": (10, 64, 128),
    "bonus.decay": (0.9, 0.99, 0.999),
    "bonus.normalisation": ("centred", "none"),
  },
  "bootstrapped_dqn": {"prior_scale": (0.0, 1.0, 3.0, 5.0, 10.0, 50.0, 100.0)},
  "successor_uncertainties": {
    "feature_size": (20, 64),
    "likelihood_variance": (0.01, 0.1, 1.0, 10.0, 100.0),
    "prior_variance": (1e-3, 0.1, 1.0, 10.0, 1000.0),
  },
  "noisy_dqn": {"noisy_sigma": (0.01, 0.1, 1.0, 10.0, 100.0)},
  "tdu": {
    "prior_scale": (0.0, 1.0, 3.0),
    "beta": (1e-3, 0.01, 0.1, 1.0, 5.0, 10.0),
  },
}


def load(name: str) -> Grid:
  """`table3`, or the grid of a .toml file.

  Raises:
    SetUpError: if there is no such grid, or the file contains none.
  """
  if name == TABLE3:
    return _TABLE3
  try:
    grid = tomllib.loads(pathlib.Path(name).expanduser().read_text(encoding="utf-8"))
  except (OSError, ValueError) as error:
    raise errors.SetUpError(
      f"--sweep_config={name} is not {TABLE3}, and no TOML file that can be read "
      f"({errors.describe(error)})."
    ) from error
  _check(grid, name)
  return grid


def from_settings(
  settings: Sequence[str], agents: Sequence[str]
) -> tuple[Grid, list[str]]:
  """The grid of `AGENT.FIELD=VALUE,VALUE,…` among the values of `--set`.

  Args:
    settings: the values of `--set`.
    agents: of the sweep.

  Returns:
    The grid, in which an agent without such settings has one combination, and the
    other settings; the grid is empty if there are none.

  Raises:
    SetUpError: for a setting without values, or given twice.
  """
  grid: dict[str, dict[str, list[str]]] = {agent: {} for agent in agents}
  others = []
  for setting in settings:
    name, _, text = setting.partition("=")
    agent, _, field = name.strip().partition(".")
    if agent not in grid or not field:
      others.append(setting)
      continue
    values = [value.strip() for value in _COMMAS.split(text)]
    if field in grid[agent] or not all(values):
      raise errors.SetUpError(
        f"--set {setting} must be one list of values for the field, as "
        "AGENT.FIELD=VALUE,VALUE."
      )
    grid[agent][field] = values
  return (grid if any(grid.values()) else {}), others


def variants(grid: Grid, name: str, wanted: Sequence[str]) -> tuple[str, ...]:
  """The names of all variants to try (`overrides.join_name`), agent by agent.

  Args:
    grid: from `load`.
    name: of the grid, for errors.
    wanted: presets.

  Raises:
    SetUpError: for an agent that is not in the grid.
  """
  found: list[str] = []
  for agent in wanted:
    if agent not in grid:
      raise errors.SetUpError(
        f"--sweep_config={name} has no settings for the agent {agent!r}."
        f"{errors.nearest(agent, list(grid))} Its agents are: {', '.join(grid)}."
      )
    settings = grid[agent]
    for values in itertools.product(*settings.values()):
      pairs = zip(settings, values, strict=True)
      found.append(overrides.join_name(agent, [f"{k}={_text(v)}" for k, v in pairs]))
  return tuple(dict.fromkeys(found))


def _check(grid: Any, name: str) -> None:
  """Raises a SetUpError unless it is a grid of presets."""
  for agent, settings in grid.items():
    if agent not in presets.PRESETS:
      near = errors.nearest(agent, list(presets.PRESETS))
      raise errors.SetUpError(
        f"--sweep_config={name} has the unknown agent {agent!r}.{near}"
      )
    lists = settings.values() if isinstance(settings, dict) else ()
    if not lists or not all(isinstance(x, list) and x for x in lists):
      raise errors.SetUpError(
        f"--sweep_config={name} has {agent} = {settings!r}; write a list of values to "
        "try for each setting."
      )


def _text(value: Any) -> str:
  """A value as a user would type it after --set."""
  if isinstance(value, bool):
    return str(value).lower()
  if isinstance(value, list):
    return ",".join(map(_text, value)) or "()"
  short = f"{value:g}" if isinstance(value, float) else str(value)
  return short if not isinstance(value, float) or float(short) == value else repr(value)
