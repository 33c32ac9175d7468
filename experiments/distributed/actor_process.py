"""An actor's process: one environment, acted in as the collector allows."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

import dm_env
import jax
import jax.numpy as jnp

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import adder as adder_lib
from explorax.agents.wiring import builder as builder_lib
from explorax.experiments.distributed import messages, pulse, replay_server
from explorax.experiments.distributed import weights as weights_lib
from explorax.experiments.runners import recovery

# (`recovery.TRAINING` or `EVALUATION`, number) → an environment of its own seed.
MakeEnvironment = Callable[[str, int], dm_env.Environment]


_SECONDS_BETWEEN_LOOKS = 0.2  # At whether there are weights.

# More than a process has, so that no two of an actor's environments are alike.
FAILURES = 2**20


class _OverError(Exception):
  """The run is over, in mid-episode maybe."""


def use_cpu() -> None:
  """Has this process compute on the CPU; to be called before it computes."""
  jax.config.update("jax_platforms", "cpu")


class ActorProcess:
  """Acts in an environment of its own; runs as a Ray actor."""

  def __init__(
    self,
    agent: types.Agent,
    key: Any,
    *,
    actor_id: int,
    generation: int,
    num_actors: int,
    make_environment: MakeEnvironment,
    remakes: bool,
    max_env_failures: int,
    replay: str,
    server: replay_server.Server,
    num_shards: int,
    collector: Any,
    pull_every: int,
    environment_timeout: float,
  ):
    """Prepares to act.

    Args:
      agent: of the run.
      key: of acting.
      actor_id: which one it is; its environments' numbers are this modulo
        `num_actors`.
      generation: how many processes it had before; keys and environments are other
        ones than theirs.
      num_actors: how many there are.
      make_environment: makes the environment.
      remakes: whether one that has crashed is made anew.
      max_env_failures: how many crashes in a row are recovered from.
      replay: `reverb` or `memory`.
      server: of its shard.
      num_shards: how many shards there are.
      collector: the Ray actor.
      pull_every: environment steps after which it asks for newer weights.
      environment_timeout: seconds after which the driver gives up an environment that
        does not answer, and with it the process.
    """
    import ray

    use_cpu()
    self._ray = ray
    self._id = actor_id
    self._generation = generation
    self._policy_names = agent.policy_names
    self._collector = collector
    self._pull_every = pull_every
    self._shard = actor_id % num_shards
    builder = builder_lib.Builder(agent)
    part = replay_server.of_shard(agent, num_shards)
    name = messages.actor_name(actor_id)
    self._writer = replay_server.MovingWriter(
      lambda server: replay_server.connect(part, replay, server, name, generation),
      server,
      follows=replay == "reverb",
    )
    self._adder = adder_lib.WindowAdder(agent, self._writer)
    self._held = weights_lib.Held()
    self._actor = builder.make_actor(
      jax.random.fold_in(jnp.asarray(key), generation),
      self._held,
      self._adder,
      actor_id=actor_id,
      num_actors=num_actors,
    )

    def make(role: str, failures: int) -> dm_env.Environment:
      number = failures + FAILURES * generation
      return make_environment(role, actor_id + num_actors * number)

    watch = pulse.Pulse(
      lambda seconds: collector.beat.remote(name, generation, seconds),
      environment_timeout,
    )
    with watch.watched():
      environment = make(recovery.TRAINING, 0)
    self._environment = recovery.RecoverableEnvironment(
      environment,
      recovery.TRAINING,
      remake=make if remakes else None,
      max_failures=max_env_failures,
      on_failure=self._on_failure,
      watched=watch.watched,
    )
    self._steps = 0  # Since the last report, as all of these.
    self._ended: list[messages.EndedEpisode] = []
    self._failures: list[recovery.Failure] = []
    self._unsafe: list[messages.Report] = []  # To be told again.
    self._num_reports = 0
    self._windows = 0  # Reported so far.
    self._since_pull = pull_every
    self._granted = 0
    self._episodes = 0
    self._totals: dict[str, float] = {}  # The environment's, as reported so far.

  def run(self) -> None:
    """Acts until the collector says that the run is over.

    Raises:
      environments.NonFiniteError: if a reward or an observation is.
      recovery.GivenUpError: if the environment crashed too often in a row.
    """
    with contextlib.suppress(_OverError):
      while True:
        try:
          self._run_episode()
        except recovery.CrashError as crash:
          self._actor.break_off()
          self._environment.recover(crash, self._episodes + 1, self._actor.env_steps)
          self._totals = {}
        except replay_server.LostError:
          self._move()

  def _run_episode(self) -> None:
    if self._steps >= self._granted:
      self._pull()
    timestep = self._environment.reset()
    self._actor.observe_first(timestep)
    episode_return, length, policy = 0.0, 0, 0
    intrinsic: float | None = None
    while not timestep.last():
      action = self._actor.select_action(timestep.observation)
      policy = self._actor.policy if not length else policy
      intrinsic = self._with_intrinsic(intrinsic)
      timestep = self._environment.step(action)
      self._actor.observe(action, timestep)
      episode_return += float(timestep.reward)
      length += 1
      self._steps += 1
      self._since_pull += 1
      if timestep.last():
        intrinsic = self._with_intrinsic(intrinsic)
        self._end_episode(episode_return, length, policy, intrinsic)
      if self._steps == self._granted:
        self._pull()

  def _with_intrinsic(self, so_far: float | None) -> float | None:
    """Σ r_int with that of the row just acted on; None where there is none."""
    if "r_int" not in self._actor.extras:
      return so_far
    return (so_far or 0.0) + float(self._actor.extras["r_int"])

  def _end_episode(
    self, episode_return: float, length: int, policy: int, intrinsic: float | None
  ) -> None:
    self._episodes += 1
    metrics = environments.episode_metrics(self._environment.current)
    totals: dict[str, float] = {}
    if environments.counts_over_episodes(self._environment.current):
      # bsuite's one number that is no sum.
      for name in [name for name in metrics if name != "best_episode"]:
        totals[name] = metrics[name] - self._totals.get(name, 0.0)
        self._totals[name] = metrics.pop(name)
    if intrinsic is not None:
      metrics["intrinsic_return"] = intrinsic
    self._ended.append(
      messages.EndedEpisode(
        self._steps,
        episode_return,
        length,
        self._policy_names[policy],
        metrics,
        totals,
      )
    )

  def _on_failure(self, failure: recovery.Failure) -> None:
    place = f"{failure.place} of {messages.actor_name(self._id)}"
    self._failures.append(portable(failure._replace(place=place)))

  def _move(self) -> None:
    """Goes on with the replay that has the place of the one that was lost.

    The episode is dropped where it stood: its first rows are lost.
    """
    server = self._collector.server.remote(self._shard, self._writer.server.number)
    self._writer.move(self._ray.get(server))
    self._actor.forget_episode()
    self._adder.reset()
    self._windows = self._adder.num_windows

  def _pull(self) -> None:
    """Reports, waits for further steps, and takes newer weights if it is time to."""
    self._writer.flush()
    windows = self._adder.num_windows
    self._unsafe.append(
      messages.Report(
        self._num_reports,
        self._writer.server.number,
        self._steps,
        windows - self._windows,
        tuple(self._ended),
        tuple(self._failures),
      )
    )
    self._num_reports += 1
    self._windows, self._steps, self._ended, self._failures = windows, 0, [], []
    self._granted = 0
    grant = self._ray.get(
      self._collector.pull.remote(self._id, tuple(self._unsafe), self._generation)
    )
    self._unsafe = [each for each in self._unsafe if each.number > grant.safe]
    if not grant.steps:
      raise _OverError
    self._granted = grant.steps
    self._writer.follow(grant.server)
    self._actor.env_steps = grant.env_steps
    if self._since_pull >= self._pull_every:
      self._since_pull = 0
      if self._fetch(grant.version):
        self._actor.update(wait=True)

  def _fetch(self, version: weights_lib.Version) -> bool:
    """Takes newer weights; without any it waits for those of the next learner."""
    is_new = self._held.fetch(version)
    while self._held.version is None:
      time.sleep(_SECONDS_BETWEEN_LOOKS)
      newest = self._ray.get(self._collector.newest.remote())
      is_new = newest is not None and self._held.fetch(newest)
    return is_new


def portable(failure: recovery.Failure) -> recovery.Failure:
  """One that every process can read: its exception may be of a class of its own."""
  import ray

  text = f"{type(failure.error).__name__}: {failure.error}"
  try:
    ray.cloudpickle.loads(ray.cloudpickle.dumps(failure))
  except Exception:
    return failure._replace(error=RuntimeError(text))
  return failure
