"""Whether a command may resume the run in a directory, and whether it is finished."""

import datetime
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from explorax.experiments import config, errors, output

# Different versions of these may change the numbers.
_ARITHMETIC = ("jax", "jaxlib", "dm-haiku", "optax", "numpy")

_LIMITS = ("episodes", "steps")


def check_same(
  directory: output.RunDirectory,
  recorded: Mapping[str, Any],
  requested: Mapping[str, Any],
) -> None:
  """Refuses to resume a run with different settings, except for a later end.

  Args:
    directory: of the run.
    recorded: the run's config.json.
    requested: the command's config.json.

  Raises:
    OutputError: listing the settings that differ.
  """
  differing = list(_differences("", _deciding(recorded), _deciding(requested)))
  for name in _LIMITS:
    if _limit(requested, name) < _limit(recorded, name):
      differing.extend(_differences(name, recorded.get(name), requested.get(name)))
  if differing:
    more = f" and {len(differing) - 5} more" if len(differing) > 5 else ""
    raise errors.OutputError(
      f"--output={directory.given} already holds a run with other settings: "
      f"{'; '.join(differing[:5])}{more}. Choose another --output for a new run; or "
      f"resume that one with --config={directory.given / 'config.json'} "
      f"--output={directory.given}."
    )


def is_extended(recorded: Mapping[str, Any], requested: Mapping[str, Any]) -> bool:
  """Whether the command asks for a later end than the run had."""
  return any(_limit(requested, name) > _limit(recorded, name) for name in _LIMITS)


def is_finished(directory: output.RunDirectory) -> bool:
  """Whether the run in the directory is finished."""
  try:
    text = (directory.path / "summary.json").read_text(encoding="utf-8")
    return json.loads(text)["status"] == "finished"
  except (OSError, ValueError, KeyError, TypeError):
    return False


def other_versions(
  recorded: Mapping[str, Any], requested: Mapping[str, Any]
) -> list[str]:
  """`jax 0.4.34, now 0.5.0`, for each computing package whose version changed."""
  now = requested["versions"]["packages"]
  then = recorded.get("versions", {}).get("packages", {})
  return [
    f"{name} {then.get(name)}, now {now.get(name)}"
    for name in _ARITHMETIC
    if then.get(name) != now.get(name)
  ]


def resumed_record(
  recorded: Mapping[str, Any], requested: Mapping[str, Any], env_steps: int
) -> dict[str, Any]:
  """The config.json of a resumed run: its own, with the time added.

  The limits and what else cannot change a result are those of the command.
  """
  time = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
  now = {"at": time, "env_steps": env_steps, "versions": requested["versions"]}
  free = config.free(requested)
  return {**recorded, **free, "resumed": [*recorded.get("resumed", []), now]}


def _limit(record: Mapping[str, Any], name: str) -> float:
  value = record.get(name)
  return math.inf if value is None else value


def _deciding(record: Mapping[str, Any]) -> dict[str, Any]:
  """The settings as JSON stores them: tuples as lists, non-finite numbers as null."""
  return json.loads(json.dumps(output.finite(config.fixed(record))))


def _differences(name: str, recorded: Any, requested: Any) -> Iterator[str]:
  if isinstance(recorded, dict) and isinstance(requested, dict):
    for key in dict.fromkeys((*recorded, *requested)):
      inner = f"{name}.{key}" if name else key
      yield from _differences(inner, recorded.get(key), requested.get(key))
  elif recorded != requested:
    yield f"{name} is {json.dumps(recorded)} there, but {json.dumps(requested)} here"
