"""One table of episodes, and what every backend must make of it.

The table's observations name their rows: 13 is x_3 of the first episode. A window is
named by its first observation.
"""

import dataclasses
from typing import Any

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.bonuses import counts
from explorax.agents.q import config as q_config
from explorax.agents.q import windows as windows_lib
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import memory as memory_replay
from explorax.experiments import checkpoint

pytestmark = pytest.mark.core

# (x_t, a_t, r_{t+1}, discount_{t+1}, r_int_t) of each row; the last one holds the
# last observation, whose novelty is real and whose transition is none.
TERMINATED = (
  (10.0, 1, 1.0, 1.0, 0.5),
  (11.0, 2, 2.0, 0.5, 0.25),
  (12.0, 3, 4.0, 0.0, 1.0),
  (13.0, None, None, None, 8.0),
)
TRUNCATED = (
  (20.0, 3, 8.0, 1.0, 1.0),
  (21.0, 2, 16.0, 1.0, 2.0),
  (22.0, 1, 32.0, 1.0, 3.0),
  (23.0, 2, 64.0, 1.0, 4.0),
  (24.0, None, None, None, 5.0),
)
# Left after four steps: the next episode begins without it having ended.
_ROWS = [(x, 1, 1.0, 1.0, 1.0) for x in (30.0, 31.0, 32.0, 33.0)]
UNFINISHED = (*_ROWS, (34.0, None, None, None, None))
SHORT = ((40.0, 2, 7.0, 0.0, 6.0), (41.0, None, None, None, 9.0))

SCALAR = ((), np.float32)
EXTRAS = {"r_int": SCALAR, "core_state": ((2,), np.float32), "value": SCALAR}
SEQUENCES = types.ReplaySpec(
  capacity=100,
  min_size=1,
  batch_size=8,
  updates_per_step=1.0,
  burn_in=1,
  length=2,
  bootstrap=1,
  period=2,
  extras=("r_int",),
  first_row_extras=("core_state",),
)


def extras(observation: float, r_int: float) -> dict[str, Any]:
  """The actor's extras; its value is the same number as the novelty."""
  return {"r_int": r_int, "value": r_int, "core_state": core_state(observation)}


def core_state(observation: float) -> np.ndarray:
  """The actor's recurrent state before the observation, here a function of it."""
  return np.array([observation, -observation], np.float32)


def write(adder: adder_lib.WindowAdder, episode, after_each=lambda: None) -> None:
  """Writes an episode; it is left unfinished where its last row says so."""
  adder.add_first(dm_env.restart(np.float32(episode[0][0])))
  after_each()
  finished = episode[-1][4] is not None
  for t, (observation, action, reward, discount, r_int) in enumerate(episode[:-1]):
    last = finished and t == len(episode) - 2
    step_type = dm_env.StepType.LAST if last else dm_env.StepType.MID
    timestep = dm_env.TimeStep(step_type, reward, discount, episode[t + 1][0])
    adder.add(action, timestep, extras(observation, r_int))
    after_each()
  if finished:
    observation, *_, r_int = episode[-1]
    adder.add_last(extras(observation, r_int))
    after_each()


def fill(agent: types.Agent, replay, episodes):
  """Writes episodes; returns the replay and its adder."""
  adder = adder_lib.WindowAdder(agent, replay.writer())
  for episode in episodes:
    write(adder, episode)
  return replay, adder


@pytest.fixture
def filled(declare, make_replay):
  """(ReplaySpec, *episodes, …) → (replay, adder), for each backend."""

  def make(spec, *episodes, **parts):
    agent = declare(spec, EXTRAS, **parts)
    return fill(agent, make_replay(agent), episodes)

  return make


@pytest.fixture
def filled_memory(declare):
  """(ReplaySpec, *episodes, seed=0) → (replay, adder), in memory."""

  def make(spec, *episodes, seed=0):
    agent = declare(spec, EXTRAS)
    return fill(agent, memory_replay.MemoryReplay(agent, seed), episodes)

  return make


