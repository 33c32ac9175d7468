"""Trained agents: read from a run or a file, played, and learnt from.

    final.npz    an array for each parameter under its path, and the run's config.json

`numpy.load(FILE, allow_pickle=False)` reads the file. Nothing that only a file names is
imported: neither its environment nor a class in its settings.
"""

import contextlib
import dataclasses
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import (
  atari_profiles,
  encodings,
  specs,
  user_environments,
)
from explorax.experiments import (
  checkpoint,
  errors,
  output,
  presets,
)
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import console

FILE = "checkpoints/final.npz"  # In the directory of a run.
# Fields of an Atari profile that change what the agent sees, or what its actions do.
_SEEN = ("height", "width", "grey", "stack", "action_repeat", "full_actions", "oracle")


@dataclasses.dataclass(frozen=True)
class Agent:
  """A preset with its settings, for environments of one spec; it can be pickled.

  Attributes:
    name: the preset's name.
    settings: `field=value` each, as after `--set`.
    env: the environment's name, for which some presets have settings of their own.
    core: the agent as runners take it.
  """

  name: str
  settings: tuple[str, ...]
  env: str
  core: types.Agent

  @property
  def config(self) -> Any:
    """All its settings, a frozen dataclass."""
    return self.core.config

  def __reduce__(self) -> Any:
    return make_agent, (self.name, self.env, self.core.spec, self.settings)


def make_agent(
  name: str,
  env: str,
  spec: types.EnvironmentSpec,
  settings: Sequence[str] = (),
  recorded: Sequence[str] = (),
) -> Agent:
  """Makes an agent by name, for environments of a name and a spec.

  Args:
    settings: changes of settings, as after `--set`.
    recorded: more of them, from a file: they import nothing.

  Raises:
    ValueError: for an unknown name or invalid settings, and if one of `recorded` names
      a class that is not ours.
  """
  preset = presets.find(name)
  config = settings_lib.apply(preset.config_for(env), settings, recorded)
  core = preset.make_agent(config, spec)
  return Agent(name, (*recorded, *settings), env, core)


class Trained(NamedTuple):
  """What a run has learnt.

  Attributes:
    path: as it was given.
    record: the content of the run's config.json.
    arrays: name → array, as `checkpoint.named` names them.
    is_state: whether they are of the learner's whole state, from a checkpoint.
  """

  path: pathlib.Path
  record: Mapping[str, Any]
  arrays: Mapping[str, np.ndarray]
  is_state: bool

  @property
  def spec(self) -> types.EnvironmentSpec:
    """Of the environment."""
    return specs.from_record(self.record["spec"])

  def environment(self) -> str:
    """The name of the environment for evaluation; refuses one that names a module."""
    name = self.record["env"]
    if user_environments.names_code(name):
      raise errors.SetUpError(
        f"{self.path} names code that is not ours, which does not run unless you name "
        f"it too; if you trust it, add --env={name} (in Python, env=)."
      )
    return environments.evaluation_name(name)

  def weights_for(self, agent: types.Agent) -> types.Params:
    """The weights in the structure that the agent takes, or a ValueError."""
    arrays, refusal = self.arrays, f"{self.path} holds the weights of an agent with "
    if self.is_state:
      names = sources(agent.learner).items()
      arrays = {name: arrays[of] for name, of in names if of in arrays}
    for name, array in arrays.items():
      if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{self.path} cannot be used: {name!r} is not finite.")
    return checkpoint.arranged(arrays, shapes(agent), f"{refusal}other settings")

  def policy(self, settings: Sequence[str] = (), seed: int = 0) -> "Policy":
    """The evaluation policy; arguments and errors as in `explorax.load`."""
    changed = {setting.partition("=")[0] for setting in settings}
    recorded = [
      x for x in self.record["settings"] if x.partition("=")[0] not in changed
    ]
    name, env = self.record["agent"], self.record["env"]
    agent = make_agent(name, env, self.spec, settings, recorded)
    return Policy(agent, self.weights_for(agent.core), env, seed)


def read(path: str | os.PathLike[str]) -> Trained:
  """Reads a `final.npz`, or a run's directory: its newest checkpoint until it ends.

  Raises:
    SetUpError: if there is no run, or it has no weights yet.
    OutputError: if the file or directory cannot be read.
  """
  path = pathlib.Path(path).expanduser()
  if not path.exists():
    raise errors.SetUpError(
      f"there is no {path}: give the directory of a run, or its {FILE}."
    )
  is_state = False
  if not path.is_dir():
    arrays, record = checkpoint.load(path)
  elif not (path / "config.json").exists():
    raise errors.SetUpError(f"{path} is not the directory of a run: no config.json.")
  else:
    record = output.RunDirectory(path).read_settings()
    is_state = not ((path / "summary.json").exists() and (path / FILE).exists())
    arrays = _newest(path) if is_state else checkpoint.load(path / FILE)[0]
  if "spec" not in record:
    raise errors.SetUpError(
      f"{path} does not say what its agent is; give the directory of a run, or its "
      f"{FILE}."
    )
  return Trained(path, record, arrays, is_state)


