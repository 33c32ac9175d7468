"""What agents learn beside the papers' figures: gymnasium, games, parts of agents.

Figures of tables: those of docs/expected.md, docs/benchmarks.md and docs/atari.md.
"""

import math
import statistics
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from explorax import environments
from explorax.environments import atari57
from explorax.experiments import settings as settings_lib
from explorax.experiments.recording import statistics as intervals
from explorax.experiments.reports import markdown
from explorax.papers import compute, draw, figures, judge

Row = Mapping[str, Any]

# The return that an evaluation must exceed: gymnasium's reward thresholds, and in
# MountainCar the return of an episode that does not reach the goal.
_GOALS = {
  "gym:CartPole-v1": 475.0,
  "gym:MountainCar-v0": -200.0,
  "gym:Acrobot-v1": -100.0,
  "gym:LunarLander-v3": 200.0,
}
_FRAMES = 4  # Of Atari's emulator in an environment step.

# -- what is computed -----------------------------------------------------------------


def run(settings: figures.Settings) -> figures.Results:
  """Trains a seed with the local runner: its replay is seeded, and a run repeatable.

  Returns:
    `env_steps` and `evaluations`, the mean returns of the E evaluations, `[1, E]`. Of
    the episodes of training, `[1]` each: `episodes`, their number; `rewarded`, that of
    those with a reward; `training`, the mean return of the last 100; `rooms` seen; and
    `solved`, the episode in which bsuite's rule calls it solved, or 0.
  """
  fields = ("env", "episodes", "steps", "eval_every", "eval_episodes")
  given = {name: settings[name] for name in fields if name in settings}
  record = compute.train(settings, runner="local", **{"eval_episodes": 0, **given})
  (episodes,), (evaluations,) = record.episodes.values(), record.evaluations.values()
  returns = [x.episode_return for x in episodes]
  solved, rule = 0, environments.solved_rule(settings["env"])
  if rule is not None:
    for number, episode in enumerate(episodes, start=1):
      rule.add_episode(number, episode.metrics)
    solved = rule.solved_episode or 0
  results = {
    "env_steps": [x.env_steps for x in evaluations],
    "evaluations": [
      np.mean([y.episode_return for y in x.episodes]) for x in evaluations
    ],
    "episodes": len(episodes),
    "rewarded": sum(x > 0 for x in returns),
    "training": np.mean(returns[-100:]) if returns else np.nan,
    "rooms": max((x.metrics.get("rooms_so_far", 1.0) for x in episodes), default=1.0),
    "solved": solved,
  }
  return {name: np.array([x]) for name, x in results.items()}


# -- rows of tables -------------------------------------------------------------------


def _solved_row(group: figures.Table) -> Row:
  (limit,) = group.values("episodes")
  episodes = [float(x) or math.inf for x in group.joined("solved")]

  def words(number: float) -> str:
    return f"> {limit}" if number > limit else f"{number:g}"

  return {
    "solved": f"{sum(map(math.isfinite, episodes))}/{len(episodes)}",
    "episodes to solve: median (each seed)": (
      f"{words(statistics.median(episodes))} ({', '.join(map(words, episodes))})"
    ),
  }


def _evaluated_row(group: figures.Table) -> Row:
  last = group.joined("evaluations")[:, -1]
  each = ", ".join(f"{value:.3g}" for value in last)
  return {
    "last evaluation: mean, 95 % interval (each seed)": f"{_mean(last)} ({each})",
    "last 100 training episodes: mean": _mean(group.joined("training")),
  }


def _mean(values: np.ndarray) -> str:
  """The mean with Student's t-interval, which equal values do not have."""
  mean = intervals.mean(values)
  return mean.to_text() if mean.low < mean.high else f"{mean.value:.3g}"


def _explored_row(group: figures.Table) -> Row:
  rewarded, episodes = (sum(group.joined(x)) for x in ("rewarded", "episodes"))
  share = judge.share(rewarded, max(1, episodes))  # A quick run may have none.
  return {
    "steps of each seed": f"{group.values('steps')[0]:,}",
    "episodes": episodes,
    "with a reward": rewarded,
    "share of them, 95 % interval": f"{share.low:.2%} to {share.high:.2%}",
    "rooms of each seed": ", ".join(f"{value:.0f}" for value in group.joined("rooms")),
  }


