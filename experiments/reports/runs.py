"""The reader of run directories: what reports, tunings and tables know of runs."""

import csv
import dataclasses
import functools
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

_RECORD, _BSUITE = "config.json", "bsuite"
_ERROR = "error.txt"
INDEX = "sweep.json"
_MAY_BE_NAN = {"steps_per_second", "treasure_rate"}
_GAME_OVER = "game_over"  # See `atari_profiles.Profile.episode_metrics`.
# What may distinguish two runs of an agent beside its own settings.
_OTHER_SETTINGS = ("runner", "replay", "num_envs", "num_actors")

Log = Mapping[str, np.ndarray]  # Column → float64 `[rows]`, in the order of episodes.


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
    bsuite: bsuite's log of the run; None if it has none.
  """

  path: pathlib.Path
  record: Mapping[str, Any]
  settings: Mapping[str, str]
  summary: Mapping[str, Any]
  env_steps: np.ndarray
  returns: np.ndarray
  bsuite: Log | None

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
    return int(self.env_steps[-1]) if len(self.returns) else self.evaluations()[-1][0]

  @property
  def has_returns(self) -> bool:
    """Whether an episode of training has ended or, but for bsuite, an evaluation."""
    is_bsuite = self.env.startswith("bsuite:")
    return len(self.returns) > 0 or (not is_bsuite and len(self.evaluations()) > 0)

  @property
  def seconds(self) -> float:
    """How long it took."""
    return self.summary.get("wall_seconds") or 0.0

  @functools.cached_property
  def versions(self) -> str:
    """Of Python, the packages, the code and the machine, as text."""
    versions = self.record.get("versions", {})
    each = {"python": versions.get("python"), **(versions.get("packages") or {})}
    each["commit"] = versions.get("git_commit")
    each["XLA_FLAGS"] = versions.get("xla_flags")
    names = ", ".join(f"{name} {value}" for name, value in each.items() if value)
    platform = versions.get("platform")
    return f"{names}, on {platform}" if platform else names

  def episodes(self) -> rows.Rows:
    """The columns of `metrics.csv`."""
    return rows.read(self.path / rows.METRICS)

  def evaluations(self) -> list[tuple[int, float]]:
    """(environment steps of training, mean return) of each evaluation, if any."""
    path = self.path / rows.EVALUATION
    if not path.exists():
      return []
    evaluations = curves.evaluation_returns(rows.read(path))
    return [(steps, float(np.mean(returns))) for steps, returns in evaluations]


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
  """All runs in directories.

  Args:
    words: paths of runs, and of directories with runs at any depth.

  A run that cannot be read is left out, with a remark.

  Raises:
    SetUpError: if a directory holds no run.
  """
  kept: dict[str, Run] = {}
  remarks, commands, missing = [], [], []
  tops = [pathlib.Path(word).expanduser() for word in words]
  found = dict.fromkeys(path.resolve() for top in tops for path in _find(top))
  for path in found:
    try:
      run = read(path)
      _check_evaluations(run)
    except errors.SetUpError as error:
      remarks.append(f"{relative(path)} is left out: {error}")
      continue
    if not run.has_returns and run.bsuite is None:
      remarks.append(f"{relative(path)} is left out: no episode has ended.")
      continue
    key = json.dumps([run.agent, run.env, run.seed, run.settings], sort_keys=True)
    if key in kept:
      chosen, other = sorted((kept[key], run), key=lambda x: -len(x.returns))
      remarks.append(
        f"{relative(other.path)} is left out: {relative(chosen.path)} is the same "
        "run (agent, settings, environment and seed)."
      )
      run = chosen
    kept[key] = run
  statuses = {run.path: run.status for run in kept.values()}
  for top in dict.fromkeys(tops):
    index = read_index(top)
    commands += index["commands"]
    missing += [
      (run["env"], run["agent"], reason)
      for run in index["runs"]
      if (reason := _problem(top / run["path"], statuses))
    ]
  return Runs([*kept.values()], commands, missing, remarks)


def read(path: pathlib.Path) -> Run:
  """Reads the directory of a run of one seed.

  Raises:
    SetUpError: if it cannot be read.
  """
  file = path / _RECORD
  try:
    record = json.loads(_regular(file).read_text(encoding="utf-8"))
    if not config.is_record(record):
      raise ValueError("it is not the record of a run")
    int(record["seed"])
    given = (setting.partition("=") for setting in record["settings"])
    settings = {
      **{name.strip(): value.strip() for name, _, value in given},
      **{name: str(record.get(name)) for name in _OTHER_SETTINGS},
    }
    kind, _, name = record["env"].partition(":")
    if kind == "atari":
      profile = dataclasses.asdict(atari_profiles.parse(name)[1])
      settings |= {name: str(value) for name, value in profile.items()}
    file = path / rows.METRICS
    steps, returns = _curve(_regular(file)) if file.exists() else np.zeros((2, 0))
    bsuite = None
    for file in sorted((path / _BSUITE).glob("*.csv")):
      bsuite = _log(_regular(file))
  except _UNREADABLE as error:
    raise errors.SetUpError(
      f"{relative(file)} cannot be read ({errors.describe(error)})."
    ) from error
  summary = read_summary(path)
  return Run(path, record, settings, summary, steps.astype(np.int64), returns, bsuite)


def _check_evaluations(run: Run) -> None:
  """Refuses a run whose evaluations cannot be read, or are not finite."""
  try:
    if not all(math.isfinite(value) for _, value in run.evaluations()):
      raise ValueError("an episode_return is not finite")
  except _UNREADABLE as error:
    path = relative(run.path / rows.EVALUATION)
    raise errors.SetUpError(
      f"{path} cannot be read ({errors.describe(error)})."
    ) from error


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


_UNREADABLE = (OSError, ValueError, KeyError, TypeError, RecursionError, csv.Error)


def _regular(file: pathlib.Path) -> pathlib.Path:
  """The file, if reading it does not wait for another process."""
  if not file.is_file():
    raise ValueError("it is not a regular file")
  return file


def _find(top: pathlib.Path) -> list[pathlib.Path]:
  """The directories of all runs in a directory: in its sweep's order, or sorted."""
  if not top.is_dir():
    siblings = [x.name for x in top.parent.iterdir()] if top.parent.is_dir() else []
    raise errors.SetUpError(
      f"{top} is no directory.{notation.nearest(top.name, siblings)} Give the --output "
      "of a run, or a directory with runs."
    )
  found = []
  for folder, folders, files in os.walk(top):
    path = pathlib.Path(folder)
    folders.sort()
    # `read` says so if the record is missing.
    if rows.METRICS in files or (_RECORD in files and _BSUITE in folders):
      folders.clear()
      found.append(path)
  order = {str(top / run["path"]): i for i, run in enumerate(read_index(top)["runs"])}
  found.sort(key=lambda path: order.get(str(path), len(order)))
  if not found and not order:
    raise errors.SetUpError(
      f"there is no run in {top}: no directory in it has a {rows.METRICS}; give the "
      "--output of `python -m explorax.experiments.run`, or a directory with runs."
    )
  return found


