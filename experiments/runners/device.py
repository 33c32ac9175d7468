"""The `device` runner: acting, replay and learning in one program on the device.

The programs are in `device_program.py`; this module is the host's part. With
environments written in JAX it runs rounds of steps and updates, and only reports leave
the device. With environments that the host steps in batches, acting and stepping take
turns.
"""

import math
import operator
import types as python_types
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import device as device_replay
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import batched_types, gymnax_adapter, jax_adapter, jax_types
from explorax.experiments import checkpoint as checkpoint_lib
from explorax.experiments import config as config_lib
from explorax.experiments.runners import common, course, device_program

# Steps of each environment and updates of each learner until a report; what they leave.
_Begun: TypeAlias = tuple[int, int, device_program.Log, device_program.Update | None]
Environment: TypeAlias = (
  dm_env.Environment | jax_types.Environment | batched_types.BatchedEnvironment
)


def run(
  agent: types.Agent,
  environment: Environment,
  config: config_lib.RunConfig,
  hooks: common.Hooks = common.NO_HOOKS,
  *,
  params: Sequence[jax_types.Params] = (),
  evaluation_environment: dm_env.Environment | None = None,
) -> list[common.Result]:
  """Trains an agent once for each seed, all seeds at the same time.

  Learning starts when replay has its minimum size, and not before each environment has
  taken as many steps as a window has rows. Updates are made in rounds: 0.25 updates per
  step is one update every four steps. Limits, evaluations and checkpoints are handled
  at reports; see `course.RunControl`. From a checkpoint with replay, a run resumes bit
  for bit; with environments that the host steps, at the start of an episode.

  Args:
    agent: made for the environment's spec.
    environment: written in JAX, directly or from `environments.make`; or, with one
      seed, from `environments.make_batched`.
    config, hooks, evaluation_environment: as in `local.run`.
    params: parameters of an environment written in JAX, one for each seed, with which
      it is evaluated, too; empty: the environment's own for all.

  Returns:
    The result of each seed.

  Raises:
    ValueError: if the environment is not written in JAX.
  """
  seeds = config.seeds
  device: DeviceRun
  if isinstance(environment, batched_types.BatchedEnvironment):
    device = SteppedRun(agent, environment, config)
  else:
    functions, shared = pure(environment)
    has_axis, num_envs = len(params) > 1, config.num_envs or 1
    program = device_program.make_scanned(
      agent, functions, num_envs, len(seeds), has_axis, _max_steps(config, num_envs)
    )
    arrays = jax.tree.map(jnp.asarray, params[0] if params else shared)
    if has_axis:
      arrays = jax.tree.map(lambda *x: jnp.stack(x), *params)
    own = [(functions, x) for x in params]
    device = ScannedRun(agent, program, arrays, own, config)
  return course.RunControl(device, config, hooks, evaluation_environment).train()


def _max_steps(config: config_lib.RunConfig, num_envs: int) -> int | None:
  """Steps of each environment, or somewhat more; None: unlimited.

  Rounded up to a power of two: runs of similar lengths share compiled programs.
  """
  if config.steps is None:
    return None
  return 1 << (math.ceil(config.steps / num_envs) - 1).bit_length()


def pure(
  environment: dm_env.Environment | jax_types.Environment,
) -> tuple[jax_types.Environment, jax_types.Params]:
  """The functions of an environment, and their parameters.

  Raises:
    ValueError: if it is not written in JAX.
  """
  raw = getattr(environment, "raw", environment)
  if isinstance(raw, jax_adapter.JaxEnvironment):
    return raw.pure
  adapted = None if isinstance(raw, dm_env.Environment) else gymnax_adapter.adapt(raw)
  if adapted is not None:
    return adapted
  raise ValueError(
    "the device runner needs an environment written in JAX (jax:deep_sea/20) or "
    f"stepped in batches (atari:Pong), but this one is a {type(raw).__name__}; use the "
    "local runner for it."
  )


