"""The settings of the rate limiter, which keeps acting and learning in step."""

import dataclasses
import math

from explorax.agents import types
from explorax.experiments import config as config_lib

_MAX_STEPS_PER_INSERT = 64


@dataclasses.dataclass(frozen=True)
class RateLimit:
  """The ratio of learner updates to environment steps in one shard of replay.

  Reverb's limiter counts items of a table. Windows do not measure steps (short episodes
  have more windows per step), so each shard has a second table for the limiter only:
  actors insert an item for every `steps_per_insert` environment steps, and the learner
  samples one for each update. With I items inserted and S sampled, the error
  I · `samples_per_insert` − S is kept within `error_buffer` of its value when the table
  reached `min_inserts` items; a process that would leave this range waits.

  Attributes:
    steps_per_insert: environment steps per item.
    samples_per_insert: updates per item.
    min_inserts: items before the first update.
    error_buffer: in updates.
  """

  steps_per_insert: int
  samples_per_insert: float
  min_inserts: int
  error_buffer: float

  @property
  def error_range(self) -> tuple[float, float]:
    """The allowed range of the error, once there are `min_inserts` items."""
    offset = self.samples_per_insert * self.min_inserts
    return offset - self.error_buffer, offset + self.error_buffer


def rate_limit(spec: types.ReplaySpec, config: config_lib.RunConfig) -> RateLimit:
  """The limit of each shard of a run.

  Args:
    spec: of the whole replay.
    config: `error_buffer` is in environment steps of the run. Its default is a tenth
      of `spec.min_size`, at least 16 for each actor, and at least two updates' worth.

  Raises:
    ValueError: if processes could block each other.
  """
  actors, shards = config.num_actors or 1, config.replay_shards or 1
  if shards > actors:
    raise ValueError(
      f"--replay_shards={shards} exceeds --num_actors={actors}: each shard of replay "
      "needs at least one actor that fills it."
    )
  least = max(1, math.ceil(1 / spec.updates_per_step)) * shards
  buffer = config.error_buffer
  if buffer is None:
    buffer = max(spec.min_size // 10, 16 * actors, 2 * least)
  if buffer < least:
    raise ValueError(
      f"--error_buffer={buffer} is too small: at {spec.updates_per_step:g} updates per "
      f"environment step, actors and learner would block each other; use at least "
      f"{least}."
    )
  # No actor may have to wait before there is a window, even in the fullest shard.
  envs = math.ceil(actors / shards) * (config.num_envs or 1)
  min_size = max(spec.min_size, shards * envs * spec.window_rows)
  of_shard = buffer / shards
  steps = max(1, min(_MAX_STEPS_PER_INSERT, int(of_shard / (2 * actors / shards))))
  return RateLimit(
    steps_per_insert=steps,
    samples_per_insert=spec.updates_per_step * steps,
    min_inserts=max(1, math.ceil(min_size / shards / steps)),
    error_buffer=of_shard * spec.updates_per_step,
  )
