"""The `distributed` runner: processes act, on one machine or several; this one learns.

An actor, in a process of Ray's, plays a slice of steps with the weights that it is
handed, and returns what it would have written to replay. The run in this process is the
local runner's, with its replay, learner, evaluations and checkpoints; only its steps
come from the actors.
"""

import contextlib
import math
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import dm_env
import jax
import ray

from explorax import environments
from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import calls as calls_lib
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import errors as environment_errors
from explorax.experiments import checkpoint as checkpoint_lib
from explorax.experiments import config as config_lib
from explorax.experiments import errors as run_errors
from explorax.experiments import processes
from explorax.experiments.runners import common, course, local, loop

_SLICE = 64  # Environment steps of an actor between two of its answers,
_SECONDS = 1.0  # and seconds, so that slow environments also answer often.
_PATIENCE = 300.0  # Seconds after which an actor that does not answer is replaced.
_SECONDS_TO_WAIT = 0.2  # Between two checks of whether the run has been stopped.
_MAX_FAILURES = 3  # Of an actor, in a row, that end the run.


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  config: config_lib.RunConfig,
  hooks: common.Hooks,
  *,
  evaluation_environment: dm_env.Environment | None = None,
) -> common.Result:
  """Trains with `config.num_actors` acting processes; see `local.run`.

  Each of them acts in `config.num_envs` environments. An actor that dies, or does not
  answer for five minutes, is replaced; the rest of its episodes is lost. An exception
  of an environment ends the run. Results are not reproducible bit for bit, as the order
  in which actors answer is not.

  Args:
    agent: made for this environment's spec; must be picklable by cloudpickle.
    environment: unused: each actor makes its own with `hooks.make_environment`.
    config: of the run.
    hooks: called from this process; `make_environment` is called by the actors.
    evaluation_environment: as in `local.run`.

  Raises:
    errors.SetUpError: if Ray cannot be reached, or has too few cores.
    ImportError: if the config asks for Reverb and it cannot be imported.
    ValueError: if there is no limit, or no way to make environments.
  """
  del environment
  if hooks.make_environment is None:
    raise ValueError(
      "--runner=distributed needs an environment by its name, as gym:CartPole-v1 or "
      "module:function, which each actor makes."
    )
  with contextlib.ExitStack() as stack:
    num_actors = config.num_actors or 1
    cores = stack.enter_context(processes.connect(config.ray_address, num_actors))
    if cores < num_actors:
      raise run_errors.SetUpError(
        f"--num_actors={num_actors}, but the Ray cluster of "
        f"--ray_address={config.ray_address} has {cores} cores; each actor needs one."
      )
    replay = local.make_replay(agent, config, hooks)
    stack.callback(replay.close)
    distributed = DistributedRun(agent, replay, config, hooks)
    stack.callback(distributed.close)
    control = course.RunControl(distributed, config, hooks, evaluation_environment)
    (result,) = control.train()
    return result


class ActingError(Exception):
  """An exception in an actor, in words."""


class Slice(NamedTuple):
  """What an actor has played.

  Attributes:
    calls: of the writer of each environment.
    episodes: those that ended: the steps of the slice so far, the episode, and the
      metrics of its environment.
    num_steps: environment steps.
  """

  calls: list[calls_lib.Calls]
  episodes: list[tuple[int, common.EpisodeTracker, dict[str, float]]]
  num_steps: int


class _Weights:
  """A variable source of the weights that the run has handed out last."""

  def __init__(self) -> None:
    self._reference: Any = None
    self._weights: types.Params = None

  def take(self, reference: Any) -> bool:
    """Fetches weights unless it has them; returns whether they are new."""
    is_new = reference != self._reference
    if is_new:
      self._weights = jax.device_put(ray.get(reference))
      self._reference = reference
    return is_new

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    return [self._weights for _ in names]


