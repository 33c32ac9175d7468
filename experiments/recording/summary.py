"""The results of a run: `summary.json`, and the table printed at the end."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.recording import returns as returns_lib
from explorax.experiments.recording import statistics

if TYPE_CHECKING:
  from explorax import environments
  from explorax.experiments.runners import core

STATUSES = ("finished", "interrupted", "failed")

_MEAN = f"mean_return_last_{returns_lib.WINDOW}"
_MAX_LISTED = 10  # Seeds whose means are printed one by one.
_BEST = f"best_mean_return_{returns_lib.WINDOW}"


def of_run(
  *,
  status: str,
  last: "core.Result | core.Episode | None",
  wall_seconds: float,
  returns: returns_lib.Returns,
  evaluations: returns_lib.Evaluations,
  solved_rule: "environments.SolvedRule | None",
  unfinished_steps: int,
  environment_failures: int,
  replacements: Mapping[str, int],
  last_metrics: Mapping[str, float],
) -> dict[str, Any]:
  """The content of `summary.json` of a run with one seed.

  `solved_episode` (by bsuite's rule), `treasure_rate` and `best_treasure_rate` are
  present only with a rule, `evaluation` and `replacements` only if there were any.

  Args:
    status: one of `STATUSES`.
    last: the runner's result or, without one, the last episode; None before the first.
      Its `steps_per_second` exclude compilation.
    wall_seconds: how long the run took, including compilation.
    returns: of all its episodes.
    evaluations: of the run.
    solved_rule: the rule for solving the environment, updated with all episodes; None
      if there is none.
    unfinished_steps: environment steps of the episode interrupted by the run's end.
    environment_failures: how many crashes of environments the run survived.
    replacements: role → how many of its processes died and were replaced.
    last_metrics: name → value, of the last episode: the learner's and the
      environment's.
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
  if len(evaluations):
    content["evaluation"] = evaluations.to_dict()
  return content


def table(title: str, content: Mapping[str, Any]) -> str:
  """`of_run`'s content as text: some facts, and the returns by policy."""
  episodes = count(content["episodes"], "episode")
  facts = [
    f"{episodes}, {count(content['env_steps'], 'environment step')}, "
    f"{count(content['learner_updates'], 'learner update')} in "
    f"{duration(content['wall_seconds'])}{_speed(content['steps_per_second'])}"
  ]
  if "solved_episode" in content:
    solved = content["solved_episode"]
    how = (
      f"not solved in {episodes}" if solved is None else f"solved in episode {solved}"
    )
    facts.append(f"Deep Sea was {how} by bsuite's rule{_treasure(content)}.")
  if "evaluation" in content:
    facts.append(_evaluation(content["evaluation"]))
  if steps := content["unfinished_steps"]:
    facts.append(f"The run ended {count(steps, 'step')} into another episode.")
  if failures := content["environment_failures"]:
    facts.append(f"The environment was recreated after {count(failures, 'failure')}.")
  if "replacements" in content:
    roles = ", ".join(f"{role} {n}" for role, n in content["replacements"].items())
    facts.append(f"Processes that died were replaced: {roles}.")
  lines = [f"{title}: {content['status']}", *(f"  {fact}" for fact in facts)]
  if content["episodes"]:
    lines += ["", *_returns_table(content)]
  metrics = {n: x for n, x in content["last_metrics"].items() if n != "finite"}
  if metrics:
    text = ", ".join(f"{name} {x:.4g}" for name, x in metrics.items())
    lines.append("")
    lines += textwrap.wrap(
      f"last episode: {text}", 86, initial_indent="  ", subsequent_indent="    "
    )
  return "\n".join(lines)


def of_seeds(each: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
  """The content of `summary.json` of a run with several seeds.

  Args:
    each: seed → what `of_run` returned.
  """
  first = next(iter(each.values()))
  means = [one[_MEAN] for one in each.values() if one[_MEAN] is not None]
  mean = None
  if means:
    interval = statistics.bootstrap(np.array(means)[:, None]).at(0)
    mean = {name: float(x) for name, x in interval._asdict().items()}
  content: dict[str, Any] = {
    "status": first["status"],
    "num_seeds": len(each),
    "env_steps_of_each": max(one["env_steps"] for one in each.values()),
    "wall_seconds": first["wall_seconds"],
    "steps_per_second_of_all": sum(one["steps_per_second"] for one in each.values()),
    _MEAN: mean,
  }
  if all("solved_episode" in one for one in each.values()):
    solved = [one["solved_episode"] for one in each.values()]
    content["solved"] = sum(episode is not None for episode in solved)
    # Unsolved seeds count as later than all others.
    later = [math.inf if episode is None else episode for episode in solved]
    content["median_solved_episode"] = float(np.median(later))
    rates = [one["treasure_rate"] for one in each.values()]
    content["treasure_rate"] = float(np.mean(rates))
    content["best_treasure_rate"] = first["best_treasure_rate"]
  content["seeds"] = {
    str(seed): {
      name: one[name]
      for name in ("episodes", _MEAN, "solved_episode", "treasure_rate")
      if name in one
    }
    for seed, one in each.items()
  }
  return content


def table_of_seeds(title: str, content: Mapping[str, Any]) -> str:
  """`of_seeds`'s content as text."""
  lines = [
    f"{title}: {content['status']}",
    f"  {content['num_seeds']} seeds, {content['env_steps_of_each']:,} environment "
    f"steps each in {duration(content['wall_seconds'])}"
    + _speed(content["steps_per_second_of_all"], "in all "),
  ]
  mean = content[_MEAN]
  if mean is not None:
    window = min(
      returns_lib.WINDOW, *(x["episodes"] for x in content["seeds"].values())
    )
    few = "; with two seeds it says little" * (content["num_seeds"] == 2)
    lines.append(
      f"  mean return of the last {window} episodes: {mean['value']:.4g} "
      f"(95 % interval over seeds: {mean['low']:.4g} to {mean['high']:.4g}{few})"
    )
    of_each = (f"{seed}: {x[_MEAN]:.4g}" for seed, x in content["seeds"].items())
    if content["num_seeds"] <= _MAX_LISTED:
      lines.append(f"  by seed: {', '.join(of_each)}")
  if "solved" in content:
    solved = f"  Deep Sea was solved by {content['solved']} of {content['num_seeds']}"
    median = content["median_solved_episode"]
    finite = f", in {median:,.0f} episodes (median)" if math.isfinite(median) else ""
    lines.append(f"{solved} seeds by bsuite's rule{finite}{_treasure(content)}.")
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


def _speed(steps_per_second: float, which: str = "") -> str:
  if not math.isfinite(steps_per_second):
    return ""
  return f" ({steps_per_second:,.0f} steps/s {which}after compilation)"


def _treasure(content: Mapping[str, Any]) -> str:
  """For one run or several seeds; '' before the first episode."""
  rate, best = content["treasure_rate"], content["best_treasure_rate"]
  if math.isnan(rate):
    return ""
  return (
    f"; the treasure was found in {rate:.1%} of episodes (by the best policy in "
    f"{best:.1%})"
  )


def _evaluation(content: Mapping[str, Any]) -> str:
  last, best = content["last"], content["best"]
  return (
    f"Evaluation ({count(content['episodes_each'], 'episode')} each): mean return "
    f"{last['mean_return']:.4g} at step {last['env_steps']:,} (last), "
    f"{best['mean_return']:.4g} at step {best['env_steps']:,} (best of "
    f"{content['evaluations']})."
  )


def _means(values: np.ndarray) -> dict[str, Any]:
  return {
    _MEAN: returns_lib.mean_of_last(values),
    _BEST: returns_lib.best_mean(values),
  }


def _returns_table(content: Mapping[str, Any]) -> list[str]:
  window = min(returns_lib.WINDOW, content["episodes"])
  rows = [["policy", "episodes", f"mean of last {window}"]]
  has_best = content[_BEST] is not None
  if has_best:
    rows[0].append(f"best mean of {window}")
  groups = content["policies"] if len(content["policies"]) > 1 else {}
  for label, group in {"all": content, **groups}.items():
    row = [label, f"{group['episodes']:,}", f"{group[_MEAN]:.4g}"]
    if has_best:
      row.append("" if group[_BEST] is None else f"{group[_BEST]:.4g}")
    rows.append(row)
  return aligned(rows)