def _goal_row(group: figures.Table) -> Row:
  (env,), (num_steps,) = group.values("env"), group.values("steps")
  steps, returns = group.joined("env_steps"), group.joined("evaluations")
  reached, later = [], []
  for at, above in zip(steps, returns > _GOALS[env], strict=True):
    if above.any():
      first = above.argmax()
      reached.append(at[first])
      later += [*above[first + 1 :]]
  mean = intervals.mean(returns[:, -1])
  minutes = statistics.median(task.seconds for task in group) / 60
  return {
    "steps": f"{num_steps:,}",
    "return": f"{mean.value:.0f} ({mean.low:.0f} to {mean.high:.0f})",
    "return of each seed": ", ".join(f"{value:.0f}" for value in returns[:, -1]),
    "goal reached": f"{len(reached)}/{len(returns)}",
    "in step": f"{statistics.median(reached):,.0f}" if reached else "–",
    "later above it": f"{sum(later)}/{len(later)}" if later else "–",
    "CPU minutes": f"{minutes:.1f}",
  }


# -- experiments ----------------------------------------------------------------------


class Part(NamedTuple):
  """The rows of some agents in an environment: label → the settings of a line."""

  row: Callable[[figures.Table], Row]
  env: str
  lines: draw.Lines
  settings: figures.Settings
  seeds: int = 3
  first_seed: int = 0

  def grid(self) -> figures.Grid:
    axes = {"env": self.env, **self.settings}
    return figures.Grid(run, [*self.lines.values()], axes, self.seeds, self.first_seed)


def _figure(name: str, title: str, *parts: Part, **drawing: Any) -> figures.Figure:
  """A figure with a table for each kind of row."""

  def table(results: figures.Table) -> str:
    tables: dict[Any, list[Row]] = {}
    for part in parts:
      for label, line in part.lines.items():
        if group := results.where(**line, env=part.env):
          row = {"agent": label, "environment": f"`{part.env}`", **part.row(group)}
          tables.setdefault(part.row, []).append(row)
    return "\n\n".join(map(markdown.table, tables.values()))

  quick = {"num_seeds": 1, "episodes": 3, "steps": 200}
  return figures.Figure(
    name=f"learning/{name}",
    title=title,
    source="Our own",
    runs=[part.grid() for part in parts],
    quick={**quick, "eval_every": 100, "eval_episodes": 1},
    claims=[],
    table=table,
    **{"panels": [], **drawing},
  )


def _lines(agents: Mapping[str, str] | str) -> draw.Lines:
  """Label → the settings of an agent, which is named as by `sweep --agents`.

  In place of labels and names, the names of presets: `dqn r2d2`.
  """
  if isinstance(agents, str):
    agents = {name: name for name in agents.split()}
  names = {label: settings_lib.split_name(name) for label, name in agents.items()}
  return {x: {"agent": agent, "changes": [*y]} for x, (agent, y) in names.items()}


