"""The `device` runner: acting, replay and learning in one program on the device.

For environments written in JAX, `device_program.py` is the program, and here is what
the host does: it asks for rounds, tells of the episodes that have ended, and evaluates.
Only what is to be reported leaves the device, at intervals. For environments that the
host steps together, `device_batched.py` has both halves.
"""

import contextlib
import math
from collections.abc import Callable, Sequence

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import batched_types, jax_adapter, jax_types
from explorax.experiments import signals
from explorax.experiments.checkpoints import keeper
from explorax.experiments.runners import (
  device_agent,
  device_batched,
  device_host,
  device_program,
  device_report,
  errors,
  evaluation,
  local,
  memory,
  recovery,
)

REPLAY = "device"  # The name of its replay.


def _shares(total: int, most: int) -> list[int]:
  """Shares of `total`, all but the last one equal, none of them above `most`."""
  if total <= most:
    return [max(1, total)]
  share = math.ceil(total / math.ceil(total / most))
  return [share] * (total // share) + ([total % share] if total % share else [])


def train(
  agent: types.Agent,
  environment: jax_types.Environment,
  params: jax_types.Params = None,
  *,
  seeds: Sequence[int],
  params_per_seed: bool = False,
  num_envs: int = 1,
  num_episodes: int | None = None,
  num_steps: int | None = None,
  on_episode: Callable[[int, local.Episode], None] = lambda seed, episode: None,
  stop: Callable[[], bool] = lambda: False,
  checkpoints: keeper.Keeper | None = None,
) -> list[local.Result]:
  """Trains an agent, once for each seed, all at the same time.

  Learning begins when replay has its minimum size, and at the earliest after as many
  steps of each environment as a window has rows. Updates are made in rounds: 0.25 a
  step are one after four steps. A KeyboardInterrupt ends the run as a stop does.

  Args:
    agent: made for the environment's spec.
    environment: written in JAX.
    params: of its functions, in the environments of all seeds; its own defaults where
      None.
    seeds: of everything random, one for each run.
    params_per_seed: whether `params` are one for each seed: each of their arrays has a
      leading axis as long as `seeds`.
    num_envs: environments that each seed acts in, side by side; all their steps count.
    num_episodes: stop when each seed has had so many; None: no limit.
    num_steps: stop after so many environment steps of each seed (rounded up to whole
      reports); None: no limit.
    on_episode: (seed, Episode) → None, called for each episode that has ended.
    stop: asked at each report whether to end the run.
    checkpoints: takes the run's state at reports, when one is due, and at its end; if
      it has found one, the run goes on from there, to the bit if replay is in it.

  Returns:
    What was learnt with each seed.

  Raises:
    errors.NonFiniteError: if a loss became NaN or infinite.
    ValueError: if there is no limit, no seed, or no environment, or if parameters are
      not as many as seeds.
  """
  local.check_limits(num_episodes, num_steps)
  if not seeds or num_envs < 1:
    raise ValueError(
      f"there are {len(seeds)} seeds and {num_envs} environments for each; use at "
      "least one of both."
    )
  params = environment.default_params() if params is None else params
  params = jax.tree.map(jnp.asarray, params)
  if params_per_seed:
    lengths = {x.shape[0] if x.ndim else 0 for x in jax.tree.leaves(params)}
    if lengths != {len(seeds)}:
      raise ValueError(
        f"there are {len(seeds)} seeds, and parameters with leading axes of "
        f"{sorted(lengths)}; with params_per_seed each has one of {len(seeds)}."
      )
    if len(seeds) == 1:
      params = jax.tree.map(lambda x: x[0], params)
  program = device_program.Program(
    agent,
    environment,
    params,
    num_envs=num_envs,
    num_seeds=len(seeds),
    params_per_seed=params_per_seed,
  )
  training = _Training(agent, program, list(seeds), num_envs, on_episode)
  if checkpoints is not None and checkpoints.found is not None:
    training.restore(checkpoints.found)

  def after_report() -> None:
    if checkpoints is not None and checkpoints.is_due(training.env_steps):
      checkpoints.save(
        training.env_steps, training.save(with_replay=checkpoints.with_replay)
      )

  with signals.stop_on_interrupt() as asked:
    interrupted = training.run(
      num_episodes, num_steps, lambda: stop() or asked(), after_report
    )
    if checkpoints is not None:
      # What is complete needs no replay any more.
      with_replay = interrupted and checkpoints.with_replay
      checkpoints.save(training.env_steps, training.save(with_replay=with_replay))
    return training.results(interrupted)


def run(
  agent: types.Agent,
  environment: dm_env.Environment | batched_types.BatchedEnvironment,
  *,
  seed: int,
  replay: str = REPLAY,
  num_envs: int | None = None,
  num_episodes: int | None = None,
  num_steps: int | None = None,
  on_episode: Callable[[local.Episode], None] = lambda episode: None,
  stop: Callable[[], bool] = lambda: False,
  evaluation_environment: dm_env.Environment | None = None,
  eval_every: int | None = None,
  eval_episodes: int = 5,
  on_evaluation: Callable[[evaluation.Evaluation], None] = lambda done: None,
  watcher: evaluation.Watcher | None = None,
  remake_environment: recovery.Remake | None = None,
  max_env_failures: int = 3,
  on_env_failure: Callable[[recovery.Failure], None] = lambda failure: None,
  checkpoints: keeper.Keeper | None = None,
) -> local.Result:
  """Trains an agent with one seed, as `local.run` does, in one program on the device.

  Evaluations are made at the reports, step by step as there. A KeyboardInterrupt ends
  the run as a stop does.

  Args:
    agent: made for this environment's spec.
    environment: of `environments.make`, one that is written in JAX; or of
      `environments.make_batched`.
    seed: of everything random.
    replay: `device`; there is no other.
    num_envs: environments side by side, all of whose steps count; None: one that is
      written in JAX, or as many as `make_batched` has made.
    num_episodes: see `train`.
    num_steps: see `train`.
    on_episode: see `train`.
    stop: see `train`.
    evaluation_environment: as in `local.run`, like all that follows.
    eval_every: environment steps.
    eval_episodes: in each evaluation.
    on_evaluation: called with each of them.
    watcher: sees the evaluation episodes.
    remake_environment: of the evaluation; the other cannot crash.
    max_env_failures: likewise.
    on_env_failure: likewise.
    checkpoints: see `train`. Environments that the host steps cannot be saved: acting
      goes on at the start of an episode in each.

  Returns:
    What was learnt.

  Raises:
    errors.NonFiniteError: if the loss became NaN or infinite.
    errors.EnvironmentFailedError: if the evaluation's environment crashed too often.
    ValueError: if the environment is not written in JAX, or there is no limit.
  """
  if replay != REPLAY:
    raise ValueError(f"the device runner has its own replay, not {replay!r}.")
  local.check_limits(num_episodes, num_steps)
  local.check_evaluation(evaluation_environment, eval_every, eval_episodes)
  training = _make_training(agent, environment, num_envs, seed, on_episode)
  with contextlib.ExitStack() as stack:
    interrupt = stack.enter_context(signals.stop_on_interrupt())

    def asked() -> bool:
      return stop() or interrupt()

    evaluations = None
    if evaluation_environment is not None:
      guarded = recovery.RecoverableEnvironment(
        evaluation_environment,
        recovery.EVALUATION,
        remake=remake_environment,
        max_failures=max_env_failures,
        on_failure=on_env_failure,
      )
      key = jax.random.fold_in(jax.random.PRNGKey(seed), local.EVALUATION_KEY)
      actor = builder_lib.Builder(agent).make_actor(key, training, evaluation=True)
      evaluations = evaluation.Evaluations(
        actor,
        stack.enter_context(contextlib.closing(guarded)),
        training.clock,
        every=eval_every,
        num_episodes=eval_episodes,
        stop=asked,
        watcher=watcher,
        on_evaluation=on_evaluation,
      )

    def save(*, with_replay: bool) -> None:
      if checkpoints is None:
        return
      snapshot = training.save(with_replay=with_replay and checkpoints.with_replay)
      if evaluations is not None:
        snapshot = evaluations.add_to(snapshot)
      checkpoints.save(training.env_steps, snapshot)

    def after_report() -> None:
      if evaluations is not None:
        evaluations.after_episode(training.env_steps)
      if checkpoints is not None and checkpoints.is_due(training.env_steps):
        save(with_replay=True)

    try:
      if checkpoints is not None and checkpoints.found is not None:
        training.restore(checkpoints.found)
        if evaluations is not None:
          evaluations.restore(checkpoints.found)
          # One that was broken off is made now.
          evaluations.after_episode(training.env_steps)
      interrupted = training.run(num_episodes, num_steps, asked, after_report)
      if evaluations is not None and not interrupted:
        with contextlib.suppress(KeyboardInterrupt):
          evaluations.at_the_end(training.env_steps)
      # What is complete needs no replay any more.
      save(with_replay=interrupted or asked())
    except recovery.GivenUpError as e:
      raise errors.EnvironmentFailedError(str(e), training.weights()) from e
    (result,) = training.results(interrupted)
    return result


def _make_training(
  agent: types.Agent,
  environment: dm_env.Environment | batched_types.BatchedEnvironment,
  num_envs: int | None,
  seed: int,
  on_episode: Callable[[local.Episode], None],
) -> device_host.Training:
  """That of environments on the device, or of those which the host steps."""
  if isinstance(environment, batched_types.BatchedEnvironment):
    if num_envs not in (None, environment.num_envs):
      raise ValueError(
        f"num_envs is {num_envs}, but {environment.num_envs} environments are stepped "
        "together here; leave it out."
      )
    return device_batched.Training(agent, environment, seed, on_episode)
  num_envs = 1 if num_envs is None else num_envs
  if num_envs < 1:
    raise ValueError(f"num_envs is {num_envs}; it must be at least 1.")
  program = device_program.Program(
    agent, *_pure(environment), num_envs=num_envs, num_seeds=1
  )
  return _Training(agent, program, [seed], num_envs, lambda _, e: on_episode(e))


def check_memory(
  agent: types.Agent,
  environment: dm_env.Environment | batched_types.BatchedEnvironment,
  num_seeds: int,
  num_envs: int | None = None,
) -> None:
  """Refuses a run that needs more memory than the device has, before it starts.

  Args:
    agent: made for the environment's spec.
    environment: as in `run`.
    num_seeds: trained at the same time.
    num_envs: as in `run`.

  Raises:
    ValueError: with what it needs, what there is, and what to do.
  """
  if isinstance(environment, batched_types.BatchedEnvironment):
    state = device_batched.shapes(agent, environment.num_envs)
  else:
    program = device_program.Program(
      agent, *_pure(environment), num_envs=num_envs or 1, num_seeds=1
    )
    state = jax.eval_shape(program.init, jax.random.PRNGKey(0))
  memory.check(memory.estimate(state, state.learner), num_seeds)


def _pure(
  environment: dm_env.Environment,
) -> tuple[jax_types.Environment, jax_types.Params]:
  """What `environments.make` has wrapped.

  Raises:
    ValueError: if it is not written in JAX.
  """
  raw = getattr(environment, "raw", environment)
  if not isinstance(raw, jax_adapter.JaxEnvironment):
    raise ValueError(
      "the device runner takes environments written in JAX (jax:deep_sea/20) or "
      f"stepped together (atari:Pong), and this one is a {type(raw).__name__}; use the "
      "local runner for it."
    )
  return raw.pure


class _Training(device_host.Training):
  """Of environments on the device."""

  def __init__(
    self,
    agent: types.Agent,
    program: device_program.Program,
    seeds: list[int],
    num_envs: int,
    on_episode: Callable[[int, local.Episode], None],
  ):
    keys = jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
    super().__init__(
      agent,
      device_report.Account(agent, seeds, num_envs, on_episode),
      program.init(keys if len(seeds) > 1 else keys[0]),
    )
    self._program = program
    self._num_envs = num_envs

  def run(
    self,
    num_episodes: int | None,
    num_steps: int | None,
    stop: Callable[[], bool],
    after_report: Callable[[], None] = lambda: None,
  ) -> bool:
    def is_done() -> bool:
      return self.account.is_done(num_episodes, num_steps)

    steps_per_round = self._program.steps_per_round
    before, left = self.account.empty_steps, math.inf
    fill = self.account.fill_steps
    if num_steps is not None:
      wanted = math.ceil(num_steps / self._num_envs) - before
      fill, left = min(fill, wanted), wanted - fill
    try:
      until = before
      for steps in _shares(fill, device_host.STEPS_PER_REPORT):
        until += steps
        if until <= self.account.steps:  # Of a run that was gone on with.
          continue
        if is_done() or stop():
          return not is_done()
        with signals.deferred():
          self._act(steps)
      rounds = max(1, device_host.STEPS_PER_REPORT // steps_per_round)
      if left < math.inf:  # No more of them than are wanted.
        rounds = _shares(math.ceil(left / steps_per_round), rounds)[0]
      while not (is_done() or stop()):
        with signals.deferred():
          self._learn(rounds)
        after_report()
    except KeyboardInterrupt:
      pass
    return not is_done()

  def _act(self, num_steps: int) -> None:
    before = self.account.steps
    self.state, episodes = self._program.act(self.state, num_steps)
    self.account.steps += num_steps
    self._tell(episodes, before, lambda step: self.account.updates)

  def _learn(self, num_rounds: int) -> None:
    account, program = self.account, self._program
    steps, updates = account.steps, account.updates
    self.state, report = program.learn(self.state, num_rounds)
    account.steps += num_rounds * program.steps_per_round
    account.updates += num_rounds * program.updates_per_round
    report = jax.device_get(report)
    last = [report.update]
    if account.num_seeds > 1:
      last = [
        jax.tree.map(lambda x, i=i: x[i], report.update)
        for i in range(account.num_seeds)
      ]
    account.take(last)
    self._tell(
      report.episodes,
      steps,
      lambda step: (
        updates + step // program.steps_per_round * program.updates_per_round
      ),
    )
    self.clock.mark_warm(self.env_steps)
    account.check_finite(last, self.weights, before=updates)

  def _tell(
    self,
    episodes: device_agent.Episodes,
    before: int,
    updates: Callable[[int], int],
  ) -> None:
    """Tells of the episodes that have ended, in their order.

    Args:
      episodes: `[steps, (S,) E]`.
      before: steps of each environment before these.
      updates: number of steps (from 1) → how many were made by their end.
    """
    episodes = jax.device_get(episodes)
    if self.account.num_seeds == 1:
      episodes = jax.tree.map(lambda x: x[:, None], episodes)
    for index, i, env in zip(*np.nonzero(episodes.ended), strict=True):
      ended = jax.tree.map(lambda x, place=(index, i, env): x[place], episodes)
      metrics = {name: float(x) for name, x in ended.metrics.items()}
      step = int(index) + 1
      self.account.tell(i, before + step, updates(step), ended, metrics)
