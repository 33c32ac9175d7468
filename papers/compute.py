"""What figures compute by training agents: one `train`, and what is made of a run."""

import collections
import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from explorax import environments
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import pool, presets, session
from explorax.experiments.runners import common
from explorax.papers import figures

# Episodes whose treasures are counted, for `until`. At N = 50 the best policy finds
# 0.37 of them, with a standard error of 0.02.
_WINDOW = 500


class Record:
  """What is kept of a run: the base class keeps all episodes and evaluations.

  Attributes:
    episodes: seed → the episodes of training.
    evaluations: seed → the evaluations.
    step_seconds: processor time of an environment step of one seed, with acting and
      learning, over the second half of the run. NaN if it has too few episodes.
  """

  step_seconds = math.nan

  def __init__(self, seeds: Sequence[int]):
    self.episodes: dict[int, list[common.Episode]] = {seed: [] for seed in seeds}
    self.evaluations: dict[int, list[common.Evaluation]] = {x: [] for x in seeds}

  def add_episode(self, episode: common.Episode) -> None:
    self.episodes[episode.seed].append(episode)

  def add_evaluation(self, evaluation: common.Evaluation) -> None:
    self.evaluations[evaluation.seed].append(evaluation)

  def has_ended(self) -> bool:
    """Ends the run before its limits when it is true."""
    return False

  def per_seed(
    self, episode_score: Callable[[common.EvaluationEpisode], float]
  ) -> np.ndarray:
    """The mean score of the last evaluation's episodes, `[S]`."""
    last = [each[-1].episodes for each in self.evaluations.values()]
    return np.array([np.mean([*map(episode_score, x)]) for x in last])


def train(
  settings: figures.Settings,
  record: Record | None = None,
  *,
  config: Any = None,
  environment: Any = None,
  evaluation_environment: Any = None,
  params: Sequence[Any] = (),
  **run: Any,
) -> Record:
  """Trains the agent of a task, a preset, with its seeds.

  Args:
    settings: of the task: `agent`; `seeds`, consecutive; and `changes`, as of `--set`.
    record: what is kept of the run.
    config: of the agent, in place of the preset's with `changes`.
    environment: in place of the one that `env` names; also one written in JAX.
    evaluation_environment: as `environment`.
    params: of an environment written in JAX, one for each seed.
    **run: fields of `RunConfig`, such as `env` and `steps`.

  Returns:
    The record.

  Raises:
    StoppedError: if a signal has stopped it.
  """
  seeds = settings["seeds"]
  record = Record(seeds) if record is None else record
  agent = None
  if environment is not None:
    environment = environments.wrap(environment, seed=seeds[0])
  if config is not None:
    preset = presets.PRESETS[settings["agent"]]
    agent = preset.make_agent(config, environments.spec(environment))
  else:
    changes = tuple(settings.get("changes", ()))
    run = {"agent": settings["agent"], "settings": changes, **run}
  run_config = config_lib.RunConfig(
    **{"runner": "device", "seed": seeds[0], "num_seeds": len(seeds), **run}
  )
  clock = _Clock(run_config.steps or math.inf)

  def count(episode: common.Episode) -> None:
    clock.env_steps = episode.env_steps
    record.add_episode(episode)

  def begin(activity: common.Activity) -> None:
    if activity.name == common.EVALUATING:
      clock.measure()

  def ended() -> bool:
    clock.measure()
    return record.has_ended()

  results = session.train(
    run_config,
    common.Hooks(
      on_episode=count,
      on_evaluation=record.add_evaluation,
      on_activity=begin,
      ended=ended,
    ),
    parts_lib.CallerObjects(agent, environment, evaluation_environment, params),
  )
  if any(result.interrupted for result in results.values()):
    raise pool.StoppedError
  record.step_seconds = clock.step_seconds() / len(seeds)
  return record


