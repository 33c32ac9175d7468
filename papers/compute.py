"""What figures compute by training agents: one `train`, and what is made of a run."""

import dataclasses
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
    env_steps: of a seed so far.
  """

  def __init__(self, seeds: Sequence[int]):
    self.episodes: dict[int, list[common.Episode]] = {seed: [] for seed in seeds}
    self.evaluations: dict[int, list[common.Evaluation]] = {x: [] for x in seeds}
    self.env_steps = 0

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
  run = {"runner": "device", "seed": seeds[0], "num_seeds": len(seeds), **run}

  def add(episode: common.Episode) -> None:
    record.env_steps = episode.env_steps
    record.add_episode(episode)

  results = session.train(
    config_lib.RunConfig(**run),
    common.Hooks(
      on_episode=add,
      on_evaluation=record.add_evaluation,
      ended=record.has_ended,
    ),
    parts_lib.CallerObjects(agent, environment, evaluation_environment, params),
  )
  if any(result.interrupted for result in results.values()):
    raise pool.StoppedError
  return record


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
    rule: Callable[[], Any],
    metrics: Callable[[common.Episode], Mapping[str, float]] = lambda x: x.metrics,
  ):
    """Prepares a run with the settings' `seeds`, `max_episodes` and `until`.

    Args:
      settings: of the task.
      rule: makes a seed's `environments.SolvedRule`.
      metrics: of an episode.
    """
    super().__init__(settings["seeds"])
    self._until, self._limit = settings.get("until"), settings["max_episodes"]
    self._seeds = {seed: _Progress(rule()) for seed in settings["seeds"]}
    self._metrics = metrics

  def add_episode(self, episode: common.Episode) -> None:
    seed, metrics = self._seeds[episode.seed], self._metrics(episode)
    if self._is_done(seed):
      return
    seed.treasures.append(metrics["denoised_return"])
    seed.rule.add_episode(len(seed.treasures), metrics)
    rate = sum(seed.treasures[-_WINDOW:]) / _WINDOW
    if self._until is not None and rate >= self._until * seed.rule.best_rate:
      seed.mastered = seed.mastered or len(seed.treasures)

  def has_ended(self) -> bool:
    return all(map(self._is_done, self._seeds.values()))

  def _is_done(self, seed: "_Progress") -> bool:
    solved = seed.rule.treasure_episode is not None
    done = solved and (self._until is None or seed.mastered > 0)
    return done or len(seed.treasures) >= self._limit

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
      "episodes": [len(seed.treasures) for seed in seeds],
      "treasures": [sum(seed.treasures) for seed in seeds],
    }
    if self._until is not None:
      results["mastered"] = [seed.mastered for seed in seeds]
    return {name: np.array(values, np.int32) for name, values in results.items()}


@dataclasses.dataclass
class _Progress:
  """Of a seed: the treasures of its episodes, and the one in which it mastered."""

  rule: Any
  treasures: list[float] = dataclasses.field(default_factory=list)
  mastered: int = 0


def until_solved(
  settings: figures.Settings,
  rule: Callable[[], Any],
  metrics: Callable[[common.Episode], Mapping[str, float]] = lambda x: x.metrics,
  **training: Any,
) -> figures.Results:
  """Trains a task's seeds until they solve a problem; see `Solved` and `train`."""
  record = Solved(settings, rule, metrics)
  limit = {"episodes": settings["max_episodes"], "eval_episodes": 0}
  train(settings, record, **limit, **training)
  return record.results()
