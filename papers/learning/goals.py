"""The table of docs/expected.md: what agents reach on gymnasium's environments.

  python -m explorax.papers.learning.runs --only=cartpole,lunar_lander
  python benchmarks/expected_peers.py

write the runs. Those in papers/learning/results/expected.jsonl are in the table, which
`python -m explorax.papers.learning.page` writes.
"""

import statistics
from collections.abc import Sequence
from typing import Any

from explorax.experiments.recording import statistics as intervals
from explorax.experiments.reports import markdown

Row = dict[str, Any]

# The return that an evaluation must exceed: gymnasium's reward thresholds, and in
# MountainCar the return of an episode that does not reach the goal.
GOALS = {
  "gym:CartPole-v1": 475.0,
  "gym:MountainCar-v0": -200.0,
  "gym:Acrobot-v1": -100.0,
  "gym:LunarLander-v3": 200.0,
}


def table(runs: Sequence[Row]) -> str:
  """The runs as a Markdown table, with a row per environment and agent.

  An interval of fewer than three seeds would say little, and is left out.
  """
  groups: dict[tuple[str, str], list[Row]] = {}
  for run in runs:
    groups.setdefault((run["env"], run["label"]), []).append(run)
  order = list(GOALS)
  ordered = sorted(groups.items(), key=lambda item: order.index(item[0][0]))
  return markdown.table([_row(group) for _, group in ordered])


def _row(group: Sequence[Row]) -> Row:
  first, goal = group[0], GOALS[group[0]["env"]]
  last = [run["evaluations"][-1][1] for run in group]
  mean = f"{statistics.fmean(last):.0f}"
  if len(last) >= 3:
    interval = intervals.mean(last)
    mean += f" ({interval.low:.0f} to {interval.high:.0f})"
  reached = [steps for run in group if (steps := reached_at(run, goal)) is not None]
  later = [above for run in group for above in afterwards(run, goal)]
  minutes = statistics.median(run["cpu_seconds"] for run in group) / 60
  return {
    "agent": f"`{first['label']}`" if first["label"].isidentifier() else first["label"],
    "environment, steps": f"`{first['env']}`, {_steps(first):,}",
    "return": mean,
    "return of each seed": ", ".join(f"{value:.0f}" for value in last),
    "goal reached": f"{len(reached)}/{len(group)}",
    "in step": f"{statistics.median(reached):,.0f}" if reached else "–",
    "later above it": f"{sum(later)}/{len(later)}" if later else "–",
    "CPU minutes": f"{minutes:.1f}",
  }


def _steps(run: Row) -> int:
  """The steps that were asked for; an evaluation comes at the end of an episode."""
  return round(run["env_steps"], -3)


def reached_at(run: Row, goal: float) -> int | None:
  """The environment step of the first evaluation above the goal, if there is one."""
  return next((step for step, value in run["evaluations"] if value > goal), None)


def afterwards(run: Row, goal: float) -> list[bool]:
  """Whether each evaluation after the first one above the goal is above it, too."""
  above = [value > goal for _, value in run["evaluations"]]
  return above[above.index(True) + 1 :] if any(above) else []
