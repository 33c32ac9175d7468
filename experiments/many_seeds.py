"""A run of many seeds at once: the files of each seed, and what they have in common.

config.json            of all seeds, and what to repeat them by
curve.png              the mean over seeds with its interval
summary.json           what came of each seed, and of all
seed0/, seed1/, …      what a run of that seed alone leaves behind
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments import errors, output
from explorax.experiments.recording import console as console_lib
from explorax.experiments.recording import (
  plots,
  progress,
  recorder,
  statistics,
  summary,
)
from explorax.experiments.recording import returns as returns_lib
from explorax.experiments.runners import core

if TYPE_CHECKING:
  from explorax import environments


class Recorders:
  """Writes the files of all seeds, and shows the progress of the slowest."""

  def __init__(
    self,
    directory: output.RunDirectory,
    records: Mapping[int, Mapping[str, Any]],
    *,
    title: str,
    num_episodes: int | None,
    num_steps: int | None,
    solved_rule: "Callable[[], environments.SolvedRule | None]",
    console: console_lib.Console,
    resumed: Mapping[str, Any] | None = None,
  ):
    """Makes each seed's directory and begins its files, or goes on with them.

    Args:
      directory: of the run.
      records: seed → the content of its `config.json`.
      title: of the run, without the seeds.
      num_episodes: after how many episodes of each seed the run ends, if it does.
      num_steps: after how many environment steps of each it ends, if it does.
      solved_rule: makes a rule for a seed, or None where there is none.
      console: for the progress.
      resumed: what `save` returned; None to begin.

    Raises:
      OutputError: if the files cannot be written.
    """
    self._directory = directory
    self._title = title
    self._recorders: dict[int, recorder.Recorder] = {}
    for seed, record in records.items():
      own = output.RunDirectory.create(
        directory.path / f"seed{seed}", may_hold_run=directory.holds_run
      )
      own.write_json("config.json", record)
      self._recorders[seed] = recorder.Recorder(
        own,
        title=f"{title}, seed {seed}",
        num_episodes=num_episodes,
        num_steps=num_steps,
        solved_rule=solved_rule(),
        console=console_lib.Console(None),
        resumed=None if resumed is None else resumed[str(seed)],
      )
    self._progress = progress.RunProgress(
      console, num_episodes=num_episodes, num_steps=num_steps
    )
    self._counts = dict.fromkeys(records, 0)
    self._all = returns_lib.Returns()

  def save(self) -> dict[str, Any] | None:
    """What goes into a checkpoint; None if there was a problem with writing."""
    saved = {str(seed): each.save() for seed, each in self._recorders.items()}
    return None if None in saved.values() else saved

  def pause(self) -> None:
    """Ends the live line, for what is said next."""
    self._progress.close()

  @property
  def problem(self) -> errors.OutputError | None:
    """The first thing that could not be written."""
    problems = (each.problem for each in self._recorders.values())
    return next((p for p in problems if p is not None), None)

  def hooks(self) -> core.Hooks:
    return core.Hooks(on_episode=self.on_episode)

  def on_episode(self, episode: core.Episode) -> None:
    """Takes in an `Episode` of one of the seeds."""
    self._recorders[episode.seed].on_episode(episode)
    self._counts[episode.seed] = episode.episode
    self._all.add(episode)
    if episode.episode == min(self._counts.values()):
      self._progress.update(episode, self._all)

  def finish(
    self,
    status: str,
    results: Mapping[int, core.Result],
    weights: Mapping[int, Any],
    wall_seconds: float,
  ) -> tuple[str, list[errors.OutputError]]:
    """Writes the files of the end, each even if another one cannot be written.

    Args:
      status: one of `summary.STATUSES`.
      results: seed → the runner's `Result`, where it returned one.
      weights: seed → those to save, where there are any.
      wall_seconds: how long the run took.

    Returns:
      A table for the terminal, and what could not be written.
    """
    self._progress.close()
    outcomes: dict[int, summary.Summary] = {}
    problems: list[errors.OutputError] = []
    for seed, each in self._recorders.items():
      outcomes[seed], unwritten = each.finish(
        status, results.get(seed), weights.get(seed), wall_seconds
      )
      problems.extend(unwritten)
    content = _content(status, outcomes, wall_seconds)
    curves = [outcome.returns for outcome in outcomes.values()]
    try:
      if all(len(curve.of()) for curve in curves):
        self._directory.write(
          "curve.png", lambda file: plots.seeds_curve(file, curves, title=self._title)
        )
      self._directory.write_json("summary.json", content)
    except errors.OutputError as error:
      problems.append(error)
    return _table(self._title, content), problems


def _content(
  status: str, outcomes: Mapping[int, summary.Summary], wall_seconds: float
) -> dict[str, Any]:
  """The content of `summary.json`."""
  each = {seed: outcome.to_dict() for seed, outcome in outcomes.items()}
  key = f"mean_return_last_{returns_lib.WINDOW}"
  content: dict[str, Any] = {
    "status": status,
    "num_seeds": len(each),
    "env_steps_of_each": max(one["env_steps"] for one in each.values()),
    "wall_seconds": wall_seconds,
    "steps_per_second_of_all": sum(one["steps_per_second"] for one in each.values()),
    key: _interval([one[key] for one in each.values()]),
  }
  if all("solved_episode" in one for one in each.values()):
    solved = [one["solved_episode"] for one in each.values()]
    content["solved"] = sum(episode is not None for episode in solved)
    # Those that were not solved count as later than all others.
    later = np.array([np.inf if e is None else e for e in solved])
    content["median_solved_episode"] = float(np.median(later))
  content["seeds"] = {
    str(seed): {
      name: one[name] for name in ("episodes", key, "solved_episode") if name in one
    }
    for seed, one in each.items()
  }
  return content


def _interval(means: Sequence[float | None]) -> dict[str, float] | None:
  """The mean over seeds and its 95 % bootstrap interval; None before an episode."""
  known = [mean for mean in means if mean is not None]
  if not known:
    return None
  return {name: float(x) for name, x in statistics.mean(known)._asdict().items()}


def _table(title: str, content: Mapping[str, Any]) -> str:
  """The summary for a reader."""
  key = f"mean_return_last_{returns_lib.WINDOW}"
  speed = content["steps_per_second_of_all"]
  lines = [
    f"{title}: {content['status']}",
    f"  {content['num_seeds']} seeds, {content['env_steps_of_each']:,} environment "
    f"steps each in {summary.duration(content['wall_seconds'])}"
    + (
      f" ({speed:,.0f} steps/s in all after compilation)"
      if math.isfinite(speed)
      else ""
    ),
  ]
  mean = content[key]
  if mean is not None:
    lines.append(
      f"  mean return of the last {returns_lib.WINDOW} episodes: {mean['value']:.4g} "
      f"(95 % interval over seeds: {mean['low']:.4g} to {mean['high']:.4g})"
    )
  if "solved" in content:
    solved = f"  Deep Sea was solved by {content['solved']} of {content['num_seeds']}"
    median = content["median_solved_episode"]
    finite = f", in {median:,.0f} episodes (median)" if np.isfinite(median) else ""
    lines.append(f"{solved} seeds{finite}.")
  return "\n".join(lines)
