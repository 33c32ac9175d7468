"""Paper 1's figure 14: DeepSea whose actions have other effects in each state."""

import dataclasses
from collections.abc import Callable

import numpy as np

from explorax import ranges
from explorax.papers import claims, types
from explorax.papers.ez import comparisons, domains, runs

_LABELS = {False: "DeepSea", True: "DeepSea, adversarial"}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; the others are those of `domains.DeepSea`.

  Each seed draws its own effects, which both agents share.
  """

  sizes: types.Distinct[types.Size] = (3, 4, 5, 6, 8, 10)  # N; not in the paper's text.
  episodes: ranges.PositiveInt = 100_000  # At most (our own).
  num_seeds: ranges.PositiveInt = 30  # Appendix B.


def _tasks(config: Config) -> list[types.Task]:
  return [
    domains.task(
      f"{'permuted' if permuted else 'plain'}_{size}",
      domains.DeepSea(size=size, episodes=config.episodes, permuted=permuted),
      rule,
      range(config.num_seeds),
      weight=size,
    )
    for permuted in _LABELS
    for size in config.sizes
    for rule in runs.RULES
  ]


def _in_pairs(measure: str, claim: str, table: types.Table) -> types.Finding | None:
  """Whether εz-greedy needs fewer of the measure's episodes in most pairs of runs.

  A pair has one run of each rule with the same size and seed, and therefore the same
  effects of actions. Pairs in which neither rule gets there, and ties, are left out.
  """
  if not table:
    return None
  epsilon, ez = (table.per_seed(measure, rule=rule) for rule in runs.RULES)
  wins, losses = (int(np.sum(x)) for x in (ez < epsilon, ez > epsilon))
  listed = comparisons.deep_sea_episodes(measure, table)
  words = f"εz-greedy is first in {wins} of {wins + losses} pairs, {{share}}; {listed}"
  return claims.sign(claim, wins, losses, words, num_seeds=table.num_seeds())


def _not_in_most_pairs(
  measure: str, claim: str, table: types.Table
) -> types.Finding | None:
  """Whether it does not."""
  found = _in_pairs(measure, claim, table)
  return found and found._replace(held=claims.negated(found.held))


def _more_episodes(measure: str, claim: str, table: types.Table) -> types.Finding:
  return claims.sooner(
    claim,
    (
      comparisons.times(measure, table.where(rule="ez", permuted=permuted))
      for permuted in _LABELS
    ),
    "εz-greedy in DeepSea and in the adversarial one",
  )


def _claims_of(measure: str) -> list[types.Claim]:
  label, _ = comparisons.DEEP_SEA[measure]

  def of(
    function: Callable[[str, str, types.Table], types.Finding | None],
    claim: str,
    **where: bool,
  ) -> types.Claim:
    return lambda table: function(measure, claim, table.where(**where))

  return [
    of(
      _in_pairs,
      f"DeepSea, {label}: εz-greedy needs fewer episodes, in most pairs of runs",
      permuted=False,
    ),
    of(
      _not_in_most_pairs,
      f"adversarial, {label}: εz-greedy does not need fewer episodes in most pairs",
      permuted=True,
    ),
    of(
      _more_episodes,
      f"{label}: εz-greedy needs more episodes in the adversarial one",
    ),
  ]


FIGURES = (
  types.Figure(
    name="ez/fig14",
    title="Adversarial DeepSea",
    source=f"{runs.PAPER}, figure 14",
    claim="where the actions' effects are randomly permuted in every state, εz-greedy "
    "no longer explores more efficiently than ε-greedy.",
    config=Config(),
    quick=Config(sizes=(3, 4, 5), episodes=300, num_seeds=5),
    tasks=_tasks,
    compute=domains.run,
    panels=lambda config: [
      [
        comparisons.deep_sea(
          measure, config.sizes, config.episodes, {"permuted": permuted}, label
        )
        for permuted, label in _LABELS.items()
      ]
      for measure in comparisons.DEEP_SEA
    ],
    claims=lambda config: [x for of in comparisons.DEEP_SEA for x in _claims_of(of)],
    caption=comparisons.DEEP_SEA_CAPTION,
  ),
)