def _on_gym(name: str, steps: int, agents: str, seeds: int = 5) -> Part:
  """Ten evaluations of 5 episodes; seeds 0 and 1 had a part in the settings."""
  settings = {"steps": steps, "eval_every": steps // 10, "eval_episodes": 5}
  return Part(_goal_row, f"gym:{name}", _lines(agents), settings, seeds, 2)


# An epinet whose index is followed for an episode.
_EPINET = (
  "@index_dim=8@num_members=8@head_size=0@duelling=False@prior_scale=1.0"
  "@exploration=EpsilonGreedy(0.1, of=Thompson())"
)
# Double DQN's settings for few frames of Atari: the network of data-efficient Rainbow
# (van Hasselt et al., 2019), and what paper 3's table does in millions of steps is done
# in ten thousands.
_FEW_FRAMES = (
  "double_dqn@torso=data_efficient@hidden_sizes=256@random_steps=0"
  "@min_replay_size=10_000@replay_capacity=100_000@learning_rate=1e-4@adam_b2=0.999"
  "@target_update_period=500@n_step=3"
)
# An update in each step, returns of ten steps, and Rainbow's replay and duelling heads.
_MANY_UPDATES = (
  "double_dqn@torso=data_efficient@hidden_sizes=()@head_size=256@duelling=True"
  "@random_steps=0@min_replay_size=2_000@replay_capacity=100_000@priority_exponent=0.5"
  "@importance_exponent=0.4@learning_rate=1e-4@adam_b2=0.999@optimizer_eps=1e-8"
  "@max_gradient_norm=10.0@target_update_period=1000@n_step=10@updates_per_step=1.0"
  "@exploration=EpsilonGreedy(Linear(1.0, 0.02, steps=20_000))"
)
# It would learn later.
_ACTING = "double_dqn@random_steps=0@min_replay_size=100_000@replay_capacity=100_000"
# β is that of Bellemare et al. (2016).
_COUNTS = (
  f"{_FEW_FRAMES}@exploration=EpsilonGreedy(Linear(1.0, 0.05, steps=10_000))"
  "@bonus=PseudoCounts()@beta=0.05"
)
# Only the policy of the greatest β explores: there is one.
_NGU = (
  "ngu@torso=data_efficient@hidden_sizes=256@lstm_size=256@head_size=256@num_policies=1"
  "@discount=0.99@exploration=EpsilonGreedy(0.05)@replay_capacity=60_000"
  "@min_replay_size=2_000@batch_size=8@sequence_length=40@sequence_period=40"
)
_PONG = _lines({"ε-greedy": _MANY_UPDATES})
_FREEWAY = _lines(
  {
    label: f"{_FEW_FRAMES}@exploration={rule}(Linear(1.0, 0.01, steps=100_000))"
    for label, rule in (("ε-greedy", "EpsilonGreedy"), ("εz-greedy", "EzGreedy"))
  }
)
_MONTEZUMA = _lines(
  {
    "random actions": f"{_ACTING}@exploration=EpsilonGreedy(1.0)",
    "random actions, repeated": f"{_ACTING}@exploration=EzGreedy(1.0)",
    "counts": _COUNTS,
    "ngu": _NGU,
  }
)


def _game(title: str, game: str, lines: draw.Lines) -> draw.Curves:
  return draw.Curves(
    where={"env": f"atari:{title}"},
    y="evaluations",
    lines=lines,
    x=lambda table: _FRAMES * table.joined("env_steps")[0] / 1e6,
    guides=[draw.horizontal(atari57.references()[game].random, linestyle=":")],
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
    _on_gym("CartPole-v1", 50_000, "double_dqn rainbow tdu bootstrapped_dqn r2d2"),
    _on_gym("MountainCar-v0", 50_000, "dqn_ez dqn"),
    _on_gym("Acrobot-v1", 50_000, "double_dqn"),
    _on_gym("LunarLander-v3", 100_000, "double_dqn", seeds=10),
  ),
  _figure(
    "priors",
    "TDU with shared and with distinct target priors on Deep Sea",
    Part(
      _solved_row,
      "bsuite:deep_sea/0",  # N = 10.
      _lines(
        {"tdu": "tdu", "tdu, distinct target priors": "tdu@target_prior=distinct"}
      ),
      {"episodes": 2000},
      seeds=5,
    ),
  ),
  _figure(
    "sequences",
    "Agents that learn from sequences, and combinations of their parts: memory",
    Part(
      _evaluated_row,
      "bsuite:memory_len/9",
      {
        **_lines(
          "dqn r2d2 r2d2_retrace r2d2_peng r2d2_tree_backup r2d2_harutyunyan "
          "r2d2_sarsa_lambda bootstrapped_r2d2 bootstrapped_r2d2_peng tdu_r2d2 "
          "tdu_r2d2_l tdu_r2d2_no_prior tdu_r2d2_no_prior_l"
        ),
        **_lines(
          {
            "r2d2, noisy heads": "r2d2@noisy_sigma=0.5@exploration=Greedy()",
            "r2d2, distributional": "r2d2@target=CategoricalDoubleQ(51, 2.0)"
            "@transform_eps=None@n_step=5",
            "r2d2, epinet": f"r2d2{_EPINET}",
          }
        ),
      },
      {"steps": 11_000, "eval_every": 2_200, "eval_episodes": 100},
    ),
  ),
  _figure(
    "atari",
    "Double DQN in Pong and Freeway on a core",
    Part(
      _evaluated_row,
      "atari:Pong",
      _PONG,
      {"steps": 400_000, "eval_every": 25_000, "eval_episodes": 3},
      seeds=1,
    ),
    Part(
      _evaluated_row,
      "atari:Freeway",
      _FREEWAY,
      {"steps": 150_000, "eval_every": 15_000, "eval_episodes": 3},
    ),
    Part(
      _explored_row,
      "atari:MontezumaRevenge/ngu,max_frames=18_000",
      _MONTEZUMA,
      {"steps": 50_000},
    ),
    panels=[[_game("Pong", "pong", _PONG), _game("Freeway", "freeway", _FREEWAY)]],
  ),
)
