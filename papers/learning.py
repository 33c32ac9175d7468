"""What agents learn beside the papers' figures: gymnasium, games, parts of agents.

Figures of tables: those of docs/expected.md, docs/benchmarks.md and docs/atari.md.
"""

import dataclasses
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from explorax import environments
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

# -- what is computed -----------------------------------------------------------------


def _train(settings: figures.Settings) -> compute.Record:
  """A seed with the local runner: its replay is seeded, and a run repeatable."""
  fields = ("env", "episodes", "steps", "eval_every", "eval_episodes")
  run = {"eval_episodes": 0} | {x: settings[x] for x in fields if x in settings}
  return compute.train(settings, runner="local", **run)


def solve(settings: figures.Settings) -> figures.Results:
  """`solved`, the episode in which bsuite's rule calls it solved, or 0, `[1]`."""
  (episodes,) = _train(settings).episodes.values()
  rule = environments.solved_rule(settings["env"])
  assert rule is not None
  for number, episode in enumerate(episodes, start=1):
    rule.add_episode(number, episode.metrics)
  return {"solved": np.array([rule.solved_episode or 0])}


def evaluate(settings: figures.Settings) -> figures.Results:
  """The returns of evaluations.

  Returns:
    `env_steps` and `evaluations`, the mean returns of the E evaluations, `[1, E]`;
    `training`, that of the last 100 episodes of training, `[1]`.
  """
  record = _train(settings)
  (evaluations,), (episodes,) = record.evaluations.values(), record.episodes.values()
  returns = [np.mean([x.episode_return for x in each.episodes]) for each in evaluations]
  last = [x.episode_return for x in episodes[-100:]]
  return {
    "env_steps": np.array([[each.env_steps for each in evaluations]]),
    "evaluations": np.array([returns]),
    "training": np.array([np.mean(last) if last else np.nan]),
  }


def explore(settings: figures.Settings) -> figures.Results:
  """`episodes` of training, those `rewarded`, and `rooms` seen, `[1]` each."""
  (episodes,) = _train(settings).episodes.values()
  rooms = [x.metrics.get("rooms_so_far", 1.0) for x in episodes]
  return {
    "episodes": np.array([len(episodes)]),
    "rewarded": np.array([sum(x.episode_return > 0 for x in episodes)]),
    "rooms": np.array([max(rooms, default=1.0)]),
  }


# -- tables ---------------------------------------------------------------------------

Row = Mapping[str, Any]


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
  """The mean with Student's t-interval, which equal values do not have.

  For a share, of zeros and ones, the interval is Clopper and Pearson's.
  """
  if {*values} == {0.0, 1.0}:
    low, high = _share(round(sum(values)), len(values))
    return f"{np.mean(values):.3g} [{low:.3g}, {high:.3g}]"
  mean = intervals.mean(values)
  return mean.to_text() if mean.high > mean.low else f"{mean.value:.3g}"


def _share(count: int, num: int) -> tuple[float, float]:
  """Clopper and Pearson's 95 % interval; all shares if there is no number."""
  if not num:  # A run may end before its first episode does.
    return 0.0, 1.0
  interval = stats.binomtest(count, num).proportion_ci()
  return interval.low, interval.high


def _explored_row(group: figures.Table) -> Row:
  rewarded, episodes = (sum(group.joined(x)) for x in ("rewarded", "episodes"))
  low, high = _share(rewarded, episodes)
  return {
    "steps of each seed": f"{group.values('steps')[0]:,}",
    "episodes": episodes,
    "with a reward": rewarded,
    "share of them, 95 % interval": f"{low:.2%} to {high:.2%}",
    "rooms of each seed": ", ".join(f"{value:.0f}" for value in group.joined("rooms")),
  }


def _goal_row(group: figures.Table) -> Row:
  """An interval of fewer than three seeds would say little, and is left out."""
  (env,), (num_steps,) = group.values("env"), group.values("steps")
  steps, returns = group.joined("env_steps"), group.joined("evaluations")
  last = returns[:, -1]
  mean = f"{np.mean(last):.0f}"
  if len(last) >= 3:
    interval = intervals.mean(last)
    mean += f" ({interval.low:.0f} to {interval.high:.0f})"
  above = returns > _GOALS[env]
  first = np.where(above.any(axis=1), above.argmax(axis=1), above.shape[1])
  reached = [steps[i, x] for i, x in enumerate(first) if x < above.shape[1]]
  later = np.concatenate([above[i, x + 1 :] for i, x in enumerate(first)])
  minutes = statistics.median(task.seconds for task in group) / 60
  return {
    "steps": f"{num_steps:,}",
    "return": mean,
    "return of each seed": ", ".join(f"{value:.0f}" for value in last),
    "goal reached": f"{len(reached)}/{len(last)}",
    "in step": f"{statistics.median(reached):,.0f}" if reached else "–",
    "later above it": f"{sum(later)}/{len(later)}" if len(later) else "–",
    "CPU minutes": f"{minutes:.1f}",
  }


