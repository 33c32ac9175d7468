"""The index of a sweep, `sweep.json`: its commands, and all runs that it asked for."""

import datetime
import json
import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from explorax.experiments import errors, output

NAME = "sweep.json"


class Entry(NamedTuple):
  """A run that a sweep asks for.

  Attributes:
    path: of its directory, within that of the sweep.
    agent: a preset with its settings, or `module:function`.
    env: the environment.
    seed: the seed.
    left_out: why it does not run, in a few words; '' if it does.
  """

  path: str
  agent: str
  env: str
  seed: int
  left_out: str = ""


class Index(NamedTuple):
  """The content of `sweep.json`."""

  commands: list[str]
  runs: list[Entry]


def read(directory: pathlib.Path) -> Index:
  """The index of a directory; an empty one without the file.

  Raises:
    SetUpError: if it is invalid.
  """
  try:
    content = json.loads((directory / NAME).read_text(encoding="utf-8"))
    entries = [Entry(**entry) for entry in content["runs"]]
    return Index(content["commands"], entries)
  except FileNotFoundError:
    return Index([], [])
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise errors.SetUpError(
      f"{directory / NAME} is invalid (damaged, or from another version); delete it, "
      "and run the sweep's command again to rewrite it."
    ) from error


def add(directory: output.RunDirectory, command: str, runs: Iterable[Entry]) -> None:
  """Adds a command and its runs to the index.

  Raises:
    OutputError: if it cannot be written.
  """
  before = read(directory.path)
  entries = {entry.path: entry for entry in (*before.runs, *runs)}
  content: dict[str, Any] = {
    "commands": [*before.commands, command],
    "written": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    "runs": [entry._asdict() for entry in entries.values()],
  }
  directory.write_json(NAME, content)
