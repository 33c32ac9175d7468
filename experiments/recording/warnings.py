"""Warnings of a run: its learner's values diverge, or its targets are cut."""

from collections.abc import Mapping, Sequence
from typing import Any

from explorax.experiments.runners import common

# |q| is a mean over a batch. In runs that learn it is up to a third above its bound.
_MARGIN = 1.5
# Initial values and priors are of this size, whatever the rewards are.
_MIN_BOUND = 10.0
_LONG = 1000  # Learner updates.
# Expected targets of values at the last atom may be this much greater.
_ABOVE_ATOMS = 1.1


class Divergence:
  """Says of episodes if |q| is above the largest `q_bound`, |r| / (1 − γ), for long.

  Above means by more than half, and for long means in all episodes of 1,000 learner
  updates. A bound below 10 counts as 10.
  """

  def __init__(self) -> None:
    self._bound = 0.0  # The largest so far.
    self._since: int | None = None  # Learner updates before |q| was above the bound.

  def __call__(self, episodes: Sequence[common.Episode]) -> str | None:
    for episode in episodes:
      metrics = episode.metrics
      if "q" not in metrics or "q_bound" not in metrics:
        continue
      q, self._bound = abs(metrics["q"]), max(self._bound, metrics["q_bound"])
      if not q > _MARGIN * max(self._bound, _MIN_BOUND):
        self._since = None
        continue
      if self._since is None:
        self._since = episode.learner_updates
      if episode.learner_updates - self._since >= _LONG:
        return (
          f"the values diverge: |q| is {q:.4g} at environment step "
          f"{episode.env_steps:,}, but no value exceeds {self._bound:.4g}, the largest "
          "|r| / (1 − γ). Try a smaller learning_rate, a larger target_update_period "
          "or fewer updates_per_step (with --set)."
        )
    return None


class CutTargets:
  """Says of episodes if targets so far were more than a tenth beyond the last atom.

  Targets of distributions are cut there.
  """

  def __init__(self, record: Mapping[str, Any]):
    """`record` is the content of config.json."""
    settings = record.get("config")
    target = settings.get("target") if isinstance(settings, Mapping) else None
    atoms = target.get("max_abs_value") if isinstance(target, Mapping) else None
    self._limit: float | None = atoms
    self._low = self._high = 0.0

  def __call__(self, episodes: Sequence[common.Episode]) -> str | None:
    if (limit := self._limit) is None:
      return None
    for episode in episodes:
      self._low = min(self._low, episode.metrics.get("target_min", 0.0))
      self._high = max(self._high, episode.metrics.get("target_max", 0.0))
      if max(-self._low, self._high) > _ABOVE_ATOMS * limit:
        return (
          f"targets from {self._low:.6g} to {self._high:.6g} were seen up to "
          f"environment step {episode.env_steps:,}, but the agent's distributions end "
          f"at ±{limit:g}, where targets are cut. Set target.max_abs_value above the "
          "largest discounted return (with --set), or scale the rewards."
        )
    return None
