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
  from explorax.experiments.runners import common

Seeds = Mapping[int, Mapping[str, Any]]  # Seed → what `of_run` returned.

STATUSES = ("finished", "interrupted", "failed")

# The return of the evaluation policy at the end, and that of training.
EVALUATION, TRAINING = "evaluation_return", "training_return"
# Metrics of an episode in words, where their names do not say what they are.
_WORDS = {
  "q": "mean Q",
  "q_bound": "bound of |Q|",
  "r_int": "intrinsic reward",
  "td_error": "mean |TD error|",
  "priority": "mean priority",
  "max_priority": "greatest priority",
  "target_min": "least target",
  "target_max": "greatest target",
  "bad_episode": "missed the best return",
  "denoised_return": "treasures found",
  "total_bad_episodes": "episodes that missed the best return so far",
  "total_regret": "regret of all episodes so far",
}
_MAX_LISTED = 10  # Seeds whose means are printed one by one.
_BEST = f"best_mean_return_{returns_lib.WINDOW}"


def of_run(
  *,
  status: str,
  last: "common.Result | common.Episode | None",
  last_metrics: Mapping[str, float],
  returns: returns_lib.Returns,
  evaluation_policy: str,
  solved_rule: "environments.SolvedRule | None",
  wall_seconds: float,
  unfinished_steps: int,
  environment_failures: int,
  stop_reason: str | None = None,
) -> dict[str, Any]:
  """The content of `summary.json` of a run with one seed.

  `evaluation_return` is the mean return of the last evaluation, and `training_return`
  that of the training episodes that ended in the last tenth of the steps, at least of
  one. `solved_episode` (by bsuite's rule), `treasure_rate` and `best_treasure_rate` are
  present only with a rule, `evaluation` and `stop_reason` only if there were any.

  Args:
    status: one of `STATUSES`.
    last: the runner's result or, without one, the last episode; None before the first.
      Its `steps_per_second` exclude compilation.
    last_metrics: name → value, of the last episode: the learner's and the
      environment's.
    returns: of all its episodes and evaluations.
    evaluation_policy: what acts in evaluations, for people.
    solved_rule: updated with all episodes; None if the environment has no rule.
    wall_seconds: how long the run took, including compilation.
    unfinished_steps: environment steps of the episode interrupted by the run's end.
    environment_failures: how many crashes of environments the run survived.
    stop_reason: why a callback has ended the run; None if none has.
  """
  if status not in STATUSES:
    raise ValueError(f"status is {status!r}; use one of {STATUSES}.")
  env_steps = last.env_steps if last else 0
  content = {
    "status": status,
    **_evaluated(returns.evaluations, evaluation_policy),
    **_trained(returns, env_steps),
    "env_steps": env_steps,
    "episodes": len(returns),
    "learner_updates": last.learner_updates if last else 0,
    "steps_per_second": last.steps_per_second if last else math.nan,
    "wall_seconds": wall_seconds,
    "unfinished_steps": unfinished_steps,
    "environment_failures": environment_failures,
    _BEST: returns_lib.best_mean(returns.of()),
    "last_metrics": dict(last_metrics),
    "policies": {
      name: {
        "episodes": len(returns.of(name)),
        **_trained(returns, env_steps, name),
        _BEST: returns_lib.best_mean(returns.of(name)),
      }
      for name in returns.policies
    },
  }
  if solved_rule is not None:
    content["solved_episode"] = solved_rule.solved_episode
    content["treasure_rate"] = solved_rule.treasure_rate
    content["best_treasure_rate"] = solved_rule.best_rate
  if stop_reason is not None:
    content["stop_reason"] = stop_reason
  if len(returns.evaluations):
    content["evaluation"] = returns.evaluations.to_dict()
  return content


