"""An Atari 2600 game as a dm_env environment, through ale-py."""

from collections.abc import Callable
from typing import Any

import ale_py
import cv2
import dm_env
import numpy as np
from ale_py import roms

from explorax.environments import atari_profiles, specs

_RAM_START = 0x80  # The address of the console's first byte of memory.
# Badia et al. 2020, appendix I: the addresses of the player's position, room, level and
# inventory in Montezuma's Revenge; a level has 24 rooms.
_MONTEZUMA = "montezuma_revenge"
_MONTEZUMA_X = 0xAA
_MONTEZUMA_Y = 0xAB
_MONTEZUMA_ROOM = 0x83
_MONTEZUMA_LEVEL = 0xB9
_MONTEZUMA_ROOMS_PER_LEVEL = 24
_MONTEZUMA_INVENTORY = 0xC1
# The four bits for which the game draws a key. The paper says "bits {2, …, 6}": counted
# from 1, those are the keys and a sword; counted from 0, three keys and two swords.
_MONTEZUMA_KEYS = 0b00011110
ORACLE_ENTRIES = ("x", "y", "room", "keys")


class AtariEnvironment(dm_env.Environment):
  """A game, preprocessed by an `atari_profiles.Profile`.

  The end of a game terminates the episode; a game beyond `max_frames` is truncated
  (discount 1). With `life_loss`, a lost life also terminates; the next episode then
  continues the same game from the last screen.

  Attributes:
    ale: the emulator.
  """

  def __init__(self, game: str, profile: atari_profiles.Profile, *, seed: int):
    """Loads `game`, in snake case as ale-py names its ROM: `montezuma_revenge`.

    Raises:
      OSError: if its ROM is missing, or is not the one that ale-py expects.
      ValueError: if the profile needs an oracle and the game has none.
    """
    self._game = game
    self._profile = profile
    self._observation_spec = _observation_spec(game, profile)
    console_seed, noop_seed = np.random.SeedSequence(seed).generate_state(2)
    self._rng = np.random.default_rng(noop_seed)
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # No banner.
    self.ale = ale_py.ALEInterface()
    self.ale.setInt("random_seed", int(console_seed) % 2**31)
    self.ale.setFloat("repeat_action_probability", profile.sticky)
    self.ale.setInt("max_num_frames_per_episode", profile.max_frames)
    rom = roms.get_rom_path(game)
    assert rom is not None, game
    self.ale.loadROM(rom)
    self._actions = (
      self.ale.getLegalActionSet()
      if profile.full_actions
      else self.ale.getMinimalActionSet()
    )
    screen = self.ale.getScreenDims()
    if profile.grey:
      self._read_screen: Callable[[np.ndarray], Any] = self.ale.getScreenGrayscale
      self._screens = np.zeros((2, *screen), np.uint8)
    else:
      self._read_screen = self.ale.getScreenRGB
      self._screens = np.zeros((2, *screen, 3), np.uint8)
    self._resize = tuple(screen) != (profile.height, profile.width)
    self._picture = np.zeros(profile.shape, np.uint8)
    self._reset_next_step = True
    self._game_goes_on = False
    self._game_return = 0.0
    self._has_rooms = game == _MONTEZUMA
    self._rooms: set[int] = set()
    self._rooms_so_far: set[int] = set()

  def reset(self) -> dm_env.TimeStep:
    if not self._game_goes_on:
      self._begin_game()
    self._game_goes_on = False
    self._reset_next_step = False
    self._picture = np.zeros_like(self._picture)
    return dm_env.restart(self._observe())

  def step(self, action: Any) -> dm_env.TimeStep:
    if self._reset_next_step:
      return self.reset()
    if not 0 <= action < len(self._actions):
      raise ValueError(
        f"the action is {action}; this game's are 0 to {len(self._actions) - 1}."
      )
    lives = self.ale.lives()
    reward = self._repeat(self._actions[action])
    self._game_return += reward
    self._enter_room()
    observation = self._observe()
    if self.ale.game_over(with_truncation=False):
      self._reset_next_step = True
      return dm_env.termination(reward, observation)
    if self.ale.game_truncated():
      self._reset_next_step = True
      return dm_env.truncation(reward, observation)
    # A game may show 0 lives for some frames before it is over.
    if self._profile.life_loss and 0 < self.ale.lives() < lives:
      self._reset_next_step = self._game_goes_on = True
      return dm_env.termination(reward, observation)
    return dm_env.transition(reward, observation)

  def _begin_game(self) -> None:
    self.ale.reset_game()
    if self._profile.noops:
      for _ in range(self._rng.integers(1, self._profile.noops, endpoint=True)):
        self.ale.act(ale_py.Action.NOOP)
        if self.ale.game_over():
          self.ale.reset_game()
    self._read_screen(self._screens[1])
    self._screens[0] = self._screens[1]
    self._game_return = 0.0
    self._rooms = set()
    self._enter_room()

  def _repeat(self, action: ale_py.Action) -> float:
    """Acts for `action_repeat` frames or until the game ends; returns the reward."""
    reward = 0.0
    older_frame = False
    for frame in range(1, self._profile.action_repeat + 1):
      reward += self.ale.act(action)
      if self.ale.game_over():
        break
      if frame == self._profile.action_repeat - 1:
        self._read_screen(self._screens[0])
        older_frame = True
    self._read_screen(self._screens[1])
    if not older_frame:
      self._screens[0] = self._screens[1]
    return reward

  def _observe(self) -> np.ndarray:
    """Appends the maximum of the last two frames to the rest of the stack."""
    image = np.maximum(self._screens[0], self._screens[1])
    if self._resize:
      size = (self._profile.width, self._profile.height)
      image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    image = image.reshape(self._profile.height, self._profile.width, -1)
    if self._profile.stack > 1:
      channels = image.shape[-1]
      image = np.concatenate([self._picture[:, :, channels:], image], axis=-1)
    self._picture = image
    if isinstance(self._observation_spec, specs.ImageWithState):
      return self._observation_spec.join(image, montezuma_state(self.ram()))
    return image

  def _enter_room(self) -> None:
    if self._has_rooms:
      room = montezuma_room(self.ram())
      self._rooms.add(room)
      self._rooms_so_far.add(room)

  def ram(self) -> np.ndarray:
    """The console's memory: uint8 `[128]`, entry i being address 0x80 + i."""
    return self.ale.getRAM()

  def render(self) -> np.ndarray:
    """The screen: uint8 `[210, 160, 3]` (250 rows for a few games)."""
    return self.ale.getScreenRGB()

  def episode_metrics(self) -> dict[str, float]:
    """The metrics of `Profile.episode_metrics`, and rooms for Montezuma's Revenge.

    `rooms` and `rooms_so_far`: number of different rooms visited in this game, and
    since the environment was made.
    """
    metrics = self._profile.episode_metrics(
      self._game, self._game_return, not self._game_goes_on
    )
    if self._has_rooms:
      metrics["rooms"] = float(len(self._rooms))
      metrics["rooms_so_far"] = float(len(self._rooms_so_far))
    return metrics

  def observation_spec(self) -> dm_env.specs.Array:
    return self._observation_spec

  def action_spec(self) -> dm_env.specs.DiscreteArray:
    return dm_env.specs.DiscreteArray(len(self._actions), np.int32, "action")


