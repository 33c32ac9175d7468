"""bsuite's sweeps: the ids, their lengths, and equivalent environments in JAX."""

from collections.abc import Mapping
from typing import Any

from bsuite import sweep
from bsuite.utils import wrappers


def groups() -> dict[str, tuple[str, ...]]:
  """bsuite's names of several ids → the ids: SWEEP, TESTING, experiments, tags."""
  upper = {name.upper(): ids for name, ids in experiments().items()}
  return {"SWEEP": sweep.SWEEP, "TESTING": sweep.TESTING, **upper, **sweep.TAGS}


def experiments() -> dict[str, tuple[str, ...]]:
  """Experiment → its ids."""
  ids: dict[str, tuple[str, ...]] = {}
  for bsuite_id in sweep.SWEEP:
    name = experiment(bsuite_id)
    ids[name] = (*ids.get(name, ()), bsuite_id)
  return ids


def experiment(bsuite_id: str) -> str:
  """`deep_sea` for `deep_sea/0`."""
  return bsuite_id.partition(sweep.SEPARATOR)[0]


def settings(bsuite_id: str) -> Mapping[str, Any]:
  """The arguments of the id's environment."""
  return sweep.SETTINGS[bsuite_id]


def num_episodes(bsuite_id: str) -> int:
  """bsuite's number of episodes for the id."""
  return sweep.EPISODES[bsuite_id]


def is_logged(episode: int) -> bool:
  """Whether bsuite logs the episode of this number, from 1."""
  return wrappers._logarithmic_logging(episode)


def csv_name(bsuite_id: str) -> str:
  """The file in which bsuite's `csv_load` looks for the id's results."""
  return f"bsuite_id_-_{bsuite_id.replace(sweep.SEPARATOR, '-')}.csv"


def jax_equivalent(bsuite_id: str) -> str | None:
  """The equivalent environment written in JAX, as `jax:…`; None if there is none.

  Deep Sea in JAX equals bsuite's step by step, and stochastic Deep Sea does for the
  same random draws, whose distribution is the same (`tests/environments/`).
  """
  name, settings = experiment(bsuite_id), sweep.SETTINGS.get(bsuite_id, {})
  if name not in ("deep_sea", "deep_sea_stochastic"):
    return None
  stochastic = ",stochastic=true" if name == "deep_sea_stochastic" else ""
  return (
    f"jax:deep_sea/{settings['size']},mapping_seed={settings['mapping_seed']}"
    f"{stochastic}"
  )
