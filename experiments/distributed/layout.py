"""What is asked of a run: so many processes, and what its evaluator does."""

import dataclasses
import os
from typing import NamedTuple

from explorax.agents import types
from explorax.experiments.distributed import rates


@dataclasses.dataclass(frozen=True)
class Layout:
  """How a run is spread over processes.

  Attributes:
    num_actors: how many act.
    num_envs: environments of each of them, which it steps with one inference for all.
    num_shards: parts of replay, each a process; actor i writes to the part i modulo it.
    variable_update_period: environment steps of an actor between two looks at the
      weights; None: the agent's own number and at least 10, in each environment.
    error_buffer: environment steps that actors or the learner may be ahead by; None:
      what all actors take between two pulls, twice.
    learner_gpus: that the learner takes for itself; the other processes need none.
    patience: seconds after which it is said who waits for whom.
    environment_timeout: seconds after which an environment that does not answer is
      given up, and its process replaced.
  """

  num_actors: int = 4
  num_envs: int = 1
  num_shards: int = 1
  variable_update_period: int | None = None
  error_buffer: int | None = None
  learner_gpus: int = 0
  patience: float = 60.0
  environment_timeout: float = 300.0

  def __post_init__(self):
    if self.num_actors < 1:
      raise ValueError(f"num_actors is {self.num_actors}; it must be at least 1.")
    if self.num_envs < 1:
      raise ValueError(f"num_envs is {self.num_envs}; it must be at least 1.")
    if not 1 <= self.num_shards <= self.num_actors:
      raise ValueError(
        f"{self.num_shards} shards of replay for {self.num_actors} actors: each shard "
        "needs an actor that fills it, and there must be at least 1."
      )

  def limits(
    self, spec: types.ReplaySpec, period: int, num_steps: int | None
  ) -> rates.Limits:
    """The `rates.Limits` for a replay and an agent's own `period` of pulls.

    Raises:
      ValueError: if with them processes could wait for each other for ever.
    """
    pull_every = self.variable_update_period
    if pull_every is None:
      pull_every = max(period, 10) * self.num_envs
    tolerance = self.error_buffer
    if tolerance is None:
      tolerance = max(
        2 * self.num_actors * pull_every, rates.least_tolerance(spec.updates_per_step)
      )
    return rates.Limits(
      updates_per_step=spec.updates_per_step,
      min_size=spec.min_size,
      tolerance=tolerance,
      pull_every=pull_every,
      num_steps=num_steps,
    )

  def num_processes(self, evaluates: bool) -> int:
    """Those that take a CPU each: all but the collector."""
    return self.num_actors + self.num_shards + 1 + evaluates


class Evaluating(NamedTuple):
  """What the evaluator does."""

  every: int | None  # Environment steps; None: at the end of the run only.
  num_episodes: int
  draws: bool | None  # Whether a watcher wants pictures; None: there is none.


def cores() -> int:
  """Of this machine, for this process."""
  return len(os.sched_getaffinity(0))
