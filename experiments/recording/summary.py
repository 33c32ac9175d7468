"""The results of a run: `summary.json`, and the table printed at the end."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from explorax import environments
from explorax.experiments.recording import curves, rows, statistics

Seeds = Mapping[int, Mapping[str, Any]]  # Seed → what `summarize_run` returned.

# The return of the evaluation policy at the end, and that of training.
EVALUATION, TRAINING = "evaluation_return", "training_return"


class End(NamedTuple):
  """How a run has ended.

  Attributes:
    status: `finished`, `interrupted` or `failed`.
    wall_seconds: how long it took, including compilation.
    stop_reason: why a callback has ended it; None if none has.
  """

  status: str
  wall_seconds: float
  stop_reason: str | None = None


def summarize_run(
  end: End,
  record: Mapping[str, Any],
  columns: Mapping[str, rows.Rows],
  totals: Any = None,
) -> dict[str, Any]:
  """The content of `summary.json` of a run with one seed.

  `evaluation_return` is the mean return of the last evaluation, and `training_return`
  that of the training episodes that ended in the last tenth of the steps, at least of
  one. `solved_episode` (by bsuite's rule), `treasure_rate` and `best_treasure_rate` are
  present only for Deep Sea, `stop_reason` only if there was any.

  Args:
    end: of the run.
    record: the content of its `config.json`.
    columns: file → the columns of its rows.
    totals: has the runner's `env_steps`, `learner_updates` and `steps_per_second`,
      which excludes compilation; None: those of the last episode.
  """
  episodes = columns[rows.METRICS]
  counts: dict[str, Any] = dict.fromkeys(("env_steps", "learner_updates"), 0)
  counts["steps_per_second"] = math.nan
  for name in counts:
    if totals is not None:
      counts[name] = getattr(totals, name)
    elif len(episodes[name]):
      counts[name] = episodes[name][-1].item()
  content = {
    "status": end.status,
    **_evaluated(columns.get(rows.EVALUATION)),
    **_trained(episodes, counts["env_steps"]),
    **counts,
    "wall_seconds": end.wall_seconds,
    **_solved(record["env"], episodes),
  }
  if end.stop_reason is not None:
    content["stop_reason"] = end.stop_reason
  return content


def summarize_seeds(seeds: Seeds) -> dict[str, Any]:
  """The content of `summary.json` of a run with several seeds."""
  first = next(iter(seeds.values()))
  intervals = {name: _interval(seeds, name) for name in (EVALUATION, TRAINING)}
  names = ("episodes", EVALUATION, TRAINING, "solved_episode", "treasure_rate")
  return {
    "status": first["status"],
    "num_seeds": len(seeds),
    **{
      name: x and {end: float(value) for end, value in x._asdict().items()}
      for name, x in intervals.items()
    },
    "env_steps_of_each": max(one["env_steps"] for one in seeds.values()),
    "wall_seconds": first["wall_seconds"],
    "steps_per_second_of_all": _total(seeds, "steps_per_second"),
    **_deep_sea(seeds),
    "seeds": {
      str(seed): {name: one[name] for name in names if name in one}
      for seed, one in seeds.items()
    },
  }


def to_text(title: str, seeds: Seeds) -> str:
  """The results of one seed or of several as lines, below a title."""
  first = next(iter(seeds.values()))
  lines = [f"{title}: {first['status']}", *_returns(seeds), *_length(seeds)]
  return "\n  ".join(lines)


def duration(seconds: float) -> str:
  """Seconds as `0:07`, `12:34` or `1:02:03`."""
  minutes, seconds = divmod(max(0, round(seconds)), 60)
  hours, minutes = divmod(minutes, 60)
  return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def number(value: Any) -> str:
  """A number with four digits, or all of a large one: `475.2`, `12,345`, `0.004`."""
  return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def count(number: int, noun: str) -> str:
  """`1 task`, `1,200 tasks`."""
  return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _returns(seeds: Seeds) -> Iterator[str]:
  """The mean returns of evaluation and training; of several seeds with an interval."""
  first, is_one = next(iter(seeds.values())), len(seeds) == 1
  evaluated = count(_total(seeds, "evaluation_episodes"), "evaluation episode")
  if is_one and first["evaluation_standard_error"] is not None:
    error = first["evaluation_standard_error"]
    evaluated = f"± {error:.2g}, standard error over {evaluated}"
  if left := _total(seeds, "evaluation_episodes_left"):
    evaluated += f", {left} of them left without an end"
  yield from _mean(seeds, "Evaluation", EVALUATION, evaluated)
  episodes = count(_total(seeds, "training_episodes"), "episode")
  yield from _mean(seeds, "Training", TRAINING, f"{episodes}, the last 10 % of steps")


def _mean(seeds: Seeds, label: str, name: str, of: str) -> Iterator[str]:
  """A line with the mean over seeds, unless one has no such number."""
  if (x := _interval(seeds, name)) is not None:
    over = ""
    if len(seeds) > 1:
      over = f", 95 % interval {number(x.low)} to {number(x.high)} over seeds"
    yield f"{label}: mean return {number(x.value)}{over} ({of})"


def _length(seeds: Seeds) -> Iterator[str]:
  """When Deep Sea was solved, and how long it took; counts are sums over the seeds."""
  first = next(iter(seeds.values()))
  if rule := _deep_sea(seeds):
    how = "solved" if rule["solved"] else "not solved"
    if len(seeds) > 1:
      how = f"solved by {rule['solved']} of {len(seeds)} seeds"
    if math.isfinite(rule["median_solved_episode"]):
      median = " (the median)" if len(seeds) > 1 else ""
      how += f" in episode {rule['median_solved_episode']:,.0f}{median}"
    yield (
      f"Deep Sea was {how}, by bsuite's rule; the treasure was found in "
      f"{rule['treasure_rate']:.1%} of the episodes (at best "
      f"{rule['best_treasure_rate']:.1%})."
    )
  of_seeds = f"{len(seeds)} seeds: " if len(seeds) > 1 else ""
  counts = {"episodes": "episode", "env_steps": "environment step"}
  counts["learner_updates"] = "learner update"
  counted = ", ".join(count(_total(seeds, key), noun) for key, noun in counts.items())
  speed = _total(seeds, "steps_per_second")
  timed = f" ({speed:,.0f} steps/s after compilation)" if math.isfinite(speed) else ""
  yield f"{of_seeds}{counted} in {duration(first['wall_seconds'])}{timed}"
  if reason := first.get("stop_reason"):
    yield f"A callback ended the run: {reason}"


def _interval(seeds: Seeds, name: str) -> statistics.Interval | None:
  """The mean over seeds of a number of each; None if a seed has none."""
  values = [one[name] for one in seeds.values()]
  if None in values:
    return None
  return statistics.bootstrap(values)


def _deep_sea(seeds: Seeds) -> dict[str, Any]:
  """How many seeds solved Deep Sea, and when; empty without a rule for it."""
  if not all("solved_episode" in one for one in seeds.values()):
    return {}
  # Unsolved seeds count as later than all others.
  solved = [one["solved_episode"] or math.inf for one in seeds.values()]
  return {
    "solved": sum(map(math.isfinite, solved)),
    "median_solved_episode": float(np.median(solved)),
    "treasure_rate": float(np.mean([one["treasure_rate"] for one in seeds.values()])),
    "best_treasure_rate": next(iter(seeds.values()))["best_treasure_rate"],
  }


def _total(seeds: Seeds, name: str) -> Any:
  return sum(one[name] for one in seeds.values())


def _evaluated(evaluations: rows.Rows | None) -> dict[str, Any]:
  """The result of the last evaluation; None for a number that is not known."""
  each = curves.evaluation_returns(evaluations) if evaluations else []
  last = each[-1][1] if each else np.zeros(0)
  left = evaluations["left"] if evaluations else np.zeros(0)
  return {
    EVALUATION: curves.mean(last),
    "evaluation_standard_error": curves.standard_error(last),
    "evaluation_episodes": len(last),
    "evaluation_episodes_left": int(np.nansum(left[len(left) - len(last) :])),
  }


def _trained(episodes: rows.Rows, env_steps: int) -> dict[str, Any]:
  """The returns of training episodes at the end."""
  late = curves.late_returns(episodes, env_steps)
  return {
    "episodes": len(episodes["episode"]),
    TRAINING: curves.mean(late),
    "training_episodes": len(late),
  }


def _solved(env: str, episodes: rows.Rows) -> dict[str, Any]:
  """When Deep Sea was solved, and how often its treasure was found."""
  rule = environments.solved_rule(env)
  if rule is None:
    return {}
  names = {"total_bad_episodes", "bad_episode", "denoised_return"} & episodes.keys()
  for i, number in enumerate(episodes["episode"].tolist()):
    metrics = {name: float(episodes[name][i]) for name in names}
    has_learnt = bool(episodes["learner_updates"][i])
    rule.add_episode(number, metrics, has_learnt=has_learnt)
  return {
    "solved_episode": rule.solved_episode,
    "treasure_rate": rule.treasure_rate,
    "best_treasure_rate": rule.best_rate,
  }
