"""Paper 1's figure 14: DeepSea whose actions have other effects in each state."""

import dataclasses

import numpy as np

from explorax.agents import ranges
from explorax.experiments.recording import drawing, statistics
from explorax.papers import types
from explorax.papers.ez import comparisons, domains, runs

_LABELS = {False: "DeepSea", True: "DeepSea, adversarial"}


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure; the others are those of `domains.DeepSea`.

  Each seed draws its own effects, which both agents share.
  """

  sizes: tuple[int, ...] = (3, 4, 5, 6, 8, 10)  # N; not in the paper's text.
  episodes: int = 20_000  # At most (our own).
  num_seeds: int = 30  # Appendix B.

  def __post_init__(self) -> None:
    ranges.distinct(self, "sizes")
    ranges.at_least(self, 2, "sizes")
    ranges.at_least(self, 1, "episodes", "num_seeds")


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


def _draw(config: Config, table: types.Table) -> types.Drawing:
  fig, (axes,) = drawing.new(1, len(_LABELS), width=4.5)
  for ax, (permuted, label) in zip(axes, _LABELS.items(), strict=True):
    comparisons.draw_deep_sea(ax, table.where(permuted=permuted), label)
  return fig


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  control, control_words = _first(table.where(permuted=False))
  adversarial, adversarial_words = _first(table.where(permuted=True))
  logs = [
    np.log2(table.per_seed("episodes", rule="ez", permuted=permuted)).mean(axis=1)
    for permuted in _LABELS
  ]
  loss = statistics.mean(logs[1] - logs[0])
  return [
    types.Finding(
      "DeepSea: εz-greedy finds the goal before ε-greedy does, in most pairs of runs",
      control_words,
      control and control.is_above(0.5),
    ),
    types.Finding(
      "adversarial: εz-greedy is first in no more than half of the pairs",
      adversarial_words,
      adversarial and adversarial.is_below(0.5),
    ),
    types.Finding(
      "εz-greedy needs more episodes in the adversarial one",
      f"{loss.map(np.exp2).words()} times as many, the geometric mean over "
      "sizes and seeds; runs that never found the goal count with all their episodes",
      loss.is_above(),
    ),
  ]


def _first(table: types.Table) -> tuple[statistics.Interval | None, str]:
  """The share of pairs in which εz-greedy finds the goal first, and its text.

  A pair has one run of each rule with the same size and seed, and therefore the same
  effects of actions. Ties count as a half. Pairs in which neither rule finds the goal
  are left out; if no pair remains, the share is unknown.
  """
  found = np.logical_or(*comparisons.of_rules(table, "stopped").values())
  episodes = comparisons.of_rules(table, "episodes")
  pairs = (0.5 + 0.5 * np.sign(episodes["epsilon"] - episodes["ez"]))[found]
  if not len(pairs):
    return None, "no run found the goal"
  share = statistics.mean(pairs)
  words = f"{share.words('.2f')} of {len(pairs)} pairs"
  return share, f"{words}; {comparisons.deep_sea_episodes(table)}"


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
    run=domains.run,
    draw=_draw,
    judge=_judge,
  ),
)
