"""bsuite's CSV of Deep Sea in JAX; bsuite's environments write their own."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from explorax.environments import bsuite_sweeps
from explorax.experiments import output

if TYPE_CHECKING:
  from explorax.experiments.runners import common


class BsuiteCsv:
  """Writes the whole file at each episode that bsuite logs."""

  def __init__(
    self,
    directory: output.RunDirectory,
    record: Mapping[str, Any],
    episodes: "Iterable[common.Episode]",
  ):
    """Args: episodes: the earlier ones of a run that resumes."""
    bsuite_id = record["env"].removeprefix("bsuite:")
    self._directory = directory
    self._name = f"bsuite/{bsuite_sweeps.csv_name(bsuite_id)}"
    self._log = bsuite_sweeps.DeepSeaLog(record["episodes"])
    for episode in episodes:
      self._is_logged(episode)

  def write(self, episode: "common.Episode") -> None:
    """Adds an episode."""
    if self._is_logged(episode):
      self._directory.write(self._name, lambda file: file.write(self._log.csv()))

  def _is_logged(self, episode: "common.Episode") -> bool:
    log = self._log
    return log.add(episode.episode_length, episode.episode_return, episode.metrics)
