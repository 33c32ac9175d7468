"""The evaluations of a run so far: the last one, and the best."""

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
  from explorax.experiments.runners import evaluation


class Evaluations:
  """Keeps each evaluation's mean return, and when it was."""

  def __init__(self):
    self._env_steps: list[int] = []
    self._means: list[float] = []
    self._num_episodes = 0

  def __len__(self) -> int:
    return len(self._means)

  def add(self, evaluation: "evaluation.Evaluation") -> None:
    """Takes an `Evaluation` of a runner in."""
    self._env_steps.append(evaluation.env_steps)
    self._means.append(evaluation.mean_return)
    self._num_episodes = len(evaluation.episodes)

  def restore(self, episodes: "Iterable[evaluation.EvaluationEpisode]") -> None:
    """Takes in the episodes of evaluations that were made, in their order."""
    for env_steps, group in itertools.groupby(episodes, lambda e: e.env_steps):
      returns = [episode.episode_return for episode in group]
      self._env_steps.append(env_steps)
      self._means.append(float(np.mean(returns)))
      self._num_episodes = len(returns)

  @property
  def env_steps(self) -> np.ndarray:
    """int64 `[N]`: environment steps of training before each."""
    return np.array(self._env_steps, np.int64)

  @property
  def means(self) -> np.ndarray:
    """float64 `[N]`: the mean return of each."""
    return np.array(self._means, np.float64)

  def to_dict(self) -> dict[str, Any]:
    """For `summary.json`; only if there was one. The best is the first such one."""
    return {
      "evaluations": len(self),
      "episodes_each": self._num_episodes,
      "last": self._at(-1),
      "best": self._at(int(np.argmax(self.means))),
    }

  def sentence(self) -> str:
    """The same for a reader; only if there was one."""
    last, best = self._at(-1), self._at(int(np.argmax(self.means)))
    return (
      f"Evaluation ({self._num_episodes} "
      f"episode{'' if self._num_episodes == 1 else 's'} each): mean return "
      f"{last['mean_return']:.4g} at step {last['env_steps']:,} (last), "
      f"{best['mean_return']:.4g} at step {best['env_steps']:,} (best of {len(self)})."
    )

  def _at(self, index: int) -> dict[str, Any]:
    return {
      "mean_return": self._means[index],
      "env_steps": self._env_steps[index],
    }
