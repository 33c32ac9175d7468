"""What runs of one seed have left: their files as arrays, their weights as policies."""

import contextlib
import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from explorax import environments
from explorax.agents import types
from explorax.environments import user_environments
from explorax.experiments import config as config_lib
from explorax.experiments import errors, trained
from explorax.experiments.recording import rows

Columns = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
  """What a run of one seed has left.

  Attributes:
    config: of the run; `output` is absolute.
    summary: the content of its `summary.json`.
    episodes: column → an array with one entry per episode: those of `metrics.csv`, with
      the metrics (NaN if an episode has none), and `seed`. `episode_return` against
      `env_steps` is the learning curve.
    evaluations: the same for evaluation episodes, of `evaluation.csv`.
    learner: the same for the rows that are logged every `log_every` steps, of
      `learner.csv`: the loss, the mean Q, ε and so on.
    agent: the agent; None if it has no weights, as one of `module:function`.
    weights: what it has learnt, a pytree of arrays; None if there are none.
  """

  config: config_lib.RunConfig
  summary: Mapping[str, Any]
  episodes: Columns
  evaluations: Columns
  learner: Columns
  agent: trained.Agent | types.Agent | None
  weights: types.Params | None

  @property
  def path(self) -> pathlib.Path:
    """Its directory."""
    return pathlib.Path(self.config.output)

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


def read(
  config: config_lib.RunConfig, agent: trained.Agent | types.Agent | None
) -> Result:
  """The result of a seed, from its files; `agent` is the caller's own or None."""
  path = pathlib.Path(config.output)
  columns = {name: _columns(path / name, config.seed) for name in rows.COLUMNS}
  weights = None
  if (path / trained.FILE).exists() and not config.has_user_agent:
    file = trained.read(path / trained.FILE)
    agent = agent or file.agent(config.settings)
    weights = file.weights_for(trained.core(agent))
  return Result(
    config,
    json.loads((path / "summary.json").read_text(encoding="utf-8")),
    columns[rows.METRICS],
    columns[rows.EVALUATION],
    columns[rows.LEARNER],
    agent,
    weights,
  )


def _columns(path: pathlib.Path, seed: int) -> Columns:
  """The columns of a CSV file, which may be missing, and `seed`."""
  columns = rows.read(path) if path.exists() else rows.empty(path.name)
  return {**columns, "seed": np.full(len(columns["env_steps"]), seed)}


def _number(value: float | None) -> float:
  return math.nan if value is None else value


def load(
  path: str | os.PathLike[str], *, settings: Sequence[str] = (), seed: int = 0
) -> trained.Policy:
  """Loads the policy of a trained agent; no environment is made.

  Args:
    path: the directory of a run that has ended (with `seeds`, of one of them), or its
      `checkpoints/final.npz`.
    settings: changes of settings that the weights do not depend on, as after `--set`:
      `["evaluation_epsilon=0"]`. If a setting of the run names a class of yours, repeat
      it here: the file alone imports nothing.
    seed: of random actions.

  Raises:
    ValueError: in one sentence, for what cannot be loaded.
  """
  file = trained.read(path)
  agent = file.agent(settings)
  return trained.Policy(agent, file.weights_for(agent.core), file.record["env"], seed)


def evaluate(
  agent: "Result | trained.Policy | str | os.PathLike[str]",
  env: "str | environments.AnyEnvironment | None" = None,
  *,
  episodes: int = 5,
  max_steps: int = 1_000_000,
  seed: int = 0,
) -> npt.NDArray[Any]:
  """Plays episodes of the evaluation policy; see `python -m ...experiments.evaluate`.

  Args:
    agent: what has been trained: a result, a policy, or a path as for `load`.
    env: as for `make_agent`; an environment object is not closed. None: the one that
      the agent was trained in; of a policy or a path not if it is code of your own.
    episodes: the number of episodes.
    max_steps: an episode that does not end is left after so many steps.
    seed: for an environment that is given by its name, and for random actions.

  Returns:
    The return of each episode, `[episodes]`.
  """
  if isinstance(agent, trained.Policy):
    policy = agent
  else:
    policy = agent.load(seed) if isinstance(agent, Result) else load(agent, seed=seed)
  if env is None:
    if user_environments.names_code(policy.env) and not isinstance(agent, Result):
      raise errors.SetUpError(
        f"the agent's file names code that is not ours, which does not run unless you "
        f"name it too; if you trust it, add --env={policy.env} (in Python, env=)."
      )
    env = environments.evaluation_name(policy.env)
  with contextlib.ExitStack() as stack:
    if isinstance(env, str):
      environment = environments.make(env, seed=seed)
      stack.enter_context(contextlib.closing(environment))
    else:
      environment = environments.wrap(env, seed=seed)
    trained.check_spec(policy.spec, policy.env, environments.spec(environment))
    returns = []
    for _ in range(episodes):
      policy.reset()
      timestep, length = environment.reset(), 0
      returns.append(0.0)
      while not timestep.last() and length < max_steps:
        action = policy.act(timestep.observation, timestep.reward or 0.0)
        timestep, length = environment.step(action), length + 1
        returns[-1] += float(timestep.reward)
  return np.array(returns)
