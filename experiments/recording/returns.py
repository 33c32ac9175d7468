"""Returns of training episodes by policy group, and of evaluations."""

import array
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
  from explorax.experiments.runners import common

WINDOW = 100  # Episodes of a running mean.
LATE_SHARE = 0.1  # Of a run's steps, for the return at its end.
_GRID = 400  # Points of a curve over runs.


class Evaluations:
  """The mean return and the time of each evaluation.

  Attributes:
    last: the episodes of the last one.
  """

  def __init__(self) -> None:
    self.last: list[common.EvaluationEpisode] = []
    self._env_steps: list[int] = []
    self._means: list[float] = []

  def __len__(self) -> int:
    return len(self._means)

  def add(self, episodes: "Iterable[common.EvaluationEpisode]") -> None:
    """Adds the episodes of one or more evaluations, in order."""
    for env_steps, group in itertools.groupby(episodes, lambda e: e.env_steps):
      self.last = list(group)
      self._env_steps.append(env_steps)
      self._means.append(float(np.mean(_values(self.last))))

  @property
  def env_steps(self) -> np.ndarray:
    """int64 `[N]`: environment steps of training before each."""
    return np.array(self._env_steps, np.int64)

  @property
  def means(self) -> np.ndarray:
    """float64 `[N]`: the mean return of each."""
    return np.array(self._means, np.float64)

  @property
  def standard_error(self) -> float | None:
    """Of the last mean; None for a single episode."""
    values = _values(self.last)
    if len(values) < 2:
      return None
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))

  def to_dict(self) -> dict[str, Any]:
    """For `summary.json`; requires an evaluation. `best` is the first of the best."""

    def at(index: int) -> dict[str, Any]:
      return {
        "mean_return": self._means[index],
        "env_steps": self._env_steps[index],
      }

    return {
      "evaluations": len(self),
      "episodes_each": len(self.last),
      "last": at(-1),
      "best": at(int(np.argmax(self.means))),
    }


class Returns:
  """The returns so far, of all episodes and by policy.

  Attributes:
    evaluations: the evaluations so far.
  """

  def __init__(self) -> None:
    self.evaluations = Evaluations()
    self._returns = array.array("d")
    self._env_steps = array.array("q")
    self._policies = array.array("l")
    self._names: list[str] = []

  def __len__(self) -> int:
    return len(self._returns)

  def add(self, episode: "common.Episode") -> None:
    """Adds an episode of a runner."""
    if episode.policy not in self._names:
      self._names.append(episode.policy)
    self._returns.append(episode.episode_return)
    self._env_steps.append(episode.env_steps)
    self._policies.append(self._names.index(episode.policy))

  @property
  def num_steps(self) -> int:
    """Environment steps at the latest episode's end or evaluation; 0 without one."""
    return int(max([0, *self._env_steps, *self.evaluations.env_steps]))

  @property
  def policies(self) -> list[str]:
    """The policy groups that ran an episode, in alphabetical order."""
    return sorted(self._names)

  def of(self, policy: str | None = None) -> np.ndarray:
    """float64 `[E]`: the returns, of `policy`'s episodes or of all."""
    return np.array(self._returns)[self._where(policy)]

  def env_steps(self, policy: str | None = None) -> np.ndarray:
    """int64 `[E]`: the environment steps at the end of each of these episodes."""
    return np.array(self._env_steps)[self._where(policy)]

  def late(self, env_steps: int, policy: str | None = None) -> np.ndarray:
    """float64 `[E]`: the returns in the last tenth of so many environment steps.

    At least that of the last episode, if there is one.
    """
    at, values = self.env_steps(policy), self.of(policy)
    is_late = at > env_steps - LATE_SHARE * env_steps
    return values[is_late] if is_late.any() else values[-1:]

  def _where(self, policy: str | None) -> np.ndarray:
    if policy is None:
      return np.ones(len(self._policies), bool)
    return np.array(self._policies, int) == self._names.index(policy)


def _values(episodes: "Sequence[common.EvaluationEpisode]") -> list[float]:
  return [episode.episode_return for episode in episodes]


def best_mean(returns: np.ndarray) -> float | None:
  """The highest mean of `WINDOW` consecutive returns; None with fewer returns."""
  if len(returns) < WINDOW:
    return None
  return float(np.max(running_mean(returns, WINDOW)[WINDOW - 1 :]))


def smooth(returns: np.ndarray) -> np.ndarray:
  """`running_mean` over a tenth of the episodes, and over `WINDOW` at most."""
  return running_mean(returns, max(1, min(WINDOW, len(returns) // 10)))


def on_grid(
  runs: Sequence[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
  """The curves of several runs at the same environment steps.

  Args:
    runs: environment steps `[E]` and values `[E]` of each run's curve, E ≥ 1, such as
      smoothed returns at the ends of episodes.

  Returns:
    Environment steps `[N]`, from where each curve has begun to where the first one
    ends, and the values there, `[R, N]`.
  """
  first = max(steps[0] for steps, _ in runs)
  last = max(first, min(steps[-1] for steps, _ in runs))
  grid = np.linspace(first, last, _GRID)
  values = [
    curve[np.searchsorted(steps, grid, side="right") - 1] for steps, curve in runs
  ]
  return grid, np.stack(values)


def running_mean(returns: np.ndarray, window: int) -> np.ndarray:
  """float64 `[E]`: at each episode, the mean of the last `window` (or fewer) ones."""
  if not len(returns):
    return np.zeros(0)
  sums = np.concatenate([[0.0], np.cumsum(returns, dtype=np.float64)])
  ends = np.arange(1, len(returns) + 1)
  starts = np.maximum(ends - window, 0)
  return (sums[ends] - sums[starts]) / (ends - starts)
