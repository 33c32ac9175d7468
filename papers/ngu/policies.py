"""Never Give Up with a reward: one policy against eight, at equal steps of each."""

from typing import Any

from explorax.papers import figures, judge
from explorax.papers.ez import sparse

_STEPS = 20_000  # Of each policy: N policies share one actor's N times as many.
_TIME_LIMIT = 100  # Steps of an episode.


def _line(num_policies: int) -> dict[str, Any]:
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


_ONE, _EIGHT = {"num_policies": 1}, {"num_policies": 8}

FIGURES = (
  figures.Figure(
    name="ngu/policies",
    title="Never Give Up in a room with one reward: one policy and eight",
    source="Our own, of Badia et al. (2020), Never Give Up, section 4.1 and table 3",
    runs=[
      figures.Grid(
        sparse.run,
        [_line(1), _line(8)],
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
    quick={
      "environment": "jax:gridworld/5,time_limit=20",
      "num_policies": 1,
      "eval_episodes": 2,
      "num_seeds": 1,
    },
    panels=sparse.shares({"N = 1": _ONE, "N = 8": _EIGHT}),
    claims=[
      judge.Holm(
        [
          judge.Above(
            "policy 0 of 8 reaches the goal in more seeds than a single exploring "
            "policy",
            sparse.reaches,
            _EIGHT,
            _ONE,
            spec=".2f",
          ),
          judge.Above(
            "8 policies reach the goal in a greater share of the training episodes",
            sparse.share_of_training,
            _EIGHT,
            _ONE,
            spec=".2f",
          ),
        ]
      )
    ],
  ),
)
