"""Several copies of an Atari 2600 game, stepped in C++ threads by ale-py."""

import pathlib

import ale_py
import dm_env
import numpy as np
from ale_py import roms

from explorax.environments import atari_profiles, batched_types

_LARGEST_SEED = 2**31 - 2


class AtariVectorEnvironment:
  """`num_envs` copies of a game, preprocessed by an `atari_profiles.Profile`.

  A `batched_types.BatchedEnvironment`: the batched form of
  `atari_adapter.AtariEnvironment`, on ale-py's `AtariVectorEnv`. It differs in three
  things:

  - The frame that ends a game is not observed: the last observation, which is never
    bootstrapped, is the one before, unless that frame is an action's last one.
  - The repeated action that reaches `max_frames` is completed.
  - There is no access to the console's memory: no oracle, and no rooms among the
    metrics of Montezuma's Revenge.

  As there, a lost life is noticed after the repeated action; the next episode starts on
  the same screen.
  """

  def __init__(
    self, game: str, profile: atari_profiles.Profile, *, num_envs: int, seed: int
  ):
    """Loads `num_envs` copies of `game`, as in `AtariEnvironment`.

    Each has its own stream of idle frames and sticky actions. A ValueError for
    `num_envs` below 1, and for a profile with an oracle.
    """
    if num_envs < 1:
      raise ValueError(f"num_envs is {num_envs}; it must be at least 1.")
    if profile.oracle:
      raise ValueError(
        "oracle=true shows the player's position, room and keys, which are in the "
        "console's memory, to which batched games give no access; leave it at false, "
        "or use the local runner."
      )
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # No banner.
    self._profile = profile
    self._num_envs = num_envs
    self._game = game
    self._games = ale_py.AtariVectorEnv(
      game,
      num_envs,
      # Far beyond the limit, which is checked here: ale-py does not count idle frames.
      max_num_frames_per_episode=profile.max_frames + profile.action_repeat,
      repeat_action_probability=profile.sticky,
      full_action_space=profile.full_actions,
      autoreset_mode="SameStep",
      img_height=profile.height,
      img_width=profile.width,
      grayscale=profile.grey,
      stack_num=1,
      frameskip=profile.action_repeat,
      # From 0 to one less; games that draw 0 restart, see `_begin_games`.
      noop_max=profile.noops + 1,
      reward_clipping=False,
      use_fire_reset=False,
    )
    seeds = np.random.SeedSequence(seed).generate_state(num_envs)
    # 0 would mean none.
    self._seeds: np.ndarray | None = (seeds % _LARGEST_SEED + 1).astype(np.int64)
    rom = roms.get_rom_path(game)
    assert rom is not None, game
    self._first_frame = _first_frame(rom)
    self._lives = np.zeros(num_envs, np.int32)
    self._game_returns = np.zeros(num_envs, np.float64)

  @property
  def num_envs(self) -> int:
    return self._num_envs

  def observation_spec(self) -> dm_env.specs.Array:
    return self._profile.observation_spec()

  def action_spec(self) -> dm_env.specs.DiscreteArray:
    num_actions = len(self._games.ale.get_action_set())
    return dm_env.specs.DiscreteArray(num_actions, np.int32, "action")

  def reset(self) -> np.ndarray:
    """Starts new games in all copies; the first reset seeds them."""
    seeds, self._seeds = self._seeds, None
    screens, info = self._games.reset(seed=seeds)
    screens, info = self._draw_idle_frames(np.array(True), screens, info)
    self._lives = info["lives"]
    self._game_returns[:] = 0.0
    return self._frames(screens)

  def send(self, actions: np.ndarray) -> None:
    self._games.send(np.asarray(actions, np.int32))

  def recv(self) -> batched_types.Step:
    screens, reward, over, _, info = self._games.recv()
    self._game_returns += reward
    too_long = ~over & (info["episode_frame_number"] >= self._profile.max_frames)
    ended = over | too_long
    # A game may show 0 lives for some frames before it is over.
    lost = ~ended & (info["lives"] > 0) & (info["lives"] < self._lives)
    lost &= self._profile.life_loss
    last = ended | lost
    metrics = {
      int(env): self._profile.episode_metrics(
        self._game, float(self._game_returns[env]), bool(ended[env])
      )
      for env in np.flatnonzero(last)
    }
    frames = self._frames(screens)
    if over.any():
      final = self._frames(info["final_obs"])
      frames = np.where(over[:, None, None, None], final, frames)
    first_frames = None
    if ended.any():
      if too_long.any():
        screens, info = self._games.reset(options={"reset_mask": too_long})
      screens, info = self._draw_idle_frames(ended, screens, info)
      first_frames = self._frames(screens)
      self._game_returns[ended] = 0.0
    elif lost.any():
      first_frames = frames
    self._lives = info["lives"]
    return batched_types.Step(
      reward=reward.astype(np.float32),
      discount=np.where(over | lost, 0.0, 1.0).astype(np.float32),
      last=last,
      frames=frames,
      first_frames=first_frames,
      metrics=metrics,
    )

  def close(self) -> None:
    """Does nothing: the threads end with the object."""

  def _draw_idle_frames(
    self, begun: np.ndarray, screens: np.ndarray, info: dict[str, np.ndarray]
  ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Restarts games that started without the required idle frames."""
    while self._profile.noops:
      mask = begun & (info["episode_frame_number"] == self._first_frame)
      if not mask.any():
        break
      screens, info = self._games.reset(options={"reset_mask": mask})
    return screens, info

  def _frames(self, screens: np.ndarray) -> np.ndarray:
    """ale-py's `[E, 1, H, W]` or `[E, 1, H, W, 3]` as `[E, H, W, channels]`."""
    height, width, channels = self._profile.shape
    channels //= self._profile.stack
    return screens.reshape(self._num_envs, height, width, channels)


def _first_frame(rom: pathlib.Path) -> int:
  """A game's first frame: 0, but 20 in Berzerk, where a button is pressed first."""
  ale = ale_py.ALEInterface()
  ale.loadROM(rom)
  ale.reset_game()
  return ale.getEpisodeFrameNumber()
