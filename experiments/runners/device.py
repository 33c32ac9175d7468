"""The `device` runner: acting, replay and learning in one program on the device.

For environments written in JAX. The agent's parts are those that the `local` runner
calls; here they are scanned over time, and vmapped over environments and over seeds.
Only what is to be reported leaves the device, at intervals.
"""

import contextlib
import fractions
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types
from explorax.agents.wiring import builder as builder_lib
from explorax.agents.wiring import device_replay
from explorax.environments import jax_adapter, jax_types
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import errors, evaluation, local, recovery

REPLAY = "device"  # The name of its replay.

# Steps of each environment between two reports.
_STEPS_PER_REPORT = 100
# Of the ratio of updates to steps: rounds are not made longer than that.
_MAX_STEPS_PER_ROUND = 1000


class _Episodes(NamedTuple):
  """The episodes under way, or those that a step has ended; `[E]` each.

  Attributes:
    ended: bool, whether the step was an episode's last.
    episode_return, length: so far.
    policy: the index followed at the episode's start.
    intrinsic: Σ r_int over the rows; 0 where acting computes none.
    metrics: the environment's, where an episode has ended.
  """

  ended: jax.Array
  episode_return: jax.Array
  length: jax.Array
  policy: jax.Array
  intrinsic: jax.Array
  metrics: dict[str, jax.Array]


class _State(NamedTuple):
  """All that a run of one seed keeps; E environments.

  Attributes:
    learner: the learner's state.
    weights: those acted with; `[E, ...]` where each actor has its own.
    actors, environments: their states, `[E, ...]`.
    timesteps: the newest, observations encoded, `[E, ...]`.
    replay: rows and windows.
    episodes: those under way.
    key: a random key.
    steps: int32 `[]`, of each environment.
  """

  learner: types.State
  weights: types.Params
  actors: types.State
  environments: jax_types.State
  timesteps: dm_env.TimeStep
  replay: device_replay.State
  episodes: _Episodes
  key: jax.Array
  steps: jax.Array


class _Report(NamedTuple):
  """What leaves the device after some rounds.

  Attributes:
    episodes: `[steps, (S,) E]`.
    metrics: of the last update, `[(S)]`.
    finite: whether all updates were, `[(S)]`.
  """

  episodes: _Episodes
  metrics: dict[str, jax.Array]
  finite: jax.Array


