"""What loggers receive: TensorBoard, and the run's `--logger`."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
  from explorax.experiments.runners import common


def of_episode(episode: "common.Episode") -> dict[str, float]:
  """Tag → value of a training episode; its return also under its policy."""
  return {
    "return": episode.episode_return,
    f"return/{episode.policy}": episode.episode_return,
    "episode/length": episode.episode_length,
    "episode/number": episode.episode,
    "speed/learner_updates": episode.learner_updates,
    "speed/steps_per_second": episode.steps_per_second,
    **{f"metrics/{name}": value for name, value in episode.metrics.items()},
  }


def of_log(row: "common.LogRow") -> dict[str, float]:
  """Tag → value of a row of the log."""
  return {
    "learner/updates": row.learner_updates,
    "learner/steps_per_second": row.steps_per_second,
    **{f"learner/{name}": value for name, value in row.metrics.items()},
  }


def of_evaluation(evaluation: "common.Evaluation") -> dict[str, float]:
  """Tag → mean over the episodes of an evaluation."""
  metrics: dict[str, list[float]] = {}
  for episode in evaluation.episodes:
    for name, value in episode.metrics.items():
      metrics.setdefault(name, []).append(value)
  return {
    "evaluation/return": evaluation.mean_return,
    "evaluation/length": evaluation.mean_length,
    **{
      f"evaluation/metrics/{name}": float(np.mean(values))
      for name, values in sorted(metrics.items())
    },
  }
