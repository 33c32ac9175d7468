"""bsuite's sweeps: which ids there are, how long they last, and their twins in JAX."""

from collections.abc import Callable, Mapping
from typing import Any

from bsuite import sweep
from bsuite.utils import wrappers

# Steps of an episode where no setting says it; of cartpole and mountain_car, the most.
_STEPS = {
  "bandit": 1,
  "cartpole": 1000,
  "catch": 9,
  "discounting_chain": 100,
  "memory_size": 2,
  "mnist": 1,
  "mountain_car": 1000,
}
_STEPS_IN = ("size", "memory_length", "chain_length")  # Settings that say it.


def groups() -> dict[str, tuple[str, ...]]:
  """bsuite's names of several ids → the ids: SWEEP, TESTING, experiments, tags."""
  experiments: dict[str, tuple[str, ...]] = {}
  for bsuite_id in sweep.SWEEP:
    name = experiment(bsuite_id).upper()
    experiments[name] = (*experiments.get(name, ()), bsuite_id)
  return {"SWEEP": sweep.SWEEP, "TESTING": sweep.TESTING, **experiments, **sweep.TAGS}


def experiment(bsuite_id: str) -> str:
  """`deep_sea`, of `deep_sea/0`."""
  return bsuite_id.partition(sweep.SEPARATOR)[0]


def needs_mnist(bsuite_id: str) -> bool:
  """Whether the id is one of those that read the MNIST files."""
  return experiment(bsuite_id).startswith("mnist")


def num_episodes(bsuite_id: str) -> int:
  """How many episodes bsuite gives an agent."""
  return sweep.EPISODES[bsuite_id]


def steps_per_episode(bsuite_id: str) -> int:
  """About how many steps an episode has: to tell long tasks from short ones."""
  settings = sweep.SETTINGS[bsuite_id]
  for name in _STEPS_IN:
    if name in settings:
      return settings[name]
  first = next((x for x in _STEPS if bsuite_id.startswith(x)), None)
  return 20 if first is None else _STEPS[first]  # umbrella_distract has 20.


def csv_name(bsuite_id: str) -> str:
  """The file in which bsuite's `csv_load` looks for the id's results."""
  return f"bsuite_id_-_{bsuite_id.replace(sweep.SEPARATOR, '-')}.csv"


def jax_equivalent(bsuite_id: str) -> str | None:
  """The environment written in JAX that is this id, as `jax:…`; None if there is none.

  Deep Sea's equals bsuite's step by step, and that of stochastic Deep Sea given the
  same tosses; its tosses have the same distribution (`tests/environments/`).
  """
  name, settings = experiment(bsuite_id), sweep.SETTINGS.get(bsuite_id, {})
  if name not in ("deep_sea", "deep_sea_stochastic"):
    return None
  stochastic = ",stochastic=true" if name == "deep_sea_stochastic" else ""
  return (
    f"jax:deep_sea/{settings['size']},mapping_seed={settings['mapping_seed']}"
    f"{stochastic}"
  )


class DeepSeaLog:
  """bsuite's log of Deep Sea, computed from the episodes of the environment in JAX."""

  def __init__(self, on_row: Callable[[Mapping[str, Any]], None]):
    """Args: on_row: takes a row, at the episodes at which bsuite logs one."""
    self._on_row = on_row
    self._row: dict[str, Any] = {"steps": 0, "episode": 0, "total_return": 0.0}
    self._info = {"total_bad_episodes": 0, "denoised_return": 0}

  def take(self, length: int, total: float, metrics: Mapping[str, float]) -> None:
    """Takes an episode's length, return, and the metrics of `jax:deep_sea`."""
    row, info = self._row, self._info
    row["steps"] += length
    row["episode"] += 1
    row["total_return"] += total
    info["total_bad_episodes"] += int(metrics["bad_episode"])
    info["denoised_return"] += int(metrics["denoised_return"])
    if wrappers._logarithmic_logging(row["episode"]):
      self._on_row({**row, "episode_len": length, "episode_return": total, **info})

  @property
  def episodes(self) -> int:
    """How many there were."""
    return self._row["episode"]

  def save(self) -> dict[str, Any]:
    """All that it goes on from, as JSON can hold it."""
    return {"row": {**self._row}, "info": {**self._info}}

  def restore(self, saved: Mapping[str, Any]) -> None:
    """Goes on from what `save` returned."""
    self._row, self._info = {**saved["row"]}, {**saved["info"]}
