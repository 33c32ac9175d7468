"""What agents learn beside the papers' figures: in gymnasium, and in two games.

Figures of tables: those of docs/expected.md and docs/atari.md.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.environments import atari57
from explorax.experiments.recording import statistics as intervals
from explorax.experiments.reports import markdown
from explorax.papers import compute, draw, figures

# The return that an evaluation must exceed: gymnasium's reward thresholds, and in
# MountainCar the return of an episode that does not reach the goal.
_GOALS = {
  "gym:CartPole-v1": 475.0,
  "gym:MountainCar-v0": -200.0,
  "gym:Acrobot-v1": -100.0,
  "gym:LunarLander-v3": 200.0,
}
_FRAMES = 4  # Of Atari's emulator in an environment step.


def run(settings: figures.Settings) -> figures.Results:
  """Trains a seed with the local runner: its replay is seeded, and a run repeatable.

  Returns:
    `env_steps` and `evaluations`, the mean returns of the E evaluations, `[1, E]`.
  """
  fields = ("env", "steps", "eval_every", "eval_episodes")
  limits = {name: settings[name] for name in fields}
  record = compute.train(settings, runner="local", **limits)
  (evaluations,) = record.evaluations.values()
  means = [np.mean([y.episode_return for y in x.episodes]) for x in evaluations]
  steps = [x.env_steps for x in evaluations]
  return {"env_steps": np.array([steps]), "evaluations": np.array([means])}


def row(group: figures.Table) -> dict[str, Any]:
  """What a table says of the seeds of an agent in an environment."""
  (env,), (num_steps,) = group.values("env"), group.values("steps")
  returns = group.joined("evaluations")
  mean, last = intervals.mean(returns[:, -1]), returns[:, -1]
  interval = f" ({mean.low:.0f} to {mean.high:.0f})" if len(last) > 1 else ""
  minutes = statistics.median(task.seconds for task in group) / 60
  return {
    "steps": f"{num_steps:,}",
    "return": f"{mean.value:.0f}{interval}",
    "return of each seed": ", ".join(f"{value:.0f}" for value in last),
    **(_goal(group, _GOALS[env]) if env in _GOALS else {}),
    "CPU minutes": f"{minutes:.1f}",
  }


def _goal(group: figures.Table, goal: float) -> dict[str, str]:
  """How many seeds exceed a return, after how many steps, and how often later."""
  steps, returns = group.joined("env_steps"), group.joined("evaluations")
  reached, later = [], []
  for at, above in zip(steps, returns > goal, strict=True):
    if above.any():
      first = above.argmax()
      reached.append(at[first])
      later += [*above[first + 1 :]]
  return {
    "goal reached": f"{len(reached)}/{len(returns)}",
    "in step": f"{statistics.median(reached):,.0f}" if reached else "–",
    "later above it": f"{sum(later)}/{len(later)}" if later else "–",
  }


class Part(NamedTuple):
  """The rows of some agents in an environment: label → the settings of a line."""

  env: str
  lines: draw.Lines
  steps: int
  eval_every: int
  eval_episodes: int
  seeds: int
  first_seed: int = 0

  def grid(self) -> figures.Grid:
    names = ("env", "steps", "eval_every", "eval_episodes")
    axes = {name: getattr(self, name) for name in names}
    return figures.Grid(run, [*self.lines.values()], axes, self.seeds, self.first_seed)


def _figure(
  name: str,
  title: str,
  parts: Sequence[Part],
  panels: Sequence[Sequence[draw.Panel]] = (),
) -> figures.Figure:
  def table(results: figures.Table) -> str:
    rows = []
    for part in parts:
      for label, line in part.lines.items():
        if group := results.where(**line, env=part.env):
          rows.append({"agent": label, "environment": f"`{part.env}`", **row(group)})
    return markdown.table(rows)

  return figures.Figure(
    name=f"learning/{name}",
    title=title,
    source="Our own",
    runs=[part.grid() for part in parts],
    quick={"num_seeds": 1, "steps": 200, "eval_every": 100, "eval_episodes": 1},
    panels=panels,
    claims=[],
    table=table,
  )


def _line(agent: str, *changes: str) -> Mapping[str, Any]:
  return {"agent": agent, "changes": [*changes]}


def _on_gym(name: str, steps: int, agents: str, seeds: int = 5) -> Part:
  """Ten evaluations of 5 episodes; seeds 0 and 1 had a part in the settings."""
  lines = {agent: _line(agent) for agent in agents.split()}
  return Part(f"gym:{name}", lines, steps, steps // 10, 5, seeds, first_seed=2)


# Double DQN's settings for few frames of Atari: the network of data-efficient Rainbow
# (van Hasselt et al., 2019), and what paper 3's table does in millions of steps is done
# in ten thousands.
_FEW_FRAMES = (
  "torso=data_efficient",
  "hidden_sizes=256",
  "random_steps=0",
  "min_replay_size=10_000",
  "replay_capacity=100_000",
  "learning_rate=1e-4",
  "adam_b2=0.999",
  "target_update_period=500",
  "n_step=3",
)
# An update in each step, returns of ten steps, and Rainbow's replay and duelling heads.
_MANY_UPDATES = (
  "torso=data_efficient",
  "hidden_sizes=()",
  "head_size=256",
  "duelling=True",
  "random_steps=0",
  "min_replay_size=2_000",
  "replay_capacity=100_000",
  "priority_exponent=0.5",
  "importance_exponent=0.4",
  "learning_rate=1e-4",
  "adam_b2=0.999",
  "optimizer_eps=1e-8",
  "max_gradient_norm=10.0",
  "target_update_period=1000",
  "n_step=10",
  "updates_per_step=1.0",
  "exploration=EpsilonGreedy(Linear(1.0, 0.02, steps=20_000))",
)
_PONG = {"ε-greedy": _line("double_dqn", *_MANY_UPDATES)}
_FREEWAY = {
  label: _line(
    "double_dqn",
    *_FEW_FRAMES,
    f"exploration={rule}(Linear(1.0, 0.01, steps=100_000))",
  )
  for label, rule in (("ε-greedy", "EpsilonGreedy"), ("εz-greedy", "EzGreedy"))
}


def _game(title: str, lines: draw.Lines) -> draw.Curves:
  random = atari57.references()[title.lower()].random
  return draw.Curves(
    where={"env": f"atari:{title}"},
    y="evaluations",
    lines=lines,
    x=lambda table: _FRAMES * table.joined("env_steps")[0] / 1e6,
    guides=[draw.guide("axhline", random)],
    axes={
      "title": title,
      "xlabel": "millions of frames",
      "ylabel": "return of 3 evaluation episodes",
    },
  )


FIGURES = (
  _figure(
    "gym",
    "Agents on gymnasium's environments",
    [
      _on_gym("CartPole-v1", 50_000, "double_dqn rainbow tdu bootstrapped_dqn r2d2"),
      _on_gym("MountainCar-v0", 50_000, "dqn_ez dqn"),
      _on_gym("Acrobot-v1", 50_000, "double_dqn"),
      _on_gym("LunarLander-v3", 100_000, "double_dqn", seeds=10),
    ],
  ),
  _figure(
    "atari",
    "Double DQN in Pong and Freeway on a core",
    [
      Part("atari:Pong", _PONG, 400_000, 25_000, eval_episodes=3, seeds=1),
      Part("atari:Freeway", _FREEWAY, 150_000, 15_000, eval_episodes=3, seeds=3),
    ],
    [[_game("Pong", _PONG), _game("Freeway", _FREEWAY)]],
  ),
)
