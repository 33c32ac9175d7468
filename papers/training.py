"""Training for figures: what is recorded of a run that leaves no files."""

import math
import time
from collections.abc import Callable
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
  *,
  on_episode: Callable[[core.Episode], None] | None = None,
  share: Callable[[], float] | None = None,
) -> Trained:
  """Trains the seeds of a run; reports its progress.

  Args:
    config: of the run, with `steps` unless there is a `share`.
    context: of the task.
    given: objects that the names in the config do not make.
    on_episode: gets the episodes of training, which are then not kept.
    share: the share of the work that is finished, which ends training when it is 1;
      None: that of the steps.

  Raises:
    InterruptedTaskError: if training was stopped before its end.
  """
  length = config.steps or math.inf
  episodes: dict[int, list[core.Episode]] = {seed: [] for seed in config.seeds}
  evaluations: dict[int, list[core.Evaluation]] = {seed: [] for seed in config.seeds}
  steps, middle = 0, (0, time.process_time())
  end = middle

  def count(episode: core.Episode) -> None:
    nonlocal steps
    steps = episode.env_steps
    if on_episode is None:
      episodes[episode.seed].append(episode)
    else:
      on_episode(episode)

  def measure() -> None:
    nonlocal middle, end
    if steps > end[0]:
      end = steps, time.process_time()
      if 2 * middle[0] < length:
        middle = end

  def begin(activity: core.Activity) -> None:
    if activity.name == core.EVALUATING:
      measure()

  def stop() -> bool:
    measure()
    done = min(1.0, steps / length) if share is None else share()
    context.report(done)
    return share is not None and done >= 1.0

  results = launch.train_without_files(
    config,
    core.Hooks(
      on_episode=count,
      on_evaluation=lambda done: evaluations[done.seed].append(done),
      on_activity=begin,
      stop=stop,
    ),
    given,
  )
  is_over = share is not None and share() >= 1.0
  if not is_over and any(result.interrupted for result in results.values()):
    raise types.InterruptedTaskError
  num_steps, seconds = (y - x for x, y in zip(middle, end, strict=True))
  seconds /= num_steps * config.num_seeds or math.nan
  return Trained(episodes, evaluations, seconds)
