"""Replay on the device: what it makes of episodes is what the memory replay makes."""

import dataclasses
import functools
import itertools

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import device as device_replay
from explorax.agents.replay import memory as memory_replay
from explorax.agents.replay import packing
from explorax.environments import specs

EXTRAS = {
  "r_int": ((), np.float32),
  "core_state": ((2,), np.float32),
  "value": ((), np.float32),
}
FRAMES = specs.StackedFrames((1, 1, 3), np.float32, 3)
SPECS = {
  "sequences": {"burn_in": 1, "length": 2, "bootstrap": 1, "period": 2},
  "long sequences": {"burn_in": 2, "length": 5, "bootstrap": 1, "period": 2},
  "one step": {},
  "three steps": {"bootstrap": 3},
}
PRIORITISED = {"priority_exponent": 0.7, "priority_extras": ("value",)}


def make_spec(**changes) -> types.ReplaySpec:
  return types.ReplaySpec(
    **{
      "capacity": 60,
      "min_size": 1,
      "batch_size": 8,
      "updates_per_step": 1.0,
      "extras": ("r_int",),
      "first_row_extras": ("core_state",),
      **changes,
    }
  )


def make_episodes(lengths, seed=0):
  """Rows of episodes: all columns but the mask, and an observation to end with."""
  rng = np.random.default_rng(seed)
  number = 0
  for length in lengths:
    rows = []
    for t in range(length + 1):
      number += 1
      rows.append(
        {
          "observation": np.float32(number),
          "action": int(rng.integers(4)) if t < length else 0,
          "reward": float(rng.normal()) if t < length else 0.0,
          "discount": float(rng.random()) if t < length else 0.0,
          "mask": float(t < length),
          "r_int": float(rng.normal()),
          "value": float(rng.random()),
          "core_state": rng.normal(size=2).astype(np.float32),
        }
      )
    yield rows


def write_to_memory(agent, episodes, join):
  replay = memory_replay.MemoryReplay(agent, seed=0)
  adder = adder_lib.WindowAdder(agent, replay.writer())
  for rows in episodes:
    seen = [row["observation"] for row in rows]
    extras = [{name: row[name] for name in EXTRAS} for row in rows]
    adder.add_first(dm_env.restart(join(seen[:1])))
    for t, row in enumerate(rows[:-1]):
      step = dm_env.StepType.LAST if t == len(rows) - 2 else dm_env.StepType.MID
      timestep = dm_env.TimeStep(
        step, row["reward"], row["discount"], join(seen[: t + 2])
      )
      adder.add(row["action"], timestep, extras[t])
    adder.add_last(extras[-1])
  return replay


def write_to_device(agent, episodes_of_each, **arguments):
  """Each environment's episodes, a row of each at a time; some end before others."""
  replay = device_replay.DeviceReplay(agent, len(episodes_of_each), **arguments)
  flat = [
    [(row, i == len(rows) - 1) for rows in episodes for i, row in enumerate(rows)]
    for episodes in episodes_of_each
  ]
  nothing = jax.tree.map(np.zeros_like, flat[0][0][0])
  steps = [*itertools.zip_longest(*flat, fillvalue=(nothing, False))]
  columns = {
    name: np.array(
      [[row[name] for row, _ in rows] for rows in steps],
      np.int32 if name == "action" else np.float32,
    )
    for name in nothing
  }
  shape, _ = packing.column_specs(agent)["observation"]
  columns["observation"] = columns["observation"].reshape(len(steps), -1, *shape)
  there = np.array([[row is not nothing for row, _ in rows] for rows in steps])
  last = np.array([[is_last for _, is_last in rows] for rows in steps])

  def step(state, row):
    columns, there, last = row
    return replay.end_episodes(replay.append(state, columns, there), last), None

  run = jax.jit(lambda rows: jax.lax.scan(step, replay.init(), rows)[0])
  return replay, run((columns, there, last))


def windows_of(batches):
  """First observation's newest frame → (columns, probability) of each window drawn."""
  parts = [(sample.rows, sample.first, sample.probabilities) for _, sample in batches]
  rows, first, probabilities = jax.tree.map(lambda *x: np.concatenate(x), *parts)
  observations = types.join_frames(rows["observation"], rows["mask"].shape[1])
  columns = {**rows, **first, "observation": np.asarray(observations)}
  names = columns["observation"][:, 0].reshape(len(probabilities), -1)[:, -1]
  return {
    float(name): ({column: x[i] for column, x in columns.items()}, probabilities[i])
    for i, name in enumerate(names)
  }


@functools.partial(jax.jit, static_argnums=0)
def sample_each(replay, state, keys):
  return jax.lax.map(lambda key: replay.sample(state, key), keys)


def draw(replay, state, num_batches):
  """(keys, sample) of each batch, in numpy."""
  keys = jax.random.split(jax.random.key(0), num_batches)
  batches = jax.device_get(sample_each(replay, state, keys))
  return [jax.tree.map(lambda x, i=i: x[i], batches) for i in range(num_batches)]


