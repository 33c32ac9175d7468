"""Trained agents: read from a run or a file, played, and learnt from.

    final.npz    an array for each parameter under its path, and the run's config.json

`numpy.load(FILE, allow_pickle=False)` reads the file. Nothing that only a file names is
imported: neither its environment nor a class in its settings.
"""

import dataclasses
import functools
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.environments import encodings, specs
from explorax.experiments import checkpoint, errors, presets
from explorax.experiments import settings as settings_lib

FILE = "checkpoints/final.npz"  # In the directory of a run.


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


def core(agent: Agent | types.Agent) -> types.Agent:
  """The agent as runners take it."""
  return agent.core if isinstance(agent, Agent) else agent


class Trained(NamedTuple):
  """What a run has learnt.

  Attributes:
    path: as it was given.
    record: the content of the run's config.json.
    arrays: name → weight, as `checkpoint.named` names them.
  """

  path: pathlib.Path
  record: Mapping[str, Any]
  arrays: Mapping[str, np.ndarray]

  @property
  def spec(self) -> types.EnvironmentSpec:
    """Of the environment."""
    return specs.from_record(self.record["spec"])

  def weights_for(self, agent: types.Agent) -> types.Params:
    """The weights in the structure that the agent takes, or a ValueError."""
    learner, key = agent.learner, jax.random.PRNGKey(0)
    like = jax.eval_shape(lambda key: learner.params(learner.init(key)), key)
    refusal = f"{self.path} holds the weights of an agent with other settings"
    return checkpoint.arranged(self.arrays, like, refusal)

  def agent(self, settings: Sequence[str] = ()) -> Agent:
    """The agent; arguments and errors as in `explorax.load`."""
    changed = {setting.partition("=")[0] for setting in settings}
    recorded = [
      x for x in self.record["settings"] if x.partition("=")[0] not in changed
    ]
    name, env = self.record["agent"], self.record["env"]
    return make_agent(name, env, self.spec, settings, recorded)


def read(path: str | os.PathLike[str]) -> Trained:
  """Reads a `final.npz`, or the one of a run's directory.

  Raises:
    SetUpError: if there is none.
    OutputError: if it cannot be read.
  """
  path = pathlib.Path(path).expanduser()
  file = path / FILE if path.is_dir() else path
  if not file.exists():
    raise errors.SetUpError(
      f"there is no {file}: give the directory of a run that has ended (with --seeds, "
      f"of one of its seeds), or its {FILE}."
    )
  arrays, record = checkpoint.load(file)
  if "spec" not in record:
    raise errors.SetUpError(f"{file} does not say what its agent is.")
  return Trained(path, record, arrays)


def check_spec(
  of_agent: types.EnvironmentSpec, trained_in: str, spec: types.EnvironmentSpec
) -> None:
  """Refuses an environment with other observations or actions than the agent's."""
  if of_agent != spec:
    raise errors.SetUpError(
      f"the agent of {trained_in} was made for {of_agent}, and the environment has "
      f"{spec}."
    )


def starting_from(path: str | os.PathLike[str], agent: types.Agent) -> types.Agent:
  """The agent, with the weights of an earlier run at its start.

  The target network starts with the same weights. All else starts as usual: the
  optimiser, replay, and schedules.

  Raises:
    SetUpError: if the weights, or the observations, are of another kind.
  """
  learner = agent.learner
  try:
    trained = read(path)
    check_spec(trained.spec, trained.record["env"], agent.spec)
    weights = jax.tree.leaves(trained.weights_for(agent))
  except (OSError, ValueError) as error:
    raise errors.SetUpError(f"--init_weights={path}: {error}") from error

  def init(key: jax.Array) -> types.State:
    leaves, structure = jax.tree.flatten(learner.init(key))
    numbers = jax.tree.unflatten(structure, range(len(leaves)))
    # The weights are some of the leaves of the state.
    for number, weight in zip(
      jax.tree.leaves(learner.params(numbers)), weights, strict=True
    ):
      leaves[number] = jnp.asarray(weight)
    state = jax.tree.unflatten(structure, leaves)
    return state if learner.copy_target is None else learner.copy_target(state)

  return dataclasses.replace(agent, learner=learner._replace(init=init))


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

  @functools.cached_property
  def _compiled(self) -> tuple[Any, Any, Any, Any]:
    """The parameters, and the core's functions for batches."""
    acting = core(self.agent).actor(evaluation=True)
    # Schedules have reached their end.
    env_steps = np.int32(actor_lib.MAX_ENV_STEPS)
    params = types.ActorParams(jax.tree.map(jnp.asarray, self.weights), env_steps)
    axes = (types.ActorParams(None, None), 0, 0)
    init = jax.vmap(lambda key: acting.init(key, 0, 1))
    select_action = jax.jit(jax.vmap(acting.select_action, axes))
    q_values = acting.q_values and jax.jit(jax.vmap(acting.q_values, axes))
    return params, init, select_action, q_values

  def __getstate__(self) -> dict[str, Any]:
    kept = {name: x for name, x in vars(self).items() if name != "_compiled"}
    return {**kept, "weights": jax.device_get(self.weights)}

  @property
  def spec(self) -> types.EnvironmentSpec:
    """Of the environment: `spec.observations` and `spec.actions`."""
    return core(self.agent).spec

  @property
  def config(self) -> Any:
    """All settings of the agent, a frozen dataclass."""
    return core(self.agent).config

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
        that of the last call without a `reset`.
    """
    timestep, state, is_batch = self._inputs(observation, reward, first)
    params, _, select_action, _ = self._compiled
    action, self.state = select_action(params, timestep, state)
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
    params, _, _, of_batch = self._compiled
    if of_batch is None:
      raise TypeError(f"{self} has no action values.")
    timestep, state, is_batch = self._inputs(observation, reward, first)
    q_values = np.asarray(of_batch(params, timestep, state))
    return q_values if is_batch else q_values[0]

  def _inputs(
    self, observation: Any, reward: Any, first: Any
  ) -> tuple[dm_env.TimeStep, types.State, bool]:
    """What the core takes, with a leading axis, and whether the caller's has one."""
    rows, is_batch = encodings.to_batch(self.spec.observations, observation)
    state, mid = self.state, np.int32(dm_env.StepType.MID)
    begins = np.full(len(rows), state is None if first is None else first, bool)
    timestep = dm_env.TimeStep(
      np.where(begins, np.int32(dm_env.StepType.FIRST), mid),
      np.where(begins, np.float32(0), np.asarray(reward, np.float32)),
      np.ones(len(rows), np.float32),
      np.stack([core(self.agent).encoding(row) for row in rows]),
    )
    if state is None:
      key = jax.random.fold_in(jax.random.PRNGKey(self._seed), self._episode)
      keys = jax.random.split(key, len(rows)) if is_batch else key[None]
      _, init, _, _ = self._compiled
      state = init(keys)
    return timestep, state, is_batch
