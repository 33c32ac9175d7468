"""The results of a run: `summary.json`, and the table printed at the end."""

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.recording import returns as returns_lib
from explorax.experiments.recording import statistics

if TYPE_CHECKING:
  from explorax import environments
  from explorax.experiments.runners import core

Seeds = Mapping[int, Mapping[str, Any]]  # Seed → what `of_run` returned.

STATUSES = ("finished", "interrupted", "failed")

_MEAN = f"mean_return_last_{returns_lib.WINDOW}"
_MAX_LISTED = 10  # Seeds whose means are printed one by one.
_BEST = f"best_mean_return_{returns_lib.WINDOW}"


def of_run(
  *,
  status: str,
  last: "core.Result | core.Episode | None",
  last_metrics: Mapping[str, float],
  returns: returns_lib.Returns,
  solved_rule: "environments.SolvedRule | None",
  wall_seconds: float,
  unfinished_steps: int,
  environment_failures: int,
  replacements: Mapping[str, int],
) -> dict[str, Any]:
  """The content of `summary.json` of a run with one seed.

  `solved_episode` (by bsuite's rule), `treasure_rate` and `best_treasure_rate` are
  present only with a rule, `evaluation` and `replacements` only if there were any.

  Args:
    status: one of `STATUSES`.
    last: the runner's result or, without one, the last episode; None before the first.
      Its `steps_per_second` exclude compilation.
    last_metrics: name → value, of the last episode: the learner's and the
      environment's.
    returns: of all its episodes and evaluations.
    solved_rule: updated with all episodes; None if the environment has no rule.
    wall_seconds: how long the run took, including compilation.
    unfinished_steps: environment steps of the episode interrupted by the run's end.
    environment_failures: how many crashes of environments the run survived.
    replacements: role → how many of its processes died and were replaced.
  """
  if status not in STATUSES:
    raise ValueError(f"status is {status!r}; use one of {STATUSES}.")
  content = {
    "status": status,
    "env_steps": last.env_steps if last else 0,
    "episodes": len(returns),
    "learner_updates": last.learner_updates if last else 0,
    "steps_per_second": last.steps_per_second if last else math.nan,
    "wall_seconds": wall_seconds,
    "unfinished_steps": unfinished_steps,
    "environment_failures": environment_failures,
    **_means(returns.of()),
    "last_metrics": dict(last_metrics),
    "policies": {
      name: {"episodes": len(returns.of(name)), **_means(returns.of(name))}
      for name in returns.policies
    },
  }
  if solved_rule is not None:
    content["solved_episode"] = solved_rule.solved_episode
    content["treasure_rate"] = solved_rule.treasure_rate
    content["best_treasure_rate"] = solved_rule.best_rate
  if replacements:
    content["replacements"] = dict(replacements)
  if len(returns.evaluations):
    content["evaluation"] = returns.evaluations.to_dict()
  return content


def of_seeds(each: Seeds) -> dict[str, Any]:
  """The content of `summary.json` of a run with several seeds.

  Args:
    each: seed → what `of_run` returned.
  """
  first = next(iter(each.values()))
  interval = _interval(each)
  return {
    "status": first["status"],
    "num_seeds": len(each),
    "env_steps_of_each": max(one["env_steps"] for one in each.values()),
    "wall_seconds": first["wall_seconds"],
    "steps_per_second_of_all": _total(each, "steps_per_second"),
    _MEAN: interval and {name: float(x) for name, x in interval._asdict().items()},
    **_deep_sea(each),
    "seeds": {
      str(seed): {
        name: one[name]
        for name in ("episodes", _MEAN, "solved_episode", "treasure_rate")
        if name in one
      }
      for seed, one in each.items()
    },
  }


def table(title: str, each: Seeds) -> str:
  """The results of one seed or of several as text.

  Args:
    title: the first words.
    each: seed → what `of_run` returned.
  """
  first = next(iter(each.values()))
  lines = [f"{title}: {first['status']}", *(f"  {fact}" for fact in _facts(each))]
  if _total(each, "episodes"):
    lines += _returns_table(each)
  if len(each) > 1:
    if interval := _interval(each):
      few = "; with two seeds it says little" if len(each) == 2 else ""
      lines.append(
        f"  mean over seeds of the last {_window(each)} episodes: {interval.value:.4g} "
        f"(95 % interval: {interval.low:.4g} to {interval.high:.4g}{few})"
      )
    return "\n".join(lines)
  metrics = {n: x for n, x in first["last_metrics"].items() if n != "finite"}
  if metrics:
    text = ", ".join(f"{name} {x:.4g}" for name, x in metrics.items())
    lines.append("")
    lines += textwrap.wrap(
      f"last episode: {text}", 86, initial_indent="  ", subsequent_indent="    "
    )
  return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
  """The lines of a table: the first column to the left, numbers to the right."""
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  lines = []
  for first, *others in rows:
    cells = [text.rjust(w) for text, w in zip(others, widths[1:], strict=True)]
    lines.append("  " + "   ".join([first.ljust(widths[0]), *cells]).rstrip())
  return lines


