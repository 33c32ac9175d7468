"""The reader of run directories: what reports, tunings and tables know of runs."""

import csv
import dataclasses
import json
import math
import os
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax import notation
from explorax.environments import atari_profiles
from explorax.experiments import config, errors
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import curves, rows

INDEX = "sweep.json"
_RECORD, _BSUITE, _ERROR = "config.json", "bsuite", "error.txt"
_MAY_BE_NAN = {"steps_per_second", "treasure_rate"}
# What may distinguish two runs of an agent beside its own settings.
_OTHER_SETTINGS = ("runner", "replay", "num_envs", "num_actors")
_UNREADABLE = (
  *(OSError, ValueError, LookupError, TypeError, AttributeError),
  *(RecursionError, csv.Error),
)

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

  @property
  def num_episodes(self) -> int:
    """Finished training episodes; the logged ones without a `metrics.csv`."""
    if self.bsuite is not None and not len(self.returns):
      return int(self.bsuite["episode"][-1])
    return len(self.returns)

  @property
  def num_steps(self) -> int:
    """Environment steps at the end of the last of these, or of evaluations."""
    if self.bsuite is not None and not len(self.returns):
      return int(self.bsuite["steps"][-1])
    return int(self.env_steps[-1]) if len(self.returns) else self.evaluations[-1][0]

  @property
  def has_returns(self) -> bool:
    """Whether an episode of training has ended or, but for bsuite, an evaluation."""
    is_bsuite = self.env.startswith("bsuite:")
    return len(self.returns) > 0 or (not is_bsuite and len(self.evaluations) > 0)

  def episodes(self) -> rows.Rows:
    """The columns of `metrics.csv`."""
    return rows.read(self.path / rows.METRICS)


@dataclasses.dataclass(frozen=True)
class Runs:
  """The runs in some directories.

  Attributes:
    runs: each seed of a kind once; of a sweep in its order.
    commands: the command lines of sweeps.
    missing: of each run of sweeps that is not finished: its environment, its agent, and
      why, in a few words.
    remarks: a sentence for each run that is left out.
  """

  runs: Sequence[Run]
  commands: Sequence[str]
  missing: Sequence[tuple[str, str, str]]
  remarks: Sequence[str]


def read_all(words: Sequence[str]) -> Runs:
  """All runs in directories: paths of runs, or of directories with runs at any depth.

  A run that cannot be read is left out, with a remark.

  Raises:
    SetUpError: if a directory holds no run.
  """
  kept: dict[str, Run] = {}
  remarks, commands, missing = [], [], []
  tops = dict.fromkeys(pathlib.Path(word).expanduser() for word in words)
  for path in dict.fromkeys(path.resolve() for top in tops for path in _find(top)):
    try:
      run = read(path)
    except errors.SetUpError as error:
      remarks.append(f"{relative(path)} is left out: {error}")
      continue
    if not run.has_returns and run.bsuite is None:
      remarks.append(f"{relative(path)} is left out: no episode has ended.")
      continue
    key = json.dumps([run.agent, run.env, run.seed, run.settings], sort_keys=True)
    if key in kept:
      run, other = sorted((kept[key], run), key=lambda x: -len(x.returns))
      remarks.append(
        f"{relative(other.path)} is left out: {relative(run.path)} is the same run "
        "(agent, settings, environment and seed)."
      )
    kept[key] = run
  statuses = {run.path: run.status for run in kept.values()}
  for top in tops:
    index = read_index(top)
    commands += index["commands"]
    for run_of_index in index["runs"]:
      if reason := _problem((top / run_of_index["path"]).resolve(), statuses):
        missing.append((run_of_index["env"], run_of_index["agent"], reason))
  return Runs([*kept.values()], commands, missing, remarks)


