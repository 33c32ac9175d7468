"""Paper 1's figure 14: DeepSea whose actions have other effects in each state."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from explorax.experiments.figures import ez_domains, ez_runs, ez_small, types
from explorax.experiments.recording import drawing, statistics

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

_LABELS = {False: "DeepSea", True: "DeepSea, adversarial"}


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure; the others are those of `ez_domains.DeepSea`.

  The effects are drawn for each seed by itself, and both agents have the same.
  """

  sizes: tuple[int, ...] = (3, 4, 5, 6, 8, 10)  # N; the paper's text is silent.
  episodes: int = 20_000  # At most (our own).
  num_seeds: int = 30  # Appendix B.

  def __post_init__(self):
    ez_runs.check_not_empty(self, "sizes")
    ez_runs.check_at_least(self, sizes=2, episodes=1, num_seeds=1)


def _tasks(config: Config) -> list[types.Task]:
  return [
    types.Task(
      f"{'permuted' if permuted else 'plain'}_{size}_{rule}",
      {
        "permuted": permuted,
        "rule": rule,
        "setup": dataclasses.asdict(
          ez_domains.DeepSea(size=size, episodes=config.episodes)
        ),
        "num_seeds": config.num_seeds,
      },
      size,
    )
    for permuted in _LABELS
    for size in config.sizes
    for rule in ez_runs.RULES
  ]


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  del tick
  setup = ez_domains.DeepSea(**settings["setup"])
  seeds = (0, settings["num_seeds"])
  return setup.learn(settings["rule"], seeds, permuted=settings["permuted"])


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  fig, axes = drawing.new(1, len(_LABELS), width=4.5)
  for ax, (permuted, label) in zip(axes.flat, _LABELS.items(), strict=True):
    ez_small.draw_deep_sea(ax, types.select(done, permuted=permuted))
    ax.set_title(label, fontsize="medium")
  return fig


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  plain, permuted = (types.select(done, permuted=value) for value in _LABELS)
  control, control_words = _first(plain)
  adversarial, adversarial_words = _first(permuted)
  loss = statistics.bootstrap(_ratios(plain, permuted))
  times, low, high = (2.0 ** bound[0] for bound in loss)
  return [
    types.Finding(
      "DeepSea: εz-greedy finds the goal before ε-greedy does, in most pairs of runs",
      control_words,
      None if control is None else bool(control.low[0] > 0.5),
    ),
    types.Finding(
      "adversarial: εz-greedy is first in no more than half of the pairs",
      adversarial_words,
      None if adversarial is None else bool(adversarial.low[0] <= 0.5),
    ),
    types.Finding(
      "εz-greedy needs more episodes in the adversarial one",
      f"{times:.3g} [{low:.3g}, {high:.3g}] times as many, the geometric mean over "
      "sizes and seeds; runs that never found the goal count with all their episodes",
      bool(loss.low[0] > 0),
    ),
  ]


def _first(done: Sequence[types.Done]) -> tuple[statistics.Interval | None, str]:
  """The share of pairs in which εz-greedy finds the goal first, `[1]`, and words.

  A pair is a run of each rule, of one size and seed, and so with the same effects of
  actions. Those of equally many episodes count a half; those in which neither finds
  the goal are left out, and where there are no others, nothing is known.
  """
  episodes = {rule: ez_small.deep_sea_episodes(done, rule) for rule in ez_runs.RULES}
  found = [
    np.stack([task.results["stopped"] for task in types.select(done, rule=rule)], 1)
    for rule in ez_runs.RULES
  ]
  sooner = np.sign(episodes["epsilon"] - episodes["ez"])
  pairs = (0.5 + 0.5 * sooner)[np.logical_or(*found)]
  if not len(pairs):
    return None, "no run found the goal"
  share = statistics.bootstrap(pairs[:, None])
  value, low, high = (bound[0] for bound in share)
  words = f"{value:.2f} [{low:.2f}, {high:.2f}] of {len(pairs)} pairs"
  return share, f"{words}; {ez_small.deep_sea_medians(done)}"


def _ratios(plain: Sequence[types.Done], permuted: Sequence[types.Done]) -> np.ndarray:
  """log₂ of εz-greedy's episodes, permuted against plain: `[S, 1]`, sizes' means."""
  logs = [np.log2(ez_small.deep_sea_episodes(x, "ez")) for x in (plain, permuted)]
  return np.mean(logs[1] - logs[0], axis=1, keepdims=True)


FIGURES = (
  types.Figure(
    name="ez/fig14",
    title="Adversarial DeepSea",
    source=f"{ez_runs.PAPER}, figure 14",
    claim="where the actions' effects are randomly permuted in every state, εz-greedy "
    "no longer explores more efficiently than ε-greedy.",
    config=Config(),
    quick=Config(sizes=(3, 4, 5), episodes=300, num_seeds=5),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
