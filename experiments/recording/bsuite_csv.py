"""bsuite's CSV of a run, which bsuite's own analysis reads."""

import math
import os
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from explorax import environments
from explorax.experiments import output

if TYPE_CHECKING:
  from explorax.experiments.runners import common

_BEST = "best_episode"  # Of bsuite's numbers, the only one that is not a sum.
_SUMS = (
  "total_bad_episodes",
  "denoised_return",
  "total_regret",
  "total_perfect",
  "raw_return",
)


class BsuiteCsv:
  """Writes the episodes that bsuite logs, with its totals since the run's start.

  bsuite's environments count since they were made, and Deep Sea in JAX counts within
  each episode.
  """

  def __init__(
    self,
    directory: pathlib.Path,
    bsuite_id: str,
    num_episodes: int | None,
    saved: Mapping[str, Any] | None = None,
  ):
    """Creates the file in `directory`, or resumes it from what `save` returned.

    Args:
      directory: of the run.
      bsuite_id: as `deep_sea/0`.
      num_episodes: those after it are not logged; None for no limit. The device runner
        may end a few more.
      saved: what `save` returned.
    """
    self._num_episodes = math.inf if num_episodes is None else num_episodes
    state = {"size": 0, "steps": 0, "total_return": 0.0, "totals": {}, **(saved or {})}
    self._path = directory / "bsuite" / environments.bsuite_sweeps.csv_name(bsuite_id)
    self._steps: int = state["steps"]
    self._total_return: float = state["total_return"]
    self._before: dict[str, float] = dict(state["totals"])  # When the run has resumed.
    self._totals = dict(self._before)
    with output.write_errors(self._path):
      self._path.parent.mkdir(exist_ok=True)
      self._path.touch()
      os.truncate(self._path, state["size"])

  def with_totals(self, episode: "common.Episode") -> "common.Episode":
    """The episode with the environment's totals since the run's start."""
    if "bad_episode" in episode.metrics:
      return episode
    totals = {
      name: value + self._before.get(name, 0.0)
      for name, value in episode.metrics.items()
      if name in _SUMS
    }
    if _BEST in episode.metrics:
      totals[_BEST] = max(episode.metrics[_BEST], self._before.get(_BEST, 0.0))
    return episode._replace(metrics={**episode.metrics, **totals})

  def write(self, episode: "common.Episode") -> None:
    """Adds an episode with its totals."""
    metrics = episode.metrics
    if "bad_episode" in metrics:
      bad, treasures = metrics["bad_episode"], metrics["denoised_return"]
      self._totals = {
        "total_bad_episodes": self._totals.get("total_bad_episodes", 0.0) + bad,
        "denoised_return": self._totals.get("denoised_return", 0.0) + treasures,
      }
    else:
      self._totals = {n: x for n, x in metrics.items() if n in (*_SUMS, _BEST)}
    # Rewards are float32, and bsuite's are not.
    episode_return = float(f"{episode.episode_return:.7g}")
    self._steps += episode.episode_length
    self._total_return += episode_return
    is_beyond = episode.episode > self._num_episodes
    if is_beyond or not environments.bsuite_sweeps.is_logged(episode.episode):
      return
    columns = {
      "steps": self._steps,
      "episode": episode.episode,
      "total_return": self._total_return,
      "episode_len": episode.episode_length,
      "episode_return": episode_return,
      **{name: f"{value:.9g}" for name, value in self._totals.items()},
    }
    with output.write_errors(self._path), open(self._path, "a") as file:
      if not file.tell():
        file.write(",".join(columns) + "\n")
      file.write(",".join(map(str, columns.values())) + "\n")

  def save(self) -> dict[str, Any]:
    """The state for a checkpoint, in JSON's types."""
    return {
      "size": self._path.stat().st_size,
      "steps": self._steps,
      "total_return": self._total_return,
      "totals": self._totals,
    }
