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
from explorax.experiments import config as config_lib
from explorax.experiments import errors as run_errors
from explorax.experiments import processes
from explorax.experiments.recording import console
from explorax.experiments.runners import common, course, local, loop

_SLICE = 64  # Environment steps of an actor between two of its answers,
_SECONDS = 1.0  # and seconds, so that slow environments also answer often.
_PATIENCE = 300.0  # Seconds after which an actor that does not answer is replaced.
_SECONDS_TO_WAIT = 0.2  # Between two checks of whether the run has been stopped.


def run(
  agent: types.Agent,
  environment: dm_env.Environment,
  config: config_lib.RunConfig,
  hooks: common.Hooks,
  *,
  evaluation_environment: dm_env.Environment | None = None,
) -> list[common.Result]:
  """Trains with `config.num_actors` acting processes; see `local.run`.

  Each of them acts in `config.num_envs` environments. An actor that dies, or does not
  answer for five minutes, is replaced; the rest of its episodes is lost. An exception
  of an environment ends the run, and so does an actor that dies before any actor has
  answered. Results are not reproducible bit for bit, as the order of answers is not.

  Args:
    agent: made for this environment's spec; must be picklable by cloudpickle.
    environment: unused: each actor makes its own with `hooks.make_environment`.
    config, hooks, evaluation_environment: as in `local.run`.

  Raises:
    errors.SetUpError: if Ray cannot be reached, or has too few cores.
    ImportError: if the config asks for Reverb and it cannot be imported.
  """
  del environment
  with contextlib.ExitStack() as stack:
    stack.enter_context(processes.connect(config.ray_address, config.num_actors or 1))
    replay = local.make_replay(agent, config, hooks)
    stack.callback(replay.close)
    distributed = DistributedRun(agent, replay, config, hooks)
    stack.callback(distributed.close)
    control = course.RunControl(distributed, config, hooks, evaluation_environment)
    return control.train()


class ActingError(Exception):
  """An exception in an actor, in words: most cannot be unpickled elsewhere."""


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


