"""Agents in a room with one reward, at a goal: our own, of papers 1 and 2."""

from typing import Any

import numpy as np

from explorax.papers import compute, figures, judge
from explorax.papers.ez import runs

_EZ, _EPSILON = {"agent": "r2d2_ez"}, {"agent": "r2d2_sarsa_lambda"}
_ONE, _EIGHT = {"num_policies": 1}, {"num_policies": 8}
_STEPS = 20_000  # Of each policy: N policies share one actor's N times as many.
_TIME_LIMIT = 100  # Steps of an episode of Never Give Up's.
_QUICK = {
  "environment": "jax:gridworld/5,time_limit=20",
  "eval_episodes": 2,
  "num_seeds": 1,
}


def run(settings: figures.Settings) -> figures.Results:
  """Trains the seeds of a task in one program, with an evaluation at the end.

  Returns:
    Of each seed `[S]`: `solved`, the first episode of training that reached the goal,
    or 0; `episodes` of training; `goals`, how many of them reached it; `evaluated`, the
    share of the evaluation's episodes that reached it.
  """
  record = compute.train(
    settings,
    env=settings["environment"],
    steps=settings["num_steps"],
    eval_episodes=settings["eval_episodes"],
  )
  goals = [
    np.array([x.episode_return for x in record.episodes[seed]]) > 0
    for seed in settings["seeds"]
  ]
  return {
    "solved": np.array([np.argmax(x) + 1 if x.any() else 0 for x in goals]),
    "episodes": np.array([len(x) for x in goals]),
    "goals": np.array([np.sum(x) for x in goals]),
    "evaluated": record.per_seed(lambda episode: episode.episode_return),
  }


def _policies(num_policies: int) -> dict[str, Any]:
  """Policy 0 is evaluated, whose β is 0 in a mixture."""
  return {
    "agent": "ngu_dqn",
    "num_policies": num_policies,
    "num_steps": num_policies * _STEPS,
    "changes": [
      f"num_policies={num_policies}",
      "evaluation_policy=0",
      # All of an episode, and no more: the search for neighbours computes over it.
      f"bonus.memory_capacity={_TIME_LIMIT + 1}",
    ],
  }


def _reaches(table: figures.Table) -> np.ndarray:
  """Whether most episodes of the evaluation reach the goal, 0 or 1, `[S, 1]`."""
  return (table.scores("evaluated") > 0.5).astype(np.float64)


def _share_of_training(table: figures.Table) -> np.ndarray:
  """The share of the training's episodes that reach the goal, `[S, 1]`."""
  return table.scores("goals") / table.scores("episodes")


FIGURES = (
  figures.Figure(
    name="ez/sparse",
    title="R2D2 in a room of 30 × 30 with one reward",
    source=f"Our own, of {runs.PAPER}, section 5",
    runs=[
      figures.Grid(
        run,
        [_EZ, _EPSILON],
        {
          "environment": "jax:gridworld/30,time_limit=150",
          "num_steps": 20_000,
          "eval_episodes": 100,
        },
        num_seeds=20,
        first_seed=100,
        seeds_per_task=10,
      )
    ],
    quick={**_QUICK, "num_steps": 300},
    panels=[],
    claims=[
      judge.Holm(
        [
          judge.Above(
            "with εz-greedy exploration more seeds end with a policy that reaches the "
            "goal",
            *(_reaches, _EZ, _EPSILON),
            spec=".2f",
          ),
          judge.Sooner(
            "εz-greedy exploration finds the goal in fewer episodes", _EZ, _EPSILON
          ),
        ]
      )
    ],
  ),
  figures.Figure(
    name="ngu/policies",
    title="Never Give Up in a room with one reward: one policy and eight",
    source="Our own, of Badia et al. (2020), Never Give Up, section 4.1 and table 3",
    runs=[
      figures.Grid(
        run,
        [_policies(1), _policies(8)],
        {
          # A uniform policy finds the goal in 0.3 % of the episodes.
          "environment": f"jax:gridworld/20,time_limit={_TIME_LIMIT}",
          "eval_episodes": 20,
        },
        num_seeds=10,
        first_seed=100,  # Other figures have seeds from 0.
        seeds_per_task=5,
      )
    ],
    quick={**_QUICK, **_ONE},
    panels=[],
    claims=[
      judge.Holm(
        [
          judge.Above(
            "policy 0 of 8 reaches the goal in more seeds than a single exploring "
            "policy",
            *(_reaches, _EIGHT, _ONE),
            spec=".2f",
          ),
          judge.Above(
            "8 policies reach the goal in a greater share of the training episodes",
            *(_share_of_training, _EIGHT, _ONE),
            spec=".2f",
          ),
        ]
      )
    ],
  ),
)