def of_seeds(each: Seeds) -> dict[str, Any]:
  """The content of `summary.json` of a run with several seeds.

  Args:
    each: seed → what `of_run` returned.
  """
  first = next(iter(each.values()))
  intervals = {name: _interval(each, name) for name in (EVALUATION, TRAINING)}
  return {
    "status": first["status"],
    "num_seeds": len(each),
    **{
      name: x and {end: float(value) for end, value in x._asdict().items()}
      for name, x in intervals.items()
    },
    "env_steps_of_each": max(one["env_steps"] for one in each.values()),
    "wall_seconds": first["wall_seconds"],
    "steps_per_second_of_all": _total(each, "steps_per_second"),
    **_deep_sea(each),
    "seeds": {
      str(seed): {
        name: one[name]
        for name in (
          "episodes",
          EVALUATION,
          TRAINING,
          "solved_episode",
          "treasure_rate",
        )
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
    return "\n".join(lines)
  metrics = {n: x for n, x in first["last_metrics"].items() if n != "finite"}
  if metrics:
    text = ", ".join(f"{_WORDS.get(n, n)} {number(x)}" for n, x in metrics.items())
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


def number(value: Any) -> str:
  """A number with four digits, or all of a large one: `475.2`, `12,345`, `0.004`."""
  return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def count(number: int, noun: str) -> str:
  """`1 task`, `1,200 tasks`."""
  return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _facts(each: Seeds) -> Iterator[str]:
  """Sentences about one seed or several; counts are sums over the seeds."""
  first = next(iter(each.values()))
  episodes = count(_total(each, "episodes"), "episode")
  yield from _seed_returns(first) if len(each) == 1 else _mean_returns(each)
  if rule := _deep_sea(each):
    yield _solved(rule, len(each), episodes)
  seeds = f"{len(each)} seeds: " if len(each) > 1 else ""
  seconds = duration(max(one["wall_seconds"] for one in each.values()))
  speed = _total(each, "steps_per_second")
  timed = f" ({speed:,.0f} steps/s after compilation)" if math.isfinite(speed) else ""
  yield (
    f"{seeds}{episodes}, {count(_total(each, 'env_steps'), 'environment step')}, "
    f"{count(_total(each, 'learner_updates'), 'learner update')} in {seconds}{timed}"
  )
  if reason := first.get("stop_reason"):
    yield f"A callback ended the run: {reason}"
  if len(each) > 1:
    return
  if steps := first["unfinished_steps"]:
    yield f"The run ended {count(steps, 'step')} into another episode."


def _seed_returns(one: Mapping[str, Any]) -> Iterator[str]:
  """The return at the end, of evaluation and of training."""
  if one[EVALUATION] is not None:
    of = count(one["evaluation_episodes"], "evaluation episode")
    if one["evaluation_standard_error"] is not None:
      of = f"± {one['evaluation_standard_error']:.2g}, standard error over {of}"
    if left := one["evaluation_episodes_left"]:
      of += f", {left} of them left without an end"
    if (at := one["evaluation"]["last"]["env_steps"]) < one["env_steps"]:
      of += f"; at step {at:,}"
    policy = _capitalised(one["evaluation_policy"])
    yield f"{policy}: mean return {number(one[EVALUATION])} ({of})"
  if one[TRAINING] is not None:
    of = count(one["training_episodes"], "episode") + ", the last 10 % of steps"
    yield f"Training: mean return {number(one[TRAINING])} ({of})"
  evaluations = one.get("evaluation", {})
  if evaluations.get("evaluations", 0) > 1:
    best = evaluations["best"]
    yield (
      f"Best of {evaluations['evaluations']} evaluations: mean return "
      f"{number(best['mean_return'])} at step {best['env_steps']:,}."
    )


def _mean_returns(each: Seeds) -> Iterator[str]:
  """The same of several seeds, with intervals."""
  first = next(iter(each.values()))
  names = {EVALUATION: _capitalised(first["evaluation_policy"]), TRAINING: "Training"}
  of = {
    EVALUATION: count(first["evaluation_episodes"], "evaluation episode") + " each",
    TRAINING: "the last 10 % of steps",
  }
  few = "; with two seeds it says little" if len(each) == 2 else ""
  for name, label in names.items():
    if x := _interval(each, name):
      yield (
        f"{label}: mean return {number(x.value)}, 95 % interval "
        f"{number(x.low)} to {number(x.high)}{few} (over seeds; {of[name]})"
      )


def _capitalised(text: str) -> str:
  return text[:1].upper() + text[1:]


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
      f"; the treasure was found in {rule['treasure_rate']:.1%} of the episodes "
      f"(an optimal policy finds it in {rule['best_treasure_rate']:.1%})"
    )
  return text + "."


def _returns_table(each: Seeds) -> list[str]:
  """A line for each policy of one seed, or for each of a few seeds."""
  if len(each) > _MAX_LISTED:
    return []
  best = f"best mean of {returns_lib.WINDOW}"
  kind, columns = "seed", {EVALUATION: "evaluation", TRAINING: "training"}
  groups: Mapping[str, Mapping[str, Any]] = {
    str(seed): one for seed, one in each.items()
  }
  if len(each) == 1:
    (one,) = each.values()
    kind, groups = "policy", one["policies"]
    columns = {TRAINING: "training return", _BEST: best}
    if len(groups) == 1:
      return []
  columns = {
    name: label
    for name, label in columns.items()
    if any(group[name] is not None for group in groups.values())
  }
  rows = [[kind, "episodes", *columns.values()]]
  for label, group in groups.items():
    means = ("" if group[name] is None else number(group[name]) for name in columns)
    rows.append([label, f"{group['episodes']:,}", *means])
  return ["", *aligned(rows)]


def _interval(each: Seeds, name: str) -> statistics.Interval | None:
  """The mean over seeds of a number of each; None if a seed has none."""
  values = [one[name] for one in each.values()]
  if None in values:
    return None
  return statistics.bootstrap(values)


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


def _evaluated(evaluations: returns_lib.Evaluations, policy: str) -> dict[str, Any]:
  """The result of the last evaluation; None for a number that is not known."""
  has_one = len(evaluations) > 0
  return {
    EVALUATION: float(evaluations.means[-1]) if has_one else None,
    "evaluation_standard_error": evaluations.standard_error,
    "evaluation_episodes": len(evaluations.last),
    "evaluation_episodes_left": sum("left" in x.metrics for x in evaluations.last),
    "evaluation_policy": policy,
  }


def _trained(
  returns: returns_lib.Returns, env_steps: int, policy: str | None = None
) -> dict[str, Any]:
  """The return of training episodes at the end."""
  late = returns.late(env_steps, policy)
  return {
    TRAINING: float(np.mean(late)) if len(late) else None,
    "training_episodes": len(late),
  }


def evaluation_policy(record: Mapping[str, Any]) -> str:
  """What acts in evaluations, by a run's config.json: `greedy policy`, or similar."""
  config = record.get("config")
  settings: Mapping[str, Any] = config if isinstance(config, Mapping) else {}
  epsilon = settings.get("evaluation_epsilon")
  if epsilon is None or settings.get("evaluation") is not None:
    return "evaluation policy"
  return "greedy policy" if epsilon == 0 else f"greedy policy with ε = {epsilon:g}"
