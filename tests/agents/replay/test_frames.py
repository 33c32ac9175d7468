"""Observations that join several frames: replay keeps each frame once."""

import dm_env
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.replay import adder as adder_lib
from explorax.agents.replay import memory as memory_replay
from explorax.environments import specs

NUM_FRAMES = 3
SPEC = specs.StackedFrames((2, 1, 2 * NUM_FRAMES), np.uint8, NUM_FRAMES)
SEQUENCES = {"burn_in": 1, "length": 2, "bootstrap": 1, "period": 2}
TRANSITIONS = {"length": 1, "bootstrap": 2, "period": 1}


def replay_spec(**changes) -> types.ReplaySpec:
  return types.ReplaySpec(
    **{
      "capacity": 100,
      "min_size": 1,
      "batch_size": 8,
      "updates_per_step": 1.0,
      "num_frames": NUM_FRAMES,
      **changes,
    }
  )


def frame(name: int) -> np.ndarray:
  """A frame of two channels; every pixel differs and follows from the name."""
  return np.array([[[name, name + 100]], [[name + 50, name + 150]]], np.uint8)


def stack(names: list[int]) -> np.ndarray:
  """The newest frames of an episode that has had these so far."""
  frames = [np.zeros_like(frame(0))] * NUM_FRAMES + [frame(n) for n in names]
  return np.concatenate(frames[-NUM_FRAMES:], axis=-1)


def write(adder: adder_lib.WindowAdder, names: list[int], finished=True) -> None:
  adder.add_first(dm_env.restart(stack(names[:1])))
  for t in range(1, len(names)):
    last = finished and t == len(names) - 1
    step_type = dm_env.StepType.LAST if last else dm_env.StepType.MID
    adder.add(t, dm_env.TimeStep(step_type, float(t), 1.0, stack(names[: t + 1])), {})
  if finished:
    adder.add_last({})


EPISODES = ([10, 11, 12, 13], [20, 21, 22, 23, 24, 25], [30, 31], [40, 41, 42, 43, 44])


# The second episode is left unfinished after its fifth row.
@pytest.mark.parametrize(
  ("windows", "starts"),
  [
    (SEQUENCES, {10, 20, 30, 40, 42}),
    (TRANSITIONS, {10, 11, 12, 20, 21, 22, 30, 40, 41, 42, 43}),
  ],
)
def test_windows_are_the_environments_observations(
  declare, make_replay, windows, starts
):
  """From an episode's first row on, over its end, and after one left unfinished."""
  agent = declare(replay_spec(**windows), observations=SPEC)
  replay = make_replay(agent)
  adder = adder_lib.WindowAdder(agent, replay.writer())
  for i, names in enumerate(EPISODES):
    write(adder, names, finished=i != 1)
  seen = set()
  batches = replay.batches()
  for _ in range(30):
    _, sample = next(batches)
    assert sample.rows["observation"].dtype == np.uint8
    num_frames = agent.replay.window_frames
    assert sample.rows["observation"].shape == (8, num_frames, 2, 1, 2)
    num_rows = agent.replay.window_rows
    frames = sample.rows["observation"]
    observations = np.asarray(types.join_frames(frames, num_rows))
    rows = np.array([[num_rows - 1, 0]] * 8)
    np.testing.assert_array_equal(
      types.join_frames(frames, num_rows, rows), observations[:, [num_rows - 1, 0]]
    )
    for i, window in enumerate(observations):
      first = int(window[0, 0, 0, -2])
      episode = next(names for names in EPISODES if first in names)
      start = episode.index(first)
      seen.add(first)
      for t in range(agent.replay.window_rows):
        if start + t < len(episode):
          expected = stack(episode[: start + t + 1])
          np.testing.assert_array_equal(window[t], expected)
        else:  # Padding: a frame of zeros is the newest.
          assert not np.any(window[t, ..., -2:])
      # The other columns are those of the same rows.
      is_transition = sample.rows["mask"][i] == 1
      steps = np.arange(start + 1, start + 1 + agent.replay.window_rows)
      np.testing.assert_array_equal(
        sample.rows["action"][i][is_transition], steps[is_transition]
      )
  assert seen == starts


def test_memory_keeps_each_frame_once_and_forgets_the_oldest(declare):
  agent = declare(replay_spec(capacity=8, **TRANSITIONS), observations=SPEC)
  replay = memory_replay.MemoryReplay(agent, seed=0)
  adder = adder_lib.WindowAdder(agent, replay.writer())
  for _ in range(20):
    write(adder, list(range(1, 101)))
    # Eight windows, the two rows that the last transition's return ends in, and the
    # two frames that the oldest window's first observation shows besides.
    assert replay.num_rows == 8 + 1 + 2
  write(adder, list(range(1, 7)), finished=False)
  adder.reset()
  assert replay.num_windows == 8
  assert replay.num_rows <= 8 + 1 + 2 + 6