# Window → its rows: (observation, action, reward, discount, mask, r_int).
PAD = (0.0, 0, 0.0, 0.0, 0.0, 0.0)
GOLDEN = {
  # Three transitions: burn-in and length hold all of them, since at an episode's
  # start the burn-in is trained on. The last row is the last observation.
  10.0: (
    (10.0, 1, 1.0, 1.0, 1.0, 0.5),
    (11.0, 2, 2.0, 0.5, 1.0, 0.25),
    (12.0, 3, 4.0, 0.0, 1.0, 1.0),
    (13.0, 0, 0.0, 0.0, 0.0, 8.0),
  ),
  20.0: (
    (20.0, 3, 8.0, 1.0, 1.0, 1.0),
    (21.0, 2, 16.0, 1.0, 1.0, 2.0),
    (22.0, 1, 32.0, 1.0, 1.0, 3.0),
    (23.0, 2, 64.0, 1.0, 1.0, 4.0),
  ),
  # The fourth transition needs a second window: its burn-in is row 2.
  22.0: (
    (22.0, 1, 32.0, 1.0, 1.0, 3.0),
    (23.0, 2, 64.0, 1.0, 1.0, 4.0),
    (24.0, 0, 0.0, 0.0, 0.0, 5.0),
    PAD,
  ),
  30.0: (
    (30.0, 1, 1.0, 1.0, 1.0, 1.0),
    (31.0, 1, 1.0, 1.0, 1.0, 1.0),
    (32.0, 1, 1.0, 1.0, 1.0, 1.0),
    (33.0, 1, 1.0, 1.0, 1.0, 1.0),
  ),
  40.0: ((40.0, 2, 7.0, 0.0, 1.0, 6.0), (41.0, 0, 0.0, 0.0, 0.0, 9.0), PAD, PAD),
}
COLUMNS = ("observation", "action", "reward", "discount", "mask", "r_int")


def test_stores_the_golden_table(filled, collect):
  replay, _ = filled(SEQUENCES, TERMINATED, TRUNCATED, UNFINISHED, SHORT)
  windows = collect(replay)
  assert sorted(windows) == sorted(GOLDEN)
  for name, expected in GOLDEN.items():
    _, rows, first = windows[name]
    assert set(rows) == set(COLUMNS)
    for column, values in zip(COLUMNS, zip(*expected, strict=True), strict=True):
      np.testing.assert_array_equal(rows[column], values, err_msg=f"{name} {column}")
      assert rows[column].dtype == (np.int32 if column == "action" else np.float32)
    assert set(first) == {"core_state"}
    np.testing.assert_array_equal(first["core_state"], core_state(name))


def test_stores_windows_as_soon_as_they_are_complete(filled_memory):
  replay, adder = filled_memory(SEQUENCES)
  seen = []
  for episode in (TERMINATED, TRUNCATED, UNFINISHED, SHORT):
    stored = []
    write(adder, episode, lambda stored=stored: stored.append(replay.num_windows))
    seen.append(stored)
  assert seen == [
    [0, 0, 0, 0, 1],  # With row 3, which only `add_last` completes.
    [1, 1, 1, 1, 2, 3],  # With the fourth transition, and after the end.
    [3, 3, 3, 3, 4],
    [4, 4, 5],
  ]
  assert adder.num_windows == 5


def make_windows(sample, discount, num_members, end, n_step=1):
  """The learner's windows of a sample of transitions."""
  config = q_config.QConfig(num_members=num_members, n_step=n_step)
  policy = jnp.zeros(len(sample.probabilities), jnp.int32)
  bonus = counts.Counts().build(dm_env.specs.Array((), np.float32), 1)
  bonus = bonus._replace(end=end) if "r_int" in sample.rows else None
  return windows_lib.make_windows(sample, config, jnp.array([discount]), policy, bonus)


