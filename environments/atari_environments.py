"""Atari games by name."""

import os

from explorax.environments import atari57, atari_profiles, errors, standard

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
  game, profile = atari_profiles.parse(name)
  try:
    from explorax.environments import atari_adapter
  except ImportError as error:
    raise ValueError(
      f"'atari:{name}' needs packages that cannot be imported here ({error}); install "
      "the extra 'atari', as in pip install 'explorax[atari]'."
    ) from error
  rom = _find(game)
  try:
    environment = atari_adapter.AtariEnvironment(rom, profile, seed=seed)
  except OSError as error:
    raise ValueError(
      f"the ROM of 'atari:{game}' cannot be read: {_one_line(error)}; "
      + (
        "put it into the folder that ALE_ROMS_DIR names, or unset that variable."
        if "ALE_ROMS_DIR" in os.environ
        else "install ale-py again, whose wheel holds it."
      )
    ) from error
  # Each observation is a new array.
  return standard.StandardEnvironment(environment, copy=False)


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
