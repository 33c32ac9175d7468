"""The loop of an actor and its environments, a step at a time."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import dm_env

from explorax.experiments.runners import core, recovery

if TYPE_CHECKING:
  from explorax.agents.wiring import actor as actor_lib


class EnvSlot:
  """An environment of a loop, and its episode.

  Attributes:
    environment: stepped only by the loop.
    tracker: of the current episode, or of the last one.
    timestep: the newest, as the environment returned it; None if no episode is running.
  """

  def __init__(self, environment: dm_env.Environment):
    self.environment = environment
    self.tracker = core.EpisodeTracker()
    self.timestep: dm_env.TimeStep | None = None


class EnvironmentLoop:
  """Steps E environments, with one inference of their actor for a step of all.

  Acme's loop runs whole episodes of one environment, which only an exception can
  interrupt. A run has to stop and to write checkpoints between any two steps, and
  resumes within an episode, where Acme's loop would start with a reset.

  If an environment crashes, only its own episode ends, without being reported: replay
  stores it as truncated. An environment that is not a `recovery.RecoverableEnvironment`
  raises its own exception.

  Attributes:
    slots: one for each environment.
  """

  def __init__(
    self,
    environments: Sequence[dm_env.Environment],
    actor: "actor_lib.Actor",
    *,
    on_crash: Callable[[int, recovery.CrashError], None] | None = None,
    on_answer: Callable[[int], None] | None = None,
  ):
    """Starts before the first reset.

    Args:
      environments: E of them.
      actor: for E environments; it writes to replay if it has adders.
      on_crash: called with the slot's number after a crash; has to recover the
        environment, which is then reset.
      on_answer: called with the slot's number after the actor has answered a timestep
        of it, also a LAST one.
    """
    self._actor = actor
    self._on_crash = on_crash
    self._on_answer = on_answer
    self.slots = [EnvSlot(environment) for environment in environments]

  @property
  def in_episode(self) -> bool:
    """Whether an episode is running in each environment."""
    return all(slot.timestep is not None for slot in self.slots)

  def step(self) -> list[int]:
    """A step in each environment, after a reset where no episode is running.

    Returns:
      The numbers of the slots whose episode has ended. Their trackers hold its results
      until the next step.
    """
    for env, slot in enumerate(self.slots):
      while slot.timestep is None:
        self._reset(env)
    actions = self._actor.select_actions()
    for env, slot in enumerate(self.slots):
      try:
        self._answered(env)
        timestep = slot.environment.step(actions[env])
      except recovery.CrashError as crash:
        self._crashed(env, crash)
        continue
      self._actor.observe_step(env, actions[env], timestep)
      slot.tracker.stepped(timestep.reward)
      slot.timestep = timestep
    ended = []
    for env in self._actor.end_episodes():
      try:
        self._answered(env)
      except recovery.CrashError as crash:
        self._crashed(env, crash)
        continue
      self.slots[env].timestep = None
      ended.append(env)
    return ended

  def truncate_episodes(self) -> None:
    """Ends all episodes, as after a crash."""
    for env, slot in enumerate(self.slots):
      self._actor.truncate_episode(env)
      slot.timestep = None

  def resume(self) -> None:
    """Continues the episodes of an actor and environments restored within them."""
    for slot, timestep in zip(self.slots, self._actor.timesteps, strict=True):
      slot.timestep = timestep

  def _reset(self, env: int) -> None:
    slot = self.slots[env]
    try:
      timestep = slot.environment.reset()
    except recovery.CrashError as crash:
      self._crashed(env, crash)
      return
    self._actor.observe_first(timestep, env)
    slot.tracker.begin()
    slot.timestep = timestep

  def _answered(self, env: int) -> None:
    """The actor has answered the newest timestep."""
    self.slots[env].tracker.acted(self._actor.extras[env])
    if self._on_answer is not None:
      self._on_answer(env)

  def _crashed(self, env: int, crash: recovery.CrashError) -> None:
    self._actor.truncate_episode(env)
    self.slots[env].timestep = None
    if self._on_crash is None:
      raise crash
    self._on_crash(env, crash)
