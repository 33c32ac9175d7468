"""Training from Python: what `run.py` does, with objects instead of names.

    agent = explorax.make_agent("tdu", "bsuite:deep_sea/0", beta=0.5)
    result = explorax.train(agent, "bsuite:deep_sea/0", episodes=500, seed=1)
    returns = explorax.evaluate(agent, result.weights, "bsuite:deep_sea/0")

Presets, settings and runners are those of the command line: the same seed gives the
same numbers.
"""

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from explorax import environments
from explorax.agents import types
from explorax.environments import jax_adapter
from explorax.experiments import config as config_lib
from explorax.experiments import errors, launch, overrides, playing, policies, trained
from explorax.experiments import job as job_lib
from explorax.experiments import weights as weights_lib
from explorax.experiments.recording import console, metrics_csv, recorder
from explorax.experiments.reports import runs as runs_lib
from explorax.experiments.runners import core
from explorax.experiments.sweeps import grid as grid_lib
from explorax.experiments.tasks import runs as run_tasks

if TYPE_CHECKING:
  import pandas as pd

# `kind:name`, or an environment of any protocol that `environments.wrap` takes.
Environment: TypeAlias = "str | environments.AnyEnvironment"

_Wrapped = environments.StandardEnvironment
# Flags that `make_agent` and the arguments of `train` replace.
_NOT_TAKEN = ("agent", "env", "set")
_EPISODE_COLUMNS = (*metrics_csv.EPISODE_COLUMNS, "seed")


@dataclasses.dataclass(frozen=True)
class Agent:
  """A preset with its settings, for environments of one spec.

  Attributes:
    name: the preset's name.
    settings: `field=value` each, as after `--set`.
    core: the agent as runners take it.
  """

  name: str
  settings: tuple[str, ...]
  core: types.Agent

  @property
  def config(self) -> Any:
    """All its settings, a frozen dataclass."""
    return self.core.config


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
  """The result of a run.

  Attributes:
    episodes: column → an array with one entry per episode, ordered by seed. The
      columns are those of `metrics.csv`, `seed`, and the metrics (NaN if an episode has
      none). `episode_return` against `env_steps` is the learning curve.
    evaluations: the same for evaluation episodes, with the columns of
      `evaluation.csv`.
    weights_by_seed: the weights learnt with each seed, pytrees of arrays.
    interrupted: whether the run was stopped before its limit, for instance by Ctrl-C.
  """

  episodes: dict[str, npt.NDArray[Any]]
  evaluations: dict[str, npt.NDArray[Any]]
  weights_by_seed: dict[int, types.Params]
  interrupted: bool

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
  own = [f"{field}={overrides.spell(value)}" for field, value in changes.items()]
  assignments = [*settings, *own]
  preset, full_name, config = job_lib.find(name, kind, assignments)
  environment = environments.make(full_name, seed=0) if made is None else made
  try:
    spec = environments.spec(environment)
  finally:
    if made is None:
      environment.close()
  return Agent(name, tuple(assignments), preset.make_agent(config, spec))


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
  on_episode: Callable[[core.Episode], None] | None = None,
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
    evaluation_env: the environment of evaluations (`eval_every=STEPS`) if `env` is an
      object; a JAX environment may be the same object.
    on_episode: called at the end of each episode.
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
  given = job_lib.Given(made_agent, made, _evaluation(config, made, evaluation_env))
  try:
    if output is None:
      return _in_memory(config, given, on_episode)
    changed = {name: x for name, x in values.items() if x != defaults[name]}
    return _in_directories(config, _command_line(changed), given, on_episode)
  finally:
    # Made from a name, for an environment that is an object.
    if isinstance(evaluation_env, str) and given.evaluation_environment is not None:
      given.evaluation_environment.close()


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
      directory of a run or an exported file, as for `load`.
    weights: from a `Result`.
    env: as for `make_agent`; an environment object is not closed. None: the one that
      the run was trained in.
    episodes: the number of episodes.
    max_steps: an episode that does not end is left after so many steps.
    seed: for acting, and for the environment if `env` is a name.

  Returns:
    The return of each episode, `[episodes]`.
  """
  if weights is None:
    if isinstance(agent, Agent | types.Agent):
      raise ValueError("give the weights of the agent, or the path of a run alone.")
    found = trained.read(agent)
    where = env if env is None or isinstance(env, str) else _made(env, seed)[0]
    played = playing.evaluate(
      found, where, (), episodes=episodes, max_steps=max_steps, seed=seed
    )
    return np.array([value for value, _, _ in played])
  if env is None:
    raise ValueError("give the environment, as gym:CartPole-v1.")
  made, name = _made(env, seed)
  if isinstance(agent, str | os.PathLike):
    agent = make_agent(os.fspath(agent), env)
  if isinstance(agent, Agent):
    _, name, _ = job_lib.find(agent.name, name, agent.settings)
    agent = agent.core
  environment = made
  if environment is None:
    environment = environments.make(environments.evaluation_name(name), seed=seed)
  try:
    played = playing.play(
      agent, weights, environment, seed=seed, episodes=episodes, max_steps=max_steps
    )
    return np.array([value for value, _, _ in played])
  finally:
    if made is None:
      environment.close()


@errors.naming_extras()
def load(
  path: str | os.PathLike[str], *, settings: Sequence[str] = (), seed: int = 0
) -> policies.Policy:
  """Loads the policy of a trained agent; no environment is made.

  Args:
    path: the directory of a run (with `seeds`, of one of them), of which it takes the
      final weights or those of the newest checkpoint; or a file of
      `python -m explorax.experiments.export`.
    settings: changes of settings that the weights do not depend on, as after `--set`:
      `["evaluation_epsilon=0"]`. If a setting of the run names a class of yours, repeat
      it here: the file alone imports nothing.
    seed: of random actions.

  Raises:
    ValueError: in one sentence, for what cannot be loaded.
  """
  found = trained.read(path)
  agent = playing.rebuilt(found, found.spec, settings)
  weights = weights_lib.fitted(path, found.arrays, playing.weights_of(agent))
  return policies.Policy(agent, weights, found.record, seed)


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


def _evaluation(
  config: config_lib.RunConfig, made: _Wrapped | None, env: "Environment | None"
) -> _Wrapped | None:
  """The caller's environment for evaluations; None if there is none."""
  if env is not None and not config.evaluates:
    raise ValueError("evaluation_env is for evaluations; add eval_every=STEPS.")
  if made is None and env is None:
    return None
  if config.runner == config_lib.DISTRIBUTED:
    raise ValueError(
      "runner='distributed' makes environments in other processes; give the name of "
      "one, as gym:CartPole-v1 or module:function."
    )
  if not config.evaluates:
    return None
  seed = job_lib.environment_seed(config.seed, core.EVALUATION, 0)
  if env is None or config.video:
    raise ValueError(
      "video=True needs an environment by its name."
      if config.video
      else f"eval_every={config.eval_every} needs a second environment; give "
      "evaluation_env."
    )
  if isinstance(env, str):
    return environments.make(environments.evaluation_name(env), seed=seed)
  return environments.wrap(env, seed=seed)


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
    argv += [f"--{name}={overrides.spell(each)}" for each in values]
  return argv


