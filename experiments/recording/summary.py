"""The outcome of a run: `summary.json`, and the table at its end on the terminal."""

import dataclasses
import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.recording import returns as returns_lib

if TYPE_CHECKING:
  from explorax import environments

STATUSES = ("finished", "interrupted", "failed")

_MEAN = f"mean_return_last_{returns_lib.WINDOW}"
_BEST = f"best_mean_return_{returns_lib.WINDOW}"


@dataclasses.dataclass(frozen=True)
class Summary:
  """The outcome of a run with one seed.

  Attributes:
    status: one of `STATUSES`.
    env_steps: environment steps taken.
    learner_updates: gradient updates made.
    steps_per_second: environment steps per second, compilation left out; NaN if
      the run was too short to tell.
    wall_seconds: how long the run took, compilation included.
    returns: of all its episodes.
    solved_rule: the rule by which it is solved, which has seen all episodes; None
      where there is no such rule.
    evaluations: those that were made.
    environment_failures: how many crashes of environments the run survived.
    replacements: role → how many of its processes died and were replaced.
    last_metrics: name → value, of the last episode: the learner's and the
      environment's.
  """

  status: str
  env_steps: int
  learner_updates: int
  steps_per_second: float
  wall_seconds: float
  returns: returns_lib.Returns
  solved_rule: "environments.SolvedRule | None"
  evaluations: returns_lib.Evaluations
  environment_failures: int
  last_metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
  replacements: Mapping[str, int] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    if self.status not in STATUSES:
      raise ValueError(f"status is {self.status!r}; use one of {STATUSES}.")

  def to_dict(self) -> dict[str, Any]:
    """The content of `summary.json`.

    `solved_episode` is there only if there is a rule, and `evaluation` and
    `replacements` only if there were any.
    """
    content = {
      "status": self.status,
      "env_steps": self.env_steps,
      "episodes": len(self.returns.of()),
      "learner_updates": self.learner_updates,
      "steps_per_second": self.steps_per_second,
      "wall_seconds": self.wall_seconds,
      "environment_failures": self.environment_failures,
      **_means(self.returns.of()),
      "last_metrics": dict(self.last_metrics),
      "policies": {
        name: {"episodes": len(values), **_means(values)}
        for name in self.returns.policies
        for values in (self.returns.of(name),)
      },
    }
    if self.solved_rule is not None:
      content["solved_episode"] = self.solved_rule.solved_episode
    if self.replacements:
      content["replacements"] = dict(self.replacements)
    if len(self.evaluations):
      content["evaluation"] = self.evaluations.to_dict()
    return content

  def table(self, title: str) -> str:
    """The same for a reader: a few lines, and a table of the returns by policy."""
    episodes = len(self.returns.of())
    facts = [
      f"{count(episodes, 'episode')}, {count(self.env_steps, 'environment step')}, "
      f"{count(self.learner_updates, 'learner update')} in "
      f"{duration(self.wall_seconds)}{_speed(self.steps_per_second)}"
    ]
    if self.solved_rule is not None:
      regret = f"average regret below {self.solved_rule.threshold:g}"
      solved_in = self.solved_rule.solved_episode
      facts.append(
        f"Deep Sea was not solved in {count(episodes, 'episode')} (no {regret})."
        if solved_in is None
        else f"Deep Sea was solved in episode {solved_in} ({regret})."
      )
    if len(self.evaluations):
      facts.append(_evaluation(self.evaluations.to_dict()))
    if self.environment_failures:
      failures = count(self.environment_failures, "failure")
      facts.append(f"The environment was recreated after {failures}.")
    if self.replacements:
      told = ", ".join(f"{role} {n}" for role, n in self.replacements.items())
      facts.append(f"Processes that died were replaced: {told}.")
    lines = [f"{title}: {self.status}", *(f"  {fact}" for fact in facts)]
    if episodes:
      lines += ["", *_returns_table(self.returns)]
    if self.last_metrics:
      told = ", ".join(f"{name} {x:.4g}" for name, x in self.last_metrics.items())
      lines.append("")
      lines += textwrap.wrap(
        f"last episode: {told}", 86, initial_indent="  ", subsequent_indent="    "
      )
    return "\n".join(lines)


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


def _returns_table(returns: returns_lib.Returns) -> list[str]:
  window = returns_lib.WINDOW
  rows = [("policy", "episodes", f"mean of last {window}", f"best mean of {window}")]
  groups = returns.policies if len(returns.policies) > 1 else []
  for label, policy in [("all", None), *((name, name) for name in groups)]:
    values = returns.of(policy)
    means = _means(values)
    rows.append(
      (label, f"{len(values):,}", f"{means[_MEAN]:.4g}", f"{means[_BEST]:.4g}")
    )
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  lines = []
  for label, *numbers in rows:
    cells = [text.rjust(w) for text, w in zip(numbers, widths[1:], strict=True)]
    lines.append("  " + "   ".join([label.ljust(widths[0]), *cells]))
  return lines
