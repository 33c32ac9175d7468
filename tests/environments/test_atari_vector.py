"""Games side by side, against one game alone."""

import numpy as np
import pytest

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

from explorax import environments
from explorax.environments import atari_profiles, batched_types, specs

STILL = "noops=0"


def _step(batched, actions):
  batched.send(actions)
  return batched.recv()


@pytest.mark.parametrize(
  ("name", "num_steps", "min_ends"),
  [
    (f"MontezumaRevenge/ngu,{STILL},life_loss=true", 250, 1),
    (f"Breakout/{STILL},life_loss=true", 200, 3),
    (f"Pong/{STILL},max_frames=42", 40, 3),
    (f"Pong/{STILL},action_repeat=1,max_frames=20", 45, 2),
  ],
)
def test_each_step_is_that_of_games_alone(name, num_steps, min_ends):
  singles = [environments.make(f"atari:{name}", seed=0) for _ in range(2)]
  batched = environments.make_batched(f"atari:{name}", num_envs=2, seed=0)
  assert isinstance(batched, batched_types.BatchedEnvironment)
  assert environments.spec(batched) == environments.spec(singles[0])
  spec, repeat = batched.observation_spec(), atari_profiles.parse(name)[1].action_repeat

  def newest(timestep):
    return timestep.observation[..., -(spec.shape[-1] // specs.num_frames(spec)) :]

  frames = batched.reset()
  np.testing.assert_array_equal(frames, [newest(x.reset()) for x in singles])
  rng, ends, rewards, alone = np.random.default_rng(1), np.zeros(2, int), 0.0, False
  for _ in range(num_steps):
    actions = rng.integers(batched.action_spec().num_values, size=2)
    so_far = [single.raw.ale.getEpisodeFrameNumber() for single in singles]
    before, step = frames, _step(batched, actions)
    frames = step.frames.copy()
    assert step.reward.dtype == step.discount.dtype == np.float32
    assert (step.first_frames is None) == (not step.last.any())
    rewards, alone = rewards + abs(step.reward).sum(), alone or step.last.sum() == 1
    for env, single in enumerate(singles):
      timestep, ale = single.step(actions[env]), single.raw.ale
      assert step.reward[env] == timestep.reward
      assert step.discount[env] == timestep.discount
      assert step.last[env] == timestep.last() == (env in step.metrics)
      if not timestep.last():
        np.testing.assert_array_equal(frames[env], newest(timestep))
        continue
      ends[env] += 1
      metrics = environments.episode_metrics(single).items()
      expected = {k: v for k, v in metrics if k not in ("rooms", "rooms_so_far")}
      assert step.metrics[env] == expected
      if ale.game_over(with_truncation=False):  # In a frame that is not shown.
        if ale.getEpisodeFrameNumber() - so_far[env] < repeat:
          np.testing.assert_array_equal(frames[env], before[env])
      elif "max_frames=42" not in name:  # Whose last action goes beyond its limit.
        np.testing.assert_array_equal(frames[env], newest(timestep))
      frames[env] = step.first_frames[env]
      np.testing.assert_array_equal(frames[env], newest(single.reset()))
  assert ends.min() >= min_ends
  assert alone or "max_frames" in name
  assert rewards > 0 or "Breakout" not in name
  batched.close()


@pytest.mark.parametrize(("game", "first_frame"), [("Pong", 0), ("Pooyan", 1)])
def test_games_begin_with_one_to_so_many_idle_frames(game, first_frame):
  """Every frame is a step here: an episode is as short as its idle frames are many."""
  name = f"atari:{game}/noops=3,max_frames=8,action_repeat=1"
  batched = environments.make_batched(name, num_envs=2, seed=0)
  batched.reset()
  lengths, idle = np.zeros(2, int), []
  for _ in range(200):
    last = _step(batched, np.zeros(2, np.int32)).last
    lengths += 1
    idle += (8 - first_frame - lengths[last]).tolist()
    lengths[last] = 0
  counts = np.bincount(idle, minlength=4)
  assert counts[0] == 0 and len(counts) == 4 and counts.sum() > 50
  # Chances of a third each: ± 5 standard deviations.
  spread = 5 * np.sqrt(counts.sum() * 2 / 9)
  np.testing.assert_allclose(counts[1:], counts.sum() / 3, atol=spread)


def test_games_of_a_batch_differ_and_follow_the_seed():
  """In what sticks, which is all that is random here."""

  def play(seed):
    name = f"atari:Pong/{STILL},sticky=0.25"
    batched = environments.make_batched(name, num_envs=2, seed=seed)
    batched.reset()
    frames = [_step(batched, np.full(2, t % 6)).frames for t in range(30)]
    return [game.tobytes() for game in np.stack(frames, axis=1)]

  first = play(4)
  assert first == play(4)
  assert len({*first, *play(5)}) == 4
