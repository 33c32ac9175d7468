"""The `local` runner: one machine, one thread, acting and learning in turn."""

import contextlib
import functools
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import acme
import acme.core
import dm_env
import jax
import numpy as np
from acme.utils import counting, loggers

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.agents.wiring import learner as learner_lib
from explorax.agents.wiring import memory_replay
from explorax.environments import saving
from explorax.experiments.checkpoints import files, keeper
from explorax.experiments.runners import clock as clock_lib
from explorax.experiments.runners import errors, evaluation, recovery

# Tells the evaluation's key apart from all those that training splits off its own.
EVALUATION_KEY = 0x6576616C

# Updates left out of the steps per second: the first ones compile.
_WARM_UP_UPDATES = 2


class Episode(NamedTuple):
  """What is known at an episode's end."""

  episode: int  # How many have ended, this one included.
  env_steps: int  # Environment steps so far.
  episode_return: float
  episode_length: int  # Environment steps.
  policy: str  # The group of the policy followed, of `Agent.policy_names`.
  learner_updates: int
  steps_per_second: float  # Of the whole run, after compilation.
  wall_seconds: float  # Since the run's start.
  # The learner's latest, the environment's, and, where acting computes an intrinsic
  # reward, its sum over the episode as `intrinsic_return`.
  metrics: dict[str, float]


class Result(NamedTuple):
  """What a run leaves in memory."""

  weights: types.Params  # On the host.
  env_steps: int
  episodes: int
  learner_updates: int
  steps_per_second: float  # After compilation; NaN if nothing was learnt yet.
  interrupted: bool


class _StoppedError(Exception):
  """Leaves Acme's loop in mid-episode."""


