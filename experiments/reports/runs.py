"""Finds the runs in directories, reads their returns, and names their agents."""

import csv
import dataclasses
import json
import os
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from explorax.experiments import config, errors
from explorax.experiments.recording import metrics_csv
from explorax.experiments.reports import read as sweeps

_RECORD, _METRICS = "config.json", "metrics.csv"
# What may distinguish two runs of an agent beside its own settings.
_OTHER_SETTINGS = ("runner", "replay", "num_envs", "num_actors")


@dataclasses.dataclass(frozen=True)
class Run:
  """A run of one seed.

  Attributes:
    path: its directory.
    agent: the preset.
    env: the environment.
    seed: its seed.
    settings: name → value, of the agent, the runner and replay.
    env_steps: int64 `[E]`, at the end of each episode.
    returns: float64 `[E]`, of the training episodes.
    status: from `summary.json`; `unfinished` without one.
    versions: of explorax, jax and others, as text.
  """

  path: pathlib.Path
  agent: str
  env: str
  seed: int
  settings: Mapping[str, Any]
  env_steps: np.ndarray
  returns: np.ndarray
  status: str
  versions: str


def read_all(words: Sequence[str]) -> tuple[list[Run], list[str]]:
  """All runs in directories, each seed of a kind once.

  Args:
    words: paths of runs, and of directories with runs at any depth.

  Returns:
    The runs, and a sentence for each repeated one that is left out.

  Raises:
    SetUpError: if a directory holds no run, or a run cannot be read.
  """
  kept: dict[str, Run] = {}
  remarks = []
  paths = dict.fromkeys(path.resolve() for word in words for path in _find(word))
  for path in paths:
    run = _read(path)
    key = json.dumps([run.agent, run.env, run.seed, run.settings], sort_keys=True)
    if key not in kept:
      kept[key] = run
      continue
    earlier = kept[key]
    chosen, other = sorted((earlier, run), key=lambda x: -x.env_steps[-1])
    kept[key] = chosen
    remarks.append(
      f"{shown(other.path)} is left out: {shown(chosen.path)} is the same run (agent, "
      "settings, environment and seed)."
    )
  return list(kept.values()), remarks


def labels(runs: Sequence[Run]) -> list[str]:
  """The name of each run's agent, with the settings in which its runs differ.

  `dqn@n_step=3` as in a sweep. Settings that differ only between environments, where an
  agent may have other defaults, are not in the name.
  """
  values: dict[tuple[str, str, str], set[str]] = {}
  for run in runs:
    for name in _names(runs, run.agent):
      key = run.agent, run.env, name
      values.setdefault(key, set()).add(_text(run.settings.get(name)))
  differing: dict[str, dict[str, None]] = {}
  for (agent, _, name), found in values.items():
    if len(found) > 1:
      differing.setdefault(agent, {})[name] = None
  return [
    "@".join(
      [
        run.agent,
        *(
          f"{name}={_text(run.settings.get(name))}"
          for name in differing.get(run.agent, ())
        ),
      ]
    )
    for run in runs
  ]


def shown(path: pathlib.Path) -> str:
  """The path, relative to the current directory if it lies within."""
  here = pathlib.Path.cwd()
  return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _find(word: str) -> list[pathlib.Path]:
  """The directories of all runs in a directory, sorted."""
  top = pathlib.Path(word).expanduser()
  if not top.is_dir():
    siblings = [x.name for x in top.parent.iterdir()] if top.parent.is_dir() else []
    raise errors.SetUpError(
      f"{word} is no directory.{errors.nearest(top.name, siblings)} Give the --output "
      "of a run, or a directory with runs."
    )
  found = []
  for folder, folders, files in os.walk(top):
    path = pathlib.Path(folder)
    folders.sort()
    if _METRICS in files and _RECORD in files:
      folders.clear()
      found.append(path)
    elif _METRICS in files:
      raise errors.SetUpError(f"{path} has a {_METRICS}, but no {_RECORD}.")
  if not found and (top / sweeps.INDEX).exists():
    raise errors.SetUpError(
      f"{word} is a sweep over bsuite, which has a report of its own: `python -m "
      f"explorax.experiments.report {word}`."
    )
  if not found:
    raise errors.SetUpError(
      f"there is no run in {word}: no directory in it has a {_METRICS}; give the "
      "--output of `python -m explorax.experiments.run`, or a directory with runs."
    )
  return found


def _read(path: pathlib.Path) -> Run:
  file = path / _RECORD
  try:
    record = json.loads(file.read_text(encoding="utf-8"))
    if not config.is_record(record):
      raise ValueError("it is not the record of a run")
    settings = {
      **dict(_flat("", record.get("config") or {})),
      **{name: record.get(name) for name in _OTHER_SETTINGS},
    }
    seed = int(record["seed"])
    file = path / _METRICS
    episodes = list(metrics_csv.read(file))
    steps = np.array([x.env_steps for x in episodes], np.int64)
    returns = np.array([x.episode_return for x in episodes], np.float64)
    if (np.diff(steps) < 0).any():
      raise ValueError("its env_steps decrease")
    if not np.isfinite(returns).all():
      raise ValueError("an episode_return is not finite")
  except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
    raise errors.SetUpError(
      f"{shown(file)} cannot be read ({errors.describe(error)}); restore it, or leave "
      "the run out."
    ) from error
  if not episodes:
    raise errors.SetUpError(
      f"the run in {shown(path)} has no finished episode, and so no return; wait for "
      "one, or leave the run out."
    )
  packages = record.get("versions", {}).get("packages", {})
  return Run(
    path=path,
    agent=record["agent"],
    env=record["env"],
    seed=seed,
    settings=settings,
    env_steps=steps,
    returns=returns,
    status=_status(path),
    versions=", ".join(f"{n} {v}" for n, v in packages.items() if v),
  )


def _status(path: pathlib.Path) -> str:
  try:
    content = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    return str(content["status"])
  except (OSError, ValueError, KeyError, TypeError):
    return "unfinished"


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
  """`exploration.epsilon` → its value, for all settings of an agent's config."""
  if isinstance(value, dict):
    for name, inner in value.items():
      yield from _flat(f"{prefix}.{name}" if prefix else name, inner)
  else:
    yield prefix, value


def _names(runs: Sequence[Run], agent: str) -> Iterator[str]:
  """The names of all settings of an agent's runs."""
  yield from dict.fromkeys(
    n for run in runs if run.agent == agent for n in run.settings
  )


def _text(value: Any) -> str:
  if isinstance(value, list):
    return ",".join(map(_text, value))
  return f"{value:g}" if isinstance(value, float) else str(value)
