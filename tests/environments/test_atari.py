"""Atari as the agents see it, against gymnasium's pre-processing."""

import gymnasium
import numpy as np
import pytest

pytest.importorskip("ale_py")
pytest.importorskip("cv2")

from gymnasium import wrappers

from explorax import environments
from explorax.environments import atari_adapter, encodings, specs

# Without idle frames and sticky actions, a game depends on nothing but the actions.
STILL = "noops=0"


def _actions(environment, steps, seed=0):
  rng = np.random.default_rng(seed)
  return rng.integers(environment.action_spec().num_values, size=steps)


def _ale(environment):
  return environment.raw.ale


@pytest.mark.parametrize(("game", "grey"), [("Breakout", False), ("MsPacman", True)])
def test_frames_and_rewards_are_those_of_gymnasiums_wrapper(game, grey):
  profile = "ngu" if grey else "rgb"
  ours = environments.make(f"atari:{game}/{profile},full_actions=false,{STILL}", seed=0)
  theirs = wrappers.AtariPreprocessing(
    gymnasium.make(
      f"ALE/{game}-v5",
      frameskip=1,
      repeat_action_probability=0.0,
      disable_env_checker=True,
    ),
    noop_max=0,
    screen_size=84 if grey else (160, 210),
    grayscale_obs=grey,
    grayscale_newaxis=grey,
  )
  expected, _ = theirs.reset(seed=0)
  np.testing.assert_array_equal(ours.reset().observation, expected)
  total, steps = 0.0, 0
  for action in _actions(ours, 1000):
    timestep = ours.step(action)
    expected, reward, terminated, truncated, _ = theirs.step(action)
    assert timestep.reward == reward and not truncated
    assert timestep.last() == terminated
    total, steps = total + reward, steps + 1
    if terminated:  # Theirs may show an older frame then.
      assert timestep.discount == 0.0
      break
    np.testing.assert_array_equal(timestep.observation, expected)
  assert total > 0 and steps > 50
  theirs.close()


def test_stacked_observations_are_the_last_four_and_zeros_before_the_first():
  single = environments.make("atari:Pong/ngu,full_actions=false", seed=3)
  stacked = environments.make("atari:Pong", seed=3)
  assert stacked.observation_spec() == specs.StackedFrames((84, 84, 4), np.uint8, 4)
  assert not isinstance(single.observation_spec(), specs.StackedFrames)
  for _ in range(2):  # The second episode starts with zeros again.
    frames = [np.zeros((84, 84), np.uint8)] * 3
    frames.append(single.reset().observation[:, :, 0])
    observation = stacked.reset().observation
    for action in _actions(single, 7):
      np.testing.assert_array_equal(observation, np.stack(frames[-4:], axis=-1))
      frames.append(single.step(action).observation[:, :, 0])
      observation = stacked.step(action).observation
    assert len({frame.tobytes() for frame in frames[3:]}) > 4  # The game moves.


def test_games_begin_with_one_to_thirty_idle_frames():
  environment = environments.make("atari:Pong/ngu", seed=0)
  frames = []
  for _ in range(60):
    environment.reset()
    frames.append(_ale(environment).getEpisodeFrameNumber())
  assert min(frames) >= 1 and max(frames) <= 30
  assert len(set(frames)) > 20
  environment = environments.make(f"atari:Pong/ngu,{STILL}", seed=0)
  environment.reset()
  assert _ale(environment).getEpisodeFrameNumber() == 0


def test_a_game_that_takes_too_long_is_truncated_and_bootstraps():
  environment = environments.make(f"atari:Pong/{STILL},max_frames=42", seed=0)
  for _ in range(2):
    timestep, steps = environment.reset(), 0
    while not timestep.last():
      timestep = environment.step(0)
      steps += 1
    assert steps == 11  # The 42nd frame is in the 11th step.
    assert timestep.discount == 1.0
  assert environment.step(0).first()
  rgb = environments.make(f"atari:Breakout/rgb,{STILL},max_frames=41", seed=0)
  rgb.reset()
  for _ in range(11):
    timestep = rgb.step(1)
  assert timestep.last()  # It shows the last screen.
  np.testing.assert_array_equal(timestep.observation, rgb.raw.render())
  by_default = environments.make("atari:Pong", seed=0)
  assert _ale(by_default).getInt("max_num_frames_per_episode") == 108_000