@pytest.mark.parametrize(
  ("name", "frames"),
  [
    ("sequences", True),
    ("long sequences", False),
    ("one step", False),
    ("three steps", True),
  ],
)
def test_windows_are_those_of_the_memory_replay(declare, name, frames):
  """In two environments whose episodes end at different times; beyond the capacity."""
  num_frames = 3 if frames else 1
  observations = FRAMES if frames else dm_env.specs.Array((), np.float32)
  spec = make_spec(**SPECS[name], num_frames=num_frames)
  half = dataclasses.replace(spec, capacity=30)
  agent, half = (declare(x, EXTRAS, observations=observations) for x in (spec, half))

  def join(seen):
    if not frames:
      return seen[-1]
    before = [np.float32(0)] * 3 + seen
    return np.array(before[-3:], np.float32).reshape(1, 1, 3)

  lengths = ([3, 1, 5, 2, 7, 12, 1, 1, 4, 6, 2], [2, 9, 1, 1, 1, 1, 14, 3])
  episodes = [list(make_episodes(each, seed)) for seed, each in enumerate(lengths)]
  for rows in episodes[1]:  # So that no two rows have one name.
    for row in rows:
      row["observation"] = np.float32(row["observation"] + 500)
  expected = {}
  for each in episodes:
    memory = write_to_memory(half, each, join)
    expected |= windows_of([memory.sample() for _ in range(60)])
  replay, state = write_to_device(agent, episodes)
  drawn = windows_of(draw(replay, state, 100))
  assert sorted(drawn) == sorted(expected)
  assert int(jnp.sum(replay.num_windows(state))) == len(expected)
  for window, (columns, _) in expected.items():
    assert set(columns) == set(drawn[window][0])
    for name, values in columns.items():
      np.testing.assert_array_equal(drawn[window][0][name], values, name, strict=True)


@pytest.mark.parametrize(
  ("name", "lengths", "changes"),
  [("sequences", [4, 9, 2, 5], PRIORITISED), ("three steps", [1] * 20, {})],
)
def test_memory_for_the_steps_of_a_run_suffices(declare, name, lengths, changes):
  """Batches are those of a full replay; by priority, up to the rounding of sums."""
  agent = declare(make_spec(**SPECS[name], **changes, capacity=1000), EXTRAS)
  episodes = [list(make_episodes(x, seed)) for seed, x in enumerate((lengths, [6]))]
  full, capped = (
    write_to_device(agent, episodes, max_steps=most) for most in (None, 20)
  )
  assert capped[1].rows["mask"].shape == (2, 40)
  assert capped[1].windows.shape == (2, 20, 3)
  for (keys, expected), (other_keys, sample) in zip(
    draw(*full, 5), draw(*capped, 5), strict=True
  ):
    slots = keys % full[1].windows.shape[1], other_keys % 20
    np.testing.assert_array_equal(*slots)
    chances = sample.probabilities, expected.probabilities
    np.testing.assert_allclose(*chances, rtol=1e-6 if changes else 0)
    rest = (x._replace(probabilities=()) for x in (sample, expected))
    jax.tree.map(np.testing.assert_array_equal, *rest)


def test_first_priorities_are_those_of_the_memory_replay(declare, initial_priority):
  spec = make_spec(**SPECS["long sequences"], **PRIORITISED)
  agent = declare(spec, EXTRAS, initial_priority=initial_priority)
  episodes = list(make_episodes([5, 1, 14, 3]))
  memory = write_to_memory(agent, episodes, join=lambda seen: seen[-1])
  expected = windows_of([memory.sample() for _ in range(30)])
  drawn = windows_of(draw(*write_to_device(agent, [episodes]), 30))
  assert sorted(drawn) == sorted(expected) and len(drawn) >= 6
  for window, (_, chance) in expected.items():
    np.testing.assert_allclose(drawn[window][1], chance, rtol=1e-5)


def test_chances_follow_priorities(declare):
  """Over more than one block of sums, one of them without any priority."""
  spec = make_spec(capacity=2000, batch_size=500, priority_exponent=0.5)
  agent = declare(spec, EXTRAS)
  replay, state = write_to_device(agent, [list(make_episodes([6]))])
  ((keys, sample),) = draw(replay, state, 1)
  np.testing.assert_allclose(sample.probabilities, np.full(500, 1 / 6), rtol=1e-6)
  assert set(keys) == set(range(6))
  given = np.array([1.0, 9.0, 0.0, 16.0, 4.0, 4.0], np.float32)
  update = jax.jit(replay.update_priorities)
  state = update(state, np.arange(6), given)
  chances = np.sqrt(given) / np.sum(np.sqrt(given))
  drawn = np.zeros(6)
  for keys, sample in draw(replay, state, 40):
    np.testing.assert_allclose(sample.probabilities, chances[keys], rtol=1e-5)
    np.add.at(drawn, keys, 1)
  spread = 5 * np.sqrt(chances * (1 - chances) / 20_000)
  assert np.all(np.abs(drawn / 20_000 - chances) <= spread)
  # Without any priority left, all have the same chance.
  state = update(state, np.arange(6), 0 * given)
  ((keys, sample),) = draw(replay, state, 1)
  np.testing.assert_allclose(sample.probabilities, np.full(500, 1 / 6), rtol=1e-6)
  assert set(keys) == set(range(6))


def test_no_number_draws_a_value_of_zero():
  """Whatever number is drawn: those at which running sums may differ by rounding."""
  rng = np.random.default_rng(0)
  values = np.where(np.arange(500) < 300, rng.random((8, 500)), 0.0)
  values = values.ravel().astype(np.float32)
  until = np.cumsum(np.pad(values, (0, 96)), dtype=np.float64) / np.sum(values)
  near = [np.float32(until)]
  for _ in range(6):
    near = [np.nextafter(near[0], np.float32(0)), *near]
    near.append(np.nextafter(near[-1], np.float32(2)))
  numbers = np.unique(np.clip(np.concatenate(near), 0, np.nextafter(np.float32(1), 0)))
  drawn, probabilities = jax.jit(device_replay.draw_in_proportion)(numbers, values)
  assert np.all(values[drawn] > 0)
  assert np.all(np.asarray(probabilities) > 0)


def test_a_capacity_below_a_window_for_each_environment_is_refused(declare):
  agent = declare(make_spec(capacity=40, **SPECS["sequences"]), EXTRAS)
  with pytest.raises(ValueError, match="30 environments"):
    device_replay.DeviceReplay(agent, 30)