def transitions_spec(n: int, **changes) -> types.ReplaySpec:
  return types.ReplaySpec(
    **{
      "capacity": 100,
      "min_size": 1,
      "batch_size": 8,
      "updates_per_step": 1.0,
      "bootstrap": n,
      "extras": ("r_int",),
      **changes,
    }
  )


# x_t → (return, discount, observation bootstrapped from, Σ r_int on the way out of
# x_t, Σ r_int on the way in), with γ = 1/2.
ONE_STEP = {
  10.0: (1.0, 0.5, 11.0, 0.5, 0.25),
  11.0: (2.0, 0.25, 12.0, 0.25, 1.0),
  12.0: (4.0, 0.0, 13.0, 1.0, 8.0),
  20.0: (8.0, 0.5, 21.0, 1.0, 2.0),
  21.0: (16.0, 0.5, 22.0, 2.0, 3.0),
  22.0: (32.0, 0.5, 23.0, 3.0, 4.0),
  23.0: (64.0, 0.5, 24.0, 4.0, 5.0),
  40.0: (7.0, 0.0, 41.0, 6.0, 9.0),
}
THREE_STEPS = {
  # 1 + 2/2 + 4/8, since the second transition's own discount is 1/2.
  10.0: (2.5, 0.0, 13.0, 0.75, 0.25 + 0.5 + 1.0),
  11.0: (3.0, 0.0, 13.0, 0.5, 1.0 + 2.0),
  12.0: (4.0, 0.0, 13.0, 1.0, 8.0),
  20.0: (24.0, 0.125, 23.0, 1.0 + 1.0 + 0.75, 2.0 + 1.5 + 1.0),
  21.0: (48.0, 0.125, 24.0, 2.0 + 1.5 + 1.0, 3.0 + 2.0 + 1.25),
  22.0: (64.0, 0.25, 24.0, 3.0 + 2.0, 4.0 + 2.5),
  23.0: (64.0, 0.5, 24.0, 4.0, 5.0),
  40.0: (7.0, 0.0, 41.0, 6.0, 9.0),
}
ACTIONS = {10: 1, 11: 2, 12: 3, 20: 3, 21: 2, 22: 1, 23: 2, 40: 2}


@pytest.mark.parametrize("end", ["source", "transition", "destination"])
@pytest.mark.parametrize("n, expected", [(1, ONE_STEP), (3, THREE_STEPS)])
def test_transitions_of_the_golden_table(filled, collect, n, expected, end):
  replay, _ = filled(transitions_spec(n), TERMINATED, TRUNCATED, SHORT)
  windows = collect(replay)
  assert sorted(windows) == sorted(expected)
  rows = {
    column: np.stack([windows[name][1][column] for name in expected])
    for column in COLUMNS
  }
  ones = np.ones(len(expected), np.float32)
  sample = types.Sample(rows, {}, ones, np.int32(1))
  batch = make_windows(sample, 0.5, 2, end, n_step=n)
  returns, discounts, observations, way_out, way_in = zip(
    *expected.values(), strict=True
  )
  np.testing.assert_array_equal(batch.observations()[:, 0], list(expected))
  np.testing.assert_array_equal(
    batch.action[:, 0], [ACTIONS[int(name)] for name in expected]
  )
  np.testing.assert_array_equal(batch.n_step_return(batch.reward, n)[:, 0], returns)
  np.testing.assert_array_equal(batch.n_step_discount(n)[:, 0], discounts)
  last = batch.observations()[np.arange(len(expected)), batch.bootstrap_row(n)[:, 0]]
  np.testing.assert_array_equal(last, observations)
  r_int = way_in if end == "destination" else way_out
  np.testing.assert_array_equal(batch.n_step_return(batch.stored, n)[:, 0], r_int)
  np.testing.assert_array_equal(batch.member_mask[:, 0], np.ones((len(expected), 2)))