class RolloutActor:
  """Acts in its environments; a Ray actor."""

  def __init__(
    self,
    agent_and_make: bytes,
    path: Sequence[str],
    config: config_lib.RunConfig,
    start: int,
  ):
    """Takes what `act` needs; the first call of `act` makes it.

    Args:
      agent_and_make: the pickled agent and `make_environment`.
      path: where to find the user's modules, beside this process's own `sys.path`.
      config: of the run.
      start: how many actors the run had started before; of the first ones, their
        numbers. It distinguishes the random numbers of actors and environments.
    """
    processes.use_one_thread()
    sys.path += [folder for folder in path if folder not in sys.path]
    self._agent_and_make, self._config, self._start = agent_and_make, config, start
    self._loop: loop.EnvironmentLoop | None = None

  def act(
    self, number: int, weights: list[Any], env_steps: int, num_steps: int
  ) -> Slice:
    """Plays a slice.

    Args:
      number: of the actor, among those of the run.
      weights: a list of Ray's reference to them; a bare one would be dereferenced.
      env_steps: of the run so far, for schedules.
      num_steps: at most so many, rounded up to a step of all environments.

    Raises:
      ActingError: for any exception, as most cannot be unpickled elsewhere.
    """
    try:
      if self._loop is None:
        self._loop = self._make_loop(number)
      return self._act(self._loop, weights[0], env_steps, num_steps)
    except Exception as error:
      line = environment_errors.users_line(error)
      raise ActingError(
        run_errors.describe(error) + (f" ({line})" if line else "")
      ) from error

  def _make_loop(self, number: int) -> loop.EnvironmentLoop:
    # Unpickling an agent's arrays initialises jax.
    agent, make_environment = ray.cloudpickle.loads(self._agent_and_make)
    num_envs, num_actors = self._config.num_envs or 1, self._config.num_actors or 1
    self._weights = _Weights()
    self._recorders = [calls_lib.CallRecorder() for _ in range(num_envs)]
    actor_key, _ = jax.random.split(jax.random.PRNGKey(self._config.seed))
    actor = actor_lib.Actor(
      agent,
      agent.actor(),
      self._weights,
      jax.random.fold_in(actor_key, self._start),
      [adder_lib.WindowAdder(agent, recorder) for recorder in self._recorders],
      actor_ids=range(num_envs * number, num_envs * (number + 1)),
      num_actors=num_envs * num_actors,
    )
    numbers = range(num_envs * self._start, num_envs * (self._start + 1))
    made = [make_environment(common.TRAINING, number) for number in numbers]
    return loop.EnvironmentLoop(made, actor)

  def _act(
    self, own: loop.EnvironmentLoop, weights: Any, env_steps: int, num_steps: int
  ) -> Slice:
    actor, until, episodes = own.actor, time.monotonic() + _SECONDS, []
    actor.env_steps, played = env_steps, 0
    if self._weights.take(weights):
      actor.fetch()
    while played < num_steps and (not played or time.monotonic() < until):
      ended = own.step()
      played = actor.env_steps - env_steps
      for slot in (own.slots[env] for env in ended):
        metrics = environments.episode_metrics(slot.environment)
        episodes.append((played, slot.tracker, metrics))
    return Slice([recorder.take() for recorder in self._recorders], episodes, played)


class _Asked(NamedTuple):
  """A slice under way."""

  number: int  # Of the actor.
  num_steps: int
  since: float  # Seconds of the monotonic clock.


