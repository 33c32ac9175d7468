"""`--config=FILE`: the settings of an earlier run, under those of the command line."""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from explorax.environments import user_environments
from explorax.experiments import config as config_lib
from explorax.experiments import errors, flag_table, presets
from explorax.experiments import settings as settings_lib


def merged(given: Mapping[str, Any], argv: Sequence[str]) -> dict[str, Any]:
  """The values of the flags, those that are not given from the `config.json` of a run.

  The file alone imports nothing: the command line has to name modules, too.

  Args:
    given: the values of the command line's flags.
    argv: the command line.

  Raises:
    SetUpError: if the file cannot be read, or names code that is not ours.
  """
  path = pathlib.Path(given["config"]).expanduser()
  try:
    record = json.loads(path.read_text(encoding="utf-8"))
    if not config_lib.is_record(record):
      raise ValueError("it is not the config.json of a run")
    names = [name for name, s in config_lib.SETTINGS.items() if s.recorded]
    fields = {name: record[name] for name in names if name in record}
    fields["settings"] = tuple(fields["settings"])
    earlier = config_lib.RunConfig(**fields)
  except (OSError, ValueError, TypeError, RecursionError) as error:
    raise errors.SetUpError(f"--config={path} cannot be read ({error}).") from error
  if not given["agent"] and earlier.agent not in presets.PRESETS:
    raise _foreign(path, f"--agent={earlier.agent}")
  if not given["env"] and user_environments.names_code(earlier.env):
    raise _foreign(path, f"--env={earlier.env}")
  changed = [_field(setting) for setting in given["set"]]
  kept = [x for x in earlier.settings if not _is_changed(_field(x), changed)]
  _check_settings(path, given, earlier, kept)
  flags = [f"--set={setting}" for setting in kept]
  for name, value in config_lib.given(earlier).items():
    if name != "settings":
      flags.append(f"--{config_lib.SETTINGS[name].flag or name}={value}")
  return flag_table.parse(config_lib.flags(), [*flags, *argv])


def _field(setting: str) -> str:
  return setting.partition("=")[0].strip()


def _is_changed(field: str, changed: Sequence[str]) -> bool:
  """Whether the command line sets the field, a part of it, or what it is a part of."""
  return any(
    f"{field}.".startswith(f"{other}.") or f"{other}.".startswith(f"{field}.")
    for other in changed
  )


def _check_settings(
  path: pathlib.Path,
  given: Mapping[str, Any],
  earlier: config_lib.RunConfig,
  kept: Sequence[str],
) -> None:
  """Refuses settings of the file that name a class that is not ours."""
  preset = presets.PRESETS.get(given["agent"] or earlier.agent)
  if preset is None:
    return  # The user's own, which has no settings, or a mistyped name.
  try:
    settings_lib.apply(preset.config_for(given["env"] or earlier.env), (), kept)
  except ValueError as error:
    raise errors.SetUpError(f"--config={path}: {error}") from None


def _foreign(path: pathlib.Path, flag: str) -> errors.SetUpError:
  return errors.SetUpError(
    f"--config={path} names code that is not ours, which does not run unless the "
    f"command line names it too; if you trust it, add {flag}."
  )