class _Clock:
  """Processor time of the second half of a run."""

  def __init__(self, length: float):
    self.env_steps = 0
    self._length = length
    self._middle = self._end = 0, time.process_time()

  def measure(self) -> None:
    if self.env_steps > self._end[0]:
      self._end = self.env_steps, time.process_time()
      if 2 * self._middle[0] < self._length:
        self._middle = self._end

  def step_seconds(self) -> float:
    steps, seconds = (y - x for x, y in zip(self._middle, self._end, strict=True))
    return seconds / (steps or math.nan)


class Solved(Record):
  """Counts each seed's episodes until it solves a problem or reaches the limit.

  The rule decides from the treasures in the episodes' metrics (`bad_episode` and
  `denoised_return`) whether a seed has solved the problem. With the setting `until`, a
  seed goes on until, besides, the share of the last 500 episodes that found the
  treasure has been at least `until` times the best policy's.
  """

  def __init__(
    self,
    settings: figures.Settings,
    rule: Callable[[], environments.SolvedRule],
    metrics: Callable[[common.Episode], Mapping[str, float]] = lambda x: x.metrics,
  ):
    self._until, self._limit = settings.get("until"), settings["max_episodes"]
    self._seeds = {
      x: _Progress(rule(), self._until, self._limit) for x in settings["seeds"]
    }
    self._metrics = metrics

  def add_episode(self, episode: common.Episode) -> None:
    self._seeds[episode.seed].add(self._metrics(episode))

  def has_ended(self) -> bool:
    return all(seed.has_ended() for seed in self._seeds.values())

  def results(self) -> figures.Results:
    """For each seed, int32 `[S]`.

    `solved`, the episode in which the problem was solved, or 0; `by_bsuite`, the same
    by bsuite's rule, within these episodes; `mastered`, the first episode in which the
    share was `until`, or 0 (only with `until`); `episodes`, their number up to the
    run's end; `treasures`, how many of them found the treasure.
    """
    seeds = [*self._seeds.values()]
    results = {
      "solved": [seed.rule.treasure_episode or 0 for seed in seeds],
      "by_bsuite": [seed.rule.solved_episode or 0 for seed in seeds],
      "episodes": [seed.episodes for seed in seeds],
      "treasures": [seed.treasures for seed in seeds],
    }
    if self._until is not None:
      results["mastered"] = [seed.mastered for seed in seeds]
    return {name: np.array(values, np.int32) for name, values in results.items()}


@dataclasses.dataclass
class _Progress:
  """A seed of `Solved`."""

  rule: environments.SolvedRule
  until: float | None
  limit: int
  episodes: int = 0
  treasures: float = 0.0
  mastered: int = 0
  last: collections.deque[float] = dataclasses.field(
    default_factory=lambda: collections.deque(maxlen=_WINDOW)
  )

  def has_ended(self) -> bool:
    solved = self.rule.treasure_episode is not None
    done = solved and (self.until is None or self.mastered > 0)
    return done or self.episodes >= self.limit

  def add(self, metrics: Mapping[str, float]) -> None:
    if self.has_ended():
      return
    self.episodes += 1
    self.treasures += metrics["denoised_return"]
    self.last.append(metrics["denoised_return"])
    self.rule.add_episode(self.episodes, metrics)
    rate = sum(self.last) / _WINDOW
    if self.until is not None and rate >= self.until * self.rule.best_rate:
      self.mastered = self.mastered or self.episodes


def windows(
  ends: np.ndarray, values: np.ndarray, num_steps: int, num_windows: int
) -> tuple[np.ndarray, np.ndarray]:
  """Sums of the values in equal parts of a run, and their numbers, `[W]` each.

  An episode counts where it ends; one that ends after the last step, in the last part.

  Args:
    ends: the environment steps at the episodes' ends, `[E]`.
    values: of the episodes, `[E]`.
    num_steps: of the run.
    num_windows: W.
  """
  part = np.minimum((ends - 1) * num_windows // num_steps, num_windows - 1).astype(int)
  sums = np.bincount(part, values, minlength=num_windows)
  return sums, np.bincount(part, minlength=num_windows)
