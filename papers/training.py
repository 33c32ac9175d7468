"""Training for figures: what is recorded of a run that leaves no files."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import pool, session
from explorax.experiments.runners import common


class Trained(NamedTuple):
  """What was recorded of a run.

  Attributes:
    episodes: seed → the episodes of training.
    evaluations: seed → the evaluations.
    step_seconds: processor time of an environment step of one seed, with acting and
      learning, over the second half of the run. NaN if it has too few episodes.
  """

  episodes: dict[int, list[common.Episode]]
  evaluations: dict[int, list[common.Evaluation]]
  step_seconds: float


def train(
  config: config_lib.RunConfig,
  given: parts_lib.CallerObjects | None = None,
  *,
  on_episode: Callable[[common.Episode], None] | None = None,
  is_over: Callable[[], bool] = lambda: False,
) -> Trained:
  """Trains the seeds of a run; measures its time.

  Args:
    config: of the run.
    given: objects that the names in the config do not make.
    on_episode: gets the episodes of training, which are then not kept.
    is_over: ends training when it is true, before the limits of the config.

  Raises:
    StoppedError: if a signal has stopped it.
  """
  length = config.steps or math.inf
  episodes: dict[int, list[common.Episode]] = {seed: [] for seed in config.seeds}
  evaluations: dict[int, list[common.Evaluation]] = {seed: [] for seed in config.seeds}
  steps, middle = 0, (0, time.process_time())
  end = middle

  def count(episode: common.Episode) -> None:
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

  def begin(activity: common.Activity) -> None:
    if activity.name == common.EVALUATING:
      measure()

  def stop() -> bool:
    measure()
    return is_over()

  results = session.train(
    config,
    common.Hooks(
      on_episode=count,
      on_evaluation=lambda done: evaluations[done.seed].append(done),
      on_activity=begin,
      stop=stop,
    ),
    given or parts_lib.CallerObjects(),
  )
  if not is_over() and any(result.interrupted for result in results.values()):
    raise pool.StoppedError
  num_steps, seconds = (y - x for x, y in zip(middle, end, strict=True))
  seconds /= num_steps * config.num_seeds or math.nan
  return Trained(episodes, evaluations, seconds)
