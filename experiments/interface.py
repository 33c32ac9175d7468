"""Training from Python: what `run.py` does, with objects instead of names.

    agent = explorax.make_agent("tdu", "bsuite:deep_sea/0", beta=0.5)
    result = explorax.train(agent, "bsuite:deep_sea/0", episodes=500, seed=1)
    returns = explorax.evaluate(agent, result.weights, "bsuite:deep_sea/0")

Presets, settings and runners are those of the command line: the same seed gives the
same numbers.
"""

import base64
import contextlib
import dataclasses
import functools
import html
import io
import math
import os
import pathlib
import types as namespace
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from explorax import environments
from explorax.agents import types
from explorax.environments import jax_adapter
from explorax.experiments import (
  callbacks,
  errors,
  launch,
  presets,
  trained,
)
from explorax.experiments import config as config_lib
from explorax.experiments import grid as grid_lib
from explorax.experiments import job as job_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments import weights as weights_lib
from explorax.experiments.recording import (
  console,
  metrics_csv,
  plots,
  recorder,
  returns,
  summary,
)
from explorax.experiments.reports import runs as runs_lib
from explorax.experiments.runners import common

if TYPE_CHECKING:
  import pandas as pd

# `kind:name`, or an environment of any protocol that `environments.wrap` takes.
Environment: TypeAlias = "str | environments.AnyEnvironment"

_MakeGiven: TypeAlias = Callable[
  [config_lib.RunConfig],
  contextlib.AbstractContextManager[tuple[config_lib.RunConfig, job_lib.Given]],
]
_Wrapped = environments.StandardEnvironment
# Flags that `make_agent` and the arguments of `train` replace.
_NOT_TAKEN = ("agent", "env", "set")
_EPISODE_COLUMNS = (*metrics_csv.EPISODE_COLUMNS, "seed")
_EVALUATION_COLUMNS = (*metrics_csv.EVALUATION_COLUMNS, "seed")
_LEARNER_COLUMNS = (*metrics_csv.LEARNER_COLUMNS, "seed")


Agent = trained.Agent


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
  """The result of a run.

  Attributes:
    title: `double_dqn on gym:CartPole-v1`.
    episodes: column → an array with one entry per episode, ordered by seed. The
      columns are those of `metrics.csv`, `seed`, and the metrics (NaN if an episode has
      none). `episode_return` against `env_steps` is the learning curve.
    evaluations: the same for evaluation episodes, with the columns of
      `evaluation.csv`, and `seed`.
    learner: the same for the rows that are logged every `log_every` steps, with the
      columns of `learner.csv`, and `seed`: the loss, the mean Q, ε and so on.
    env_steps_by_seed: the environment steps that each seed has taken.
    weights_by_seed: the weights learnt with each seed, pytrees of arrays.
    interrupted: whether the run was stopped before its limit, for instance by Ctrl-C.
  """

  title: str
  episodes: dict[str, npt.NDArray[Any]]
  evaluations: dict[str, npt.NDArray[Any]]
  learner: dict[str, npt.NDArray[Any]]
  env_steps_by_seed: dict[int, int]
  weights_by_seed: dict[int, types.Params]
  interrupted: bool

  @property
  def evaluation_return(self) -> float:
    """The mean return of the last evaluation; the mean over seeds.

    Of the greedy policy, unless the agent has another one for evaluation. NaN without
    an evaluation.
    """
    return _mean([row.evaluation for row in self._rows])

  @property
  def training_return(self) -> float:
    """The mean return of training at the end; the mean over seeds.

    Of the episodes that ended in the last 10 % of the steps, at least of the last one.
    NaN without an episode.
    """
    return _mean([row.training for row in self._rows])

  def __repr__(self) -> str:
    counts = [
      summary.count(sum(self.env_steps_by_seed.values()), "environment step"),
      summary.count(len(self.episodes["episode"]), "episode"),
      summary.count(len(self.env_steps_by_seed), "seed"),
    ]
    end = ", interrupted" if self.interrupted else ""
    return (
      f"<Result of {self.title}: evaluation return {self.evaluation_return:.4g}, "
      f"training return {self.training_return:.4g}, {', '.join(counts)}{end}>"
    )

  def _repr_html_(self) -> str:
    """A table with a row for each seed, and the learning curve, for notebooks."""
    head = ("seed", "steps", "episodes", "evaluation return", "training return")
    rows = [
      (
        str(row.seed),
        f"{row.env_steps:,}",
        f"{len(row.returns):,}",
        _with_error(row.evaluation, row.returns.evaluations.standard_error),
        _with_error(row.training, None),
      )
      for row in self._rows
    ]
    cells = [f"<th>{name}</th>" for name in head]
    lines = ["".join(cells), *("".join(f"<td>{x}</td>" for x in row) for row in rows)]
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    title = html.escape(self.title + " (interrupted)" * self.interrupted)
    return f"<p>{title}</p><table>{table}</table>{self._picture()}"

  def _picture(self) -> str:
    """The learning curve; nothing if no episode has ended, or without matplotlib."""
    curves = [row.returns for row in self._rows]
    if not all(map(len, curves)) or not plots.can_draw():
      return ""
    file = io.BytesIO()
    plots.learning_curve(file, seeds=curves, title=self.title)
    content = base64.b64encode(file.getvalue()).decode()
    return (
      f'<img alt="learning curve" width="560" src="data:image/png;base64,{content}">'
    )

  @functools.cached_property
  def _rows(self) -> "list[_Row]":
    return [
      _Row(
        seed,
        env_steps,
        _returns(self.episodes, self.evaluations, seed),
      )
      for seed, env_steps in self.env_steps_by_seed.items()
    ]

  @property
  def weights(self) -> types.Params:
    """The weights of a run with one seed.

    Raises:
      ValueError: if there are several seeds.
    """
    if len(self.weights_by_seed) != 1:
      raise ValueError(
        f"there are weights of {len(self.weights_by_seed)} seeds; choose one of "
        "weights_by_seed."
      )
    return next(iter(self.weights_by_seed.values()))

  def to_frame(self) -> "pd.DataFrame":
    """`episodes` as a pandas data frame; pandas must be installed."""
    try:
      import pandas as pd
    except ImportError as error:
      raise ImportError("to_frame needs pandas: pip install pandas.") from error
    return pd.DataFrame(self.episodes)


