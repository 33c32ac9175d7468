"""The preprocessing of Atari games in the papers, and the names of environments."""

import dataclasses

import dm_env
import numpy as np

from explorax import notation, ranges
from explorax.environments import atari57, settings, specs


@dataclasses.dataclass(frozen=True)
class Profile(ranges.Checked):
  """The preprocessing of a game's frames and of an agent's actions.

  Frames are the emulator's, 60 per second. In every profile an action is repeated, the
  last two frames of the repeat are joined by their maximum (because sprites flicker),
  and an observation is uint8 `[height, width, channels · stack]`, newest channels last,
  with zeros for frames before the episode.
  """

  # Pixels; the screen's own are 210 (250 for a few games) ...
  height: ranges.PositiveInt
  width: ranges.PositiveInt  # ... by 160.
  grey: bool  # One channel of luminance, else three: red, green, blue.
  stack: ranges.PositiveInt  # Observations joined into one.
  action_repeat: ranges.PositiveInt = 4  # Frames.
  # A game starts with 1 to this many idle frames; 0: with none.
  noops: ranges.NonNegativeInt = 30
  full_actions: bool = False  # The console's 18 actions, else those the game uses.
  max_frames: ranges.PositiveInt = 108_000  # Frames until truncation; 30 minutes.
  life_loss: bool = False  # A lost life ends the episode; the game continues.
  # ζ: probability per frame of repeating the last action (commonly 0.25).
  sticky: ranges.BelowOne = 0.0
  # Whether a row of pixels below the picture contains the player's state, from the
  # console's memory; only for Montezuma's Revenge. See `specs.ImageWithState`.
  oracle: bool = False

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.noops + self.action_repeat > self.max_frames:
      raise ValueError(
        f"max_frames is {self.max_frames}, which the first step may reach after up to "
        f"{self.noops} idle frames; raise it."
      )

  @property
  def shape(self) -> tuple[int, int, int]:
    """Of the picture."""
    return self.height, self.width, self.stack * (1 if self.grey else 3)

  def observation_spec(self) -> dm_env.specs.Array:
    """Of the picture, without an oracle's row."""
    if self.stack > 1:
      return specs.StackedFrames(self.shape, np.uint8, self.stack, "screen")
    return dm_env.specs.Array(self.shape, np.uint8, "screen")

  def episode_metrics(
    self, game: str, game_return: float, is_over: bool
  ) -> dict[str, float]:
    """Further results of an episode, for a game in snake case.

    `human_normalised` for the games of Atari-57: the game's return so far, where 0 is
    random play and 1 a human (`atari57.human_normalised_score`). With `life_loss`,
    `game_return` is the return of the whole game so far, and `game_over` is 1 if the
    game has ended with the episode, else 0.
    """
    metrics = {}
    if game in atari57.references():
      score = atari57.human_normalised_score(game, game_return)
      metrics["human_normalised"] = score
    if self.life_loss:
      metrics["game_return"] = game_return
      metrics["game_over"] = float(is_over)
    return metrics


PROFILES = {
  # Mnih et al. 2015 ("Preprocessing", "Training details"); Chen et al. 2017, table 1.
  # With life_loss=true: Rainbow and its variants (Hessel et al. 2018, table 3, which
  # Dabney et al. 2021 take over, with sticky=0.25 in appendix E), and Munos et al. 2016
  # (appendix F).
  "dqn": Profile(height=84, width=84, grey=True, stack=4),
  # Badia et al. 2020, table 8.
  "ngu": Profile(height=84, width=84, grey=True, stack=1, full_actions=True),
  # R2D2 in Dabney et al. 2021, appendix C ("without frame-stacking, and at their
  # original resolution of 210 × 160 and in full RGB"); the action set is not named
  # there, and is that of R2D2 in Badia et al. 2020 (table 8).
  "rgb": Profile(height=210, width=160, grey=False, stack=1, full_actions=True),
}
DEFAULT = "dqn"


def parse(name: str) -> tuple[str, Profile]:
  """The game and the profile of `Pong/ngu,sticky=0.25,life_loss=true`.

  The profile's name and its fields may be left out.

  Raises:
    ValueError: if there is no such profile or field, or its value is impossible.
  """
  game, slash, rest = name.partition("/")
  full = f"atari:{name}"
  items = rest.split(",") if slash else []
  profile = DEFAULT
  if items and "=" not in items[0]:
    profile, *items = items
  if profile not in PROFILES:
    near = notation.nearest(profile, PROFILES) or f" There are {', '.join(PROFILES)}."
    raise ValueError(f"{full!r} names the unknown preprocessing {profile!r}.{near}")
  defaults = dataclasses.asdict(PROFILES[profile])
  try:
    return game, Profile(**settings.parse(items, defaults))  # type: ignore[arg-type]
  except ValueError as error:
    raise ValueError(f"{full!r}: {error}") from error


def complete(name: str, default: str) -> str:
  """The name with an agent's profile, in which the name's own fields are changed.

  `Pong/sticky=0.25` of an agent whose profile is `dqn,life_loss=true` is
  `Pong/dqn,life_loss=true,sticky=0.25`. A name with a profile stays as it is.
  """
  game, slash, rest = name.partition("/")
  items = rest.split(",") if slash else []
  if items and "=" not in items[0]:
    return name
  changed = {item.partition("=")[0] for item in items}
  defaults = [x for x in default.split(",") if x.partition("=")[0] not in changed]
  return f"{game}/{','.join([*defaults, *items])}"


def describe(profile: Profile) -> str:
  """A one-line description."""
  image = "grey" if profile.grey else "RGB"
  stacked = f", {profile.stack} stacked" if profile.stack > 1 else ""
  actions = "all actions" if profile.full_actions else "the game's own actions"
  return f"{profile.height}×{profile.width} {image}{stacked}, {actions}"


def camel_case(game: str) -> str:
  """`montezuma_revenge` → `MontezumaRevenge`, as environments are named."""
  return "".join(part.capitalize() for part in game.split("_"))