@pytest.mark.parametrize("n", [1, 3])
def test_capacity_is_in_environment_steps_and_the_oldest_go(filled, collect, n):
  replay, adder = filled(transitions_spec(n, capacity=8))
  for episode in (TERMINATED, TRUNCATED, SHORT):
    write(adder, episode)
  write(adder, TERMINATED[1:])
  # 10 and 11 were dropped; 11 and 12 were added again, so that 12 is there twice.
  assert sorted(collect(replay)) == [11.0, 12.0, 20.0, 21.0, 22.0, 23.0, 40.0]
  write(adder, TERMINATED[2:])
  assert sorted(collect(replay)) == [11.0, 12.0, 20.0, 21.0, 22.0, 23.0, 40.0]
  write(adder, SHORT)
  assert sorted(collect(replay)) == [11.0, 12.0, 21.0, 22.0, 23.0, 40.0]


def test_uniform_probabilities_and_population(filled):
  replay, _ = filled(transitions_spec(1), TERMINATED, SHORT)
  keys, sample = next(replay.batches())
  assert keys.shape == (8,) and keys.dtype == np.uint64
  np.testing.assert_allclose(sample.probabilities, np.full(8, 0.25), rtol=1e-6)
  assert sample.probabilities.dtype == np.float32
  assert sample.population == 4 and sample.population.dtype == np.int32


def test_prioritised_sampling(filled, collect):
  spec = transitions_spec(1, batch_size=50, priority_exponent=0.5)
  replay, _ = filled(spec, TERMINATED)
  keys = {name: key for name, (key, *_) in collect(replay, num_batches=4).items()}
  assert sorted(keys) == [10.0, 11.0, 12.0]  # New ones have the same priority.
  replay.update_priorities(
    np.array([keys[10.0], keys[12.0]], np.uint64), np.array([0.25, 2.25])
  )
  probabilities = {10.0: 1 / 6, 11.0: 2 / 6, 12.0: 3 / 6}  # 11 keeps its 1.
  drawn = dict.fromkeys(probabilities, 0)
  batches = replay.batches()
  for _ in range(60):
    _, sample = next(batches)
    assert sample.population == 3
    for name, probability in zip(
      sample.rows["observation"][:, 0], sample.probabilities, strict=True
    ):
      drawn[float(name)] += 1
      np.testing.assert_allclose(probability, probabilities[float(name)], rtol=1e-5)
  for name, probability in probabilities.items():
    # Five standard deviations of a binomial with n = 3000.
    spread = 5 * np.sqrt(probability * (1 - probability) / 3000)
    assert abs(drawn[name] / 3000 - probability) < spread


def test_first_priorities_are_of_the_rows_of_a_window(
  filled, collect, initial_priority
):
  """By hand; values are in no column that replay stores."""
  spec = dataclasses.replace(
    SEQUENCES, priority_exponent=1.0, priority_extras=("value",)
  )
  replay, _ = filled(
    spec, TERMINATED, TRUNCATED, SHORT, initial_priority=initial_priority
  )
  expected = {
    10.0: 100 + (0.5 + 2 * 0.25 + 3 * 1 + 4 * 8) + (1 + 4 + 16),
    20.0: 100 + (1 + 2 * 2 + 3 * 3 + 4 * 4) + (64 + 256 + 1024 + 4096),
    22.0: (3 + 2 * 4 + 3 * 5) + (1024 + 4096),  # The last row is padding.
    40.0: 100 + (6 + 2 * 9) + 49,
  }
  assert sorted(collect(replay)) == sorted(expected)
  _, sample = next(replay.batches())
  for name, probability in zip(
    sample.rows["observation"][:, 0], sample.probabilities, strict=True
  ):
    share = expected[float(name)] / sum(expected.values())
    np.testing.assert_allclose(probability, share, rtol=1e-5)


def test_equal_chances_where_all_priorities_are_zero(filled, collect):
  spec = transitions_spec(1, priority_exponent=0.5)
  replay, _ = filled(spec, TERMINATED)
  keys = [key for key, *_ in collect(replay, num_batches=10).values()]
  replay.update_priorities(np.array(keys, np.uint64), np.zeros(3))
  _, sample = next(replay.batches())
  np.testing.assert_allclose(sample.probabilities, np.full(8, 1 / 3), rtol=1e-6)
  assert sorted(collect(replay, num_batches=10)) == [10.0, 11.0, 12.0]


