"""How actors and learner are held together: updates for each environment step."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any


@dataclasses.dataclass(frozen=True)
class Limits:
  """What environment steps and updates keep to.

  With n steps taken, of which the first `start` − 1 filled replay, there are

      due(n) = base + updates_per_step · max(0, n − start + 1)

  updates due: `updates_per_step · batch_size` samples for each step inserted. `base` is
  0 but where replay was lost: then it is the updates made before, and replay is filled
  again first. Actors
  and learner wait for each other where the updates made leave
  due(n) ± updates_per_step · tolerance.
  """

  updates_per_step: float  # Learner updates per environment step.
  min_size: int  # Environment steps before the first update.
  tolerance: int  # Environment steps that either side may be ahead by.
  pull_every: int  # Environment steps that an actor takes at most between two pulls.
  num_steps: int | None = None  # Environment steps of the run, exactly; None: no limit.

  def __post_init__(self):
    least = least_tolerance(self.updates_per_step)
    if self.tolerance < least:
      raise ValueError(
        f"a rate tolerance of {self.tolerance} environment steps would let actors and "
        f"learner, at {self.updates_per_step:g} updates per step, wait for each other "
        f"for ever; use at least {least}."
      )
    if self.pull_every < 1:
      raise ValueError(f"pull_every is {self.pull_every}; it must be at least 1.")

  @property
  def grant(self) -> int:
    """Environment steps that an actor is allowed at a time.

    Waiting for each other needs due − updates above u·T − u·grant on the one side and
    below 1 − u·T on the other, for u updates per step and the tolerance T; before the
    first update, that T steps are not enough for a grant. A grant of at most
    2·T − 1/u and T rules both out.
    """
    most = math.floor(2 * self.tolerance - 1 / self.updates_per_step)
    return max(1, min(self.pull_every, self.tolerance, most))


def least_tolerance(updates_per_step: float) -> int:
  """The smallest tolerance, in environment steps, with which nobody waits for ever."""
  return max(1, math.ceil((1 + 1 / updates_per_step) / 2))


class Rates:
  """Counts steps and updates, over all actors, and says who may go on.

  Attributes:
    env_steps: taken and reported so far.
    updates: made so far.
  """

  def __init__(self, limits: Limits, num_shards: int):
    """Begins with nothing, in replay's `num_shards` parts neither."""
    self._limits = limits
    self._windows = [0] * num_shards
    self._granted: dict[int, int] = {}  # Actor → steps that it may be taking now.
    self._start: int | None = None  # The first step for which updates are due.
    self._emptied_at = 0  # Environment steps when replay was empty for the last time.
    self._base = 0  # Updates until then.
    self.env_steps = 0
    self.updates = 0

  @property
  def filled(self) -> tuple[bool, ...]:
    """Of each shard, whether there is a window in it."""
    return tuple(count > 0 for count in self._windows)

  @property
  def steps_granted(self) -> int:
    """Those reported and those that may be under way."""
    return self.env_steps + sum(self._granted.values())

  @property
  def all_reported(self) -> bool:
    """Whether no actor has steps to take."""
    return not any(self._granted.values())

  @property
  def at_limit(self) -> bool:
    """Whether no more steps are to be granted, all having been."""
    limit = self._limits.num_steps
    return limit is not None and self.steps_granted >= limit

  def due(self, steps: int) -> float:
    """Updates due after so many steps; none more before replay holds its minimum."""
    if self._start is None:
      return float(self._base)
    filled = max(0, steps - self._start + 1)
    return self._base + self._limits.updates_per_step * filled

  def report(self, actor: int, steps: int, shard: int, windows: int) -> None:
    """Takes in what an actor did with its grant, which is over then.

    Args:
      actor: its number.
      steps: environment steps that it took.
      shard: the part of replay that it writes to.
      windows: new ones there.
    """
    self._granted[actor] = 0
    self.env_steps += steps
    self._windows[shard] += windows
    if self._start is None and any(self._windows):
      minimum = self._emptied_at + self._limits.min_size
      self._start = max(minimum, self.steps_granted, 1)

  def drop(self, actor: int) -> None:
    """Takes an actor's grant back, of which nothing will be reported."""
    self._granted[actor] = 0

  def replace(self, shard: int, windows: int) -> None:
    """Another part of replay takes a shard's place, with so many windows in it."""
    self._windows[shard] = windows
    if not any(self._windows):
      self._start, self._emptied_at = None, self.env_steps
      self._base = self.updates

  def save(self) -> dict[str, Any]:
    """What it goes on from, which JSON can hold; no grants."""
    return {
      "env_steps": self.env_steps,
      "updates": self.updates,
      "windows": list(self._windows),
      "start": self._start,
      "emptied_at": self._emptied_at,
      "base": self._base,
    }

  def restore(self, saved: Mapping[str, Any]) -> None:
    """Goes on from what `save` returned, nobody having steps to take."""
    self._granted = {}
    self.env_steps, self.updates = saved["env_steps"], saved["updates"]
    self._windows = list(saved["windows"])
    self._start = saved["start"]
    self._emptied_at, self._base = saved["emptied_at"], saved["base"]

  def grant(self, actor: int) -> int:
    """Environment steps that the actor may take now; 0: it has to wait."""
    steps = self._limits.grant
    if self._limits.num_steps is not None:
      steps = min(steps, self._limits.num_steps - self.steps_granted)
    ahead = self.due(self.steps_granted + steps) - self.updates
    # Before replay is filled nobody is to wait for a learner that waits for it.
    is_filled = self._start is not None and self.steps_granted >= self._start
    if steps < 1 or (is_filled and ahead > self._tolerated):
      return 0
    self._granted[actor] = steps
    return steps

  def updates_allowed(self) -> int:
    """Updates that the learner may make now, while actors act."""
    if not self._has_begun:
      return 0
    most = math.floor(self.due(self.env_steps) + self._tolerated + 1e-9)
    return max(0, most - self.updates)

  def updates_left(self) -> int:
    """Updates that are due yet for the steps reported."""
    if not self._has_begun:
      return 0
    return max(0, math.floor(self.due(self.env_steps) + 1e-9) - self.updates)

  def why_learner_waits(self) -> str:
    taken = self.env_steps - self._emptied_at
    if taken < self._limits.min_size:
      again = " again" if self._emptied_at else ""
      return (
        f"learning begins{again} after {self._limits.min_size} environment steps, and "
        f"the actors have taken {taken}"
      )
    if not self._has_begun:
      return f"replay has no whole window yet, after {self.env_steps} environment steps"
    return (
      f"its {self.updates} updates are as many as {self.env_steps} environment steps "
      "and the rate tolerance allow"
    )

  def why_actors_wait(self) -> str:
    return (
      f"the learner has made {self.updates} updates, and "
      f"{math.floor(self.due(self.steps_granted))} are due after {self.steps_granted} "
      "environment steps"
    )

  @property
  def _has_begun(self) -> bool:
    return self._start is not None and self.env_steps >= self._start

  @property
  def _tolerated(self) -> float:
    """Updates."""
    return self._limits.updates_per_step * self._limits.tolerance
