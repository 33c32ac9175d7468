"""Games side by side, against one game alone."""

import numpy as np
import pytest

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

from explorax import environments
from explorax.environments import atari_profiles, batched_types, specs

STILL = "noops=0"


@pytest.mark.parametrize(
  ("name", "num_steps", "min_ends"),
  [
    (f"MontezumaRevenge/ngu,{STILL},life_loss=true", 600, 3),
    (f"Pong/{STILL},max_frames=42", 60, 5),
    (f"Pong/{STILL},action_repeat=1,max_frames=20", 60, 2),
  ],
)
def test_each_step_is_that_of_one_game_alone(name, num_steps, min_ends):
  single = environments.make(f"atari:{name}", seed=0)
  batched = environments.make_batched(f"atari:{name}", num_envs=1, seed=0)
  assert isinstance(batched, batched_types.BatchedEnvironment)
  assert environments.spec(batched) == environments.spec(single)
  repeat = atari_profiles.parse(name)[1].action_repeat
  channels = batched.observation_spec().shape[-1] // specs.num_frames(
    batched.observation_spec()
  )
  frames, timestep = batched.reset(), single.reset()
  np.testing.assert_array_equal(frames[0], timestep.observation[..., -channels:])
  rng, ends, rewards = np.random.default_rng(1), 0, 0.0
  for _ in range(num_steps):
    action = rng.integers(single.action_spec().num_values)
    ale = single.raw.ale
    so_far = ale.getEpisodeFrameNumber()
    batched.send(np.array([action]))
    step, before, timestep = batched.recv(), frames, single.step(action)
    frames = step.frames
    assert step.reward == timestep.reward and step.reward.dtype == np.float32
    assert step.discount == timestep.discount and step.discount.dtype == np.float32
    assert step.last[0] == timestep.last()
    rewards += abs(step.reward[0])
    newest = timestep.observation[..., -channels:]
    if not step.last[0]:
      np.testing.assert_array_equal(frames[0], newest)
      assert step.first_frames is None and not step.metrics
      continue
    ends += 1
    expected = environments.episode_metrics(single)
    for rooms in ("rooms", "rooms_so_far"):
      expected.pop(rooms, None)
    assert step.metrics == {0: expected}
    if ale.game_over(with_truncation=False):  # In a frame that is not shown.
      if ale.getEpisodeFrameNumber() - so_far < repeat:
        np.testing.assert_array_equal(frames[0], before[0])
    elif "max_frames=42" not in name:  # Whose last action goes beyond its limit.
      np.testing.assert_array_equal(frames[0], newest)
    timestep, frames = single.reset(), step.first_frames
    np.testing.assert_array_equal(frames[0], timestep.observation[..., -channels:])
  assert ends >= min_ends
  assert rewards > 0 or "max_frames" in name or "Montezuma" in name
  batched.close()


def _step(batched, actions):
  batched.send(actions)
  return batched.recv()


@pytest.mark.parametrize(("game", "first_frame"), [("Pong", 0), ("Pooyan", 1)])
def test_games_begin_with_one_to_so_many_idle_frames(game, first_frame):
  """Every frame is a step here: an episode is as short as its idle frames are many."""
  name = f"atari:{game}/noops=3,max_frames=8,action_repeat=1"
  batched = environments.make_batched(name, num_envs=8, seed=0)
  batched.reset()
  lengths, idle = np.zeros(8, int), []
  for _ in range(100):
    last = _step(batched, np.zeros(8, np.int32)).last
    lengths += 1
    idle += (8 - first_frame - lengths[last]).tolist()
    lengths[last] = 0
  counts = np.bincount(idle, minlength=4)
  assert counts[0] == 0 and len(counts) == 4 and counts.sum() > 90
  # Chances of a third each: ± 5 standard deviations.
  spread = 5 * np.sqrt(counts.sum() * 2 / 9)
  np.testing.assert_allclose(counts[1:], counts.sum() / 3, atol=spread)


def test_games_of_a_batch_differ_and_follow_the_seed():
  """In what sticks, which is all that is random here."""

  def play(seed):
    name = f"atari:Pong/{STILL},sticky=0.25"
    batched = environments.make_batched(name, num_envs=3, seed=seed)
    batched.reset()
    frames = [_step(batched, np.full(3, t % 6)).frames for t in range(30)]
    return [game.tobytes() for game in np.stack(frames, axis=1)]

  first = play(4)
  assert first == play(4)
  assert len({*first, *play(5)}) == 6


def test_one_game_ends_and_the_others_continue():
  name = f"atari:Breakout/{STILL},life_loss=true"
  batched = environments.make_batched(name, num_envs=2, seed=0)
  singles = [environments.make(name, seed=0) for _ in range(2)]
  batched.reset()
  for single in singles:
    single.reset()
  ends = np.zeros(2, int)
  for t in range(400):
    # The second one serves late, and loses its lives at other times.
    actions = np.array([t % 10 == 0, t > 60 and t % 10 == 0], np.int32)
    step = _step(batched, actions)
    for env, single in enumerate(singles):
      timestep = single.step(actions[env])
      assert step.last[env] == timestep.last()
      assert (env in step.metrics) == timestep.last()
      if timestep.last():
        ends[env] += 1
        assert step.metrics[env] == environments.episode_metrics(single)
        timestep = single.reset()
        np.testing.assert_array_equal(
          step.first_frames[env], timestep.observation[..., -1:]
        )
      else:
        np.testing.assert_array_equal(step.frames[env], timestep.observation[..., -1:])
  assert ends.min() > 5 and ends[0] != ends[1]
