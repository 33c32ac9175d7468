"""The processes of a run: which one has a role, who died, and who is given up."""

import os
import time
from collections.abc import Callable
from typing import Any

# So many deaths of a role's processes end the run: within so many seconds, or in a row
# before the process had done anything.
MOST_DEATHS = 5
_SECONDS = 60.0


class Deaths:
  """Counts a role's deaths."""

  def __init__(self, clock: Callable[[], float] = time.monotonic):
    self._clock = clock
    self._times: list[float] = []
    self._in_vain = 0

  def add(self, did_something: bool) -> str:
    """Notes one; returns why the role is to be given up, or nothing.

    Args:
      did_something: whether the process had been of use.
    """
    now = self._clock()
    self._times = [each for each in self._times if now - each < _SECONDS] + [now]
    self._in_vain = 0 if did_something else self._in_vain + 1
    if self._in_vain >= MOST_DEATHS:
      return f"died {self._in_vain} times before it did anything"
    if len(self._times) >= MOST_DEATHS:
      return f"died {len(self._times)} times within {_SECONDS:.0f} s"
    return ""


class Role:
  """A role in a run, and the process that has it.

  Attributes:
    name: as `actor 0`.
    deaths: of its processes.
    generation: how many processes it had before this one.
    handle: the process, a Ray actor.
    pid: of the process, once that has begun.
    task: its work, or None where it answers others only.
    why: for what the driver itself has killed it; '' if it has not.
  """

  def __init__(self, name: str, start: Callable[[int], Any]):
    """Starts its first process.

    Args:
      name: see the attributes.
      start: generation → a Ray actor.
    """
    self.name = name
    self.deaths = Deaths()
    self._start = start
    self.generation = -1
    self._died_at: float | None = None
    self._remedy = self._why = ""
    self.begin()

  def begin(self) -> None:
    """Starts the next process."""
    self.generation += 1
    self.handle = self._start(self.generation)
    self.pid: int | None = None
    self.task: Any = None
    self.why = ""
    self._asked: Any = None

  def replace(self, remedy: str) -> None:
    """Starts the next process in place of one that died.

    Args:
      remedy: what that comes to, in words.
    """
    import ray

    ray.kill(self.handle)  # If it is only out of reach.
    self._died_at, self._remedy, why = time.monotonic(), remedy, self.why
    self.begin()
    self._why = why or "died (it was killed, ran out of memory or crashed)"

  def restarted(self, since: float, remedy: str) -> None:
    """Notes that Ray has started the next process by itself, in the time since then."""
    self.generation += 1
    self.pid, self._asked = None, None
    self._died_at, self._remedy = since, remedy
    self._why = "died (it was killed, ran out of memory or crashed)"

  def replacement(self) -> str:
    """Who died, what was done and how long it took; '' if that was said before."""
    if self._died_at is None:
      return ""
    seconds, self._died_at = time.monotonic() - self._died_at, None
    return f"{self.name} {self._why}; {self._remedy} (after {seconds:.1f} s)."

  def work(self) -> None:
    """Has it do its work."""
    self._ask()
    self.task = self.handle.run.remote()

  def has_begun(self) -> bool:
    """Whether its process has begun since this was asked for the last time."""
    import ray

    if self.pid is not None:
      return False
    if self._asked is None:
      self._ask()
    if not ray.wait([self._asked], timeout=0)[0]:
      return False
    try:
      self.pid = ray.get(self._asked)
    except ray.exceptions.RayError:
      self._asked = None
      return False
    return True

  def _ask(self) -> None:
    self._asked = self.handle.__ray_call__.remote(pid)


def pid(process: Any) -> int:
  """Of the process in which this is called."""
  del process
  return os.getpid()
