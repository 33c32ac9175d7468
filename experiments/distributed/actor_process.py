"""An actor's process: its environments, acted in as the collector allows."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import environments
from explorax.agents import types
from explorax.agents.wiring import actor as actor_lib
from explorax.agents.wiring import adder as adder_lib
from explorax.experiments.distributed import messages, pulse, replay_server
from explorax.experiments.distributed import weights as weights_lib
from explorax.experiments.runners import core, recovery

# (`core.TRAINING` or `EVALUATION`, number) → an environment of its own seed.
MakeEnvironment = Callable[[str, int], dm_env.Environment]


_SECONDS_BETWEEN_LOOKS = 0.2  # At whether there are weights.

# More than a process has, so that no two of an actor's environments are alike.
FAILURES = 2**20


class _OverError(Exception):
  """The run is over, in mid-episode maybe."""


class _Seat:
  """One of a process's environments, and its episode.

  Attributes:
    environment: with those that replace it.
    writer, adder: to replay.
    timestep: the newest, encoded; None where an episode is to begin.
    extras: what acting said of the timestep, once it has.
    episode_return, length, policy, intrinsic: of the episode so far; Σ r_int is None
      where acting computes none.
    steps_before: of the process since its last report, where the episode has ended.
    totals: the environment's own, as reported so far.
  """

  def __init__(
    self,
    environment: recovery.RecoverableEnvironment,
    adder: adder_lib.WindowAdder,
    writer: replay_server.MovingWriter,
  ):
    self.environment = environment
    self.writer = writer
    self.adder = adder
    self.totals: dict[str, float] = {}
    self.forget()

  def forget(self) -> None:
    """Leaves the episode as it is; another is to begin."""
    self.timestep: dm_env.TimeStep | None = None
    self.extras: dict[str, np.ndarray] = {}
    self.episode_return, self.length, self.policy = 0.0, 0, 0
    self.intrinsic: float | None = None
    self.steps_before = 0

  def begin(self, timestep: dm_env.TimeStep) -> None:
    self.adder.add_first(timestep)
    self.timestep = timestep

  def hear(self, extras: dict[str, np.ndarray]) -> None:
    """Notes what acting has said of the newest timestep."""
    self.extras = extras
    if not self.length:
      self.policy = int(extras["policy"])
    if "r_int" in extras:
      self.intrinsic = (self.intrinsic or 0.0) + float(extras["r_int"])

  def observe(self, action: Any, timestep: dm_env.TimeStep) -> None:
    self.adder.add(action, timestep, self.extras)
    self.timestep = timestep
    self.episode_return += float(timestep.reward)
    self.length += 1

  def break_off(self) -> None:
    """Ends the episode where it stands: to replay this is a truncation."""
    if self.timestep is not None and self.timestep.first():
      self.adder.reset()
    elif self.timestep is not None:
      self.adder.add_last(self.extras)
    self.forget()

  def move(self, server: replay_server.Server) -> None:
    """Goes on with another replay; the first rows of the episode are lost."""
    self.writer.move(server)
    self.adder.reset()
    self.forget()


class ActorProcess:
  """Acts in environments of its own, in all with one inference; a Ray actor."""

  def __init__(
    self,
    agent: types.Agent,
    key: Any,
    *,
    actor_id: int,
    generation: int,
    num_actors: int,
    num_envs: int,
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
      actor_id: which process it is, i.
      generation: how many processes it had before; keys and environments are other
        ones than theirs.
      num_actors: how many processes there are.
      num_envs: E, environments of each. To the agent these are E · num_actors actors,
        of which this process has those from E · i on.
      make_environment: makes an environment; the numbers of each of the actors are
        its own modulo E · num_actors.
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

    self._ray = ray
    self._id = actor_id
    self._generation = generation
    self._policy_names = agent.policy_names
    self._collector = collector
    self._pull_every = pull_every
    self._shard = actor_id % num_shards
    self._server = server
    self._follows = replay == "reverb"
    part = replay_server.of_shard(agent, num_shards)
    name = messages.actor_name(actor_id)
    ids = range(num_envs * actor_id, num_envs * (actor_id + 1))
    self._held = weights_lib.Held()
    self._actor = actor_lib.Actor(
      agent,
      agent.actor(),
      self._held,
      jax.random.fold_in(jnp.asarray(key), generation),
      actor_ids=ids,
      num_actors=num_envs * num_actors,
    )
    watch = pulse.Pulse(
      lambda seconds: collector.beat.remote(name, generation, seconds),
      environment_timeout,
    )

    def make_seat(env: int) -> _Seat:
      def make(role: str, failures: int) -> dm_env.Environment:
        number = failures + FAILURES * generation
        return make_environment(role, env + num_envs * num_actors * number)

      writer = replay_server.MovingWriter(
        lambda server: replay_server.connect(
          part, replay, server, f"{name}, environment {env}", generation
        ),
        server,
      )
      with watch.watched():
        environment = make(core.TRAINING, 0)
      recoverable = recovery.RecoverableEnvironment(
        environment,
        core.TRAINING,
        make=make if remakes else None,
        max_failures=max_env_failures,
        on_failure=self._on_failure,
        watched=watch.watched,
      )
      return _Seat(recoverable, adder_lib.WindowAdder(agent, writer), writer)

    self._seats = [make_seat(env) for env in ids]
    self._turn = 0  # The seat that steps first.
    self._steps = 0  # Since the last report, as all of these.
    self._ended: list[messages.EndedEpisode] = []
    self._failures: list[core.Failure] = []
    self._unsafe: list[messages.Report] = []  # To be told again.
    self._num_reports = 0
    self._windows = 0  # Reported so far.
    self._since_pull = pull_every
    self._granted = 0
    self._episodes = 0

  def run(self) -> None:
    """Acts until the collector says that the run is over.

    Raises:
      environments.NonFiniteError: if a reward or an observation is.
      recovery.GivenUpError: if an environment crashed too often in a row.
    """
    with contextlib.suppress(_OverError):
      while True:
        try:
          self._act_once()
        except replay_server.LostError:
          self._move()

  def _act_once(self) -> None:
    """A step of each environment, or of as many as steps are granted, in turn."""
    if self._steps >= self._granted:
      self._pull()
    for seat in self._seats:
      while seat.timestep is None:
        with self._recovering(seat):
          seat.begin(self._actor.encoded(seat.environment.reset()))
    num_seats = len(self._seats)
    num_steps = min(num_seats, self._granted - self._steps)
    chosen = [(self._turn + i) % num_seats for i in range(num_steps)]
    self._turn = (self._turn + num_steps) % num_seats
    actions = self._infer(chosen)
    for i in chosen:
      self._step(self._seats[i], actions[i])
    ended = [i for i in chosen if _has_ended(self._seats[i])]
    if ended:
      self._infer(ended)
      for i in ended:
        self._end_episode(self._seats[i])

  def _infer(self, chosen: Sequence[int]) -> np.ndarray:
    """The actions for these seats, which hear what acting says."""
    acts = np.zeros(len(self._seats), bool)
    acts[list(chosen)] = True
    timesteps = [seat.timestep for seat in self._seats]
    filler = timesteps[chosen[0]]  # Of an environment that has crashed; never used.
    actions, extras = self._actor.act(
      [filler if t is None else t for t in timesteps], acts
    )
    for i in chosen:
      self._seats[i].hear(extras[i])
    return actions

  def _step(self, seat: _Seat, action: Any) -> None:
    with self._recovering(seat):
      timestep = self._actor.encoded(seat.environment.step(action))
      seat.observe(action, timestep)
      self._steps += 1
      self._since_pull += 1
      self._actor.env_steps += 1
      seat.steps_before = self._steps

  @contextlib.contextmanager
  def _recovering(self, seat: _Seat) -> Iterator[None]:
    """Where its environment crashes, makes that anew, and breaks the episode off."""
    try:
      yield
    except recovery.CrashError as crash:
      seat.break_off()
      seat.environment.recover(crash, self._episodes + 1, self._actor.env_steps)
      seat.totals = {}

  def _end_episode(self, seat: _Seat) -> None:
    seat.adder.add_last(seat.extras)
    self._episodes += 1
    environment = seat.environment.current
    metrics = environments.episode_metrics(environment)
    totals: dict[str, float] = {}
    if environments.counts_over_episodes(environment):
      # bsuite's one number that is no sum.
      for name in [name for name in metrics if name != "best_episode"]:
        totals[name] = metrics[name] - seat.totals.get(name, 0.0)
        seat.totals[name] = metrics.pop(name)
    if seat.intrinsic is not None:
      metrics["intrinsic_return"] = seat.intrinsic
    self._ended.append(
      messages.EndedEpisode(
        seat.steps_before,
        seat.episode_return,
        seat.length,
        self._policy_names[seat.policy],
        metrics,
        totals,
      )
    )
    seat.forget()

  def _on_failure(self, failure: core.Failure) -> None:
    place = f"{failure.place} of {messages.actor_name(self._id)}"
    self._failures.append(portable(failure._replace(place=place)))

  def _move(self) -> None:
    """Goes on with the replay that has the place of the one that was lost.

    Episodes are dropped where they stood: their first rows are lost.
    """
    server = self._collector.server.remote(self._shard, self._server.number)
    self._server = self._ray.get(server)
    for seat in self._seats:
      seat.move(self._server)
    self._windows = self._num_windows

  @property
  def _num_windows(self) -> int:
    return sum(seat.adder.num_windows for seat in self._seats)

  def _pull(self) -> None:
    """Reports, waits for further steps, and takes newer weights if it is time to."""
    for seat in self._seats:
      seat.writer.flush()
    windows = self._num_windows
    self._unsafe.append(
      messages.Report(
        self._num_reports,
        self._server.number,
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
    if self._follows:
      # Reverb's clients find the next server by themselves: they wait for it.
      self._server = self._server._replace(number=grant.server)
    self._actor.env_steps = grant.env_steps
    if self._since_pull >= self._pull_every:
      self._since_pull = 0
      if self._fetch(grant.version):
        self._actor.fetch()

  def _fetch(self, version: weights_lib.Version) -> bool:
    """Takes newer weights; without any it waits for those of the next learner."""
    is_new = self._held.fetch(version)
    while self._held.version is None:
      time.sleep(_SECONDS_BETWEEN_LOOKS)
      newest = self._ray.get(self._collector.newest.remote())
      is_new = newest is not None and self._held.fetch(newest)
    return is_new


def _has_ended(seat: _Seat) -> bool:
  return seat.timestep is not None and seat.timestep.last()


def portable(failure: core.Failure) -> core.Failure:
  """One that every process can read: its exception may be of a class of its own."""
  import ray

  text = f"{type(failure.error).__name__}: {failure.error}"
  try:
    ray.cloudpickle.loads(ray.cloudpickle.dumps(failure))
  except Exception:
    return failure._replace(error=RuntimeError(text))
  return failure
