"""Atari games by name."""

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from explorax.environments import atari57, atari_profiles, errors, standard

if TYPE_CHECKING:
  from explorax.environments import atari_vector

# Played by Munos et al. 2016 beside Atari-57 (table 2): 60 games together.
MORE_GAMES = ("carnival", "elevator_action", "pooyan")
# For two players only: ale-py loads none of them, and ends the process on Combat.
_TWO_PLAYERS = ("combat", "joust", "maze_craze", "warlords")


def load(name: str, *, seed: int) -> standard.StandardEnvironment:
  """Makes the game `Game`, `Game/profile` or `Game/profile,field=value,…`.

  Raises:
    ValueError: if there is no such game, profile or field, its value is impossible,
      or a package or the game's ROM is missing.
  """
  rom, profile = _checked(name)
  from explorax.environments import atari_adapter

  with _rom_errors(name):
    environment = atari_adapter.AtariEnvironment(rom, profile, seed=seed)
  # Each observation is a new array.
  return standard.StandardEnvironment(environment, copy=False)


def load_batched(
  name: str, *, num_envs: int, seed: int
) -> "atari_vector.AtariVectorEnvironment":
  """Makes the game so many times, as one environment that steps all of them.

  Raises:
    ValueError: as `load`, or if the profile asks for what such an environment lacks.
  """
  rom, profile = _checked(name)
  from explorax.environments import atari_vector

  with _rom_errors(name):
    return atari_vector.AtariVectorEnvironment(
      rom, profile, num_envs=num_envs, seed=seed
    )


def _checked(name: str) -> tuple[str, atari_profiles.Profile]:
  """The ROM's name and the profile, the packages being there."""
  game, profile = atari_profiles.parse(name)
  try:
    from explorax.environments import atari_adapter  # noqa: F401
  except ImportError as error:
    raise ValueError(
      f"'atari:{name}' needs packages that cannot be imported here ({error}); install "
      "the extra 'atari', as in pip install 'explorax[atari]'."
    ) from error
  return _find(game), profile


@contextlib.contextmanager
def _rom_errors(name: str) -> Iterator[None]:
  """Makes a sentence of what goes wrong with a ROM."""
  try:
    yield
  except OSError as error:
    game, _ = atari_profiles.parse(name)
    raise ValueError(
      f"the ROM of 'atari:{game}' cannot be read: {_one_line(error)}; "
      + (
        "put it into the folder that ALE_ROMS_DIR names, or unset that variable."
        if "ALE_ROMS_DIR" in os.environ
        else "install ale-py again, whose wheel holds it."
      )
    ) from error


def names() -> list[str]:
  """The 60 games of the papers, as environments are named."""
  games = sorted([*atari57.references(), *MORE_GAMES])
  return [f"atari:{atari_profiles.camel_case(game)}" for game in games]


def list_games() -> list[tuple[str, str]]:
  """(name, description) of the profiles and the games, for `--env=atari:…`."""
  rows = [
    (
      f"atari:<Game>/{name}",
      atari_profiles.describe(profile)
      + (" (the default)" if name == atari_profiles.DEFAULT else ""),
    )
    for name, profile in atari_profiles.PROFILES.items()
  ]
  example = "atari:<Game>/ngu,sticky=0.25,life_loss=true"
  fields = ", ".join(vars(atari_profiles.PROFILES[atari_profiles.DEFAULT]))
  games = ", ".join(name.removeprefix("atari:") for name in names())
  return [
    *rows,
    (example, f"a profile with other settings; they are {fields}"),
    ("atari:<Game>", f"{games}; any other that ale-py has"),
  ]


def _find(game: str) -> str:
  """The ROM's name of a game in camel case."""
  from ale_py import roms

  known = {
    atari_profiles.camel_case(rom): rom
    for rom in roms.get_all_rom_ids()
    if rom not in _TWO_PLAYERS
  }
  if game in known:
    return known[game]
  if game in map(atari_profiles.camel_case, _TWO_PLAYERS):
    raise ValueError(
      f"'atari:{game}' is for two players only, which ale-py cannot play with an agent "
      "alone; choose another game."
    )
  plain = {name.lower(): name for name in known}
  wanted = game.replace("_", "").replace(" ", "").replace("-", "").lower()
  near = errors.did_you_mean(
    wanted, plain, "; games are named as in 'atari:MontezumaRevenge'."
  )
  for lower, name in plain.items():
    near = near.replace(repr(lower), f"'atari:{name}'")
  raise ValueError(f"there is no Atari game 'atari:{game}'{near}")


def _one_line(error: OSError) -> str:
  return " ".join(str(error).split()).rstrip(".!")
