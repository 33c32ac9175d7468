"""What a run of one seed has left: its files as arrays, its weights as a policy."""

import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from explorax.agents import types
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import trained
from explorax.experiments.recording import rows

Columns = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
  """What a run of one seed has left.

  Attributes:
    config: of the run.
    path: its directory.
    summary: the content of its `summary.json`.
    episodes: column → an array with one entry per episode: those of `metrics.csv`, with
      the metrics (NaN if an episode has none), and `seed`. `episode_return` against
      `env_steps` is the learning curve.
    evaluations: the same for evaluation episodes, of `evaluation.csv`.
    learner: the same for the rows that are logged every `log_every` steps, of
      `learner.csv`: the loss, the mean Q, ε and so on.
    agent: the agent; None for one of `module:function`.
    weights: what it has learnt, a pytree of arrays; None if there are none.
  """

  config: config_lib.RunConfig
  path: pathlib.Path
  summary: Mapping[str, Any]
  episodes: Columns
  evaluations: Columns
  learner: Columns
  agent: trained.Agent | types.Agent | None
  weights: types.Params | None

  @property
  def seed(self) -> int:
    return self.config.seed

  @property
  def evaluation_return(self) -> float:
    """The mean return of the last evaluation; NaN without one.

    Of the greedy policy, unless the agent has another one for evaluation.
    """
    return _number(self.summary.get("evaluation_return"))

  @property
  def training_return(self) -> float:
    """The mean return of training at the end; NaN without an episode.

    Of the episodes that ended in the last 10 % of the steps, at least of the last one.
    """
    return _number(self.summary.get("training_return"))

  @property
  def interrupted(self) -> bool:
    """Whether the run was stopped before its limit, for instance by Ctrl-C."""
    return self.summary.get("status") != "finished"

  def load(self, seed: int = 0) -> trained.Policy:
    """The evaluation policy; `seed` is that of random actions."""
    if self.agent is None or self.weights is None:
      raise ValueError(f"{self} has no weights.")
    return trained.Policy(self.agent, self.weights, self.config.env, seed)

  def __repr__(self) -> str:
    end = ", interrupted" if self.interrupted else ""
    return (
      f"<Result of {self.config.title}: evaluation return "
      f"{self.evaluation_return:.4g}, training return {self.training_return:.4g}{end}>"
    )


def read(parts: parts_lib.Parts, seed: int, path: pathlib.Path) -> Result:
  """The result of a seed, from its files."""
  has_weights = parts.named is not None and (path / trained.FILE).exists()
  columns = {name: _columns(path / name, seed) for name in rows.COLUMNS}
  return Result(
    dataclasses.replace(parts.config, seed=seed, num_seeds=1),
    path,
    json.loads((path / "summary.json").read_text(encoding="utf-8")),
    columns[rows.METRICS],
    columns[rows.EVALUATION],
    columns[rows.LEARNER],
    parts.named,
    trained.read(path / trained.FILE).weights_for(parts.agent) if has_weights else None,
  )


def _columns(path: pathlib.Path, seed: int) -> Columns:
  """The columns of a CSV file, which may be missing, and `seed`."""
  columns = rows.read(path) if path.exists() else rows.empty(path.name)
  return {**columns, "seed": np.full(len(columns["env_steps"]), seed)}


def _number(value: float | None) -> float:
  return math.nan if value is None else value
