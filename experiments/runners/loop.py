"""One loop of an actor and an environment, a step at a time."""

from collections.abc import Callable

import dm_env
import numpy as np

from explorax.agents.wiring import actor as actor_lib
from explorax.experiments.runners import core, recovery


class EnvironmentLoop:
  """Acme's `EnvironmentLoop` around an `acme.core.Actor`, one step at a time.

  Acme's own loop runs whole episodes, which only an exception can interrupt. A run has
  to stop and to write checkpoints between any two steps, and resumes within an episode,
  where Acme's loop would start with a reset. The order of calls to the actor is Acme's.

  Attributes:
    tracker: of the current episode, or of the last one.
    in_episode: whether an episode is running.
  """

  def __init__(
    self,
    environment: recovery.RecoverableEnvironment,
    actor: actor_lib.Actor,
    on_answer: Callable[[dm_env.TimeStep], None] = lambda timestep: None,
    dtype: type[np.floating] = np.float32,
  ):
    """Starts before the first reset.

    Args:
      environment: stepped only here.
      actor: acts in the environment.
      on_answer: called with each timestep that the actor has answered.
      dtype: of the sum of rewards.
    """
    self._environment = environment
    self._actor = actor
    self._on_answer = on_answer
    self._timestep: dm_env.TimeStep | None = None
    self.tracker = core.EpisodeTracker(dtype)

  @property
  def in_episode(self) -> bool:
    return self._timestep is not None

  def step(self) -> bool:
    """One step, after a reset if needed; returns whether it ended an episode.

    Raises:
      recovery.CrashError: if the environment failed; call `truncate_episode` then.
    """
    timestep = self._timestep
    if timestep is None:
      timestep = self._environment.reset()
      self._actor.observe_first(timestep)
      self.tracker.begin()
      self._timestep = timestep
    action = self._actor.select_action(timestep.observation)
    self._answered(timestep)
    timestep = self._environment.step(action)
    self._actor.observe(action, timestep)
    self.tracker.stepped(timestep.reward)
    self._timestep = timestep
    if not timestep.last():
      return False
    self._answered(timestep)
    self._timestep = None
    return True

  def truncate_episode(self) -> None:
    """Truncates the current episode, because its environment crashed."""
    self._actor.truncate_episode()
    self._timestep = None

  def resume(self) -> None:
    """Continues the episode of an actor that was restored within one."""
    self._timestep = self._actor.timestep
    self._environment.resume(self.tracker.length)

  def _answered(self, timestep: dm_env.TimeStep) -> None:
    self.tracker.acted(self._actor.extras)
    self._on_answer(timestep)