class Program:
  """An agent in an environment, as functions of states of S seeds.

  With one seed there is no axis for it: what is batched over a single seed is slower
  on a CPU.
  """

  def __init__(
    self,
    agent: types.Agent,
    environment: jax_types.Environment,
    params: jax_types.Params,
    *,
    num_envs: int,
    num_seeds: int,
  ):
    """Declares the program; nothing is compiled yet.

    Args:
      agent: made for the environment's spec.
      environment: written in JAX.
      params: of its functions.
      num_envs: E, environments of each seed, each with an actor.
      num_seeds: S.
    """
    self._agent = agent
    self._environment = environment
    self._params = params
    self._num_envs = num_envs
    self._core = agent.actor()
    self._replay = device_replay.DeviceReplay(agent, num_envs)
    self._lift = jax.vmap if num_seeds > 1 else lambda function: function
    # Updates in a round, after steps of each environment.
    wanted = agent.replay.updates_per_step * num_envs
    ratio = fractions.Fraction(wanted).limit_denominator(_MAX_STEPS_PER_ROUND)
    self.updates_per_round, self.steps_per_round = ratio.as_integer_ratio()
    if not math.isclose(ratio, wanted, rel_tol=0.01):
      raise ValueError(
        f"updates_per_step is {agent.replay.updates_per_step}; the device runner makes "
        f"an update within {_MAX_STEPS_PER_ROUND} steps at most: raise it."
      )
    self.init = jax.jit(self._lift(self._init))
    self.act = jax.jit(self._act_only, static_argnums=1, donate_argnums=0)
    self.learn = jax.jit(self._rounds, static_argnums=1, donate_argnums=0)

  def _init(self, key: jax.Array) -> _State:
    """The state before the first step, of one seed."""
    num_envs = self._num_envs
    learner_key, actor_key, reset_key, key = jax.random.split(key, 4)
    learner = self._agent.learner.init(learner_key)
    weights = self._agent.learner.params(learner)
    if self._agent.refresh is not None:
      weights = jax.tree.map(
        lambda x: jnp.broadcast_to(x, (num_envs, *x.shape)), weights
      )
    actors = jax.vmap(self._core.init, (0, 0, None))(
      jax.random.split(actor_key, num_envs), jnp.arange(num_envs), num_envs
    )
    environments, timesteps = self._reset(jax.random.split(reset_key, num_envs))
    metrics = self._metrics(environments)
    zeros = jnp.zeros((num_envs,), jnp.float32)
    counts = jnp.zeros((num_envs,), jnp.int32)
    episodes = _Episodes(
      jnp.zeros((num_envs,), bool),
      zeros,
      counts,
      counts,
      zeros,
      jax.tree.map(jnp.zeros_like, metrics),
    )
    return _State(
      learner=learner,
      weights=weights,
      actors=actors,
      environments=environments,
      timesteps=timesteps,
      replay=self._replay.init(),
      episodes=episodes,
      key=key,
      steps=jnp.int32(0),
    )

  def _act_only(self, state: _State, num_steps: int) -> tuple[_State, _Episodes]:
    """Steps without learning: (state, `_Episodes` `[num_steps, ...]`)."""
    return jax.lax.scan(lambda s, _: self._step(s), state, length=num_steps)

  def _rounds(self, state: _State, num_rounds: int) -> tuple[_State, _Report]:
    """Rounds of steps and updates."""

    def one_round(state: _State, _: None) -> tuple[_State, Any]:
      state, episodes = self._act_only(state, self.steps_per_round)
      state, metrics = jax.lax.scan(
        lambda s, _: self._lift(self._update)(s), state, length=self.updates_per_round
      )
      state = self._lift(self._fetch)(state)
      return state, (episodes, metrics)

    state, (episodes, metrics) = jax.lax.scan(one_round, state, length=num_rounds)
    episodes = jax.tree.map(lambda x: jnp.reshape(x, (-1, *x.shape[2:])), episodes)
    return state, _Report(
      episodes,
      jax.tree.map(lambda x: x[-1, -1], metrics),
      jnp.min(metrics["finite"], axis=(0, 1)) > 0,
    )

  def _step(self, state: _State) -> tuple[_State, _Episodes]:
    """One step of all environments; those that it ends begin anew."""
    state = self._lift(self._act)(state)
    # Not within the functions of one seed: vmapped, both sides would be computed.
    return jax.lax.cond(
      jnp.any(state.episodes.ended),
      self._lift(self._end_episodes),
      lambda s: (s, s.episodes),
      state,
    )

  def _act(self, state: _State) -> _State:
    """Chooses actions, takes them, and stores the rows."""
    key, step_key = jax.random.split(state.key)
    weights = state.weights
    if self._agent.refresh is not None:
      begins = state.timesteps.step_type == dm_env.StepType.FIRST
      fresh = self._agent.learner.params(state.learner)
      weights = jax.vmap(_choose, (0, None, 0))(begins, fresh, weights)
    action, actors = self._select(weights, state)
    extras = jax.vmap(self._core.extras)(actors)
    environments, timesteps = jax.vmap(self._environment.step, (0, 0, 0, None))(
      jax.random.split(step_key, self._num_envs),
      state.environments,
      action,
      self._params,
    )
    timesteps = self._encoded(timesteps)
    ones = jnp.ones((self._num_envs,))
    row = {
      **extras,
      "observation": self._newest_frames(state.timesteps),
      "action": action,
      "reward": timesteps.reward,
      "discount": timesteps.discount,
      "mask": ones,
    }
    old = state.episodes
    episodes = _Episodes(
      ended=timesteps.step_type == dm_env.StepType.LAST,
      episode_return=old.episode_return + timesteps.reward,
      length=old.length + 1,
      policy=jnp.where(old.length == 0, extras["policy"], old.policy),
      intrinsic=old.intrinsic + extras.get("r_int", 0.0),
      metrics=old.metrics,
    )
    return state._replace(
      weights=weights,
      actors=actors,
      environments=environments,
      timesteps=timesteps,
      replay=self._replay.append(state.replay, row, ones > 0),
      episodes=episodes,
      key=key,
      steps=state.steps + 1,
    )

  def _end_episodes(self, state: _State) -> tuple[_State, _Episodes]:
    """Shows actors the last observations, stores them, and resets environments."""
    key, reset_key = jax.random.split(state.key)
    ended = state.episodes.ended
    choose = jax.vmap(_choose)
    actors = choose(ended, self._select(state.weights, state)[1], state.actors)
    extras = jax.vmap(self._core.extras)(actors)
    zeros = jnp.zeros((self._num_envs,))
    row = {
      **extras,
      "observation": self._newest_frames(state.timesteps),
      **dict.fromkeys(("action", "reward", "discount", "mask"), zeros),
    }
    replay = self._replay.append(state.replay, row, ended)
    replay = self._replay.end_episodes(replay, ended)
    done = state.episodes._replace(
      intrinsic=state.episodes.intrinsic + extras.get("r_int", 0.0),
      metrics=self._metrics(state.environments),
    )
    environments, timesteps = self._reset(jax.random.split(reset_key, self._num_envs))
    nothing = jax.tree.map(jnp.zeros_like, state.episodes)
    return state._replace(
      actors=actors,
      environments=choose(ended, environments, state.environments),
      timesteps=choose(ended, timesteps, state.timesteps),
      replay=replay,
      episodes=choose(ended, nothing, state.episodes),
      # What happens to other seeds must not matter to this one.
      key=_choose(jnp.any(ended), key, state.key),
    ), done

  def _update(self, state: _State) -> tuple[_State, dict[str, jax.Array]]:
    """One update of the learner."""
    key, sample_key = jax.random.split(state.key)
    keys, sample = self._replay.sample(state.replay, sample_key)
    sample = types.join_frames(sample, self._agent.replay.num_frames)
    learner, output = self._agent.learner.update(state.learner, sample)
    replay = self._replay.update_priorities(state.replay, keys, output.priorities)
    # A priority that is NaN would poison replay.
    is_finite = output.metrics["finite"] > 0
    priorities = _choose(is_finite, replay.priorities, state.replay.priorities)
    replay = replay._replace(priorities=priorities)
    return state._replace(learner=learner, replay=replay, key=key), output.metrics

  def _fetch(self, state: _State) -> _State:
    """Gives actors the learner's weights, where it is time to."""
    period = self._agent.actor_update_period
    # Rounds may be longer than the period.
    is_due = state.steps % period < self.steps_per_round
    fresh = self._agent.learner.params(state.learner)
    if self._agent.refresh is not None:
      fresh = jax.vmap(self._agent.refresh, (0, None))(state.weights, fresh)
    return state._replace(weights=_choose(is_due, fresh, state.weights))

  def _select(
    self, weights: types.Params, state: _State
  ) -> tuple[jax.Array, types.State]:
    axis = None if self._agent.refresh is None else 0
    select = jax.vmap(self._core.select_action, (types.ActorParams(axis, None), 0, 0))
    # Schedules have ended long before this counts no further.
    most = np.iinfo(np.int32).max // self._num_envs
    env_steps = jnp.minimum(state.steps, most) * self._num_envs
    params = types.ActorParams(weights, env_steps)
    return select(params, state.timesteps, state.actors)

  def _reset(self, keys: jax.Array) -> tuple[jax_types.State, dm_env.TimeStep]:
    reset = jax.vmap(self._environment.reset, (0, None))
    environments, timesteps = reset(keys, self._params)
    return environments, self._encoded(timesteps)

  def _metrics(self, environments: jax_types.State) -> dict[str, jax.Array]:
    metrics = jax.vmap(self._environment.metrics, (0, None))
    return metrics(environments, self._params)

  def _newest_frames(self, timesteps: dm_env.TimeStep) -> jax.Array:
    """What rows keep of the observations."""
    num_frames = self._agent.replay.num_frames
    if num_frames == 1:
      return timesteps.observation
    channels = timesteps.observation.shape[-1] // num_frames
    return timesteps.observation[..., -channels:]

  def _encoded(self, timesteps: dm_env.TimeStep) -> dm_env.TimeStep:
    encode = jax.vmap(self._agent.encoding.on_device)
    return timesteps._replace(observation=encode(timesteps.observation))