@errors.naming_extras()
def make_agent(
  name: str, env: Environment, /, *, settings: Sequence[str] = (), **changes: Any
) -> Agent:
  """Makes an agent by name (`--list_agents`) for an environment.

  Args:
    name: the agent's name.
    env: `kind:name`, for example `bsuite:deep_sea/0`, or an environment of dm_env,
      gymnasium or JAX. Some agents have different settings for some kinds.
    settings: changes of fields of its config, as after `--set`:
      `["exploration.epsilon=0.1"]`.
    **changes: changes given as values: `beta=0.5, hidden_sizes=(64, 64)`.

  Raises:
    ValueError: in one sentence, for an unknown name, field or value.
    TypeError: if the environment's protocol, actions or observations are not supported.
  """
  made, kind = _made(env, seed=0)
  own = [f"{field}={settings_lib.spell(value)}" for field, value in changes.items()]
  assignments = [*settings, *own]
  full_name = presets.find(name).environment_for(kind)
  environment = environments.make(full_name, seed=0) if made is None else made
  try:
    spec = environments.spec(environment)
  finally:
    if made is None:
      environment.close()
  return trained.make_agent(name, full_name, spec, assignments)


@errors.naming_extras()
def train(
  agent: Agent | types.Agent | str,
  env: Environment,
  *,
  steps: int | None = None,
  episodes: int | None = None,
  seed: int = 0,
  runner: str | None = None,
  output: str | os.PathLike[str] | None = None,
  evaluation_env: "Environment | None" = None,
  on_episode: Callable[[common.Episode], None] | None = None,
  on_log: Callable[[common.LogRow], None] | None = None,
  on_evaluation: Callable[[common.Evaluation], None] | None = None,
  on_checkpoint: Callable[[pathlib.Path, int], None] | None = None,
  **flags: Any,
) -> Result:
  """Trains an agent.

  Args:
    agent: an agent's name (`double_dqn`), the result of `make_agent`, or your own
      agent.
    env: as for `make_agent`; an environment object is not closed.
    steps: the run's limit in environment steps.
    episodes: the run's limit in episodes.
    seed: for the agent, and for the environment if `env` is a name.
    runner: `local`, `device` or `distributed`; None: `device` if `env` is a JAX
      environment object, else `local`.
    output: a directory for the files that a command-line run writes. The same call
      again resumes the run in it, or returns the result of a finished run. None: no
      files.
    evaluation_env: the environment of evaluations, also of the one at the end, if
      `env` is an object. Objects written in JAX, or with a gymnasium spec, are made
      again for them. Without an environment for it, the run ends without an evaluation.
    on_episode: called at the end of each episode. This and the other callbacks may
      raise `explorax.StopTraining` to end the run as finished; any other exception
      reaches the caller as it is.
    on_log: called every `log_every` steps, with what `learner.csv` gets.
    on_evaluation: called after each evaluation.
    on_checkpoint: called after each checkpoint with its directory and the environment
      steps; there are none without `output`.
    **flags: other flags of `python -m explorax.experiments.run` by name:
      `replay="memory"`, `seeds=30`, `eval_every=1000`.

  Raises:
    ValueError: in one sentence, for settings that do not fit.
    StoppedError: if the run failed; its `weights` are the last good ones.
  """
  _check(flags)
  made, kind = _made(env, seed)
  if runner is None:
    is_jax = made is not None and isinstance(made.raw, jax_adapter.JaxEnvironment)
    runner = config_lib.DEVICE if is_jax else config_lib.LOCAL
  values = {
    **{n: os.fspath(x) if isinstance(x, os.PathLike) else x for n, x in flags.items()},
    "steps": steps,
    "episodes": episodes,
    "seed": seed,
    "runner": runner,
    "output": None if output is None else os.fspath(output),
    "env": kind,
  }
  made_agent: types.Agent | None = None
  if isinstance(agent, str):
    values |= {"agent": agent}
  elif isinstance(agent, Agent):
    values |= {"agent": agent.name, "set": [*agent.settings]}
    made_agent = agent.core
  else:
    made_agent = agent
    values |= {"agent": type(agent.config).__name__}
  defaults = {f.name: f.default for fs in config_lib.flags().values() for f in fs}
  config = config_lib.from_flags({**defaults, **values})
  given = functools.partial(_given, made_agent, env, evaluation_env)
  callback = callbacks.Functions(on_log, on_episode, on_evaluation, on_checkpoint)
  if output is None:
    return _in_memory(config, given, callback)
  changed = {name: x for name, x in values.items() if x != defaults[name]}
  return _in_directories(config, _command_line(changed), given, callback)


