"""The `device` runner: acting, replay and learning in one program on the device.

For environments written in JAX, `device_program.py` is the program, and this module is
the host's part: it runs rounds of steps and updates and reports the finished episodes.
Only reports leave the device. For environments that the host steps in batches,
`device_batched.py` contains both parts.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types
from explorax.environments import (
  batched_types,
  gymnax_adapter,
  jax_adapter,
  jax_types,
)
from explorax.experiments import config as config_lib
from explorax.experiments import signals
from explorax.experiments.runners import (
  core,
  device_agent,
  device_batched,
  device_host,
  device_program,
  training,
)

Environment: TypeAlias = (
  dm_env.Environment | jax_types.Environment | batched_types.BatchedEnvironment
)


def run(
  agent: types.Agent,
  environment: Environment,
  config: config_lib.RunConfig,
  hooks: core.Hooks = core.NO_HOOKS,
  *,
  evaluation_environment: dm_env.Environment | None = None,
) -> core.Result:
  """Trains an agent with one seed; see `run_seeds`.

  Returns:
    The result of the run.
  """
  (result,) = run_seeds(
    agent,
    environment,
    config,
    hooks,
    seeds=(config.seed,),
    evaluation_environment=evaluation_environment,
  )
  return result


def run_seeds(
  agent: types.Agent,
  environment: Environment,
  config: config_lib.RunConfig,
  hooks: core.Hooks = core.NO_HOOKS,
  *,
  seeds: Sequence[int] | None = None,
  params: jax_types.Params = None,
  params_per_seed: bool = False,
  evaluation_environment: dm_env.Environment | None = None,
) -> list[core.Result]:
  """Trains an agent once for each seed, all seeds at the same time.

  Learning starts when replay has its minimum size, and not before each environment has
  taken as many steps as a window has rows. Updates are made in rounds: 0.25 updates per
  step is one update every four steps. Limits, evaluations and checkpoints are handled
  at reports; see `training.run`. From a checkpoint that contains replay a run resumes
  bit for bit; with environments that the host steps, at the start of an episode.

  Args:
    agent: made for the environment's spec.
    environment: written in JAX, directly or from `environments.make`; or, with one
      seed, from `environments.make_batched`.
    config: provides the seeds, `num_envs`, limits and evaluations.
    hooks: called during the run.
    seeds: one for each run; None: those of the config.
    params: parameters of an environment written in JAX, for all seeds; None: its
      defaults.
    params_per_seed: whether each seed has its own `params`: each array then has a
      leading axis as long as `seeds`.
    evaluation_environment: with the same specs, for one seed; None for no evaluation.

  Returns:
    The result of each seed.

  Raises:
    errors.StoppedError: see `training.run`.
    ValueError: if the environment is not written in JAX, if there is no limit or no
      seed, or if the number of parameters differs from the number of seeds.
  """
  training.check(config, evaluation_environment)
  seeds = config.seeds if seeds is None else seeds
  if not seeds:
    raise ValueError("there are no seeds; give at least one.")
  device: device_host.Training
  if isinstance(environment, batched_types.BatchedEnvironment):
    device = device_batched.Training(
      agent, environment, seeds[0], config, hooks.on_episode
    )
  else:
    pure, own_params = _pure(environment)
    params = jax.tree.map(jnp.asarray, own_params if params is None else params)
    if params_per_seed:
      params = _checked(params, len(seeds))
    program = device_program.make_program(
      agent, pure, config.num_envs or 1, len(seeds), params_per_seed
    )
    device = Training(agent, program, params, seeds, config, hooks.on_episode)
  return training.run(device, config, hooks, evaluation_environment)


def check_memory(
  agent: types.Agent, environment: Environment, config: config_lib.RunConfig
) -> None:
  """Refuses a run whose arrays do not fit into the device's memory.

  The estimate is all arrays of a seed, plus the learner's arrays once more for
  gradients and new moments; it does not include activations.

  Raises:
    ValueError: with the needed and the free memory, and what to do.
  """
  num_envs = config.num_envs or 1
  if isinstance(environment, batched_types.BatchedEnvironment):
    state = device_batched.shapes(agent, environment.num_envs)
  else:
    pure, params = _pure(environment)
    program = device_program.make_program(agent, pure, num_envs, 1)
    state = jax.eval_shape(program.init, jax.random.PRNGKey(0), params)
  leaves = jax.tree.leaves((state, state.learner))
  needed = sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)
  free = device_host.free_memory()
  if needed * config.num_seeds > free:
    gib = 2**30
    raise ValueError(
      f"{config.num_seeds} seeds need about {needed * config.num_seeds / gib:.1f} GiB "
      f"of memory, but {jax.devices()[0].device_kind} has {free / gib:.1f} GiB free; "
      f"use at most {int(free // needed)} seeds, or a smaller replay."
    )


def _pure(
  environment: dm_env.Environment | jax_types.Environment,
) -> tuple[jax_types.Environment, jax_types.Params]:
  """The functions of an environment, and their parameters.

  Raises:
    ValueError: if it is not written in JAX.
  """
  raw = getattr(environment, "raw", environment)
  if isinstance(raw, jax_adapter.JaxEnvironment):
    return raw.pure
  pure = None if isinstance(raw, dm_env.Environment) else gymnax_adapter.adapt(raw)
  if pure is not None:
    return pure
  raise ValueError(
    "the device runner needs an environment written in JAX (jax:deep_sea/20) or "
    f"stepped in batches (atari:Pong), but this one is a {type(raw).__name__}; use the "
    "local runner for it."
  )


def _checked(params: jax_types.Params, num_seeds: int) -> jax_types.Params:
  """Parameters with an axis of seeds; without the axis for a single seed."""
  lengths = {x.shape[0] if x.ndim else 0 for x in jax.tree.leaves(params)}
  if lengths != {num_seeds}:
    raise ValueError(
      f"there are {num_seeds} seeds, but the parameters have leading axes of "
      f"{sorted(lengths)}; with params_per_seed each leading axis must be {num_seeds}."
    )
  return jax.tree.map(lambda x: x[0], params) if num_seeds == 1 else params


def _shares(total: int, most: int) -> list[int]:
  """Splits `total` into equal shares of at most `most`; the last may be smaller."""
  if total <= most:
    return [max(1, total)]
  share = math.ceil(total / math.ceil(total / most))
  return [share] * (total // share) + ([total % share] if total % share else [])


class Training(device_host.Training):
  """Training with environments on the device."""

  def __init__(
    self,
    agent: types.Agent,
    program: device_program.Program,
    params: jax_types.Params,
    seeds: Sequence[int],
    config: config_lib.RunConfig,
    on_episode: Callable[[core.Episode], None],
  ):
    keys = jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
    state = program.init(keys if len(seeds) > 1 else keys[0], params)
    super().__init__(agent, seeds, program.num_envs, state, config, on_episode)
    self._program = program

  @property
  def may_evaluate(self) -> bool:
    """Not while replay is being filled."""
    return self.steps - self.empty_steps > self.fill_steps

  def advance(self) -> None:
    """Steps until the next report, with updates once replay is filled."""
    limit = math.inf
    if self._config.steps is not None:
      limit = math.ceil(self._config.steps / self._num_envs) - self.empty_steps
    done, fill = self.steps - self.empty_steps, int(min(self.fill_steps, limit))
    for share in _shares(fill, device_host.STEPS_PER_REPORT):
      if done < share:
        with signals.deferred():
          self._act(share - done)
        return
      done -= share
    program, most = self._program, device_agent.MAX_UPDATES
    steps_per_round = program.steps_per_round
    rounds = device_host.STEPS_PER_REPORT // steps_per_round
    rounds = max(1, min(rounds, most // program.updates_per_round))
    if limit < math.inf:  # Not beyond the limit.
      rounds = _shares(math.ceil((limit - fill) / steps_per_round), rounds)[0]
    with signals.deferred():
      self._learn(rounds)

  def check_finite(self) -> None:
    """Does nothing: each report has been checked."""

  def _act(self, num_steps: int) -> None:
    before = self.steps
    self.state, episodes = self._program.act(self.state, num_steps)
    self.steps += num_steps
    self._tell(episodes, before, lambda step: self.updates)

  def _learn(self, num_rounds: int) -> None:
    program, steps, updates = self._program, self.steps, self.updates
    self.state, report = program.learn(self.state, num_rounds)
    self.steps += num_rounds * program.steps_per_round
    self.updates += num_rounds * program.updates_per_round
    report = jax.device_get(report)
    last = [report.update]
    if len(self._seeds) > 1:
      last = [
        jax.tree.map(lambda x, i=i: x[i], report.update)
        for i in range(len(self._seeds))
      ]
    self.take(last)
    self._tell(
      report.episodes,
      steps,
      lambda step: (
        updates + step // program.steps_per_round * program.updates_per_round
      ),
    )
    self.clock.mark_warm(self.env_steps)
    self.check_taken(last, before=updates)

  def _tell(
    self,
    episodes: device_agent.Episodes,
    before: int,
    updates: Callable[[int], int],
  ) -> None:
    """Reports the finished episodes in order.

    Args:
      episodes: `[steps, (S,) E]`.
      before: steps of each environment before these.
      updates: number of steps (from 1) → updates made by their end.
    """
    episodes = jax.device_get(episodes)
    if len(self._seeds) == 1:
      episodes = jax.tree.map(lambda x: x[:, None], episodes)
    for index, i, env in zip(*np.nonzero(episodes.ended), strict=True):
      ended = jax.tree.map(lambda x, place=(index, i, env): x[place], episodes)
      metrics = {name: float(x) for name, x in ended.metrics.items()}
      step = int(index) + 1
      self.tell(i, before + step, updates(step), ended, metrics)
