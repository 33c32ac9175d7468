"""R2D2 with εz-greedy and with ε-greedy exploration in a room with one reward."""

import numpy as np

from explorax.papers import compute, draw, figures, judge
from explorax.papers.ez import runs

_EZ, _EPSILON = {"agent": "r2d2_ez"}, {"agent": "r2d2_sarsa_lambda"}
_AGENTS = {"εz-greedy": _EZ, "ε-greedy": _EPSILON}


def run(settings: figures.Settings) -> figures.Results:
  """Trains the seeds of a task in one program, with an evaluation at the end.

  The only reward of an episode is 1, at the goal.

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


def reaches(table: figures.Table) -> np.ndarray:
  """Whether most episodes of the evaluation reach the goal, 0 or 1, `[S, 1]`."""
  return (table.scores("evaluated") > 0.5).astype(np.float64)


def share_of_training(table: figures.Table) -> np.ndarray:
  """The share of the training's episodes that reach the goal, `[S, 1]`."""
  return table.scores("goals") / table.scores("episodes")


def shares(lines: draw.Lines) -> list[list[draw.Panel]]:
  """A row for each line: the shares of episodes that reach the goal."""
  return [
    [
      draw.Rows(
        x="evaluated",
        lines=lines,
        axes={
          "xlabel": "share of the last evaluation's episodes",
          "xlim": (-0.02, 1.02),
        },
      ),
      draw.Rows(
        x=share_of_training,
        lines=lines,
        names=False,
        axes={"xlabel": "share of the training episodes"},
      ),
    ]
  ]


FIGURES = (
  figures.Figure(
    name="ez/sparse",
    title="R2D2 in a room of 30 × 30 with one reward",
    source=f"Our own, of {runs.PAPER}, section 5",
    runs=[
      figures.Grid(
        run,
        [*_AGENTS.values()],
        {
          "environment": "jax:gridworld/30,time_limit=150",
          "num_steps": 20_000,
          "eval_episodes": 100,
        },
        num_seeds=20,
        first_seed=100,  # `learning` has 0 to 9.
        seeds_per_task=10,
      )
    ],
    quick={
      "environment": "jax:gridworld/5,time_limit=20",
      "num_steps": 300,
      "eval_episodes": 2,
      "num_seeds": 1,
    },
    panels=shares(_AGENTS),
    claims=[
      judge.Holm(
        [
          judge.Above(
            "with εz-greedy exploration more seeds end with a policy that reaches the "
            "goal",
            reaches,
            _EZ,
            _EPSILON,
            spec=".2f",
          ),
          judge.Sooner(
            "εz-greedy exploration finds the goal in fewer episodes", _EZ, _EPSILON
          ),
        ]
      )
    ],
  ),
)