_COMPUTE: Mapping[Callable[[figures.Table], Row], figures.Compute] = {
  _solved_row: solve,
  _evaluated_row: evaluate,
  _explored_row: explore,
  _goal_row: evaluate,
}

# -- experiments ----------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Part:
  """Agents, label → the settings of a line, in an environment; a table's rows."""

  row: Callable[[figures.Table], Row]
  env: str
  agents: draw.Lines
  settings: figures.Settings
  seeds: int = 3
  first_seed: int = 0

  def grid(self) -> figures.Grid:
    axes = {"env": self.env, **self.settings}
    lines = [*self.agents.values()]
    return figures.Grid(_COMPUTE[self.row], lines, axes, self.seeds, self.first_seed)


def _figure(
  name: str, title: str, parts: Sequence[Part], **more: Any
) -> figures.Figure:
  """A figure with a table for each kind of row."""

  def table(results: figures.Table) -> str:
    tables: dict[Any, list[Row]] = {}
    for part in parts:
      for label, line in part.agents.items():
        if group := results.where(**line, env=part.env):
          row = {"agent": label, "environment": f"`{part.env}`", **part.row(group)}
          tables.setdefault(part.row, []).append(row)
    return "\n\n".join(map(markdown.table, tables.values()))

  return figures.Figure(
    name=f"learning/{name}",
    title=title,
    source="Our own",
    runs=[part.grid() for part in parts],
    quick={
      "num_seeds": 1,
      "episodes": 3,
      "steps": 200,
      "eval_every": 100,
      "eval_episodes": 1,
    },
    panels=more.pop("panels", []),
    claims=[],
    table=table,
    **more,
  )


def _line(agent: str, *changes: str) -> dict[str, Any]:
  return {"agent": agent, "changes": [*changes]}


def _presets(*names: str) -> dict[str, dict[str, Any]]:
  return {name: _line(name) for name in names}


