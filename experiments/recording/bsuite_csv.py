"""bsuite's CSV of a run, which bsuite's own analysis reads, from its episodes."""

from collections.abc import Mapping

import numpy as np

from explorax import environments
from explorax.experiments import config as config_lib
from explorax.experiments import output
from explorax.experiments.recording import rows

_BEST = "best_episode"  # Of bsuite's numbers, the only one that is not a sum.
_SUMS = (
  "total_bad_episodes",
  "denoised_return",
  "total_regret",
  "total_perfect",
  "raw_return",
)


def is_for(config: config_lib.RunConfig) -> bool:
  """Whether a run has this file: of bsuite's environments, one at a time."""
  has_one = (config.num_actors or 1) * (config.num_envs or 1) == 1
  is_one_by_one = has_one or config.runner == config_lib.DEVICE
  return config.env.startswith("bsuite:") and is_one_by_one


def last_totals(episodes: rows.Rows) -> dict[str, float]:
  """The environment's totals in the last row of `metrics.csv`; none without a row."""
  names = {*_SUMS, _BEST} & episodes.keys()
  return {name: float(episodes[name][-1]) for name in names if len(episodes[name])}


def continued(
  metrics: Mapping[str, float], before: Mapping[str, float]
) -> dict[str, float]:
  """The environment's metrics, with its totals since the run's start.

  bsuite's environments count since they were made. Deep Sea in JAX counts within each
  episode, and is left as it is.

  Args:
    metrics: of an episode.
    before: `last_totals` when the run resumed.
  """
  if "bad_episode" in metrics:
    return {**metrics}
  totals = {
    name: metrics[name] + before.get(name, 0.0) for name in _SUMS if name in metrics
  }
  if _BEST in metrics:
    totals[_BEST] = max(metrics[_BEST], before.get(_BEST, metrics[_BEST]))
  return {**metrics, **totals}


def write(
  directory: output.RunDirectory, config: config_lib.RunConfig, episodes: rows.Rows
) -> None:
  """Writes the episodes that bsuite logs.

  The device runner may end a few more than the limit; these are not logged.

  Args:
    directory: of the run.
    config: of the run.
    episodes: the columns of `metrics.csv`.
  """
  totals = {name: episodes[name] for name in (*_SUMS, _BEST) if name in episodes}
  if "bad_episode" in episodes:
    totals = {
      "total_bad_episodes": np.cumsum(episodes["bad_episode"]),
      "denoised_return": np.cumsum(episodes["denoised_return"]),
    }
  # Rewards are float32, and bsuite's are not.
  returns = np.array([float(f"{x:.7g}") for x in episodes["episode_return"].tolist()])
  columns = {
    "steps": np.cumsum(episodes["episode_length"]),
    "episode": episodes["episode"],
    "total_return": np.cumsum(returns),
    "episode_len": episodes["episode_length"],
    "episode_return": returns,
    **totals,
  }
  sweeps = environments.bsuite_sweeps
  last = min(len(returns), config.episodes or len(returns))
  logged = [number - 1 for number in range(1, last + 1) if sweeps.is_logged(number)]
  table = np.stack([*columns.values()], axis=1)[logged]
  name = sweeps.csv_name(config.env.removeprefix("bsuite:"))
  directory.write(
    f"bsuite/{name}",
    lambda file: np.savetxt(
      file, table, "%.15g", ",", header=",".join(columns), comments=""
    ),
  )
