"""What came of a run: `summary.json`, and the table that ends it on the terminal."""

import dataclasses
import math
import textwrap
from typing import TYPE_CHECKING, Any

from explorax.experiments.recording import evaluations as evaluations_lib
from explorax.experiments.recording import returns as returns_lib

if TYPE_CHECKING:
  from explorax import environments

STATUSES = ("finished", "interrupted", "failed")


@dataclasses.dataclass(frozen=True)
class Summary:
  """The outcome of a run.

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
    environment_failures: how many crashes of environments the run went on after.
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
  evaluations: evaluations_lib.Evaluations
  environment_failures: int
  last_metrics: dict[str, float] = dataclasses.field(default_factory=dict)
  replacements: dict[str, int] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    if self.status not in STATUSES:
      raise ValueError(f"a run's status is one of {STATUSES}, not {self.status!r}.")

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
      **_means(self.returns, None),
      "last_metrics": {
        name: value if math.isfinite(value) else None
        for name, value in self.last_metrics.items()
      },
      "policies": {
        name: {"episodes": len(self.returns.of(name)), **_means(self.returns, name)}
        for name in self.returns.policies
      },
    }
    if self.solved_rule is not None:
      content["solved_episode"] = self.solved_rule.solved_episode
    if self.replacements:
      content["replacements"] = self.replacements
    if len(self.evaluations):
      content["evaluation"] = self.evaluations.to_dict()
    return content

  def table(self, title: str) -> str:
    """The same for a reader: a few lines, and a table of the returns by policy."""
    episodes = len(self.returns.of())
    speed = self.steps_per_second
    facts = [
      f"{count(episodes, 'episode')}, {count(self.env_steps, 'environment step')}, "
      f"{count(self.learner_updates, 'learner update')} in "
      f"{duration(self.wall_seconds)}"
      + (f" ({speed:,.0f} steps/s after compilation)" if math.isfinite(speed) else "")
    ]
    if self.solved_rule is not None:
      facts.append(_solved(self.solved_rule, episodes))
    if len(self.evaluations):
      facts.append(self.evaluations.sentence())
    if self.environment_failures:
      failures = count(self.environment_failures, "failure")
      facts.append(f"The environment was made anew after {failures}.")
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


def _solved(rule: "environments.SolvedRule", episodes: int) -> str:
  regret = f"average regret below {rule.threshold:g}"
  if rule.solved_episode is not None:
    return f"Deep Sea was solved in episode {rule.solved_episode} ({regret})."
  return f"Deep Sea was not solved in {count(episodes, 'episode')} (no {regret})."


def duration(seconds: float) -> str:
  """Seconds as `0:07`, `12:34` or `1:02:03`."""
  minutes, seconds = divmod(max(0, round(seconds)), 60)
  hours, minutes = divmod(minutes, 60)
  return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def count(number: int, noun: str) -> str:
  """`1 task`, `1,200 tasks`."""
  return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _means(returns: returns_lib.Returns, policy: str | None) -> dict[str, Any]:
  values = returns.of(policy)
  return {
    f"mean_return_last_{returns_lib.WINDOW}": returns_lib.mean_of_last(values),
    f"best_mean_return_{returns_lib.WINDOW}": returns_lib.best_mean(values),
  }


def _returns_table(returns: returns_lib.Returns) -> list[str]:
  window = returns_lib.WINDOW
  header = ("policy", "episodes", f"mean of last {window}", f"best mean of {window}")
  groups = returns.policies if len(returns.policies) > 1 else []
  rows: list[tuple[str, ...]] = [header]
  for label, policy in [("all", None), *((name, name) for name in groups)]:
    values = returns.of(policy)
    means = (returns_lib.mean_of_last(values), returns_lib.best_mean(values))
    rows.append((label, f"{len(values):,}", *(f"{mean:.4g}" for mean in means)))
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  lines = []
  for label, *numbers in rows:
    cells = [text.rjust(w) for text, w in zip(numbers, widths[1:], strict=True)]
    lines.append("  " + "   ".join([label.ljust(widths[0]), *cells]))
  return lines
