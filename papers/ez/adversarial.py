"""Paper 1's figure 14: DeepSea whose actions have other effects in each state."""

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.papers import figures, judge
from explorax.papers.ez import comparisons, runs

_EVENTS = {"first treasure": "first_treasure", "greedy policy optimal": "optimal"}
_SEAS = {"DeepSea": False, "DeepSea, adversarial": True}
_SIZES = (3, 4, 5, 6, 8, 10)  # N; not in the paper's text.


def _in_most_pairs(
  claim: str, event: str, permuted: bool, expected: bool
) -> judge.Claim:
  """Whether εz-greedy needs fewer episodes in most pairs of runs: the sign test.

  A pair has one run of each rule with the same size and seed, and therefore the same
  effects of actions. Ties, such as pairs in which neither rule gets there, are left
  out.
  """

  def judged(table: figures.Table) -> judge.Finding:
    chosen = table.where(permuted=permuted)
    ez, epsilon = (
      chosen.where(**rule).times(event).episodes for rule in (runs.EZ, runs.EPSILON)
    )
    wins, losses = int(np.sum(ez < epsilon)), int(np.sum(ez > epsilon))
    p = float(scipy.stats.binomtest(wins, wins + losses).pvalue)
    held = None if p >= judge.LEVEL else (wins > losses) == expected
    share = judge.share(wins, wins + losses)
    return judge.Finding(claim, held, len(table.seeds()), "sign", p, share, ".2f")

  return judged


def _of(label: str, event: str) -> list[judge.Claim]:
  return [
    _in_most_pairs(
      f"DeepSea, {label}: εz-greedy needs fewer episodes, in most pairs of runs",
      *(event, False, True),
    ),
    _in_most_pairs(
      f"adversarial, {label}: εz-greedy does not need fewer episodes in most pairs",
      *(event, True, False),
    ),
    judge.Sooner(
      f"{label}: εz-greedy needs more episodes in the adversarial one",
      {**runs.EZ, "permuted": False},
      {**runs.EZ, "permuted": True},
      event=event,
    ),
  ]


FIGURES = (
  figures.Figure(
    name="ez/fig14",
    title="Adversarial DeepSea",
    source=f"{runs.PAPER}, figure 14",
    runs=[
      # Each seed draws its own effects of actions, which both agents share.
      figures.Grid(
        runs.learn,
        [runs.EPSILON, runs.EZ],
        {**runs.DEEP_SEA, "permuted": (False, True), "size": _SIZES},
        num_seeds=30,
        seeds_per_task=30,
      )
    ],
    quick={"size": (3, 4, 5), "episodes": 300, "num_seeds": 5},
    panels=[
      [
        comparisons.size_marks(
          event, f"{title}: {label}", _SIZES, 100_000, where={"permuted": permuted}
        )
        for title, permuted in _SEAS.items()
      ]
      for label, event in _EVENTS.items()
    ],
    claims=[claim for x in _EVENTS.items() for claim in _of(*x)],
  ),
)