def _choose(condition: jax.Array, new: Any, old: Any) -> Any:
  """A pytree or the other, by a bool `[]`."""
  return jax.tree.map(lambda n, o: jnp.where(condition, n, o), new, old)


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
  num_envs: int = 1,
  num_episodes: int | None = None,
  num_steps: int | None = None,
  on_episode: Callable[[int, local.Episode], None] = lambda seed, episode: None,
  stop: Callable[[], bool] = lambda: False,
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
    num_envs: environments that each seed acts in, side by side; all their steps count.
    num_episodes: stop when each seed has had so many; None: no limit.
    num_steps: stop after so many environment steps of each seed (rounded up to whole
      reports); None: no limit.
    on_episode: (seed, Episode) → None, called for each episode that has ended.
    stop: asked at each report whether to end the run.

  Returns:
    What was learnt with each seed.

  Raises:
    errors.NonFiniteError: if a loss became NaN or infinite.
    ValueError: if there is no limit, no seed, or no environment.
  """
  if num_episodes is None and num_steps is None:
    raise ValueError("nothing says when to stop; give num_episodes or num_steps.")
  if not seeds or num_envs < 1:
    raise ValueError(
      f"there are {len(seeds)} seeds and {num_envs} environments for each; use at "
      "least one of both."
    )
  params = environment.default_params() if params is None else params
  params = jax.tree.map(jnp.asarray, params)
  program = Program(agent, environment, params, num_envs=num_envs, num_seeds=len(seeds))
  training = _Training(agent, program, list(seeds), num_envs, on_episode)
  interrupted = training.run(num_episodes, num_steps, stop)
  return training.results(interrupted)


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  *,
  seed: int,
  replay: str = REPLAY,
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
) -> local.Result:
  """Trains an agent with one seed, as `local.run` does, in one program on the device.

  Evaluations are made at the reports, step by step as there.

  Args:
    agent: made for this environment's spec.
    environment: of `environments.make`, one that is written in JAX.
    seed: of everything random.
    replay: `device`; there is no other.
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

  Returns:
    What was learnt.

  Raises:
    errors.NonFiniteError: if the loss became NaN or infinite.
    errors.EnvironmentFailedError: if the evaluation's environment crashed too often.
    ValueError: if the environment is not written in JAX, or there is no limit.
  """
  raw = getattr(environment, "raw", environment)
  if not isinstance(raw, jax_adapter.JaxEnvironment):
    raise ValueError(
      "the device runner takes environments written in JAX (jax:deep_sea/20), and "
      f"this one is a {type(raw).__name__}; use the local runner for it."
    )
  if replay != REPLAY:
    raise ValueError(f"the device runner has its own replay, not {replay!r}.")
  if num_episodes is None and num_steps is None:
    raise ValueError("nothing says when to stop; give num_episodes or num_steps.")
  local.check_evaluation(evaluation_environment, eval_every, eval_episodes)
  program = Program(agent, *raw.pure, num_envs=1, num_seeds=1)
  training = _Training(
    agent, program, [seed], 1, lambda _, episode: on_episode(episode)
  )
  with contextlib.ExitStack() as stack:
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
        stop=stop,
        watcher=watcher,
        on_evaluation=on_evaluation,
      )

    def after_report() -> None:
      if evaluations is not None:
        evaluations.after_episode(training.env_steps)

    try:
      interrupted = training.run(num_episodes, num_steps, stop, after_report)
      if evaluations is not None and not interrupted:
        evaluations.at_the_end(training.env_steps)
    except recovery.GivenUpError as e:
      (weights,) = training.weights()
      raise errors.EnvironmentFailedError(str(e), weights) from e
    (result,) = training.results(interrupted)
    return result


class _Training:
  """The host's half of a run."""

  def __init__(
    self,
    agent: types.Agent,
    program: Program,
    seeds: list[int],
    num_envs: int,
    on_episode: Callable[[int, local.Episode], None],
  ):
    self._agent = agent
    self._program = program
    self._seeds = seeds
    self._num_envs = num_envs
    self._on_episode = on_episode
    self.clock = clock_lib.Clock()
    keys = jnp.stack([jax.random.PRNGKey(seed) for seed in seeds])
    self._state = program.init(keys if len(seeds) > 1 else keys[0])
    self._metrics: list[dict[str, float]] = [{} for _ in seeds]
    self._steps = 0  # Of each environment.
    self._updates = 0
    self._episodes = [0 for _ in seeds]

  @property
  def env_steps(self) -> int:
    """Of each seed."""
    return self._steps * self._num_envs

  def run(
    self,
    num_episodes: int | None,
    num_steps: int | None,
    stop: Callable[[], bool],
    after_report: Callable[[], None] = lambda: None,
  ) -> bool:
    """Acts and learns until it is enough; returns whether it was stopped before."""

    def is_done() -> bool:
      return (num_steps is not None and self.env_steps >= num_steps) or (
        num_episodes is not None and min(self._episodes) >= num_episodes
      )

    spec, program = self._agent.replay, self._program
    fill = max(math.ceil(spec.min_size / self._num_envs), spec.window_rows)
    left = math.inf
    if num_steps is not None:
      wanted = math.ceil(num_steps / self._num_envs)
      fill, left = min(fill, wanted), wanted - fill
    try:
      for steps in _shares(fill, _STEPS_PER_REPORT):
        if is_done() or stop():
          return not is_done()
        self._act(steps)
      rounds = max(1, _STEPS_PER_REPORT // program.steps_per_round)
      if left < math.inf:  # No more of them than are wanted.
        rounds = _shares(math.ceil(left / program.steps_per_round), rounds)[0]
      while not (is_done() or stop()):
        self._learn(rounds)
        after_report()
    except KeyboardInterrupt:
      pass
    return not is_done()

  def _act(self, num_steps: int) -> None:
    self._state, episodes = self._program.act(self._state, num_steps)
    self._report(episodes, num_steps)

  def _learn(self, num_rounds: int) -> None:
    num_steps = num_rounds * self._program.steps_per_round
    self._state, report = self._program.learn(self._state, num_rounds)
    self._updates += num_rounds * self._program.updates_per_round
    report = jax.device_get(report)
    finite = np.atleast_1d(report.finite)
    many = len(self._seeds) > 1
    self._metrics = [
      {name: float(x[i] if many else x) for name, x in report.metrics.items()}
      for i in range(len(self._seeds))
    ]
    self._report(report.episodes, num_steps)
    self.clock.mark_warm(self.env_steps)
    if not finite.all():
      worst = int(np.argmin(finite))
      raise errors.NonFiniteError(
        f"stopped at environment step {self.env_steps}, seed {self._seeds[worst]}: a "
        "loss became NaN or infinite; lower the learning rate or clip the gradient.",
        self.weights()[worst],
      )

  def results(self, interrupted: bool) -> list[local.Result]:
    return [
      local.Result(
        weights=weights,
        env_steps=self.env_steps,
        episodes=self._episodes[i],
        learner_updates=self._updates,
        steps_per_second=self.clock.steps_per_second(self.env_steps),
        interrupted=interrupted,
      )
      for i, weights in enumerate(self.weights())
    ]

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    """The weights of the only seed, for Acme's actors."""
    params = self._agent.learner.params(self._state.learner)
    # The state is donated to the next rounds.
    return [jax.tree.map(jnp.copy, params) for _ in names]

  def weights(self) -> list[types.Params]:
    """Each seed's, on the host."""
    learner = self._state.learner
    if len(self._seeds) == 1:
      return [jax.device_get(self._agent.learner.params(learner))]
    weights = jax.device_get(jax.vmap(self._agent.learner.params)(learner))
    return [jax.tree.map(lambda x, i=i: x[i], weights) for i in range(len(self._seeds))]

  def _report(self, episodes: _Episodes, num_steps: int) -> None:
    """Tells of the episodes that have ended, in their order."""
    episodes = jax.device_get(episodes)
    if len(self._seeds) == 1:
      episodes = jax.tree.map(lambda x: x[:, None], episodes)
    before = self._steps
    self._steps += num_steps
    speed = self.clock.steps_per_second(self.env_steps)
    for step, i, env in zip(*np.nonzero(episodes.ended), strict=True):
      place = (step, i, env)
      self._episodes[i] += 1
      metrics = dict(self._metrics[i])
      if "r_int" in self._agent.replay.extras:
        metrics["intrinsic_return"] = float(episodes.intrinsic[place])
      metrics |= {name: float(x[place]) for name, x in episodes.metrics.items()}
      self._on_episode(
        self._seeds[i],
        local.Episode(
          episode=self._episodes[i],
          env_steps=(before + int(step) + 1) * self._num_envs,
          episode_return=float(episodes.episode_return[place]),
          episode_length=int(episodes.length[place]),
          policy=self._agent.policy_names[int(episodes.policy[place])],
          learner_updates=self._updates,
          steps_per_second=speed,
          wall_seconds=time.monotonic() - self.clock.start,
          metrics=metrics,
        ),
      )