def _lose_a_life(environment, timestep):
  """Serves and waits; the sum of rewards, and the last timestep."""
  total = 0.0
  for step in range(300):
    before = _ale(environment).lives()
    timestep = environment.step(1 if step % 10 == 0 else 0)
    total += timestep.reward
    if timestep.last() or _ale(environment).lives() < before:
      return total, timestep
  raise AssertionError("no life was lost")


def test_a_lost_life_ends_the_episode_but_not_the_game():
  environment = environments.make("atari:Breakout/life_loss=true", seed=1)
  raw_total, frames, last = 0.0, 0, None
  for life in range(5):
    first = environment.reset()
    assert _ale(environment).lives() == 5 - life
    if life:  # The same game, from the screen that the last episode ended with.
      assert _ale(environment).getEpisodeFrameNumber() == frames
      np.testing.assert_array_equal(
        first.observation[:, :, 3], last.observation[:, :, 3]
      )
      assert not first.observation[:, :, :3].any()
    total, last = _lose_a_life(environment, first)
    raw_total += total
    frames = _ale(environment).getEpisodeFrameNumber()
    assert last.last() and last.discount == 0.0
    metrics = environments.episode_metrics(environment)
    assert set(metrics) == {"game_return", "game_over", "human_normalised"}
    assert metrics["game_return"] == raw_total
    assert metrics["game_over"] == (life == 4)
    # 1.7 points are random play's, 30.5 a human's.
    np.testing.assert_allclose(metrics["human_normalised"], (raw_total - 1.7) / 28.8)
  assert _ale(environment).game_over()
  environment.reset()
  assert _ale(environment).lives() == 5
  assert _ale(environment).getEpisodeFrameNumber() <= 30
  assert environments.episode_metrics(environment)["game_return"] == 0.0


def test_rooms_of_a_game_and_so_far():
  """Games of one room each but for the second, which enters one more."""
  environment = environments.make("atari:MontezumaRevenge/ngu", seed=0)
  counts = []
  for game in range(3):
    environment.reset()
    if game == 1:
      _ale(environment).setRAM(0x83 - 0x80, 3)
      environment.step(0)
    metrics = environments.episode_metrics(environment)
    counts.append((metrics["rooms"], metrics["rooms_so_far"]))
  assert counts == [(1, 1), (2, 2), (1, 2)]


def test_an_oracle_says_where_one_is_in_a_row_below_the_picture():
  name = f"atari:MontezumaRevenge/ngu,{STILL}"
  plain = environments.make(name, seed=0)
  environment = environments.make(f"{name},oracle=true", seed=0)
  spec = environment.observation_spec()
  assert spec == specs.ImageWithState((85, 84, 1), ("x", "y", "room", "keys"))
  assert encodings.make(spec).spec == spec
  expected, timestep = plain.reset(), environment.reset()
  for action in _actions(environment, 40):
    np.testing.assert_array_equal(
      spec.image(timestep.observation), expected.observation
    )
    ram = environment.raw.ram()
    x, y, room, keys = spec.state(timestep.observation)
    assert (x, y) == (ram[0xAA - 0x80], ram[0xAB - 0x80])
    assert (room, keys) == (1, 0)
    expected, timestep = plain.step(action), environment.step(action)


def test_rooms_are_counted_through_levels_and_keys_in_the_inventory():
  ram = np.zeros(128, np.uint8)
  ram[0xAA - 0x80], ram[0xAB - 0x80] = 77, 235
  ram[0x83 - 0x80], ram[0xB9 - 0x80] = 5, 2
  for inventory, keys in (
    (0b00000000, 0),
    (0b00000010, 1),
    (0b00010000, 1),
    (0b00011110, 4),
    (0b11100001, 0),  # A torch, two swords and a hammer.
    (0b11111111, 4),
  ):
    ram[0xC1 - 0x80] = inventory
    np.testing.assert_array_equal(
      atari_adapter.montezuma_state(ram), [77, 235, 24 * 2 + 5, keys]
    )
  ram[0xB9 - 0x80] = 200
  assert atari_adapter.montezuma_state(ram)[2] == 255
