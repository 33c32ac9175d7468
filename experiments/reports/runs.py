"""The reader of run directories: what reports and tunings know of runs."""

import csv
import dataclasses
import json
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax.environments import atari_profiles
from explorax.experiments import errors
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import curves, rows

_RECORD = "config.json"
_MAY_BE_NAN = {"steps_per_second", "treasure_rate"}
# What may distinguish two runs of an agent beside its own settings.
_OTHER_SETTINGS = ("runner", "replay", "num_envs", "num_actors")
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, csv.Error)

Log = Mapping[str, np.ndarray]  # Column → values `[rows]`, in the order of episodes.


@dataclasses.dataclass(frozen=True)
class Run:
  """A run of one seed.

  Attributes:
    path: its directory.
    record: the content of its `config.json`.
    settings: name → value as text: those that were given with `--set`, how it ran
      (runner, replay, number of environments and actors), and the preprocessing of an
      Atari game.
    summary: the content of its `summary.json`; empty without one.
    env_steps: int64 `[E]`, at the end of each training episode; of each game where
      episodes are lives of one.
    returns: float64 `[E]`, of these episodes or games.
    evaluations: (environment steps of training, mean return) of each evaluation.
    bsuite: bsuite's log of the run; None if it has none.
  """

  path: pathlib.Path
  record: Mapping[str, Any]
  settings: Mapping[str, str]
  summary: Mapping[str, Any]
  env_steps: np.ndarray
  returns: np.ndarray
  evaluations: Sequence[tuple[int, float]] = ()
  bsuite: Log | None = None

  @property
  def agent(self) -> str:
    return self.record["agent"]

  @property
  def env(self) -> str:
    return self.record["env"]

  @property
  def problem(self) -> str:
    """The environment; `atari:Pong` for a game with any preprocessing."""
    name, slash, _ = self.env.partition("/")
    return name if slash and name.startswith("atari:") else self.env

  @property
  def seed(self) -> int:
    return self.record["seed"]

  @property
  def status(self) -> str:
    """From `summary.json`; `unfinished` without one."""
    return str(self.summary.get("status", "unfinished"))


def read_all(words: Sequence[str]) -> tuple[list[Run], list[str]]:
  """The runs in directories, at any depth, and remarks on them.

  A remark is a sentence on a run that is left out, or that is not finished.

  Raises:
    SetUpError: if a directory holds no run.
  """
  runs: dict[str, Run] = {}
  remarks = []
  tops = [pathlib.Path(word).expanduser() for word in words]
  for path in dict.fromkeys(path.resolve() for top in tops for path in _find(top)):
    try:
      run = read(path)
    except errors.SetUpError as error:
      remarks.append(f"{relative(path)} is left out: {error}")
      continue
    key = json.dumps([run.agent, run.env, run.seed, run.settings], sort_keys=True)
    if not len(run.returns) and run.bsuite is None:
      remarks.append(f"{relative(path)} is left out: no episode has ended.")
    elif key in runs:
      remarks.append(
        f"{relative(path)} is left out: {relative(runs[key].path)} is the same run "
        "(agent, settings, environment and seed)."
      )
    else:
      runs[key] = run
      if run.status != "finished":
        remarks.append(f"{relative(path)} is {run.status}.")
  return [*runs.values()], remarks


def _find(top: pathlib.Path) -> list[pathlib.Path]:
  """The directories of all runs in a directory."""
  paths = {file.parent for file in top.rglob(rows.METRICS)}
  paths |= {file.parent.parent for file in top.rglob("bsuite/*.csv")}
  if not paths:
    raise errors.SetUpError(
      f"there is no run in {top}; give the --output of `python -m "
      "explorax.experiments.run` or of a sweep, or a directory with runs."
    )
  return sorted(paths)


def read(path: pathlib.Path) -> Run:
  """Reads the directory of a run of one seed.

  Raises:
    SetUpError: if it cannot be read.
  """
  file = path / _RECORD
  try:
    record = json.loads(file.read_text(encoding="utf-8"))
    settings = _settings(record)
    file = path / rows.METRICS
    steps, returns = _curve(rows.read(file)) if file.exists() else np.zeros((2, 0))
    file = path / rows.EVALUATION
    evaluated = curves.evaluation_returns(rows.read(file)) if file.exists() else []
    evaluations = [(int(at), float(np.mean(values))) for at, values in evaluated]
    if not np.isfinite([*returns, *(mean for _, mean in evaluations)]).all():
      raise ValueError("a return is not finite")
    log = None
    for file in (path / "bsuite").glob("*.csv"):
      log = rows.read(file)
  except _UNREADABLE as error:
    raise errors.SetUpError(
      f"{relative(file)} cannot be read ({errors.describe(error)})."
    ) from error
  summary = read_summary(path)
  return Run(path, record, settings, summary, steps, returns, evaluations, log)


def _settings(record: Mapping[str, Any]) -> dict[str, str]:
  assignments = (setting.partition("=") for setting in record["settings"])
  settings = {name.strip(): value.strip() for name, _, value in assignments}
  settings |= {name: str(record.get(name)) for name in _OTHER_SETTINGS}
  kind, _, name = record["env"].partition(":")
  if kind == "atari":
    profile = dataclasses.asdict(atari_profiles.parse(name)[1])
    settings |= {name: str(value) for name, value in profile.items()}
  return settings


def _curve(episodes: rows.Rows) -> tuple[np.ndarray, np.ndarray]:
  """Steps and returns; of whole games, where episodes are lives of one."""
  if "game_over" in episodes:  # See `atari_profiles.Profile.episode_metrics`.
    is_over = episodes["game_over"] == 1
    return episodes["env_steps"][is_over], episodes["game_return"][is_over]
  return episodes["env_steps"], episodes["episode_return"]


def read_summary(path: pathlib.Path) -> dict[str, Any]:
  """The content of a run's `summary.json`; {} without one, or if it is damaged.

  NaN, which JSON stores as null, is NaN.
  """
  try:
    content = json.loads((path / "summary.json").read_text(encoding="utf-8"))
  except (OSError, ValueError):
    return {}
  for name in _MAY_BE_NAN & content.keys():
    content[name] = math.nan if content[name] is None else content[name]
  return content


def labels(runs: Sequence[Run]) -> list[str]:
  """The name of each run's agent, with the settings in which its runs differ.

  `dqn@n_step=3` as in a sweep. Settings that differ only between environments are not
  in the name, and neither are those that were not given.
  """
  values: dict[tuple[str, str, str], set[str | None]] = {}
  names = dict.fromkeys(name for run in runs for name in run.settings)
  for run in runs:
    for name in names:
      key = run.agent, run.problem, name
      values.setdefault(key, set()).add(run.settings.get(name))
  differing = {(agent, name) for (agent, _, name), x in values.items() if len(x) > 1}
  return [
    settings_lib.join_name(
      run.agent,
      [f"{k}={x}" for k, x in run.settings.items() if (run.agent, k) in differing],
    )
    for run in runs
  ]


def relative(path: pathlib.Path) -> str:
  """The path, relative to the current directory if it lies within."""
  here = pathlib.Path.cwd()
  return str(path.relative_to(here) if path.is_relative_to(here) else path)
