"""Curves of returns, from the rows of a run's CSV files."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

WINDOW = 100  # Episodes of a running mean.
_LATE_SHARE = 0.1  # Of a run's steps, for the return at its end.
_GRID = 400  # Points of a curve over runs.

Columns = Mapping[str, np.ndarray]  # Of the rows of a file; see `rows.read`.


def of_policy(episodes: Columns, policy: str) -> dict[str, np.ndarray]:
  """The episodes in which this policy acted."""
  is_chosen = episodes["policy"] == policy
  return {name: column[is_chosen] for name, column in episodes.items()}


def late_returns(episodes: Columns, env_steps: int) -> np.ndarray:
  """float64 `[E]`: returns of episodes in the last tenth of so many environment steps.

  At least that of the last episode, if there is one.
  """
  returns = episodes["episode_return"]
  is_late = episodes["env_steps"] > (1 - _LATE_SHARE) * env_steps
  return returns[is_late] if is_late.any() else returns[-1:]


def evaluation_returns(evaluations: Columns) -> list[tuple[int, np.ndarray]]:
  """(environment steps of training, returns of the episodes) of each evaluation."""
  pairs = zip(
    evaluations["env_steps"].tolist(), evaluations["episode_return"], strict=True
  )
  return [
    (env_steps, np.array([value for _, value in group]))
    for env_steps, group in itertools.groupby(pairs, lambda pair: pair[0])
  ]


def standard_error(values: np.ndarray) -> float | None:
  """Of the mean; None for fewer than two values."""
  if len(values) < 2:
    return None
  return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def mean(values: np.ndarray) -> float | None:
  """The mean; None of no values."""
  return float(np.mean(values)) if len(values) else None


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