@errors.naming_extras()
def evaluate(
  agent: "Agent | types.Agent | str | os.PathLike[str]",
  weights: types.Params | None = None,
  env: "Environment | None" = None,
  *,
  episodes: int = 5,
  max_steps: int = 1_000_000,
  seed: int = 0,
) -> npt.NDArray[Any]:
  """Plays episodes of the evaluation policy; see `python -m ...experiments.evaluate`.

  Args:
    agent: the agent that learnt the weights, or its name. Without weights: the
      directory of a run or its `final.npz`, as for `load`.
    weights: from a `Result`.
    env: as for `make_agent`; an environment object is not closed. None: the one that
      the run was trained in.
    episodes: the number of episodes.
    max_steps: an episode that does not end is left after so many steps.
    seed: for acting, and for the environment if `env` is a name.

  Returns:
    The return of each episode, `[episodes]`.
  """
  if isinstance(weights, str):  # `evaluate(PATH, "gym:CartPole-v1")`
    weights, env = None, weights
  if weights is None:
    if isinstance(agent, Agent | types.Agent):
      raise ValueError("give the weights of the agent, or the path of a run alone.")
    read = trained.read(agent)
    where = env if isinstance(env, str) else env and _made(env, seed)[0]
    played = trained.evaluate(
      read,
      where or read.environment(),
      episodes=episodes,
      max_steps=max_steps,
      seed=seed,
    )
    return np.array([value for value, _, _ in played])
  if env is None:
    raise ValueError("give the environment, as gym:CartPole-v1.")
  made, name = _made(env, seed)
  if isinstance(agent, str | os.PathLike):
    agent = make_agent(os.fspath(agent), env)
  if isinstance(agent, Agent):
    name = agent.env
  environment = made
  if environment is None:
    environment = environments.make(environments.evaluation_name(name), seed=seed)
  try:
    policy = trained.Policy(agent, weights, name, seed)
    played = policy.play(environment, episodes, max_steps)
    return np.array([value for value, _, _ in played])
  finally:
    if made is None:
      environment.close()


@errors.naming_extras()
def load(
  path: str | os.PathLike[str], *, settings: Sequence[str] = (), seed: int = 0
) -> trained.Policy:
  """Loads the policy of a trained agent; no environment is made.

  Args:
    path: the directory of a run (with `seeds`, of one of them), of which it takes the
      final weights or those of the newest checkpoint; or its `checkpoints/final.npz`.
    settings: changes of settings that the weights do not depend on, as after `--set`:
      `["evaluation_epsilon=0"]`. If a setting of the run names a class of yours, repeat
      it here: the file alone imports nothing.
    seed: of random actions.

  Raises:
    ValueError: in one sentence, for what cannot be loaded.
  """
  return trained.read(path).policy(settings, seed)


