"""Paper 1's figure 14: DeepSea whose actions have other effects in each state."""

import dataclasses
import functools

import numpy as np

from explorax import ranges
from explorax.experiments.recording import statistics
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


def _earlier_in_pairs(
  measure: str, table: types.Table
) -> tuple[str, statistics.Interval | None]:
  """The share of pairs in which εz-greedy needs fewer of the measure's episodes.

  A pair has one run of each rule with the same size and seed, and therefore the same
  effects of actions. Ties count as a half. Pairs in which neither rule gets there are
  left out; if no pair remains, the share is unknown.
  """
  _, reached = comparisons.DEEP_SEA[measure]
  got_there, episodes = (
    [table.per_seed(name, rule=rule) for rule in runs.RULES]
    for name in (reached, measure)
  )
  epsilon, ez = episodes
  pairs = (0.5 + 0.5 * np.sign(epsilon - ez))[np.logical_or(*got_there)]
  if not len(pairs):
    return "no run got there", None
  share = statistics.mean(pairs)
  words = f"{share.words('.2f')} of {len(pairs)} pairs"
  return f"{words}; {comparisons.deep_sea_episodes(measure, table)}", share


def _in_most_pairs(measure: str, table: types.Table) -> tuple[str, bool | None]:
  words, share = _earlier_in_pairs(measure, table)
  return words, share and share.is_above(0.5)


def _in_half_at_most(measure: str, table: types.Table) -> tuple[str, bool | None]:
  words, share = _earlier_in_pairs(measure, table)
  return words, share and share.is_below(0.5)


def _more_episodes(measure: str, table: types.Table) -> tuple[str, bool | None]:
  plain, adversarial = (
    np.log(table.per_seed(measure, rule="ez", permuted=permuted)).mean(axis=1)
    for permuted in _LABELS
  )
  ratio = statistics.mean(adversarial - plain).map(np.exp)
  return (
    f"{ratio.words()} times as many, the geometric mean over sizes and seeds; runs "
    "that reached the limit count with all their episodes"
  ), ratio.is_above(1)


def _claims_of(measure: str) -> list[claims.Check]:
  label, _ = comparisons.DEEP_SEA[measure]
  return [
    claims.Check(
      f"DeepSea, {label}: εz-greedy needs fewer episodes, in most pairs of runs",
      functools.partial(_in_most_pairs, measure),
      {"permuted": False},
    ),
    claims.Check(
      f"adversarial, {label}: εz-greedy needs fewer episodes in no more than half of "
      "the pairs",
      functools.partial(_in_half_at_most, measure),
      {"permuted": True},
    ),
    claims.Check(
      f"{label}: εz-greedy needs more episodes in the adversarial one",
      functools.partial(_more_episodes, measure),
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
          measure,
          config.sizes,
          config.episodes,
          {"permuted": permuted},
          label,
          "lower right" if permuted and measure == "first_found" else None,
        )
        for permuted, label in _LABELS.items()
      ]
      for measure in comparisons.DEEP_SEA
    ],
    claims=lambda config: [x for of in comparisons.DEEP_SEA for x in _claims_of(of)],
    size=(4.5, 3.2),
  ),
)