def duration(seconds: float) -> str:
  """Seconds as `0:07`, `12:34` or `1:02:03`."""
  minutes, seconds = divmod(max(0, round(seconds)), 60)
  hours, minutes = divmod(minutes, 60)
  return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def count(number: int, noun: str) -> str:
  """`1 task`, `1,200 tasks`."""
  return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _facts(each: Seeds) -> Iterator[str]:
  """Sentences about one seed or several; counts are sums over the seeds."""
  first = next(iter(each.values()))
  episodes = count(_total(each, "episodes"), "episode")
  seeds = f"{len(each)} seeds: " if len(each) > 1 else ""
  seconds = duration(max(one["wall_seconds"] for one in each.values()))
  speed = _total(each, "steps_per_second")
  timed = f" ({speed:,.0f} steps/s after compilation)" if math.isfinite(speed) else ""
  yield (
    f"{seeds}{episodes}, {count(_total(each, 'env_steps'), 'environment step')}, "
    f"{count(_total(each, 'learner_updates'), 'learner update')} in {seconds}{timed}"
  )
  if rule := _deep_sea(each):
    yield _solved(rule, len(each), episodes)
  if len(each) > 1:
    return
  if "evaluation" in first:
    evaluation = first["evaluation"]
    last, best = evaluation["last"], evaluation["best"]
    yield (
      f"Evaluation ({count(evaluation['episodes_each'], 'episode')} each): mean return "
      f"{last['mean_return']:.4g} at step {last['env_steps']:,} (last), "
      f"{best['mean_return']:.4g} at step {best['env_steps']:,} (best of "
      f"{evaluation['evaluations']})."
    )
  if steps := first["unfinished_steps"]:
    yield f"The run ended {count(steps, 'step')} into another episode."
  if "replacements" in first:
    roles = ", ".join(f"{role} {n}" for role, n in first["replacements"].items())
    yield f"Processes that died were replaced: {roles}."


def _solved(rule: Mapping[str, Any], num_seeds: int, episodes: str) -> str:
  median = rule["median_solved_episode"]
  how = f"solved in episode {median:,.0f}"
  if num_seeds > 1:
    how = f"solved by {rule['solved']} of {num_seeds} seeds"
    if math.isfinite(median):
      how += f" (median: episode {median:,.0f})"
  elif not rule["solved"]:
    how = f"not solved in {episodes}"
  text = f"Deep Sea was {how} by bsuite's rule"
  if not math.isnan(rule["treasure_rate"]):
    text += (
      f"; the treasure was found in {rule['treasure_rate']:.1%} of episodes (by the "
      f"best policy in {rule['best_treasure_rate']:.1%})"
    )
  return text + "."


def _returns_table(each: Seeds) -> list[str]:
  """A line for each policy of one seed, or for each of a few seeds."""
  if len(each) > _MAX_LISTED:
    return []
  kind, groups = "seed", {str(seed): one for seed, one in each.items()}
  if len(each) == 1:
    (one,) = each.values()
    policies = one["policies"] if len(one["policies"]) > 1 else {}
    kind, groups = "policy", {"all": one, **policies}
  window = _window(each)
  rows = [[kind, "episodes", f"mean of last {window}", f"best mean of {window}"]]
  for label, group in groups.items():
    means = ("" if x is None else f"{x:.4g}" for x in (group[_MEAN], group[_BEST]))
    rows.append([label, f"{group['episodes']:,}", *means])
  if not any(best for *_, best in rows[1:]):
    rows = [row[:-1] for row in rows]
  return ["", *aligned(rows)]


def _window(each: Seeds) -> int:
  """The number of episodes of the means, which a short run does not fill."""
  return min(returns_lib.WINDOW, max(one["episodes"] for one in each.values()))


def _interval(each: Seeds) -> statistics.Interval | None:
  """The mean over seeds of their last returns; None without returns."""
  means = [one[_MEAN] for one in each.values() if one[_MEAN] is not None]
  return statistics.bootstrap(np.array(means)[:, None]).at(0) if means else None


def _deep_sea(each: Seeds) -> dict[str, Any]:
  """How many seeds solved Deep Sea, and when; empty without a rule for it."""
  if not all("solved_episode" in one for one in each.values()):
    return {}
  solved = [one["solved_episode"] for one in each.values()]
  # Unsolved seeds count as later than all others.
  later = [math.inf if episode is None else episode for episode in solved]
  return {
    "solved": sum(episode is not None for episode in solved),
    "median_solved_episode": float(np.median(later)),
    "treasure_rate": float(np.mean([one["treasure_rate"] for one in each.values()])),
    "best_treasure_rate": next(iter(each.values()))["best_treasure_rate"],
  }


def _total(each: Seeds, name: str) -> Any:
  return sum(one[name] for one in each.values())


def _means(values: np.ndarray) -> dict[str, Any]:
  return {
    _MEAN: returns_lib.mean_of_last(values),
    _BEST: returns_lib.best_mean(values),
  }