def _made(env: Environment, seed: int) -> tuple[_Wrapped | None, str]:
  """The wrapped environment, or None if `env` is a name; and its `kind:name`."""
  if isinstance(env, str):
    return None, env
  made = environments.wrap(env, seed=seed)
  if isinstance(made.raw, jax_adapter.JaxEnvironment):
    return made, f"jax:{type(made.raw.pure[0]).__name__}"
  gymnasium_id = getattr(getattr(env, "spec", None), "id", None)
  if gymnasium_id is not None:
    return made, f"gym:{gymnasium_id}"
  return made, f"{type(made.raw).__module__}:{type(made.raw).__qualname__}"


@contextlib.contextmanager
def _given(
  agent: types.Agent | None,
  env: Environment,
  evaluation_env: "Environment | None",
  config: config_lib.RunConfig,
) -> Iterator[tuple[config_lib.RunConfig, job_lib.Given]]:
  """The caller's objects for the run of a seed, and its config with them."""
  made, _ = _made(env, config.seed)
  config, evaluation_environment = _evaluation(config, made, evaluation_env)
  try:
    yield config, job_lib.Given(agent, made, evaluation_environment)
  finally:
    is_ours = evaluation_env is None or isinstance(evaluation_env, str)
    if is_ours and evaluation_environment is not None:
      evaluation_environment.close()


def _evaluation(
  config: config_lib.RunConfig, made: _Wrapped | None, env: "Environment | None"
) -> tuple[config_lib.RunConfig, _Wrapped | None]:
  """The caller's environment for evaluations, or None; and the config for it.

  A run in the caller's own environment ends without an evaluation if there is no second
  one.
  """
  if env is not None and not config.evaluates:
    raise ValueError("evaluation_env is for evaluations, and eval_episodes is 0.")
  if made is None and env is None:
    return config, None
  if config.runner == config_lib.DISTRIBUTED:
    raise ValueError(
      "runner='distributed' makes environments in other processes; give the name of "
      "one, as gym:CartPole-v1 or module:function."
    )
  if not config.evaluates:
    return config, None
  if config.video:
    raise ValueError("video=True needs an environment by its name.")
  seed = job_lib.environment_seed(config.seed, common.EVALUATION, 0)
  if isinstance(env, str):
    name = environments.evaluation_name(env)
    return config, environments.make(name, seed=seed)
  if env is None and made is not None:
    if isinstance(made.raw, jax_adapter.JaxEnvironment):
      env = made.raw.pure
    else:  # Of gymnasium, which may not be installed.
      env = getattr(made.raw, "recreated", lambda: None)()
    if env is None and config.eval_every is None:
      return dataclasses.replace(config, eval_episodes=0), None
    if env is None:
      raise ValueError(
        f"eval_every={config.eval_every} needs a second environment; give "
        "evaluation_env."
      )
  return config, environments.wrap(env, seed=seed)


def _check(flags: Mapping[str, Any]) -> None:
  """Refuses names that are no flags of a run."""
  known = [s.flag or name for name, s in config_lib.SETTINGS.items()]
  known = [name for name in known if name not in _NOT_TAKEN]
  for name in flags:
    if name not in known:
      raise ValueError(
        f"train takes no {name!r}.{errors.nearest(name, known)} It takes the flags of "
        f"a run: {', '.join(known)}."
      )


def _command_line(changed: Mapping[str, Any]) -> list[str]:
  """The command-line flags for the same settings."""
  argv = []
  for name, value in changed.items():
    values = value if isinstance(value, list) else [value]
    argv += [f"--{name}={settings_lib.spell(each)}" for each in values]
  return argv


def _in_memory(
  config: config_lib.RunConfig, given: _MakeGiven, callback: callbacks.Functions
) -> Result:
  """Runs without files."""
  rows: list[common.Episode] = []
  evaluations: list[common.EvaluationEpisode] = []
  log: list[common.LogRow] = []

  def warn(message: object) -> None:
    warnings.warn(str(message), RuntimeWarning, stacklevel=2)

  hooks = common.Hooks(
    on_log=log.append,
    on_episode=rows.append,
    on_evaluation=lambda evaluation: evaluations.extend(evaluation.episodes),
    on_message=warn,
  )
  results: dict[int, common.Result] = {}
  for of_seed in config.runs():
    with given(of_seed) as (each, objects):
      results |= launch.train_without_files(each, hooks, objects, callback)
    if any(result.interrupted for result in results.values()):
      break
  return _result(
    config,
    rows,
    evaluations,
    log,
    {seed: result.env_steps for seed, result in results.items()},
    {seed: result.weights for seed, result in results.items()},
    interrupted=any(result.interrupted for result in results.values()),
  )