class DistributedRun(local.LocalRun):
  """A local run whose environment steps come from actors."""

  def __init__(
    self,
    agent: types.Agent,
    replay: builder_lib.Replay,
    config: config_lib.RunConfig,
    hooks: common.Hooks,
  ):
    super().__init__(agent, [], replay, config, hooks.on_episode)
    self._on_message = hooks.on_message
    self._agent_and_make = ray.cloudpickle.dumps((agent, hooks.make_environment))
    self._num_envs, self._num_actors = config.num_envs or 1, config.num_actors or 1
    self._writers = [
      [replay.writer() for _ in range(self._num_envs)] for _ in range(self._num_actors)
    ]
    self._num_starts = 0  # Of actors, over all processes of the run.
    self._actors: list[Any] = []
    self._failures = [0] * self._num_actors  # In a row.
    self._asked: dict[Any, _Asked] = {}  # Ray's reference to the slice → which.
    self._weights: Any = None  # Ray's reference.
    self._published = (-1, 0)  # The updates and steps when it was made.

  @property
  def may_evaluate(self) -> bool:
    return True

  def advance(self) -> None:
    """Stores a slice, if one is ready, and makes the updates that are due then."""
    for number in range(len(self._actors), self._num_actors):
      self._actors.append(self._start_actor())
      self._ask(number)
    ready, _ = ray.wait([*self._asked], timeout=_SECONDS_TO_WAIT)
    for reference in ready:
      number = self._asked.pop(reference).number
      try:
        played = ray.get(reference)
      except ray.exceptions.RayTaskError as error:
        raise ActingError(f"actor {number} stopped: {error.cause}") from error
      except ray.exceptions.RayError:
        self._replace(number, "died (it was killed, ran out of memory or crashed)")
      else:
        self._failures[number] = 0
        self._store(number, played)
    now = time.monotonic()
    for reference, asked in [*self._asked.items()]:
      if reference not in ready and now - asked.since > _PATIENCE:
        del self._asked[reference]
        self._replace(asked.number, f"did not answer for {_PATIENCE:.0f} s")

  def close(self) -> None:
    """Ends the actors."""
    for actor in self._actors:
      ray.kill(actor)

  def save(self, *, with_replay: bool) -> checkpoint_lib.Snapshot:
    snapshot = super().save(with_replay=with_replay)
    counts = {**snapshot.counts, "num_starts": self._num_starts}
    return snapshot._replace(counts=counts)

  def restore(self, checkpoint: checkpoint_lib.Checkpoint) -> None:
    super().restore(checkpoint)
    self._num_starts = checkpoint.record["counts"]["num_starts"]

  def _start_actor(self) -> Any:
    start, self._num_starts = self._num_starts, self._num_starts + 1
    remote = ray.remote(RolloutActor).options(num_cpus=1)
    path = [folder or os.getcwd() for folder in sys.path]
    return remote.remote(self._agent_and_make, path, self._config, start)

  def _ask(self, number: int) -> None:
    """Asks an actor for a slice, as long as the run needs one."""
    num_steps = _SLICE
    if self._config.steps is not None:
      under_way = sum(asked.num_steps for asked in self._asked.values())
      num_steps = min(num_steps, self._config.steps - self.env_steps - under_way)
    if num_steps <= 0:
      return
    reference = self._actors[number].act.remote(
      number, [self._newest_weights()], self.env_steps, num_steps
    )
    rounded = self._num_envs * math.ceil(num_steps / self._num_envs)
    self._asked[reference] = _Asked(number, rounded, time.monotonic())

  def _newest_weights(self) -> Any:
    """Ray's reference to the weights, which are published once their period is over."""
    updates, steps = self._published
    is_over = self.env_steps - steps >= self._agent.actor_update_period
    if updates < 0 or (is_over and updates != self._learner.num_updates):
      self._weights = ray.put(self.weights()[0])
      self._published = self._learner.num_updates, self.env_steps
    return self._weights

  def _store(self, number: int, played: Slice) -> None:
    """Takes a slice; its actor plays the next one while this process learns."""
    before = self.env_steps
    self._actor.env_steps += played.num_steps
    self._ask(number)
    for writer, calls in zip(self._writers[number], played.calls, strict=True):
      calls_lib.make(calls, writer)
      self._has_window |= any(method == "create_window" for method, _ in calls)
    self._learn(played.num_steps)
    for steps, tracker, metrics in played.episodes:
      self._report(tracker, {**metrics, "actor": float(number)}, before + steps)

  def _replace(self, number: int, why: str) -> None:
    """Replaces an actor; replay keeps the windows of its open episodes."""
    ray.kill(self._actors[number])
    for writer in self._writers[number]:
      writer.end_episode()
    self._failures[number] += 1
    if self._failures[number] == _MAX_FAILURES:
      raise ActingError(f"actor {number} {why}, {_MAX_FAILURES} times in a row")
    self._on_message(f"actor {number} {why}; another one takes its place.")
    self._actors[number] = self._start_actor()
    self._ask(number)
