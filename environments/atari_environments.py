"""Atari games by name."""

from explorax import notation
from explorax.environments import atari57, atari_profiles, batched_types, standard

# For two players only: ale-py loads none of them, and ends the process on Combat.
_TWO_PLAYERS = ("combat", "joust", "maze_craze", "warlords")


def load(name: str, *, seed: int) -> standard.StandardEnvironment:
  """Makes the game `Game`, `Game/profile` or `Game/profile,field=value,…`.

  Raises:
    ValueError: if there is no such game, profile or field, or its value is impossible.
    ImportError, OSError: if a package of the extra `atari` or the game's ROM is
      missing.
  """
  game, profile = atari_profiles.parse(name)
  from explorax.environments import atari_adapter  # noqa: PLC0415  # Imports ale-py.

  environment = atari_adapter.AtariEnvironment(_rom_of(game), profile, seed=seed)
  return standard.StandardEnvironment(environment)


def load_batched(
  name: str, *, num_envs: int, seed: int
) -> batched_types.BatchedEnvironment:
  """Makes several copies of the game as one environment that steps all of them."""
  game, profile = atari_profiles.parse(name)
  from explorax.environments import atari_vector  # noqa: PLC0415  # Imports ale-py.

  return atari_vector.AtariVectorEnvironment(
    _rom_of(game), profile, num_envs=num_envs, seed=seed
  )


def names() -> list[str]:
  """The names of the papers' 60 games."""
  games = sorted([*atari57.references(), *atari57.BEYOND])
  return [f"atari:{atari_profiles.camel_case(game)}" for game in games]


def list_games() -> list[tuple[str, str]]:
  """(name, description) of kinds of preprocessing and games, for `--env=atari:…`."""
  fields = ", ".join(vars(atari_profiles.PROFILES[atari_profiles.DEFAULT]))
  games = ", ".join(name.removeprefix("atari:") for name in names())
  return [
    *(
      (f"atari:<Game>/{name}", atari_profiles.describe(profile))
      for name, profile in atari_profiles.PROFILES.items()
    ),
    ("atari:<Game>/ngu,sticky=0.25", f"with other settings; they are {fields}"),
    ("atari:<Game>/sticky=0.25", "the agent's own preprocessing with another setting"),
    ("atari:<Game>", f"{games}; any other that ale-py has"),
  ]


def _rom_of(game: str) -> str:
  """The ROM's name of a game in camel case."""
  from ale_py import roms  # noqa: PLC0415

  games = sorted({*roms.get_all_rom_ids()} - {*_TWO_PLAYERS})
  known = {atari_profiles.camel_case(rom): rom for rom in games}
  if game in known:
    return known[game]
  near = notation.nearest(game.replace("_", ""), known) or " Try MontezumaRevenge."
  raise ValueError(f"there is no Atari game 'atari:{game}' for one player.{near}")