def evaluate(
  policy: "Policy", env: Any, *, episodes: int, max_steps: int, seed: int
) -> Iterator[tuple[float, int, bool]]:
  """Plays episodes: (return, steps, whether it has ended) of each.

  `env` is the name of an environment, or an object, which is not closed. An episode is
  left after `max_steps`.
  """
  with contextlib.ExitStack() as stack:
    name = env if isinstance(env, str) else "the environment"
    if isinstance(env, str):
      made = environments.make(env, seed=seed)
      environment = stack.enter_context(contextlib.closing(made))
    else:
      environment = environments.wrap(env, seed=seed)
    _check_spec(policy.env, policy.spec, name, environments.spec(environment))
    for _ in range(episodes):
      policy.reset()
      timestep = environment.reset()
      total, length = 0.0, 0
      while not timestep.last() and length < max_steps:
        action = policy.act(timestep.observation, timestep.reward or 0.0)
        timestep = environment.step(action)
        total, length = total + float(timestep.reward), length + 1
      yield total, length, timestep.last()


def _check_spec(
  env: str, spec: types.EnvironmentSpec, other: str, other_spec: types.EnvironmentSpec
) -> None:
  """Refuses an environment with other observations or actions."""
  if spec == other_spec:
    return
  ours, theirs = (
    f"{x.observations} and {x.actions.num_values} actions" for x in (spec, other_spec)
  )
  raise errors.SetUpError(
    f"the agent was trained in {env}, with {ours}; {other} has {theirs}."
  )


def _newest(path: pathlib.Path) -> dict[str, np.ndarray]:
  """The learner's state in the newest good checkpoint of a run."""
  newest, damaged = checkpoint.newest(path / "checkpoints")
  for problem in damaged.values():
    console.print_error(f"{problem}.")
  if newest is not None:
    return newest.arrays("learner")
  seeds = sorted(seed.name for seed in path.glob("seed*") if seed.is_dir())
  hint = f"; it holds several seeds: name one, as {path / seeds[0]}" if seeds else ""
  raise errors.SetUpError(f"{path} has neither final weights nor a checkpoint{hint}.")


def shapes(agent: types.Agent) -> Any:
  """The shapes of an agent's weights."""
  learner = agent.learner
  key = jax.random.PRNGKey(0)
  return jax.eval_shape(lambda key: learner.params(learner.init(key)), key)


def sources(learner: types.LearnerCore) -> dict[str, str]:
  """The name of each of an agent's weights → its name in the learner's state."""
  state = jax.eval_shape(learner.init, jax.random.PRNGKey(0))
  names = [name for name, _ in checkpoint.named(state)]
  tree = jax.tree.unflatten(jax.tree.structure(state), names)
  return dict(checkpoint.named(learner.params(tree)))


def starting_from(
  path: str | os.PathLike[str], agent: types.Agent, env: str
) -> types.Agent:
  """The agent, with the weights of an earlier run at its start.

  The target network starts with the same weights. All else starts as usual: the
  optimiser, replay, and schedules.

  Raises:
    SetUpError: if the weights, or the observations, are of another kind.
  """
  learner = agent.learner
  try:
    trained = read(path)
    _check_spec(trained.record["env"], trained.spec, env, agent.spec)
    _check_profile(trained, env)
    by_name = dict(checkpoint.named(trained.weights_for(agent)))
  except (errors.SetUpError, OSError, ValueError) as error:
    raise errors.SetUpError(f"--init_weights={path}: {error}") from error
  # Name in the learner's state → the array.
  initial = {name: by_name[of] for of, name in sources(learner).items()}

  def init(key: jax.Array) -> types.State:
    state = learner.init(key)
    leaves = [jnp.asarray(initial.get(n, leaf)) for n, leaf in checkpoint.named(state)]
    state = jax.tree.unflatten(jax.tree.structure(state), leaves)
    return state if learner.copy_target is None else learner.copy_target(state)

  return dataclasses.replace(agent, learner=learner._replace(init=init))


def _check_profile(trained: Trained, env: str) -> None:
  """Refuses an Atari game whose preprocessing differs from that of the weights."""
  kinds = [name.partition(":") for name in (trained.record["env"], env)]
  if any(kind != "atari" for kind, _, _ in kinds):
    return
  theirs, ours = (atari_profiles.parse(name)[1] for _, _, name in kinds)
  for field in _SEEN:
    if getattr(theirs, field) != getattr(ours, field):
      raise errors.SetUpError(
        f"it was trained in {trained.record['env']}, whose {field} is "
        f"{getattr(theirs, field)}; that of {env} is {getattr(ours, field)}."
      )


