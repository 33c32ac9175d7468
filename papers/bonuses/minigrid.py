"""Which bonuses solve tasks of MiniGrid, on double DQN.

Agents are presets with the same network, replay and number of updates. One setting of
each, β if it has a bonus, is the best of three in a smaller task with other seeds, with
which the figure begins.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorax.experiments.runners import common
from explorax.papers import compute, draw, figures, judge, tuned
from explorax.papers.bonuses import navix_tasks

_BASELINE = "double DQN"
_COMMON = (
  "target=DoubleQ()",
  "n_step=3",
  "batch_size=32",
  "updates_per_step=0.125",
  "learning_rate=0.0005",
  "target_update_period=250",
  "replay_capacity=100000",
  "min_replay_size=2000",
)
_EPSILON = "Linear(1.0, {}, steps=50000)"  # Environment steps.
_NETWORK = (*_COMMON, "hidden_sizes=64")
_GREEDY = (*_NETWORK, f"exploration.epsilon={_EPSILON.format(0.05)}")
# Ten heads on the torso of the others.
_HEADS = ("hidden_sizes=", "head_size=64", "shared_torso=true")
_WINDOW, _SHARE = 100, 0.8  # Solved: this share of so many last episodes succeeded.
_LIMIT = 200_000  # Environment steps of a run, of all environments of a seed.


def _scaled(
  agent: str, most: float, setting: str = "beta", changes: tuple[str, ...] = _GREEDY
) -> tuned.Method:
  """With 0.03, 0.2 and 1 times the preset's value."""
  values = (round(0.03 * most, 6), round(0.2 * most, 6), most)
  return tuned.Method(agent, f"{setting}={{:g}}", values, changes)


_LEAST_EPSILON = (0.01, 0.05, 0.1)
_EZ = f"exploration=EzGreedy(epsilon={_EPSILON.format('{}')})"
METHODS = {
  _BASELINE: tuned.Method(
    "double_dqn", f"exploration.epsilon={_EPSILON}", _LEAST_EPSILON, _NETWORK
  ),
  "εz-greedy": tuned.Method("double_dqn", _EZ, _LEAST_EPSILON, _NETWORK),
  "counts": _scaled("dqn_counts", 0.1),
  "RND": _scaled("dqn_rnd", 0.1),
  "NovelD": _scaled("dqn_novel_d", 0.3),
  "E3B": _scaled("dqn_e3b", 0.1),
  "RIDE": _scaled("dqn_ride", 0.1),
  "ICM": _scaled("dqn_icm", 1.0),
  "Disagreement": _scaled("dqn_disagreement", 0.1),
  "RE3": _scaled("dqn_re3", 0.05),
  # Its bonus alone: seven policies of the preset's mixture only explore, and all
  # training episodes count. In a new state it is up to 1/√(10 ε) ≈ 30, and so its β is
  # about 30 times smaller than by the rule of the others.
  "NGU": tuned.Method(
    "ngu_dqn",
    "beta={:g}",
    (0.0003, 0.002, 0.009),
    (*_GREEDY, "num_policies=1", "min_discount=none", "bonus.memory_capacity=641"),
  ),
  "bootstrapped DQN": _scaled(
    "bootstrapped_dqn", 3.0, "prior_scale", (*_COMMON, "num_members=10", *_HEADS)
  ),
  "TDU": _scaled(
    *("tdu", 1.0, "beta"),
    (*_COMMON, "num_members=5", "num_explorers=5", "prior_scale=0.6", *_HEADS),
  ),
}
_OTHERS = {label: {"method": label} for label in METHODS}
_DOUBLE_DQN, _FINAL = _OTHERS.pop(_BASELINE), {"tuning": False}
# Double DQN solved neither DoorKey-8x8 nor MultiRoom-N4-S5 in 300,000 steps, and counts
# (β = 0.02) not the former: one seed each.
_TASKS = ("DoorKey-6x6", "MultiRoom-N2-S4", "KeyCorridorS3R1")