class DeviceRun(course.Run):
  """Runs steps and updates on the device.

  Each program consumes the state (its buffers are donated) and returns a new one.

  Attributes:
    state: on the device, of all seeds.
    steps: of each environment.
    updates: of each learner.
    empty_steps: the value of `steps` when replay was last empty.
    metrics: each learner's latest.
  """

  def __init__(
    self,
    agent: types.Agent,
    num_envs: int,
    state: device_program.State,
    config: config_lib.RunConfig,
  ):
    """Starts with all counters at zero.

    `state` has a leading axis of seeds if there is more than one.
    """
    super().__init__(agent, config)
    self._num_envs = num_envs
    self.state = state
    self.steps = 0
    self.updates = 0
    self.empty_steps = 0
    self.metrics: list[dict[str, float]] = [{} for _ in self._seeds]
    self._has_bonus = "r_int" in agent.replay.extras

  @property
  def env_steps(self) -> int:
    return self.steps * self._num_envs

  @property
  def num_updates(self) -> int:
    return self.updates

  @property
  def fill_steps(self) -> int:
    """Steps of each environment until an empty replay allows the first update."""
    spec = self._agent.replay
    return max(math.ceil(spec.min_size / self._num_envs), spec.window_rows)

  def save(self, *, with_replay: bool) -> checkpoint_lib.Snapshot:
    groups = {
      "learner": self.state.learner,
      "replay": self.state.replay if with_replay else (),
      "rest": self._rest(self.state),
    }
    counts = {
      "replay": with_replay,
      "steps": self.steps,
      "updates": self.updates,
      "empty_steps": self.empty_steps,
      "metrics": self.metrics,
    }
    return checkpoint_lib.Snapshot(groups, counts)

  def restore(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    """Resumes from a checkpoint; replay is empty if the checkpoint lacks it."""
    counts = checkpoint.record["counts"]
    has_replay = counts["replay"]
    shapes = jax.eval_shape(lambda: self.state)
    replay = self.state.replay
    if has_replay:
      # Both copies may not fit into memory at the same time.
      del replay
      self.state = self.state._replace(replay=())  # type: ignore[arg-type]
      # A replay for fewer steps was never full, so that its rows come first.
      replay = common.on_device(checkpoint.restore("replay", shapes.replay, pad=True))
    learner = common.on_device(checkpoint.restore("learner", shapes.learner))
    rest = common.on_device(checkpoint.restore("rest", self._rest(shapes)))
    self.state = rest._replace(learner=learner, replay=replay)
    self.steps, self.updates = counts["steps"], counts["updates"]
    self.empty_steps = counts["empty_steps"] if has_replay else self.steps
    self.metrics = counts["metrics"]

  @staticmethod
  def _rest(state: device_program.State) -> device_program.State:
    """The state without the learner and replay."""
    return state._replace(learner=(), replay=())  # type: ignore[arg-type]

  def learner_metrics(self) -> list[dict[str, float]]:
    return self.metrics

  def make_evaluation_actors(self) -> list[actor_lib.Actor]:
    builder, actors = builder_lib.Builder(self._agent), []
    for index, seed in enumerate(self._seeds):
      key = common.evaluation_key(jax.random.PRNGKey(seed), self.resumed_at)
      source = python_types.SimpleNamespace(
        get_variables=lambda names, i=index: [self.weights_of(i) for _ in names]
      )
      actors.append(builder.make_actor(key, source, evaluation=True))
    return actors

  def weights_of(self, index: int) -> types.Params:
    """The weights of a seed, on the device."""
    params = self._agent.learner.params
    if len(self._seeds) > 1:
      return jax.tree.map(lambda x: x[index], jax.vmap(params)(self.state.learner))
    # The state is donated to the next program.
    return jax.tree.map(jnp.copy, params(self.state.learner))

  def weights(self) -> list[types.Params]:
    return [jax.device_get(self.weights_of(i)) for i in range(len(self._seeds))]

  def _of_each_seed(self, tree: Any) -> list[Any]:
    """The arrays of each seed, on the host."""
    tree = jax.device_get(tree)
    if len(self._seeds) == 1:
      return [tree]
    return [jax.tree.map(lambda x, i=i: x[i], tree) for i in range(len(self._seeds))]

  def _report(self, ended: Any, places: Any, metrics: Any, times: Any) -> None:
    """Counts ended episodes `[N]`; `places` are their seeds, steps and updates."""
    ended = jax.tree.map(np.ndarray.tolist, ended)
    seeds, steps, updates = np.asarray(places).tolist()
    if self._has_bonus:
      bonuses = [{"intrinsic_return": x} for x in ended.intrinsic]
      metrics = [*map(operator.or_, bonuses, metrics)]
    self._count_episodes(
      seeds,
      times,
      env_steps=[step * self._num_envs for step in steps],
      episode_return=[*map(operator.add, *ended.episode_return)],
      episode_length=ended.length,
      policy=ended.policy,
      learner_updates=updates,
      metrics=metrics,
    )

  def _store_metrics(self, update: device_program.Update, before: int = 0) -> None:
    """Stores the metrics of each seed's last update, or first non-finite one.

    `before` is the number of updates before the first one that `update` counts.
    """
    of_seeds = self._of_each_seed(update)
    self.metrics = [_floats(of_seed.metrics) for of_seed in of_seeds]
    for index, metrics in enumerate(self.metrics):
      if metrics["finite"] > 0:
        continue
      why = (
        f"a loss became NaN or infinite in learner update "
        f"{before + int(of_seeds[index].number)}; lower the learning rate or clip the "
        "gradient."
      )
      rewards = self._of_each_seed(self.state.replay.rows["reward"])
      if not np.isfinite(rewards[index]).all():
        why = "the environment returned a reward that is NaN or infinite."
      raise FloatingPointError(f"in seed {self._seeds[index]}, {why}")


class ScannedRun(DeviceRun):
  """A run whose environments are on the device."""

  def __init__(
    self,
    agent: types.Agent,
    program: device_program.ScannedProgram,
    params: jax_types.Params,
    own: Sequence[tuple[jax_types.Environment, jax_types.Params]],
    config: config_lib.RunConfig,
  ):
    seeds = config.seeds
    keys = jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
    state = program.init(keys if len(seeds) > 1 else keys[0], params)
    super().__init__(agent, program.num_envs, state, config)
    self._program = program
    self._own = own

  def own_environment(self, index: int) -> dm_env.Environment | None:
    if not self._own:
      return None
    return environments.wrap(self._own[index], seed=self._seeds[index])

  @property
  def may_evaluate(self) -> bool:
    """Not while replay is being filled."""
    return self.steps - self.empty_steps > self.fill_steps

  def advance(self) -> None:
    """Steps until the next report; then the device goes on while the host reports."""
    num_steps, num_updates, log, update = self.begun or self._begin()
    self.begun, earlier = None, (self.steps, self.updates, self.metrics)
    jax.block_until_ready(log)
    self.steps, self.updates = self.steps + num_steps, self.updates + num_updates
    if update is not None:
      self._store_metrics(update, before=earlier[1])
      self.clock.mark_warm(self.env_steps)
    times = self._times()
    try:
      if self.may_run_ahead():
        self.begun = self._begin()  # Which may compile, or fail.
    finally:
      self._report_all(log, *earlier, times)

  def _begin(self) -> _Begun:
    """Starts the steps and updates until the next report."""
    program, config, limit = self._program, self._config, math.inf
    most_steps, few = program.steps_per_report, device_program.MIN_STEPS_PER_REPORT
    if config.episodes is not None:
      most_steps = min(most_steps, few)
    if config.eval_every is not None:
      most_steps = min(most_steps, max(config.eval_every // self._num_envs, few))
    if config.steps is not None:
      limit = math.ceil(config.steps / self._num_envs) - self.empty_steps
    done, fill = self.steps - self.empty_steps, int(min(self.fill_steps, limit))
    if done < fill:
      num_steps = min(fill - done, most_steps)
      self.state, log = program.act(self.state, num_steps)
      return num_steps, 0, log, None
    rounds = most_steps // program.steps_per_round
    if limit < math.inf:  # Not beyond the limit.
      rounds = min(rounds, math.ceil((limit - done) / program.steps_per_round))
    rounds = max(rounds, 1)
    self.state, log, update = program.learn(self.state, rounds, self.updates)
    num_updates = rounds * program.updates_per_round
    return rounds * program.steps_per_round, num_updates, log, update

  def _report_all(
    self,
    log: device_program.Log,
    steps: int,
    updates: int,
    metrics: Sequence[Mapping[str, float]],
    times: Mapping[str, float],
  ) -> None:
    """Reports a log's episodes; the numbers and metrics are those before it."""
    log, program = jax.device_get(log), self._program
    if len(self._seeds) == 1:
      log = jax.tree.map(lambda x: x[:, None], log)
    places = np.nonzero(log.episodes.ended)
    ended, newest = jax.tree.map(lambda x: x[places[: x.ndim]], log)
    step, seed, has_new = places[0] + 1, places[1], newest.number > 0
    rounds = step // program.steps_per_round * (self.updates > updates)
    # Those of its own round are already made.
    made = updates + rounds * program.updates_per_round
    old = {name: np.array([x[name] for x in metrics])[seed] for name in metrics[0]}
    learner, own = newest.metrics, ended.metrics
    columns = {x: np.where(has_new, y, old.get(x, y)) for x, y in learner.items()} | own
    table = np.asarray([*columns.values()] or np.zeros((0, len(step))), np.float64)
    rows = [dict(zip(columns, row, strict=True)) for row in table.T.tolist()]
    for row in () if old else np.flatnonzero(~has_new).tolist():  # Without any update.
      rows[row] = {name: rows[row][name] for name in own}
    self._report(ended, (seed, steps + step, made), rows, times)


class SteppedRun(DeviceRun):
  """A run of one seed with environments that the host steps in batches.

  Replay and learner are on the device, and the environments run in C++ threads on the
  host (Sebulba in Hessel et al. 2021, "Podracer architectures"). In each step the host
  gets all actions from one inference and sends them to the environments. While these
  step, the device makes the updates that are due; then the answers are stored. An
  action is therefore chosen before the updates of the previous step, one step later
  than in the local runner; the number of updates is the same.
  """

  def __init__(
    self,
    agent: types.Agent,
    environment: batched_types.BatchedEnvironment,
    config: config_lib.RunConfig,
  ):
    num_envs = environment.num_envs
    most = _max_steps(config, num_envs)
    self._program = device_program.make_stepped(agent, num_envs, most)
    state = self._program.init(jax.random.PRNGKey(config.seed), environment.reset())
    super().__init__(agent, num_envs, state, config)
    self._environment = environment
    self._pace, self._due = common.Pace(agent.replay), 0  # Updates.
    self._update = self._program.no_update(self.state)
    self._reports = True

  @property
  def activity(self) -> str:
    is_filling = self.steps - self.empty_steps < self.fill_steps
    return common.FILLING if is_filling else common.ACTING

  @property
  def may_evaluate(self) -> bool:
    """At reports: an episode has just ended, or none for a while."""
    return self._reports

  def advance(self) -> None:
    """A step of all environments, and the updates due after the previous step."""
    action, self.state = self._program.choose(self.state)
    sent = np.asarray(action)  # Waits for the device.
    self._environment.send(sent)
    self._learn()
    step = self._environment.recv()
    has_ended = self._observe(action, step)
    is_filled = self.steps - self.empty_steps > self.fill_steps
    self._due = self._pace.step(self.env_steps, is_filled, self._num_envs)
    if self.is_done:
      self._learn()
    self._reports = has_ended or self.steps % device_program.MIN_STEPS_PER_REPORT == 0
    if self._reports:
      self.check_finite()

  def save(self, *, with_replay: bool) -> checkpoint_lib.Snapshot:
    self.check_finite()
    snapshot = super().save(with_replay=with_replay)
    counts = {**snapshot.counts, "pace": self._pace.save(), "due": self._due}
    return snapshot._replace(counts=counts)

  def restore(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    """Resumes from a checkpoint, at the start of an episode in each environment.

    Open episodes are dropped, except for their windows in replay.
    """
    first, episodes = self.state.timesteps, self.state.episodes
    super().restore(checkpoint)
    counts = checkpoint.record["counts"]
    if counts["replay"]:
      self._pace.restore(counts["pace"])
      self._due = counts["due"]
    else:
      self._pace.begin_empty(self.env_steps)
    (metrics,) = self.metrics
    update = self._program.no_update(self.state, self.updates)
    latest = {name: jnp.float32(value) for name, value in metrics.items()}
    self._update = update._replace(metrics=latest or update.metrics)
    replay = device_replay.drop_open_episodes(self.state.replay)
    self.state = self.state._replace(timesteps=first, episodes=episodes, replay=replay)

  def _learn(self) -> None:
    """Starts the updates that are due without waiting for them."""
    for _ in range(self._due):
      self.state, self._update = self._program.update(self.state, self._update)
      self.updates += 1
    self._due = 0
    if not self.updates:
      return
    self.clock.mark_warm(self.env_steps)
    if self.steps % self._agent.actor_update_period == 0:
      self.state = self._program.fetch(self.state)

  def _observe(self, action: jax.Array, step: batched_types.Step) -> bool:
    """Stores a step's answers; returns whether an episode has ended."""
    self.state = self._program.observe(
      self.state, action, step.reward, step.discount, step.last, step.frames
    )
    self.steps += 1
    if step.first_frames is None:
      return False
    self.state, ended = self._program.end_episodes(self.state, step.first_frames)
    self.check_finite()
    envs = np.flatnonzero(step.last)
    metrics = [self.metrics[0] | _floats(step.metrics[x]) for x in envs.tolist()]
    ended = jax.tree.map(lambda x: x[envs], jax.device_get(ended))
    places = np.tile([[0], [self.steps], [self.updates]], len(envs))
    self._report(ended, places, metrics, self._times())
    return True

  def check_finite(self) -> None:
    """Fetches the metrics of the last update, and checks it."""
    if self.updates:
      self._store_metrics(self._update)


def _floats(metrics: Mapping[str, Any]) -> dict[str, float]:
  return {name: float(value) for name, value in metrics.items()}