class Policy:
  """An agent's evaluation policy, in one environment or in a batch of them.

    policy = explorax.load("results/cartpole")
    policy.reset()
    action = policy.act(observation)

  What lasts between steps (the state of an LSTM, a random key) is carried from call to
  call in `state`; `reset` begins a new episode. A policy of a preset can be pickled.

  Attributes:
    agent: an `explorax.Agent`, or the caller's own.
    env: the name of the environment that it was trained in.
    weights: a pytree of arrays.
    state: between two steps, a pytree of arrays; None before the first step. A state
      that was read may be assigned again, to continue from it.
  """

  def __init__(
    self, agent: Agent | types.Agent, weights: types.Params, env: str, seed: int = 0
  ):
    self.agent = agent
    self.env = env
    self.weights = weights
    self.state: types.State | None = None
    self._seed = seed
    self._episode = 1
    self._batch_size = 1  # Of `state`.
    self._compile()

  def _compile(self) -> None:
    core = self._agent.actor(evaluation=True)
    # Schedules have reached their end.
    env_steps = np.int32(actor_lib.MAX_ENV_STEPS)
    self._params = types.ActorParams(jax.tree.map(jnp.asarray, self.weights), env_steps)
    axes = (types.ActorParams(None, None), 0, 0)
    self._init = core.init
    self._act = jax.jit(jax.vmap(core.select_action, axes))
    self._q = core.q_values and jax.jit(jax.vmap(core.q_values, axes))

  def __getstate__(self) -> dict[str, Any]:
    names = ("agent", "env", "weights", "state", "_seed", "_episode", "_batch_size")
    return {name: jax.device_get(vars(self)[name]) for name in names}

  def __setstate__(self, state: Mapping[str, Any]) -> None:
    vars(self).update(state)
    self._compile()

  @property
  def _agent(self) -> types.Agent:
    return self.agent.core if isinstance(self.agent, Agent) else self.agent

  @property
  def spec(self) -> types.EnvironmentSpec:
    """Of the environment: `spec.observations` and `spec.actions`."""
    return self._agent.spec

  @property
  def config(self) -> Any:
    """All settings of the agent, a frozen dataclass."""
    return self._agent.config

  def __repr__(self) -> str:
    name = getattr(self.agent, "name", type(self.config).__name__)
    return f"<explorax.Policy of {name} for {self.env}>"

  def reset(self) -> None:
    """Begins a new episode in each environment."""
    if self.state is not None:
      self.state = None
      self._episode += 1

  def act(
    self, observation: Any, reward: Any = 0.0, *, first: Any = None
  ) -> int | np.ndarray:
    """The action for an observation, or for a batch of them; advances `state`.

    Args:
      observation: as the environment returns it, of the shape of `spec.observations`;
        of a `Discrete` space, the number; of several arrays, the dict or tuple. Or a
        batch, with a leading axis `[B]`.
      reward: of the step before, or `[B]`, which networks with an LSTM see.
      first: whether an episode begins with the observation, or `[B]`; None: in the
        first call after `reset` or `load`.

    Returns:
      The number of the action, from 0; of a batch int32 `[B]`.

    Raises:
      ValueError: if the observation has another shape, or the batch another size than
        that of the last call.
    """
    timestep, state, is_batch = self._inputs(observation, reward, first)
    action, self.state = self._act(self._params, timestep, state)
    self._batch_size = len(action)
    return np.asarray(action) if is_batch else int(action[0])

  def q_values(
    self, observation: Any, reward: Any = 0.0, *, first: Any = None
  ) -> np.ndarray:
    """The action values `[A]` for an observation, of a batch `[B, A]`.

    Of an ensemble it is the mean over its members; the greedy action maximises it.
    `state` stays: call it before `act`.

    Args:
      observation, reward, first: as for `act`.

    Raises:
      ValueError: as `act`.
      TypeError: if the agent has no action values.
    """
    if self._q is None:
      raise TypeError(f"{self} has no action values.")
    timestep, state, is_batch = self._inputs(observation, reward, first)
    q_values = np.asarray(self._q(self._params, timestep, state))
    return q_values if is_batch else q_values[0]

  def _inputs(
    self, observation: Any, reward: Any, first: Any
  ) -> tuple[dm_env.TimeStep, types.State, bool]:
    """What the core takes, with a leading axis, and whether the caller's has one."""
    try:
      batch, is_batch = encodings.to_batch(self.spec.observations, observation)
    except ValueError as error:
      raise ValueError(
        f"{error}, which the agent of {self.env} takes, alone or in a batch."
      ) from error
    if self.state is not None and len(batch) != self._batch_size:
      raise ValueError(
        f"the batch size is {len(batch)}, and that of the last call was "
        f"{self._batch_size}: call reset() first."
      )
    begins = np.asarray(self.state is None if first is None else first, bool)
    begins = np.broadcast_to(begins, len(batch))
    reward = np.broadcast_to(np.asarray(reward, np.float32), len(batch))
    first_type, mid_type = dm_env.StepType.FIRST, dm_env.StepType.MID
    timestep = dm_env.TimeStep(
      np.where(begins, np.int32(first_type), np.int32(mid_type)),
      np.where(begins, np.float32(0), reward),
      np.ones(len(batch), np.float32),
      np.stack([self._agent.encoding(each) for each in batch]),
    )
    if self.state is not None:
      return timestep, self.state, is_batch
    key = jax.random.fold_in(jax.random.PRNGKey(self._seed), self._episode)
    keys = jax.random.split(key, len(batch)) if is_batch else key[None]
    return timestep, jax.vmap(lambda key: self._init(key, 0, 1))(keys), is_batch