def test_a_new_window_in_an_old_slot_has_the_initial_priority(filled_memory):
  spec = transitions_spec(1, capacity=2, batch_size=2, priority_exponent=1.0)
  replay, adder = filled_memory(spec, SHORT, SHORT)
  replay.update_priorities(np.array([0, 1], np.uint64), np.array([5.0, 3.0]))
  write(adder, SHORT)
  keys, sample = replay.sample()
  expected = np.where(keys == 0, 1 / 4, 3 / 4)
  np.testing.assert_allclose(sample.probabilities, expected)


def test_memory_has_room_for_episodes_left_unfinished(filled_memory, collect):
  """Each has a single window, of more rows than a finished one's."""
  replay, adder = filled_memory(transitions_spec(10, capacity=20))
  for number in range(30):
    first = 100.0 * number
    rows = [(first + t, 1, 1.0, 1.0, 1.0) for t in range(11)]
    write(adder, [*rows, (first + 11, None, None, None, None)])
  assert sorted(collect(replay)) == [100.0 * n for n in range(10, 30)]


def test_a_reset_drops_the_rows_that_are_in_no_window(filled, collect):
  replay, adder = filled(SEQUENCES)
  write(adder, UNFINISHED[1:])
  adder.reset()
  write(adder, TERMINATED)
  assert sorted(collect(replay, num_batches=5)) == [10.0]


def resumed_from(replay, agent, **arguments) -> memory_replay.MemoryReplay:
  arrays, counts = replay.save()
  resumed = memory_replay.MemoryReplay(agent, seed=5, **arguments)
  resumed.restore(dict(checkpoint.named(arrays)), counts)
  return resumed


def test_an_open_episode_is_truncated_when_replay_resumes(declare, collect):
  """As by a reset: its complete windows stay, and rows in no window are released."""
  agent = declare(dataclasses.replace(SEQUENCES, priority_exponent=1.0), EXTRAS)
  replay = memory_replay.MemoryReplay(agent, seed=0)
  adder = adder_lib.WindowAdder(agent, replay.writer())
  write(adder, TERMINATED)
  write(adder, UNFINISHED[1:])
  resumed = resumed_from(replay, agent)
  adder.reset()
  assert resumed.num_rows == replay.num_rows
  write(adder, TRUNCATED)
  write(adder_lib.WindowAdder(agent, resumed.writer()), TRUNCATED)
  assert resumed.num_rows == replay.num_rows
  for a, b in zip(replay.sample(), resumed.sample(), strict=True):
    jax.tree.map(np.testing.assert_array_equal, a, b)


@pytest.mark.parametrize("max_steps", [1, 6, 10_000])
def test_the_reserved_memory_does_not_change_the_samples(declare, max_steps):
  """Also if there are more steps, and if a replay of another size resumes."""
  spec = dataclasses.replace(SEQUENCES, capacity=64, priority_exponent=1.0)
  agent = declare(spec, EXTRAS)
  whole = memory_replay.MemoryReplay(agent, seed=0)
  small = memory_replay.MemoryReplay(agent, seed=0, max_steps=max_steps)
  for replay in (whole, small):
    fill(agent, replay, [TERMINATED, TRUNCATED] * 3)
  resumed = resumed_from(small, agent, max_steps=1)
  for _ in range(3):
    expected = whole.sample()
    for replay in (small, resumed):
      jax.tree.map(np.testing.assert_array_equal, replay.sample(), expected)


def test_a_run_needs_memory_for_its_own_steps(declare):
  spec = transitions_spec(1, capacity=2 * 10**9)
  agent = declare(spec, EXTRAS)
  needed = memory_replay.num_bytes(agent, 1000)
  assert needed * 2 * 10**6 == memory_replay.num_bytes(agent)
  memory_replay.MemoryReplay(agent, seed=0, max_steps=1000)
