"""What figures compute by training agents: one `train`, and what is kept of a run."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorax.environments import jax_environments
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import pool, session
from explorax.experiments.runners import common
from explorax.papers import figures


class Record:
  """What is kept of a run: the base class keeps all episodes and evaluations.

  Attributes:
    episodes: seed → the episodes of training.
    evaluations: seed → the evaluations.
  """

  def __init__(self, seeds: Sequence[int]):
    self.episodes: dict[int, list[common.Episode]] = {seed: [] for seed in seeds}
    self.evaluations: dict[int, list[common.Evaluation]] = {x: [] for x in seeds}

  def add_episodes(self, episodes: Sequence[common.Episode]) -> None:
    for episode in episodes:
      self.add_episode(episode)

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
  environment: Any = None,
  own_mappings: bool = False,
  **run: Any,
) -> Record:
  """Trains the agent of a task, a preset, with its seeds; returns the record.

  Args:
    settings: of the task: `agent`; `seeds`, consecutive; and `changes`, as of `--set`.
    record: what is kept of the run.
    environment: in place of the one that `env` names.
    own_mappings: whether each seed has its own effects of actions in `env`, which is
      written in JAX: its `mapping_seed` is the seed.
    **run: fields of `RunConfig`, such as `env` and `steps`.

  Raises:
    StoppedError: if a signal has stopped it.
  """
  seeds = settings["seeds"]
  record = record or Record(seeds)
  params = []
  if own_mappings:
    _, _, name = run["env"].partition(":")
    params = [jax_environments.make(f"{name},mapping_seed={x}")[1] for x in seeds]
  config: dict[str, Any] = {
    "agent": settings["agent"],
    "settings": tuple(settings.get("changes", ())),
    "runner": "device",
    "seed": seeds[0],
    "num_seeds": len(seeds),
  }
  results = session.train(
    config_lib.RunConfig(**{**config, **run}),
    common.Hooks(
      on_episodes=record.add_episodes,
      on_evaluation=record.add_evaluation,
      ended=record.has_ended,
    ),
    parts_lib.CallerObjects(environment=environment, params=params),
  )
  if any(result.interrupted for result in results.values()):
    raise pool.StoppedError
  return record
