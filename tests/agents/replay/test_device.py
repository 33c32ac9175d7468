"""Replay on the device: what it makes of episodes is what the memory replay makes."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import device as device_replay
from explorax.agents.replay import memory as memory_replay
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
  num_envs = len(episodes_of_each)
  replay = device_replay.DeviceReplay(agent, num_envs, **arguments)
  append, end = jax.jit(replay.append), jax.jit(replay.end_episodes)
  state = replay.init()
  flat = [
    [(row, i == len(rows) - 1) for rows in episodes for i, row in enumerate(rows)]
    for episodes in episodes_of_each
  ]
  shape = state.rows["observation"].shape[2:]
  dtypes = {
    name: x.dtype for name, x in {**state.rows, **state.first, **state.newest}.items()
  }
  nothing = {**dict.fromkeys(flat[0][0][0], 0.0), "core_state": np.zeros(2)}
  for step in range(max(map(len, flat))):
    there = np.array([step < len(rows) for rows in flat])
    rows = [rows[step][0] if step < len(rows) else nothing for rows in flat]
    columns = {
      name: np.array([row[name] for row in rows], dtype)
      for name, dtype in dtypes.items()
    }
    columns["observation"] = columns["observation"].reshape((num_envs, *shape))
    last = np.array([step < len(rows) and rows[step][1] for rows in flat])
    state = append(state, columns, there)
    state = end(state, last)
  return replay, state


def windows_of(samples):
  """First observation's newest frame → (rows, first) of each window drawn."""
  windows = {}
  for _, sample in samples:
    num_rows = sample.rows["mask"].shape[1]
    observations = types.join_frames(sample.rows["observation"], num_rows)
    sample = sample._replace(rows={**sample.rows, "observation": observations})
    for i in range(len(sample.probabilities)):
      rows = {name: np.asarray(x[i]) for name, x in sample.rows.items()}
      first = {name: np.asarray(x[i]) for name, x in sample.first.items()}
      windows[float(rows["observation"][0].ravel()[-1])] = rows, first
  return windows


def draw(replay, state, num_batches):
  sample = jax.jit(replay.sample)
  return [sample(state, jax.random.key(i)) for i in range(num_batches)]


@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize("name", SPECS)
def test_windows_are_those_of_the_memory_replay(declare, name, frames):
  """In two environments whose episodes end at different times; beyond the capacity."""
  num_frames = 3 if frames else 1
  observations = FRAMES if frames else dm_env.specs.Array((), np.float32)
  agent = declare(
    make_spec(**SPECS[name], num_frames=num_frames), EXTRAS, observations=observations
  )
  half = declare(
    make_spec(**SPECS[name], num_frames=num_frames, capacity=30),
    EXTRAS,
    observations=observations,
  )

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
  for first_observation, (rows, first) in expected.items():
    other_rows, other_first = drawn[first_observation]
    assert set(rows) == set(other_rows) and set(first) == set(other_first)
    for column, values in rows.items():
      np.testing.assert_array_equal(other_rows[column], values, err_msg=column)
      assert other_rows[column].dtype == values.dtype
    np.testing.assert_array_equal(other_first["core_state"], first["core_state"])


@pytest.mark.parametrize(
  ("name", "lengths"), [("sequences", [4, 9, 2, 5]), ("three steps", [1] * 20)]
)
def test_memory_for_the_steps_of_a_run_suffices(declare, name, lengths):
  """Batches are those of a full replay; by priority, up to the rounding of sums."""
  for changes in ({}, PRIORITISED):
    spec = make_spec(**SPECS[name], **changes, capacity=1000)
    agent = declare(spec, EXTRAS)
    episodes = [list(make_episodes(x, seed)) for seed, x in enumerate((lengths, [6]))]
    full, capped = (
      write_to_device(agent, episodes, max_steps=most) for most in (None, 20)
    )
    assert capped[1].rows["mask"].shape == (2, 40) and capped[1].windows.shape == (
      2,
      20,
      3,
    )
    for (keys, expected), (other_keys, sample) in zip(
      draw(*full, 5), draw(*capped, 5), strict=True
    ):
      slots = keys % full[1].windows.shape[1], other_keys % 20
      np.testing.assert_array_equal(*slots)
      chances = sample.probabilities, expected.probabilities
      np.testing.assert_allclose(*chances, rtol=1e-6 if changes else 0)
      rest = (x._replace(probabilities=()) for x in (sample, expected))
      jax.tree.map(np.testing.assert_array_equal, *rest)


@pytest.mark.parametrize("name", ["sequences", "long sequences"])
def test_first_priorities_are_those_of_the_memory_replay(
  declare, initial_priority, name
):
  spec = make_spec(**SPECS[name], **PRIORITISED)
  agent = declare(spec, EXTRAS, initial_priority=initial_priority)
  episodes = list(make_episodes([5, 1, 7, 3]))
  memory = write_to_memory(agent, episodes, join=lambda seen: seen[-1])
  chances = {}
  for _ in range(30):
    _, sample = memory.sample()
    names = sample.rows["observation"][:, 0].tolist()
    chances.update(zip(names, sample.probabilities, strict=True))
  replay, state = write_to_device(agent, [episodes])
  drawn = {}
  for _, sample in draw(replay, state, 30):
    names = np.asarray(sample.rows["observation"])[:, 0].tolist()
    drawn.update(zip(names, np.asarray(sample.probabilities), strict=True))
  assert sorted(drawn) == sorted(chances) and len(drawn) >= 4
  for window, chance in chances.items():
    np.testing.assert_allclose(drawn[window], chance, rtol=1e-5)


def test_chances_follow_priorities(declare):
  """Over more than one block of sums, one of them without any priority."""
  spec = make_spec(capacity=2000, batch_size=500, priority_exponent=0.5)
  agent = declare(spec, EXTRAS)
  replay, state = write_to_device(agent, [list(make_episodes([6]))])
  (keys, sample), *_ = draw(replay, state, 1)
  np.testing.assert_allclose(sample.probabilities, np.full(500, 1 / 6), rtol=1e-6)
  assert set(np.asarray(keys)) == set(range(6))
  given = jnp.array([1.0, 9.0, 0.0, 16.0, 4.0, 4.0])
  state = replay.update_priorities(state, jnp.arange(6), given)
  chances = np.sqrt(given) / np.sum(np.sqrt(given))
  drawn = np.zeros(6)
  for keys, sample in draw(replay, state, 40):
    np.testing.assert_allclose(sample.probabilities, chances[keys], rtol=1e-5)
    np.add.at(drawn, np.asarray(keys), 1)
  spread = 5 * np.sqrt(chances * (1 - chances) / 20_000)
  assert np.all(np.abs(drawn / 20_000 - chances) <= spread)
  # Without any priority left, all have the same chance.
  state = replay.update_priorities(state, jnp.arange(6), jnp.zeros(6))
  (keys, sample), *_ = draw(replay, state, 1)
  np.testing.assert_allclose(sample.probabilities, np.full(500, 1 / 6), rtol=1e-6)
  assert set(np.asarray(keys)) == set(range(6))


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