def read(path: pathlib.Path) -> Run:
  """Reads the directory of a run of one seed.

  Raises:
    SetUpError: if it cannot be read.
  """
  file = path / _RECORD
  try:
    record = json.loads(file.read_text(encoding="utf-8"))
    if not config.is_record(record):
      raise ValueError("it is not the record of a run")
    int(record["seed"])
    settings = _settings(record)
    file = path / rows.METRICS
    steps, returns = _curve(rows.read(file)) if file.exists() else np.zeros((2, 0))
    file = path / rows.EVALUATION
    evaluations = _evaluations(rows.read(file)) if file.exists() else []
    log = None
    for file in sorted((path / _BSUITE).glob("*.csv")):
      log = rows.read(file)
      if log["episode"][0] < 1 or not (np.diff(log["episode"]) > 0).all():
        raise ValueError("its episodes do not increase from 1")
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
  steps, returns = episodes["env_steps"], episodes["episode_return"]
  if "game_over" in episodes:  # See `atari_profiles.Profile.episode_metrics`.
    is_over = episodes["game_over"] == 1
    steps, returns = steps[is_over], episodes["game_return"][is_over]
  if (np.diff(steps) < 0).any() or not np.isfinite(returns).all():
    raise ValueError("its env_steps decrease, or an episode_return is not finite")
  return steps, returns


def _evaluations(episodes: rows.Rows) -> list[tuple[int, float]]:
  if not np.isfinite(episodes["episode_return"]).all():
    raise ValueError("an episode_return is not finite")
  evaluations = curves.evaluation_returns(episodes)
  return [(steps, float(np.mean(returns))) for steps, returns in evaluations]


def read_summary(path: pathlib.Path) -> dict[str, Any]:
  """The content of a run's `summary.json`; {} without one, or if it is damaged.

  NaN, which JSON stores as null, is NaN.
  """
  try:
    content = json.loads((path / "summary.json").read_text(encoding="utf-8"))
    for name in _MAY_BE_NAN & content.keys():
      content[name] = math.nan if content[name] is None else content[name]
    return content
  except (OSError, ValueError, AttributeError):
    return {}


def read_index(path: pathlib.Path) -> dict[str, list[Any]]:
  """The commands of a sweep, and the runs that they asked for; of no sweep: none.

  Raises:
    SetUpError: if the file is damaged.
  """
  try:
    index = json.loads((path / INDEX).read_text(encoding="utf-8"))
    return {name: list(index[name]) for name in ("commands", "runs")}
  except FileNotFoundError:
    return {"commands": [], "runs": []}
  except (OSError, ValueError, KeyError, TypeError) as error:
    raise errors.SetUpError(
      f"{path / INDEX} is damaged; delete it, and run the sweep's command again to "
      "rewrite it."
    ) from error


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


def file_name(name: str) -> str:
  """A name as a part of a file's."""
  return re.sub(r"[^A-Za-z0-9.-]+", "_", name)


def relative(path: pathlib.Path) -> str:
  """The path, relative to the current directory if it lies within."""
  here = pathlib.Path.cwd()
  return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _find(top: pathlib.Path) -> list[pathlib.Path]:
  """The directories of all runs in a directory: in its sweep's order, or sorted."""
  if not top.is_dir():
    siblings = [x.name for x in top.parent.iterdir()] if top.parent.is_dir() else []
    raise errors.SetUpError(
      f"{top} is no directory.{notation.nearest(top.name, siblings)} Give the --output "
      "of a run, or a directory with runs."
    )
  paths = []
  for folder, folders, files in os.walk(top):
    folders.sort()
    # `read` says so if the record is missing.
    if rows.METRICS in files or (_RECORD in files and _BSUITE in folders):
      folders.clear()
      paths.append(pathlib.Path(folder))
  order = {str(top / run["path"]): i for i, run in enumerate(read_index(top)["runs"])}
  if not paths and not order:
    raise errors.SetUpError(
      f"there is no run in {top}: no directory in it has a {rows.METRICS}; give the "
      "--output of `python -m explorax.experiments.run`, or a directory with runs."
    )
  return sorted(paths, key=lambda path: order.get(str(path), len(order)))


def _problem(path: pathlib.Path, statuses: Mapping[pathlib.Path, str]) -> str:
  """Why a run of a sweep is not finished; '' if it is."""
  if statuses.get(path) == "finished":
    return ""
  for folder in (path, path.parent):  # The latter if one program trains all seeds.
    if (folder / _ERROR).exists():
      lines = (folder / _ERROR).read_text(encoding="utf-8").splitlines()
      return lines[-1].removesuffix(".") if lines else "it failed"
  return statuses.get(path, "it has not been run yet")
