"""Atari games by name."""

import os
from collections.abc import Callable
from typing import Any

from explorax import environments, notation
from explorax.environments import (
  atari57,
  atari_profiles,
  batched_types,
  standard,
)

# For two players only: ale-py loads none of them, and ends the process on Combat.
_TWO_PLAYERS = ("combat", "joust", "maze_craze", "warlords")


def load(name: str, *, seed: int) -> standard.StandardEnvironment:
  """Makes the game `Game`, `Game/profile` or `Game/profile,field=value,…`.

  Raises:
    ValueError: if there is no such game, profile or field, its value is impossible,
      or a package or the game's ROM is missing.
  """
  return standard.StandardEnvironment(
    _make(name, lambda: environments.atari_adapter.AtariEnvironment, seed=seed)
  )


def load_batched(
  name: str, *, num_envs: int, seed: int
) -> batched_types.BatchedEnvironment:
  """Makes several copies of the game as one environment that steps all of them."""
  arguments = {"num_envs": num_envs, "seed": seed}
  return _make(
    name, lambda: environments.atari_vector.AtariVectorEnvironment, **arguments
  )


def _make(name: str, find_class: Callable[[], Any], **arguments: int) -> Any:
  """The class, of the ROM's name and the profile, with one-sentence errors."""
  game, profile = atari_profiles.parse(name)
  try:
    return find_class()(_find(game), profile, **arguments)
  except ImportError as error:
    raise ValueError(
      f"'atari:{name}' needs packages that cannot be imported here ({error}); install "
      "the extra 'atari': pip install 'explorax[atari]'."
    ) from error
  except OSError as error:
    raise ValueError(
      f"the ROM of 'atari:{game}' cannot be read: "
      + " ".join(str(error).split()).rstrip(".!")
      + (
        "; put it into the folder of ALE_ROMS_DIR, or unset that variable."
        if "ALE_ROMS_DIR" in os.environ
        else "; reinstall ale-py, whose wheel contains it."
      )
    ) from error


def names() -> list[str]:
  """The names of the papers' 60 games."""
  games = sorted([*atari57.references(), *atari57.BEYOND])
  return [f"atari:{atari_profiles.camel_case(game)}" for game in games]


def list_games() -> list[tuple[str, str]]:
  """(name, description) of kinds of preprocessing and games, for `--env=atari:…`."""
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
    (example, f"preprocessing by name, with other settings; they are {fields}"),
    ("atari:<Game>/sticky=0.25", "the agent's own preprocessing with another setting"),
    ("atari:<Game>", f"{games}; any other that ale-py has"),
  ]


def _find(game: str) -> str:
  """The ROM's name of a game in camel case."""
  known = {
    atari_profiles.camel_case(rom): rom
    for rom in environments.atari_adapter.roms.get_all_rom_ids()
    if rom not in _TWO_PLAYERS
  }
  if game in known:
    return known[game]
  if game in map(atari_profiles.camel_case, _TWO_PLAYERS):
    raise ValueError(
      f"'atari:{game}' is for two players, which ale-py does not support for one "
      "agent; choose another game."
    )
  near = notation.nearest(game.replace("_", ""), known) or " Try MontezumaRevenge."
  raise ValueError(f"there is no Atari game 'atari:{game}'.{near}")