class LocalAgent(acme.core.Actor):
  """Acts, and after each step makes the updates that are due.

  Updates are due from the step on at which replay has its minimum size, and holds
  one whole window: `updates_per_step` for each step.
  """

  def __init__(
    self,
    agent: types.Agent,
    actor: actor_lib.Actor,
    learner: learner_lib.Learner,
    adder: adder_lib.WindowAdder,
    clock: clock_lib.Clock,
    stop: Callable[[], bool],
    after_step: Callable[[], None],
  ):
    self._spec = agent.replay
    self._stop = stop
    self._after_step = after_step
    self._actor = actor
    self._learner = learner
    self._adder = adder
    self._clock = clock
    self._due = 0.0  # Updates.
    self._empty_steps = 0  # Made when replay was empty for the last time.
    self._resuming = False
    self._starting = True
    self._ended = True
    # Added up here as Acme's loop does, which does not see all of an episode that was
    # gone on with.
    self.episode_return = np.float32(0.0)
    self.episode_length = 0
    self.episode_policy = 0
    # Σ r_int over the episode's rows; None where acting computes none.
    self.intrinsic_return: float | None = None

  @property
  def env_steps(self) -> int:
    return self._actor.env_steps

  def observe_first(self, timestep: dm_env.TimeStep) -> None:
    if self._resuming:  # The actor knows the timestep, and what came before it.
      self._resuming = False
      return
    self._actor.observe_first(timestep)
    self._starting = True
    self._ended = False
    self.episode_return, self.episode_length = np.float32(0.0), 0

  def select_action(self, observation: Any) -> Any:
    action = self._actor.select_action(observation)
    if self._starting:
      self.episode_policy = self._actor.policy
      self.intrinsic_return = None
      self._starting = False
    self._add_intrinsic()
    return action

  def observe(self, action: Any, next_timestep: dm_env.TimeStep) -> None:
    self._actor.observe(action, next_timestep)
    self.episode_return += np.float32(next_timestep.reward)
    self.episode_length += 1
    self._ended = next_timestep.last()
    if self._ended:
      self._add_intrinsic()

  def _add_intrinsic(self) -> None:
    if "r_int" in self._actor.extras:
      so_far = self.intrinsic_return or 0.0
      self.intrinsic_return = so_far + float(self._actor.extras["r_int"])

  def update(self, wait: bool = False) -> None:
    self._learn(wait)
    if not self._ended:
      if self._stop():
        raise _StoppedError
      self._after_step()

  def _learn(self, wait: bool) -> None:
    steps = self.env_steps - self._empty_steps
    if steps < self._spec.min_size or not self._adder.num_windows:
      return
    self._due += self._spec.updates_per_step
    while self._due >= 1.0:
      # The first of them was waited for already: its weights were acted with.
      self.check_finite()
      self._learner.step()
      self._due -= 1.0
    if self._learner.num_updates >= _WARM_UP_UPDATES:
      self._clock.mark_warm(self.env_steps)
    self._actor.update(wait)

  def break_off(self) -> None:
    """Ends the episode where it stands: its environment has crashed."""
    self._ended = True
    self._actor.break_off()

  def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
    """All that it goes on from, but replay: (arrays, what JSON can hold)."""
    actor, actor_counts = self._actor.save()
    arrays = {"actor": actor, "learner": self._learner.save()}
    counts = {
      "actor": actor_counts,
      "num_updates": self._learner.num_updates,
      "metrics": self._learner.metrics(),
      "due": self._due,
      "empty_steps": self._empty_steps,
      "starting": self._starting,
      "ended": self._ended,
      "episode_return": float(self.episode_return),
      "episode_length": self.episode_length,
      "episode_policy": self.episode_policy,
      "intrinsic_return": self.intrinsic_return,
    }
    return arrays, counts

  def shapes(self, counts: Mapping[str, Any]) -> dict[str, Any]:
    """The shapes of the arrays that `save` returned along with `counts`."""
    actor = self._actor.shapes(counts["actor"])
    return {"actor": actor, "learner": self._learner.shapes()}

  def restore(self, arrays: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
    """Goes on from what `save` returned."""
    self._learner.restore(arrays["learner"], counts["num_updates"], counts["metrics"])
    self._actor.restore(arrays["actor"], counts["actor"])
    self._due, self._empty_steps = counts["due"], counts["empty_steps"]
    self._starting, self._ended = counts["starting"], counts["ended"]
    self.episode_return = np.float32(counts["episode_return"])
    self.episode_length = counts["episode_length"]
    self.episode_policy = counts["episode_policy"]
    self.intrinsic_return = counts["intrinsic_return"]

  def forget_episode(self) -> None:
    """Ends the episode where it stood, of which the adder knows nothing."""
    self._ended = True
    self._actor.forget_episode()

  def go_on_in_mid_episode(self) -> None:
    """Has the next `observe_first` be none."""
    self._resuming = True

  def begin_with_empty_replay(self) -> None:
    """Waits with updates until replay is filled again."""
    self._empty_steps, self._due = self.env_steps, 0.0

  def check_finite(self) -> None:
    """Raises a FloatingPointError if the learner's last update was not finite."""
    self._learner.check_finite()


class _EpisodeLogger(loggers.Logger):
  """Acme's logger, seen from the loop: turns what it writes into an Episode."""

  def __init__(
    self,
    agent: types.Agent,
    environment: recovery.RecoverableEnvironment,
    local_agent: LocalAgent,
    learner: learner_lib.Learner,
    clock: clock_lib.Clock,
    on_episode: Callable[[Episode], None],
  ):
    self._policy_names = agent.policy_names
    self._environment = environment
    self._local_agent = local_agent
    self._learner = learner
    self._clock = clock
    self._on_episode = on_episode

  def write(self, data: loggers.LoggingData) -> None:
    steps = self._local_agent.env_steps
    metrics = self._learner.metrics()
    if self._local_agent.intrinsic_return is not None:
      metrics["intrinsic_return"] = self._local_agent.intrinsic_return
    metrics.update(environments.episode_metrics(self._environment.current))
    self._on_episode(
      Episode(
        episode=int(data["episodes"]),
        env_steps=steps,
        episode_return=float(self._local_agent.episode_return),
        episode_length=self._local_agent.episode_length,
        policy=self._policy_names[self._local_agent.episode_policy],
        learner_updates=self._learner.num_updates,
        steps_per_second=self._clock.steps_per_second(steps),
        wall_seconds=self._clock.seconds,
        metrics=metrics,
      )
    )

  def close(self) -> None:
    """There is nothing to close."""


class _Training:
  """The loop in which an agent acts and learns, one episode at a time."""

  def __init__(
    self,
    agent: types.Agent,
    environment: recovery.RecoverableEnvironment,
    store: builder_lib.Replay,
    *,
    seed: int,
    on_episode: Callable[[Episode], None],
    stop: Callable[[], bool],
    after_step: Callable[[], None],
  ):
    builder = builder_lib.Builder(agent)
    actor_key, learner_key = jax.random.split(jax.random.PRNGKey(seed))
    self._environment = environment
    self._counter = counting.Counter()
    self._counter.increment(episodes=0)
    adder = builder.make_adder(store)
    batches = builder.make_dataset_iterator(store)
    learner = builder.make_learner(learner_key, batches, store, self._counter)
    actor = builder.make_actor(actor_key, learner, adder)
    self.clock = clock_lib.Clock()
    self._agent = LocalAgent(agent, actor, learner, adder, self.clock, stop, after_step)
    logger = _EpisodeLogger(
      agent, environment, self._agent, learner, self.clock, on_episode
    )
    self._loop = acme.EnvironmentLoop(environment, self._agent, self._counter, logger)
    self._store: Any = store
    self._definition = agent
    self._adder = adder
    self._actor = actor
    self._learner = learner
    self._builder = builder
    self._evaluation_key = jax.random.fold_in(actor_key, EVALUATION_KEY)

  @property
  def episodes(self) -> int:
    return self._counter.get_counts()["episodes"]

  @property
  def env_steps(self) -> int:
    return self._agent.env_steps

  @property
  def weights(self) -> types.Params:
    """On the host."""
    (weights,) = self._learner.get_variables(["params"])
    return jax.device_get(weights)

  def make_evaluation_actor(self) -> actor_lib.Actor:
    """One with this learner's weights, and a key of its own."""
    return self._builder.make_actor(
      self._evaluation_key, self._learner, evaluation=True
    )

  def run_episode(self) -> None:
    """One episode, or what there was of it when the environment crashed."""
    try:
      self._loop.run(num_episodes=1)
    except recovery.CrashError as crash:
      self._agent.break_off()
      self._environment.recover(crash, self.episodes + 1, self.env_steps)

  def save(self, *, with_replay: bool) -> keeper.Snapshot:
    """What goes into a checkpoint, between two steps.

    Args:
      with_replay: whether replay is part of it.
    """
    state, counts = self._agent.save()
    environment = self._environment.current
    arrays, environment_counts = saving.save(environment)
    groups = {"state": {"agent": state, "environment": arrays}}
    counts = {
      "agent": counts,
      "environment": environment_counts,
      "acme": self._counter.get_counts(),
      "seconds": self.clock.seconds,
      "num_windows": self._adder.num_windows,
    }
    folders: dict[str, Callable[[pathlib.Path], None]] = {}
    sizes: dict[str, int] = {}
    if with_replay and isinstance(self._store, memory_replay.MemoryReplay):
      replay, counts["replay"] = self._store.save()
      adder, counts["adder"] = self._adder.save()
      groups["replay"] = {"store": replay, "adder": adder}
    elif with_replay:
      folders["replay"] = self._store.save_to  # Reverb's.
      windows = self._adder.num_windows
      sizes["replay"] = adder_lib.replay_bytes(self._definition, windows)
    return keeper.Snapshot(groups, counts, folders, sizes)

  def restore(self, checkpoint: files.Checkpoint) -> None:
    """Goes on from a checkpoint: in mid-episode if all of it is known."""
    counts = checkpoint.record["counts"]
    agent, environment = self._agent, self._environment.current
    shapes = {
      "agent": agent.shapes(counts["agent"]),
      "environment": saving.shapes(environment, counts["environment"]),
    }
    arrays = checkpoint.restore("state", shapes)
    agent.restore(arrays["agent"], counts["agent"])
    saving.restore(environment, arrays["environment"], counts["environment"])
    done = self._counter.get_counts()
    self._counter.increment(
      **{k: n - done.get(k, 0) for k, n in counts["acme"].items()}
    )
    self.clock.resume(counts["seconds"])
    if "replay" in checkpoint.groups:
      store, adder = self._store, self._adder
      shapes = {
        "store": store.shapes(counts["replay"]),
        "adder": adder.shapes(counts["adder"]),
      }
      arrays = checkpoint.restore("replay", shapes)
      store.restore(arrays["store"], counts["replay"])
      adder.restore(arrays["adder"], counts["adder"])
      if counts["agent"]["ended"]:
        return
      if saving.is_exact(environment):
        agent.go_on_in_mid_episode()
        self._environment.resume(self._actor.timestep, agent.episode_length)
      else:  # To replay, the open episode was truncated.
        agent.break_off()
      return
    agent.forget_episode()
    if checkpoint.folder("replay") is None:
      agent.begin_with_empty_replay()
    else:
      self._adder.num_windows = counts["num_windows"]

  def check_finite(self) -> None:
    self._agent.check_finite()

  def result(self, interrupted: bool) -> Result:
    return Result(
      weights=self.weights,
      env_steps=self.env_steps,
      episodes=self.episodes,
      learner_updates=self._learner.num_updates,
      steps_per_second=self.clock.steps_per_second(self.env_steps),
      interrupted=interrupted,
    )


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  *,
  seed: int,
  replay: str = "reverb",
  num_episodes: int | None = None,
  num_steps: int | None = None,
  on_episode: Callable[[Episode], None] = lambda episode: None,
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
) -> Result:
  """Trains an agent.

  With an `evaluation_environment`, `eval_episodes` episodes of the evaluation policy
  are run in it whenever a multiple of `eval_every` environment steps was passed in
  the episode that has just ended, and at the end of a run that was not stopped,
  unless that has just been done. Nothing of them enters replay, counts or returns.

  An environment that raises an exception in a step or a reset is made anew: its
  episode is not counted, but the steps taken in it are, and replay keeps them as an
  episode that was truncated. What our own checks refuse still ends the run.

  Args:
    agent: made for this environment's spec.
    environment: of `environments.make`.
    seed: of the initialisation, of acting, and of sampling from the memory replay.
    replay: `reverb` or `memory`.
    num_episodes: stop after so many; None: no limit.
    num_steps: stop at the end of the episode in which so many environment steps are
      reached; None: no limit.
    on_episode: called at each episode's end.
    stop: asked after each step and each episode, whether to end the run at once.
    evaluation_environment: another one of the same specs; None for no evaluation.
    eval_every: environment steps; None: at the end of the run only.
    eval_episodes: in each evaluation.
    on_evaluation: called with each of them.
    watcher: sees the evaluation episodes; None for nobody.
    remake_environment: (role, failures of it so far) → a new environment, the role
      being `training` or `evaluation`; None: the first crash ends the run.
    max_env_failures: how many crashes in a row, without a whole episode in between,
      are recovered from.
    on_env_failure: called with each of those.
    checkpoints: takes the run's state after steps, when one is due, and at its end; if
      it has found one, the run goes on from there: to the bit with the memory replay
      and an environment written in JAX, else at an episode's start.

  Returns:
    What was learnt. If a stop or a KeyboardInterrupt came in mid-episode,
    `interrupted` is true, and that episode is not counted.

  Raises:
    errors.NonFiniteError: if a reward, an observation or the loss is NaN or infinite.
    errors.EnvironmentFailedError: if an environment crashed too often in a row.
    ImportError: if Reverb is asked for and cannot be imported.
    ValueError: if there is no limit, or an evaluation of no steps or episodes.
  """
  check_limits(num_episodes, num_steps)
  check_evaluation(evaluation_environment, eval_every, eval_episodes)
  guard = functools.partial(
    recovery.RecoverableEnvironment,
    remake=remake_environment,
    max_failures=max_env_failures,
    on_failure=on_env_failure,
  )
  with contextlib.ExitStack() as stack:
    found = None if checkpoints is None else checkpoints.found
    folder = None if found is None else found.folder("replay")
    store = builder_lib.Builder(agent).make_replay_tables(replay, seed, folder)
    stack.callback(store.close)
    guarded = stack.enter_context(
      contextlib.closing(guard(environment, recovery.TRAINING))
    )
    training = _Training(
      agent,
      guarded,
      store,
      seed=seed,
      on_episode=on_episode,
      stop=stop,
      after_step=lambda: save_if_due(),
    )
    evaluations = None
    if evaluation_environment is not None:
      evaluations = evaluation.Evaluations(
        training.make_evaluation_actor(),
        stack.enter_context(
          contextlib.closing(guard(evaluation_environment, recovery.EVALUATION))
        ),
        training.clock,
        every=eval_every,
        num_episodes=eval_episodes,
        stop=stop,
        watcher=watcher,
        on_evaluation=on_evaluation,
      )

    def at_limit() -> bool:
      return (num_episodes is not None and training.episodes >= num_episodes) or (
        num_steps is not None and training.env_steps >= num_steps
      )

    def save() -> None:
      if checkpoints is None:
        return
      training.check_finite()
      # What is complete needs no replay any more.
      with_replay = checkpoints.with_replay and not at_limit()
      snapshot = training.save(with_replay=with_replay)
      if evaluations is not None:
        snapshot = evaluations.add_to(snapshot)
      checkpoints.save(training.env_steps, snapshot)

    def save_if_due() -> None:
      if checkpoints is not None and checkpoints.is_due(training.env_steps):
        save()

    interrupted = True
    try:
      if found is not None:
        training.restore(found)
        if evaluations is not None:
          evaluations.restore(found)
          if found.record["counts"]["agent"]["ended"]:
            # One that was broken off is made now.
            evaluations.after_episode(training.env_steps)
      try:
        while not (at_limit() or stop()):
          training.run_episode()
          if evaluations is not None:
            evaluations.after_episode(training.env_steps)
          save_if_due()
        interrupted = False
        training.check_finite()
        if evaluations is not None and not stop():
          evaluations.at_the_end(training.env_steps)
      except _StoppedError:
        pass
      save()
    except KeyboardInterrupt:
      pass
    except FloatingPointError as e:
      raise errors.NonFiniteError(
        f"stopped at environment step {training.env_steps}, seed {seed}: {e}",
        [training.weights],
        getattr(e, "record", None),
      ) from e
    except recovery.GivenUpError as e:
      raise errors.EnvironmentFailedError(str(e), [training.weights]) from e
    return training.result(interrupted)


def check_limits(num_episodes: int | None, num_steps: int | None) -> None:
  """Raises a ValueError if there is no limit."""
  if num_episodes is None and num_steps is None:
    raise ValueError("nothing says when to stop; give num_episodes or num_steps.")


def check_evaluation(
  environment: dm_env.Environment | None, every: int | None, episodes: int
) -> None:
  """Raises a ValueError if these cannot be an evaluation."""
  if environment is None and every is not None:
    raise ValueError(
      f"eval_every is {every}, but there is no evaluation_environment; give one of the "
      "same specs as the environment."
    )
  for name, value in (("eval_every", every), ("eval_episodes", episodes)):
    if value is not None and value < 1:
      raise ValueError(f"{name} is {value}; it must be at least 1.")
