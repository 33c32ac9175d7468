"""The loop of an actor and its environments, a step at a time."""

from collections.abc import Sequence

import dm_env

from explorax.agents.wiring import actor as actor_lib
from explorax.experiments.runners import common


class EnvSlot:
  """An environment of a loop, and its episode.

  Attributes:
    environment: stepped only by the loop.
    tracker: of the current episode, or of the last one.
    timestep: the newest, as the environment returned it; None if no episode is running.
  """

  def __init__(self, environment: dm_env.Environment):
    self.environment = environment
    self.tracker = common.EpisodeTracker()
    self.timestep: dm_env.TimeStep | None = None


class EnvironmentLoop:
  """Steps E environments, with one inference of their actor for a step of all.

  Acme's loop runs whole episodes of one environment, which only an exception can
  interrupt. A run has to stop and to write checkpoints between any two steps.

  Attributes:
    slots: one for each environment.
    actor: of all of them.
  """

  def __init__(
    self, environments: Sequence[dm_env.Environment], actor: actor_lib.Actor
  ):
    """Starts before the first reset; the actor writes to replay if it has adders."""
    self.actor = actor
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
      if slot.timestep is None:
        slot.timestep = slot.environment.reset()
        slot.tracker = common.EpisodeTracker()
        self.actor.observe_first(slot.timestep, env)
    actions = self.actor.select_actions()
    for env, slot in enumerate(self.slots):
      slot.tracker.acted(self.actor.extras[env])
      slot.timestep = slot.environment.step(actions[env])
      self.actor.observe_step(env, actions[env], slot.timestep)
      slot.tracker.stepped(slot.timestep.reward)
    ended = self.actor.end_episodes()
    for env in ended:
      self.slots[env].tracker.acted(self.actor.extras[env])
      self.slots[env].timestep = None
    return ended

  def leave_episodes(self) -> None:
    """Starts new episodes at the next step; for an actor without adders."""
    for env, slot in enumerate(self.slots):
      slot.timestep = self.actor.timesteps[env] = None