class _UntilSolved(compute.Record):
  def has_ended(self) -> bool:
    (episodes,) = self.episodes.values()
    return solved_at(episodes) > 0


def run(settings: figures.Settings) -> figures.Results:
  """Trains a seed until it has solved its task, in the tuning to the end.

  Returns:
    `[1]`: `solved`, see `solved_at`; `limit`, the steps of the run; `success`, the
    share of all training episodes that reached the goal.
  """
  num_steps = settings["num_steps"]
  kind = compute.Record if settings["tuning"] else _UntilSolved
  record = compute.train(
    settings,
    kind(settings["seeds"]),
    env=f"navix:Navix-{settings['task']}-v0",
    environment=navix_tasks.make(settings["task"]),
    num_envs=settings["num_envs"],
    steps=num_steps,
    eval_episodes=0,
  )
  (episodes,) = record.episodes.values()
  reached = [x.episode_return > 0 for x in episodes]
  return {
    "solved": np.array([solved_at(episodes)], np.int64),
    "limit": np.array([num_steps]),
    "success": np.array([np.mean(reached) if reached else 0.0]),
  }


def solved_at(episodes: Sequence[common.Episode]) -> int:
  """The steps after which 80 % of the last 100 episodes reached the goal, or 0.

  The return of an episode that does not reach the goal is 0.
  """
  until = np.cumsum([0, *(x.episode_return > 0 for x in episodes)])
  latest = until[_WINDOW:] - until[:-_WINDOW]
  at = np.flatnonzero(latest >= _SHARE * _WINDOW)
  return episodes[at[0] + _WINDOW - 1].env_steps if at.size else 0


def _grid(
  lines: list[dict[str, Any]], tasks: tuple[str, ...], num_steps: int, seeds: range
) -> figures.Grid:
  axes = {"task": tasks, "num_steps": num_steps, "num_envs": 16}
  return figures.Grid(run, lines, axes, len(seeds), seeds.start)


def _tuning(table: figures.Table) -> tuned.Scores:
  return tuned.scores(table, lambda tasks: float(tasks.scores("success").mean()))


FIGURES = (
  figures.Figure(
    name="bonuses/minigrid",
    title="MiniGrid: environment steps until a task is solved",
    source="Our own",
    # Other figures have seeds from 0.
    runs=[_grid(tuned.lines(METHODS), ("DoorKey-5x5",), 100_000, range(200, 202))],
    then=lambda table: [
      _grid(
        tuned.lines(METHODS, tuned.best(_tuning(table))),
        *(_TASKS, _LIMIT, range(100, 105)),
      )
    ],
    quick={
      "method": (_BASELINE, "counts"),
      "value": (0.01, 0.003),
      "task": _TASKS[:1],
      "num_steps": 2_000,
      "num_seeds": 1,
    },
    panels=[
      [
        draw.Rows(
          lines={_BASELINE: _DOUBLE_DQN, **_OTHERS},
          where={**_FINAL, "task": task},
          guides=[draw.guide("axvline", _LIMIT)],
          sort=True,
          axes={
            "title": task,
            "xlabel": "environment steps",
            "xscale": "log",
            "xlim": (_LIMIT / 15, 1.3 * _LIMIT),
            "xticks": (20_000, 60_000, _LIMIT),
            "xticklabels": ("20k", "60k", "200k"),
          },
        )
        for task in _TASKS
      ]
    ],
    claims=[
      judge.Holm(
        [
          judge.Above(
            f"{label} solves more runs than double DQN",
            *(figures.Table.solved, line, _DOUBLE_DQN, _FINAL),
            spec=".2f",
          )
          for label, line in _OTHERS.items()
        ]
      ),
      judge.Holm(
        [
          judge.Sooner(
            f"{label} solves the tasks in fewer steps than double DQN",
            *(line, _DOUBLE_DQN, _FINAL),
          )
          for label, line in _OTHERS.items()
        ]
      ),
    ],
    problem="task",
    table=lambda table: tuned.table(_tuning(table), METHODS),
  ),
)