def _problem(path: pathlib.Path, statuses: Mapping[pathlib.Path, str]) -> str:
  """Why a run of a sweep is not finished; '' if it is."""
  path = path.resolve()
  if statuses.get(path) == "finished":
    return ""
  for folder in (path, path.parent):  # The latter if one program trains all seeds.
    if (folder / _ERROR).exists():
      lines = (folder / _ERROR).read_text(encoding="utf-8").splitlines()
      return lines[-1].removesuffix(".") if lines else "it failed"
  return statuses.get(path, "it has not been run yet")


def _curve(file: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
  """Steps and returns of a `metrics.csv`; of many episodes, so no other columns.

  Of whole games, where it says whether a game is over.
  """
  with open(file, newline="") as lines:
    cells = csv.reader(lines)
    names = ["env_steps", "episode_return"]
    header = next(cells, names)  # A run that has just begun has an empty file.
    if _GAME_OVER in header:
      names = ["env_steps", "game_return", _GAME_OVER]
    columns = [header.index(name) for name in names]
    table = np.array([[float(row[i]) for i in columns] for row in cells], np.float64)
  steps, returns, *is_over = table.reshape(-1, len(columns)).T
  for at_end in is_over:
    steps, returns = steps[at_end == 1], returns[at_end == 1]
  if (np.diff(steps) < 0).any() or not (np.abs(steps) < 2**53).all():
    raise ValueError("its env_steps decrease, or are no counts")
  if not np.isfinite(returns).all():
    raise ValueError("an episode_return is not finite")
  return steps, returns


def _log(file: pathlib.Path) -> Log:
  """The columns of bsuite's CSV; missing cells are NaN.

  Raises:
    ValueError: if it has no rows, or its episodes do not increase.
  """
  with open(file, newline="") as lines:
    header, *table = csv.reader(lines)
  cells = [[float(cell or math.nan) for cell in row] for row in table]
  columns = np.array(cells, np.float64).T
  log = dict(zip(header, columns, strict=True))
  if log["episode"][0] < 1 or not (np.diff(log["episode"]) > 0).all():
    raise ValueError("its episodes do not increase from 1")
  return log