def _on_gym(name: str, agents: Sequence[str], steps: int, seeds: int = 5) -> Part:
  """Ten evaluations of 5 episodes; seeds 0 and 1 had a part in the settings."""
  settings = {"steps": steps, "eval_every": steps // 10, "eval_episodes": 5}
  return Part(_goal_row, f"gym:{name}", _presets(*agents), settings, seeds, 2)


_DEEP_SEA = "bsuite:deep_sea/0"  # N = 10.
_MEMORY, _ROOM = "bsuite:memory_len/9", "jax:gridworld/30,time_limit=150"
_SOLVE = {"episodes": 2000}
_ON_MEMORY = {"steps": 11_000, "eval_every": 2_200, "eval_episodes": 100}
_IN_ROOM = {"steps": 20_000, "eval_every": 5_000, "eval_episodes": 100}
_OF_MEMBERS = (
  "bootstrapped_r2d2",
  "bootstrapped_r2d2_peng",
  "tdu_r2d2",
  "tdu_r2d2_l",
  "tdu_r2d2_no_prior",
  "tdu_r2d2_no_prior_l",
)
# An epinet whose index is followed for an episode.
_EPINET = (
  "index_dim=8",
  "num_members=8",
  "head_size=0",
  "duelling=False",
  "prior_scale=1.0",
  "exploration=EpsilonGreedy(0.1, of=Thompson())",
)
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
# It would learn later.
_ACTING = ("random_steps=0", "min_replay_size=100_000", "replay_capacity=100_000")
_PONG = {"ε-greedy": _line("double_dqn", *_MANY_UPDATES)}
_FREEWAY = {
  label: _line(
    "double_dqn",
    *_FEW_FRAMES,
    f"exploration={rule}(Linear(1.0, 0.01, steps=100_000))",
  )
  for label, rule in (("ε-greedy", "EpsilonGreedy"), ("εz-greedy", "EzGreedy"))
}
_MONTEZUMA = {
  "random actions": _line("double_dqn", *_ACTING, "exploration=EpsilonGreedy(1.0)"),
  "random actions, repeated": _line(
    "double_dqn", *_ACTING, "exploration=EzGreedy(1.0)"
  ),
  "counts": _line(
    "double_dqn",
    *_FEW_FRAMES,
    "exploration=EpsilonGreedy(Linear(1.0, 0.05, steps=10_000))",
    "bonus=PseudoCounts()",
    "beta=0.05",  # Bellemare et al. (2016).
  ),
  # Only the policy of the greatest β explores: there is one.
  "ngu": _line(
    "ngu",
    "torso=data_efficient",
    "hidden_sizes=256",
    "lstm_size=256",
    "head_size=256",
    "num_policies=1",
    "discount=0.99",
    "exploration=EpsilonGreedy(0.05)",
    "replay_capacity=60_000",
    "min_replay_size=2_000",
    "batch_size=8",
    "sequence_length=40",
    "sequence_period=40",
  ),
}


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
    [
      _on_gym(
        "CartPole-v1",
        ("double_dqn", "rainbow", "tdu", "bootstrapped_dqn", "r2d2"),
        steps=50_000,
      ),
      _on_gym("MountainCar-v0", ("dqn_ez", "dqn"), steps=50_000),
      _on_gym("Acrobot-v1", ("double_dqn",), steps=50_000),
      _on_gym("LunarLander-v3", ("double_dqn",), steps=100_000, seeds=10),
    ],
  ),
  _figure(
    "priors",
    "TDU with shared and with distinct target priors on Deep Sea",
    [
      Part(
        _solved_row,
        _DEEP_SEA,
        {
          "tdu": _line("tdu"),
          "tdu, distinct target priors": _line("tdu", "target_prior=distinct"),
        },
        _SOLVE,
        seeds=5,
      )
    ],
  ),
  _figure(
    "recurrent",
    "Recurrent agents on Deep Sea",
    [Part(_solved_row, _DEEP_SEA, _presets("r2d2", "r2d2_peng", *_OF_MEMBERS), _SOLVE)],
  ),
  _figure(
    "sequences",
    "Agents that learn from sequences: memory, and a room with one reward",
    [
      Part(
        _evaluated_row,
        _MEMORY,
        _presets(
          "dqn",
          "r2d2",
          "r2d2_retrace",
          "r2d2_peng",
          "r2d2_tree_backup",
          "r2d2_harutyunyan",
          "r2d2_sarsa_lambda",
          *_OF_MEMBERS,
        ),
        _ON_MEMORY,
      ),
      Part(
        _evaluated_row,
        _ROOM,
        _presets("r2d2_ez", "r2d2", "r2d2_sarsa_lambda", "r2d2_sarsa_lambda_rnd"),
        _IN_ROOM,
        seeds=10,
      ),
    ],
  ),
  _figure(
    "combinations",
    "Combinations of parts that the papers do not have",
    [
      # Exploration of ensembles on sequences, with Retrace.
      Part(
        _solved_row,
        _DEEP_SEA,
        {
          "r2d2_retrace": _line("r2d2_retrace"),
          "r2d2_retrace, epinet": _line("r2d2_retrace", *_EPINET),
          "tdu_r2d2_l, Retrace": _line("tdu_r2d2_l", "target=Retrace(0.95)"),
          "bootstrapped_r2d2_peng, Retrace, UCB": _line(
            "bootstrapped_r2d2_peng",
            "target=Retrace(0.95)",
            "exploration=EpsilonGreedy(0.1, of=Ucb(1.0))",
          ),
        },
        _SOLVE,
      ),
      # Parts of DQN with an LSTM.
      Part(
        _evaluated_row,
        _MEMORY,
        {
          "r2d2, noisy heads": _line("r2d2", "noisy_sigma=0.5", "exploration=Greedy()"),
          "r2d2, distributional": _line(
            "r2d2",
            "target=CategoricalDoubleQ(51, 2.0)",
            "transform_eps=None",
            "n_step=5",
          ),
          "r2d2, epinet": _line("r2d2", *_EPINET),
        },
        _ON_MEMORY,
      ),
      # Never Give Up without an LSTM.
      Part(
        _evaluated_row,
        _ROOM,
        {
          **_presets("double_dqn", "ngu_dqn"),
          "ngu_dqn, one policy": _line("ngu_dqn", "num_policies=1"),
        },
        _IN_ROOM,
        seeds=10,
      ),
    ],
  ),
  _figure(
    "breakout",
    "Rainbow's exploration on Breakout",
    [
      Part(
        _evaluated_row,
        "jax:breakout",
        _presets(
          "double_dqn", "rainbow", "rainbow_epsilon", "rainbow_ez", "rainbow_cts"
        ),
        {"steps": 20_000, "eval_every": 5_000, "eval_episodes": 20},
      )
    ],
  ),
  _figure(
    "atari",
    "Double DQN in Pong and Freeway on a core",
    [
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
    ],
    panels=[[_game("Pong", "pong", _PONG), _game("Freeway", "freeway", _FREEWAY)]],
    caption="Returns of three evaluation episodes; dotted: a policy at random.",
  ),
)
