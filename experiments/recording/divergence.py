"""Detects that a learner's values diverge."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
  from explorax.experiments.runners import core

# |q| is a mean over a batch. In runs that learn it is up to a third above its bound.
_MARGIN = 1.5
# Initial values and priors are of this size, whatever the rewards are.
_MIN_BOUND = 10.0
_LONG = 1000  # Learner updates.


class Divergence:
  """Whether |q| is above the largest `q_bound`, |r| / (1 − γ), for long.

  Above means by more than half, and for long means in all episodes of 1,000 learner
  updates. A bound below 10 counts as 10. There is no warning without the two metrics.

  Attributes:
    message: says so, with the numbers and what to try; None until then.
  """

  def __init__(self) -> None:
    self.message: str | None = None
    self._bound = 0.0  # The largest so far.
    self._since: int | None = None  # Learner updates before |q| was above the bound.

  def add(self, episode: "core.Episode") -> None:
    """Takes the metrics of an episode."""
    metrics = episode.metrics
    if self.message is not None or not {"q", "q_bound"} <= metrics.keys():
      return
    q, self._bound = abs(metrics["q"]), max(self._bound, metrics["q_bound"])
    if not q > _MARGIN * max(self._bound, _MIN_BOUND):
      self._since = None
      return
    if self._since is None:
      self._since = episode.learner_updates
    if episode.learner_updates - self._since >= _LONG:
      self.message = (
        f"the values diverge: |q| is {q:.4g} at environment step "
        f"{episode.env_steps:,}, but no value exceeds {self._bound:.4g}, the largest "
        "|r| / (1 − γ). Try a smaller learning_rate, a larger target_update_period or "
        "fewer updates_per_step (with --set)."
      )
