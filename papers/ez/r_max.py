"""Paper 1's figure 15: εz-greedy and R-MAX in a small gridworld."""

import numpy as np

from explorax import exploration
from explorax.papers import figures, judge
from explorax.papers.ez import comparisons, runs
from explorax.papers.tabular import learners

_R_MAX = {"rule": "r_max"}
_THRESHOLDS = (1, 10)  # Visits until a pair is known.


def compute(settings: figures.Settings) -> figures.Results:
  """Learns in the gridworld with R-MAX; the results are those of `runs.learn`."""
  of = runs.problem(settings)
  learner = learners.RMax(
    of.cell,
    of.num_cells,
    of.environment.num_actions,
    threshold=settings["threshold"],
    reward_max=settings["reward_max"],
    discount=settings["discount"],
    tolerance=settings["tolerance"],
  )
  record = runs.learn_with(of._replace(learner=learner), exploration.Greedy(), settings)
  return {"discounted_returns": np.asarray(record.discounted_returns)}


FIGURES = (
  figures.Figure(
    name="ez/fig15",
    title="R-MAX in the GridWorld",
    source=f"{runs.PAPER}, figure 15",
    runs=[
      figures.Grid(
        runs.learn,
        [runs.EPSILON, runs.EZ],
        {**runs.GRIDWORLD, "ties": "fixed"},
        num_seeds=30,
        seeds_per_task=30,
      ),
      figures.Grid(
        compute,
        [{**_R_MAX, "threshold": m} for m in _THRESHOLDS],
        # The reward of the goal; the tolerance of value iteration is our own.
        {**runs.GRIDWORLD, "reward_max": 1.0, "tolerance": 1e-3},
        num_seeds=30,
        seeds_per_task=30,
      ),
    ],
    quick={"size": 8, "episodes": 10, "num_seeds": 3},
    panels=[
      [
        comparisons.curves(
          {**runs.RULES, **{f"R-MAX, m = {m}": {"threshold": m} for m in _THRESHOLDS}}
        )
      ]
    ],
    claims=[
      judge.Above(
        f"R-MAX, m = {m}: earns more than εz-greedy, over all episodes"
        + " (the paper's text is silent)" * (m > 1),
        comparisons.DISCOUNTED,
        {"threshold": m},
        runs.EZ,
      )
      for m in _THRESHOLDS
    ],
  ),
)