def _in_directories(
  config: config_lib.RunConfig,
  argv: Sequence[str],
  given: _MakeGiven,
  callback: callbacks.Functions,
) -> Result:
  """Runs what is not finished, and reads the result from the files."""
  weights, rows, evaluations, log, steps = {}, [], list[Any](), list[Any](), {}
  statuses = set()
  like: Any = None  # The shapes of the weights.
  several = config.num_seeds > 1
  for of_seed in config.runs() if several else [config]:
    with (
      given(of_seed) as (each, objects),
      contextlib.closing(job_lib.set_up(each, argv, objects)) as job,
    ):
      if job.checkpoints is not None:
        outcome = launch.run(job, console.Console(None), callback)
        for error in (outcome.error, *outcome.problems):
          if isinstance(error, BaseException):
            raise error
      if not config.has_user_agent:
        like = trained.shapes(job.parts.agent)
  for path, seed in grid_lib.directories(config):
    run = runs_lib.read(path if several else path.parent)
    statuses.add(run.status)
    for row in run.episodes():
      row.seed = seed
      rows.append(row)
    if (run.path / recorder.WEIGHTS).exists():
      weights[seed] = weights_lib.load(run.path / recorder.WEIGHTS, like)
    steps[seed] = run.summary["env_steps"]
    for row in run.log():
      row.seed = seed
      log.append(row)
    for row in run.evaluation_episodes() if config.evaluates else ():
      row.seed = seed
      evaluations.append(row)
  if several and not config.is_one_program:
    grid_lib.write_files(config)
  is_interrupted = statuses != {"finished"}
  return _result(
    config, rows, evaluations, log, steps, weights, interrupted=is_interrupted
  )


def _result(
  config: config_lib.RunConfig,
  episodes: list[Any],
  evaluations: list[Any],
  log: list[Any],
  env_steps: Mapping[int, int],
  weights: Mapping[int, types.Params],
  *,
  interrupted: bool,
) -> Result:
  """The result of the seeds whose `env_steps` are given, from their episodes."""
  return Result(
    f"{config.agent} on {config.env}",
    _columns(sorted(episodes, key=lambda row: row.seed), _EPISODE_COLUMNS),
    _columns(evaluations, _EVALUATION_COLUMNS),
    _columns(sorted(log, key=lambda row: row.seed), _LEARNER_COLUMNS),
    dict(env_steps),
    dict(weights),
    interrupted,
  )


class _Row(NamedTuple):
  """The numbers of a seed."""

  seed: int
  env_steps: int
  returns: returns.Returns

  @property
  def evaluation(self) -> float:
    means = self.returns.evaluations.means
    return float(means[-1]) if len(means) else math.nan

  @property
  def training(self) -> float:
    return _mean(self.returns.late(self.env_steps))


def _returns(
  episodes: Mapping[str, npt.NDArray[Any]],
  evaluations: Mapping[str, npt.NDArray[Any]],
  seed: int,
) -> returns.Returns:
  """The returns of a seed, from the columns of all."""
  found = returns.Returns()
  for row in _rows_of(episodes, ("env_steps", "episode_return", "policy"), seed):
    found.add(row)
  of_evaluations = ("env_steps", "episode_return")
  found.evaluations.add(_rows_of(evaluations, of_evaluations, seed))
  return found


def _rows_of(
  columns: Mapping[str, npt.NDArray[Any]], names: Sequence[str], seed: int
) -> Iterator[Any]:
  chosen = columns["seed"] == seed
  for values in zip(*(columns[name][chosen] for name in names), strict=True):
    yield namespace.SimpleNamespace(**dict(zip(names, values, strict=True)))


def _mean(values: Sequence[float] | npt.NDArray[Any]) -> float:
  """The mean; NaN of nothing."""
  return float(np.mean(values)) if len(values) else math.nan


def _with_error(mean: float, error: float | None) -> str:
  if math.isnan(mean):
    return "–"
  return f"{mean:.4g}" + ("" if error is None else f" ± {error:.2g}")


def _columns(rows: Sequence[Any], names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
  """An array for each attribute of the rows and for each metric."""
  columns = {name: np.array([getattr(row, name) for row in rows]) for name in names}
  for name in sorted({name for row in rows for name in row.metrics}):
    columns[name] = np.array([row.metrics.get(name, np.nan) for row in rows])
  return columns
