"""The rate limit keeps acting and learning in step without a deadlock."""

import asyncio
import itertools

import pytest

from explorax.agents import types
from explorax.experiments import config as config_lib
from explorax.experiments.runners.distributed import rate_limit


def _config(**settings):
  return config_lib.RunConfig(
    agent="dqn", env="bsuite:catch/0", runner="distributed", **settings
  )


def _spec(min_size=20, updates_per_step=0.25):
  return types.ReplaySpec(
    capacity=400, min_size=min_size, batch_size=4, updates_per_step=updates_per_step
  )


def test_what_cannot_work_is_refused():
  with pytest.raises(ValueError, match="--replay_shards=3 exceeds --num_actors=2"):
    rate_limit.rate_limit(_spec(), _config(num_actors=2, replay_shards=3))
  with pytest.raises(ValueError, match="block each other; use at least 4"):
    rate_limit.rate_limit(_spec(), _config(error_buffer=3))


@pytest.mark.parametrize("num_actors, shards", [(1, 1), (3, 2), (4, 4)])
@pytest.mark.parametrize("updates_per_step", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("buffer", [None, 12, 100])
def test_the_limit_of_a_shard_counts_steps(
  num_actors, shards, updates_per_step, buffer
):
  spec = _spec(updates_per_step=updates_per_step)
  if buffer == 12 and updates_per_step == 0.1:
    buffer = 40
  config = _config(num_actors=num_actors, replay_shards=shards, error_buffer=buffer)
  limit = rate_limit.rate_limit(spec, config)
  steps = limit.steps_per_insert
  assert limit.samples_per_insert == pytest.approx(updates_per_step * steps)
  assert limit.min_inserts * steps >= spec.min_size / shards
  assert (limit.min_inserts - 1) * steps < spec.min_size / shards
  # What Reverb asks for, so that neither side can block the other for good.
  assert limit.error_buffer >= max(1.0, limit.samples_per_insert) - 1e-9
  if buffer is not None:
    assert limit.error_buffer == pytest.approx(updates_per_step * buffer / shards)


@pytest.mark.parametrize(
  "num_actors, num_envs, shards", [(1, 1, 1), (3, 1, 2), (4, 16, 1), (4, 16, 3)]
)
def test_the_fullest_shard_has_a_window_before_actors_wait(
  num_actors, num_envs, shards
):
  spec = _spec()
  config = _config(num_actors=num_actors, num_envs=num_envs, replay_shards=shards)
  limit = rate_limit.rate_limit(spec, config)
  fullest = len(range(0, num_actors, shards))  # Actor i writes to shard i mod shards.
  most_without = fullest * num_envs * (spec.window_rows - 1)
  assert limit.min_inserts * limit.steps_per_insert > most_without


def _drive(limit, steps):
  """(Inserts, samples) after steps, as `RateLimiter` allows them, greedily."""
  memory_shard = pytest.importorskip(
    "explorax.experiments.runners.distributed.memory_shard"
  )

  async def drive():
    limiter, counts = memory_shard.RateLimiter(limit), []
    for inserts_first in itertools.islice(itertools.cycle([True, False, False]), steps):
      allowed = (limiter.can_insert, limiter.can_sample)
      assert any(allowed), "both sides wait"
      if allowed[0] and (inserts_first or not allowed[1]):
        await limiter.insert()
      else:
        await limiter.sample()
      counts.append((limiter.inserts, limiter.samples))
    return counts

  return asyncio.run(drive())


@pytest.mark.parametrize("updates_per_step", [0.1, 1.0, 3.0])
def test_the_store_in_memory_keeps_the_ratio(updates_per_step):
  spec = _spec(updates_per_step=updates_per_step)
  limit = rate_limit.rate_limit(spec, _config(num_actors=2, error_buffer=40))
  for inserts, samples in _drive(limit, 500):
    if inserts < limit.min_inserts:
      assert samples == 0
    due = limit.samples_per_insert * (inserts - limit.min_inserts)
    assert abs(due - samples) <= limit.error_buffer + limit.samples_per_insert
  assert samples > 0


@pytest.mark.reverb
@pytest.mark.parametrize("updates_per_step", [0.25, 3.0])
def test_reverb_blocks_at_the_same_counts(updates_per_step):
  import numpy as np
  import reverb

  memory_shard = pytest.importorskip(
    "explorax.experiments.runners.distributed.memory_shard"
  )
  from explorax.experiments.runners.distributed import reverb_shard

  spec = _spec(updates_per_step=updates_per_step)
  limit = rate_limit.rate_limit(spec, _config(num_actors=2, error_buffer=16))
  server = reverb.Server([reverb_shard.steps_table(limit)])
  client = reverb.Client(f"localhost:{server.port}")
  ours = memory_shard.RateLimiter(limit)
  writer = client.trajectory_writer(num_keep_alive_refs=1)

  def insert(seconds):
    writer.append({"steps": np.zeros((), np.uint8)})
    writer.create_item("steps", 1.0, {"steps": writer.history["steps"][-1:]})
    writer.flush(timeout_ms=1000 * seconds)

  while ours.can_insert:
    insert(seconds=60)
    asyncio.run(ours.insert())
  with pytest.raises(reverb.errors.DeadlineExceededError):
    insert(seconds=1)
  server.stop()