def _in_memory(
  config: config_lib.RunConfig,
  given: job_lib.Given,
  on_episode: Callable[[core.Episode], None] | None,
) -> Result:
  """Runs without files."""
  rows: list[core.Episode] = []
  evaluations: list[core.EvaluationEpisode] = []

  def add(episode: core.Episode) -> None:
    rows.append(episode)
    if on_episode is not None:
      on_episode(episode)

  def warn(message: object) -> None:
    warnings.warn(str(message), RuntimeWarning, stacklevel=2)

  hooks = core.Hooks(
    on_episode=add,
    on_evaluation=lambda evaluation: evaluations.extend(evaluation.episodes),
    on_env_failure=lambda failure: warn(f"{failure}; it is recreated."),
    on_message=warn,
    on_replacement=lambda replaced: warn(replaced.sentence),
  )
  results = launch.train_without_files(config, hooks, given)
  return Result(
    _columns(sorted(rows, key=lambda row: row.seed), _EPISODE_COLUMNS),
    _columns(evaluations, metrics_csv.EVALUATION_COLUMNS),
    {seed: result.weights for seed, result in results.items()},
    any(result.interrupted for result in results.values()),
  )


def _in_directories(
  config: config_lib.RunConfig,
  argv: Sequence[str],
  given: job_lib.Given,
  on_episode: Callable[[core.Episode], None] | None,
) -> Result:
  """Runs what is not finished, and reads the result from the files."""
  weights, rows, evaluations = {}, [], list[Any]()
  statuses = set()
  like: Any = None  # The shapes of the weights.
  several = config.num_seeds > 1
  for each in config.runs() if several else [config]:
    with contextlib.closing(job_lib.set_up(each, argv, given)) as job:
      if job.checkpoints is not None:
        outcome = launch.run(job, console.Console(None), on_episode)
        for error in (outcome.error, *outcome.problems):
          if isinstance(error, BaseException):
            raise error
      if not config.has_user_agent:
        like = playing.weights_of(job.parts.agent)
  for path, seed in grid_lib.directories(config):
    run = runs_lib.read(path if several else path.parent)
    statuses.add(run.status)
    for row in run.episodes():
      row.seed = seed
      rows.append(row)
    if (run.path / recorder.WEIGHTS).exists():
      weights[seed] = weights_lib.load(run.path / recorder.WEIGHTS, like)
    if config.evaluates:
      evaluations += run.evaluation_episodes()
  if several and not config.is_one_program:
    of_seeds = grid_lib.directories(config)
    grid_lib.write_files(config, {n: run_tasks.summary(path) for path, n in of_seeds})
  return Result(
    _columns(rows, _EPISODE_COLUMNS),
    _columns(evaluations, metrics_csv.EVALUATION_COLUMNS),
    weights,
    statuses != {"finished"},
  )


def _columns(rows: Sequence[Any], names: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
  """An array for each attribute of the rows and for each metric."""
  columns = {name: np.array([getattr(row, name) for row in rows]) for name in names}
  for name in sorted({name for row in rows for name in row.metrics}):
    columns[name] = np.array([row.metrics.get(name, np.nan) for row in rows])
  return columns