def montezuma_room(ram: np.ndarray) -> int:
  """The room of Montezuma's Revenge: room + 24 · level (appendix I of Badia et al.)."""
  room = int(ram[_MONTEZUMA_ROOM - _RAM_START])
  return room + _MONTEZUMA_ROOMS_PER_LEVEL * int(ram[_MONTEZUMA_LEVEL - _RAM_START])


def montezuma_state(ram: np.ndarray) -> np.ndarray:
  """The player's state in Montezuma's Revenge (appendix I of Badia et al., I.3).

  uint8 `[4]`: the player's x and y in pixels, y upwards, `montezuma_room`, and the
  number of keys in the inventory. Room numbers above 255 are clipped to 255.
  """
  x, y, inventory = (
    int(ram[address - _RAM_START])
    for address in (_MONTEZUMA_X, _MONTEZUMA_Y, _MONTEZUMA_INVENTORY)
  )
  keys = (inventory & _MONTEZUMA_KEYS).bit_count()
  return np.array([x, y, min(montezuma_room(ram), 255), keys], np.uint8)


def _observation_spec(game: str, profile: atari_profiles.Profile) -> dm_env.specs.Array:
  if not profile.oracle:
    return profile.observation_spec()
  if game != _MONTEZUMA:
    raise ValueError(
      "oracle=true shows the player's position, room and keys, read from the console's "
      f"memory, and where {game!r} has them there is unknown; leave it at false, or "
      "play MontezumaRevenge."
    )
  height, width, channels = profile.shape
  return specs.ImageWithState((height + 1, width, channels), ORACLE_ENTRIES, "screen")
