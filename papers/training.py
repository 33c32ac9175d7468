"""Training for figures: what is recorded of a run that leaves no files."""

import math
import time
from typing import NamedTuple

from explorax.experiments import config as config_lib
from explorax.experiments import job, launch
from explorax.experiments.runners import core
from explorax.papers import types


class Trained(NamedTuple):
  """What was recorded of a run.

  Attributes:
    episodes: seed → the episodes of training.
    evaluations: seed → the evaluations.
    step_seconds: processor time of an environment step of one seed, with acting and
      learning, over the second half of the run. NaN if it has too few episodes.
  """

  episodes: dict[int, list[core.Episode]]
  evaluations: dict[int, list[core.Evaluation]]
  step_seconds: float


def train(
  config: config_lib.RunConfig,
  context: types.TaskContext,
  given: job.Given | None = None,
) -> Trained:
  """Trains the seeds of a run of `config.steps` steps; reports its progress.

  Args:
    config: of the run, with `steps`.
    context: of the task.
    given: objects that the names in the config do not make.

  Raises:
    InterruptedTaskError: if training was stopped before its end.
  """
  length = config.steps
  assert length is not None
  episodes: dict[int, list[core.Episode]] = {seed: [] for seed in config.seeds}
  evaluations: dict[int, list[core.Evaluation]] = {seed: [] for seed in config.seeds}
  steps, middle = 0, (0, time.process_time())
  end = middle

  def on_episode(episode: core.Episode) -> None:
    nonlocal steps
    steps = episode.env_steps
    episodes[episode.seed].append(episode)

  def stop() -> bool:
    nonlocal middle, end
    if steps > end[0]:
      end = steps, time.process_time()
      if 2 * middle[0] < length:
        middle = end
    context.report(min(1.0, steps / length))
    return False

  results = launch.train_without_files(
    config,
    core.Hooks(
      on_episode=on_episode,
      on_evaluation=lambda done: evaluations[done.seed].append(done),
      stop=stop,
    ),
    given,
  )
  if any(result.interrupted for result in results.values()):
    raise types.InterruptedTaskError
  num_steps, seconds = (y - x for x, y in zip(middle, end, strict=True))
  seconds /= num_steps * config.num_seeds or math.nan
  return Trained(episodes, evaluations, seconds)
