"""Training from Python: what `run.py` does, with objects instead of names.

    agent = explorax.make_agent("tdu", "bsuite:deep_sea/0", beta=0.5)
    result = explorax.train(agent, "bsuite:deep_sea/0", episodes=500, seed=1)
    returns = explorax.evaluate(result, episodes=10)

Presets, settings and runners are those of the command line: the same seed gives the
same numbers.
"""

import functools
import os
import pathlib
import tempfile
import types as python_types
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

from explorax import environments, notation
from explorax.agents import types
from explorax.environments import identity, jax_adapter
from explorax.experiments import config as config_lib
from explorax.experiments import flags as flags_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import presets, session, trained
from explorax.experiments import results as results_lib
from explorax.experiments import settings as settings_lib
from explorax.experiments.runners import common

Agent = trained.Agent
Result = results_lib.Result
# `kind:name`, or an environment of any protocol that `environments.wrap` takes.
Environment: TypeAlias = "str | environments.AnyEnvironment"


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
  full_name = presets.find(name).environment_for(_name(env))
  if isinstance(env, str):
    made = environments.make(full_name, seed=0)
    spec = environments.spec(made)
    made.close()
  else:
    spec = environments.spec(environments.wrap(env, seed=0))
  changed = [f"{key}={settings_lib.spell_part(x)}" for key, x in changes.items()]
  return trained.make_agent(name, full_name, spec, [*settings, *changed])


@overload
def train(
  agent: Agent | types.Agent | str,
  env: Environment,
  *,
  seeds: None = None,
  **flags: Any,
) -> Result: ...


@overload
def train(
  agent: Agent | types.Agent | str, env: Environment, *, seeds: int, **flags: Any
) -> list[Result]: ...


def train(
  agent: Agent | types.Agent | str,
  env: Environment,
  *,
  steps: int | None = None,
  episodes: int | None = None,
  seed: int = 0,
  seeds: int | None = None,
  runner: str | None = None,
  output: str | os.PathLike[str] | None = None,
  evaluation_env: "Environment | None" = None,
  on_episode: Callable[[common.Episode], None] | None = None,
  on_log: Callable[[common.LogRow], None] | None = None,
  on_evaluation: Callable[[common.Evaluation], None] | None = None,
  on_checkpoint: Callable[[pathlib.Path, int], None] | None = None,
  **flags: Any,
) -> Result | list[Result]:
  """Trains an agent.

  Args:
    agent: an agent's name (`double_dqn`), the result of `make_agent`, or your own
      agent.
    env: as for `make_agent`; an environment object is not closed.
    steps: the run's limit in environment steps.
    episodes: the run's limit in episodes.
    seed: for the agent and the environment, and, if the environment draws from them,
      for Python's and numpy's global random numbers.
    seeds: the number of seeds to train, starting at `seed`.
    runner: `local`, `device` or `distributed`; None: `device` if `env` is a JAX
      environment object, else `local`.
    output: a directory for the files that a command-line run writes. The same call
      again resumes the run in it, or returns the result of a finished run. None: a
      temporary one, which lasts as long as this process.
    evaluation_env: the environment of evaluations, also of the one at the end, if
      `env` is an object. Objects written in JAX, or with a gymnasium spec, are made
      again for them. Without an environment for it, the run ends without an evaluation.
    on_episode: called at the end of each episode. This and the other callbacks may
      raise `explorax.StopTraining` to end the run as finished.
    on_log: called every `log_every` steps, with what `learner.csv` gets.
    on_evaluation: called after each evaluation.
    on_checkpoint: called after each checkpoint with its directory and the environment
      steps.
    **flags: other flags of `python -m explorax.experiments.run` by name:
      `replay="memory"`, `eval_every=1000`.

  Returns:
    The `Result`; with `seeds`, a list with that of each seed.

  Raises:
    ValueError: in one sentence, for settings that do not fit.
    Exception: what has ended the run, as it was raised; `final.npz` in `output` has the
      last good weights.
  """
  known = flags_lib.by_name(config_lib.RunConfig).keys() - {"set"}
  if unknown := sorted(flags.keys() - known):
    raise ValueError(
      f"train takes no {unknown[0]!r}.{notation.nearest(unknown[0], known)} It takes "
      f"the flags of a run: {', '.join(sorted(known))}."
    )
  if runner is None:
    raw = None if isinstance(env, str) else environments.wrap(env, seed=0).raw
    is_jax = isinstance(raw, jax_adapter.JaxEnvironment)
    runner = config_lib.DEVICE if is_jax else config_lib.LOCAL
  if output is None:
    output = tempfile.mkdtemp(dir=_temporary_directory().name)
    flags = {"checkpoint_replay": False, **flags}
  values = {
    **{n: os.fspath(x) if isinstance(x, os.PathLike) else x for n, x in flags.items()},
    "steps": steps,
    "episodes": episodes,
    "seed": seed,
    "seeds": 1 if seeds is None else seeds,
    "runner": runner,
    "output": os.fspath(output),
    "env": _name(env),
  }
  if isinstance(agent, str):
    values |= {"agent": agent}
  elif isinstance(agent, Agent):
    values |= {"agent": agent.name, "set": [*agent.settings]}
  else:
    values |= {"agent": type(agent.config).__name__}
  objects = parts_lib.CallerObjects(
    None if isinstance(agent, str) else agent,
    None if isinstance(env, str) else env,
    evaluation_env,
  )
  callback = python_types.SimpleNamespace(
    on_log=on_log,
    on_episode=on_episode,
    on_evaluation=on_evaluation,
    on_checkpoint=on_checkpoint,
  )
  results = session.start(config_lib.from_flags(values), objects, [callback])
  return results[0] if seeds is None else results


def _name(env: Environment) -> str:
  return env if isinstance(env, str) else identity.name_of(env)


@functools.cache
def _temporary_directory() -> "tempfile.TemporaryDirectory[str]":
  """The directory of runs without `output`; it is removed when the process ends."""
  return tempfile.TemporaryDirectory(prefix="explorax-", ignore_cleanup_errors=True)