class RolloutActor:
  """Acts in its environments; a Ray actor."""

  def __init__(self, agent_and_make: bytes, path: Sequence[str], *place: Any):
    """Takes what `act` needs; its first call makes the loop.

    Args:
      agent_and_make: the pickled agent and `make_environment`.
      path: where to find the user's modules, beside this process's own `sys.path`.
      *place: the run's config, the number of the actor, and the environment steps of
        the run so far: they make the random numbers of actors and environments differ.
    """
    processes.use_one_thread()
    sys.path += [folder for folder in path if folder not in sys.path]
    self._agent_and_make, self._place = agent_and_make, place
    self._loop: loop.EnvironmentLoop | None = None
    self._weights: types.Params = None
    self._version: int | None = None

  def act(
    self, weights: types.Params, version: int, env_steps: int, num_steps: int
  ) -> Slice:
    """Plays a slice.

    Args:
      weights: to act with, on the host.
      version: of the weights.
      env_steps: of the run so far, for schedules.
      num_steps: at most so many, rounded up to a step of all environments.

    Raises:
      ActingError: for any exception.
    """
    try:
      if self._loop is None:
        self._loop = self._make_loop(*self._place)
      if version != self._version:
        self._version, self._weights = version, jax.device_put(weights)
        self._loop.actor.fetch()
      return self._play(self._loop, env_steps, num_steps)
    except (Exception, SystemExit) as error:
      line = environment_errors.users_line(error)
      text = run_errors.describe(error) + (f" ({line})" if line else "")
      raise ActingError(text) from error

  def get_variables(self, names: Sequence[str]) -> list[types.Params]:
    return [self._weights for _ in names]

  def _make_loop(
    self, config: config_lib.RunConfig, number: int, since: int
  ) -> loop.EnvironmentLoop:
    # Unpickling an agent's arrays initialises jax.
    agent, make_environment = ray.cloudpickle.loads(self._agent_and_make)
    num_envs, num_actors = config.num_envs or 1, config.num_actors or 1
    self._recorders = [calls_lib.CallRecorder() for _ in range(num_envs)]
    key, _ = jax.random.split(jax.random.PRNGKey(config.seed))
    for part in (number, since):
      key = jax.random.fold_in(key, part)
    ids = range(num_envs * number, num_envs * (number + 1))
    actor = actor_lib.Actor(
      agent,
      agent.actor(),
      self,
      key,
      [adder_lib.WindowAdder(agent, recorder) for recorder in self._recorders],
      actor_ids=ids,
      num_actors=num_envs * num_actors,
    )
    unused = num_envs * num_actors * since  # Numbers of other actors are below it.
    made = [make_environment(common.TRAINING, unused + i) for i in ids]
    return loop.EnvironmentLoop(made, actor)

  def _play(self, own: loop.EnvironmentLoop, env_steps: int, num_steps: int) -> Slice:
    until, played, episodes = time.monotonic() + _SECONDS, 0, []
    own.actor.env_steps = env_steps
    while played < num_steps and (not played or time.monotonic() < until):
      ended = own.step()
      played = own.actor.env_steps - env_steps
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
    super().__init__(agent, [], replay, config)
    self._agent_and_make = ray.cloudpickle.dumps((agent, hooks.make_environment))
    self._num_envs, self._num_actors = config.num_envs or 1, config.num_actors or 1
    self._writers = [
      [replay.writer() for _ in range(self._num_envs)] for _ in range(self._num_actors)
    ]
    self._actors: dict[int, Any] = {}
    self._has_slice = False  # Whether any actor has answered.
    self._asked: dict[Any, _Asked] = {}  # Ray's reference to the slice → which.
    self._weights: Any = None  # Ray's reference.
    self._published = (-1, 0)  # The updates and steps when it was made.

  @property
  def may_evaluate(self) -> bool:
    return True

  def advance(self) -> None:
    """Stores the slices that are ready, and makes the updates that are due then."""
    for number in range(len(self._actors), self._num_actors):
      self._start(number)
    ready, waiting = ray.wait([*self._asked], timeout=_SECONDS_TO_WAIT)
    for reference in ready:
      number = self._asked.pop(reference).number
      try:
        self._store(number, ray.get(reference))
      except ray.exceptions.RayTaskError as error:
        raise ActingError(f"actor {number} stopped: {error.cause}") from error
      except ray.exceptions.RayError:
        self._replace(number, "died (it was killed, ran out of memory or crashed)")
    for reference in waiting:
      if time.monotonic() - self._asked[reference].since > _PATIENCE:
        number = self._asked.pop(reference).number
        self._replace(number, f"did not answer for {_PATIENCE:.0f} s")

  def close(self) -> None:
    """Ends the actors."""
    for actor in self._actors.values():
      ray.kill(actor)

  def _start(self, number: int) -> None:
    """Starts an actor, and asks it for a slice."""
    remote = ray.remote(RolloutActor).options(num_cpus=1)
    path = [folder or os.getcwd() for folder in sys.path]
    self._actors[number] = remote.remote(
      self._agent_and_make, path, self._config, number, self.env_steps
    )
    self._ask(number)

  def _ask(self, number: int) -> None:
    """Asks an actor for a slice, as long as the run needs one."""
    num_steps = _SLICE
    if self._config.steps is not None:
      under_way = sum(asked.num_steps for asked in self._asked.values())
      num_steps = min(num_steps, self._config.steps - self.env_steps - under_way)
    if num_steps <= 0:
      return
    updates, steps = self._published
    is_over = self.env_steps - steps >= self._agent.actor_update_period
    if updates < 0 or (is_over and updates != self._learner.num_updates):
      self._weights = ray.put(self.weights()[0])
      self._published = self._learner.num_updates, self.env_steps
    reference = self._actors[number].act.remote(
      self._weights, self._published[0], self.env_steps, num_steps
    )
    rounded = self._num_envs * math.ceil(num_steps / self._num_envs)
    self._asked[reference] = _Asked(number, rounded, time.monotonic())

  def _store(self, number: int, played: Slice) -> None:
    """Takes a slice; its actor plays the next one while this process learns."""
    before = self.env_steps
    self._has_slice = True
    self._actor.env_steps += played.num_steps
    self._ask(number)
    for writer, calls in zip(self._writers[number], played.calls, strict=True):
      calls_lib.make(calls, writer)
      self._has_window |= any(method == "create_window" for method, _ in calls)
    self._learn(played.num_steps)
    for steps, tracker, metrics in played.episodes:
      self._report(tracker, {**metrics, "actor": float(number)}, before + steps)

  def _replace(self, number: int, why: str) -> None:
    """Replaces an actor; replay keeps the windows of its open episodes.

    Raises:
      ActingError: if no actor has answered: another one would not, either.
    """
    if not self._has_slice:
      raise ActingError(f"actor {number} {why} before any actor had answered.")
    ray.kill(self._actors[number])
    for writer in self._writers[number]:
      writer.end_episode()
    console.print_error(f"actor {number} {why}; another one takes its place.")
    self._start(number)
