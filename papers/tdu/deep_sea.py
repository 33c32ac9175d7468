"""Paper 4's figure 1, which agents solve Deep Sea, and TDU's claim with more seeds.

A size is solved if the agent finds the treasure often enough (`problems.deep_sea`);
bsuite's own rule is reported beside it. `scaling.py` has the growth of the episodes
with the size, and `ucb/parts.py` what figure 2 compares.
"""

import dataclasses

import numpy as np

from explorax.papers import draw, figures, judge
from explorax.papers.tdu import problems
from explorax.papers.tdu.problems import BOOTSTRAPPED, NOISY, TDU

VERSIONS = {"deterministic": {"stochastic": False}, "stochastic": NOISY}
# The presets' settings: TDU and bootstrapped DQN with priors of scale 3, TDU with β = 1
# (paper 4, appendix D). The others have the best values of a sweep over three small
# problems, two of them Deep Sea with N = 10, or values not shown to be worse.
_LINES = {
  **problems.LINES,
  "SU": {"agent": "successor_uncertainties"},
  "noisy networks": {"agent": "noisy_dqn"},
  "QEX": {"agent": "qex"},
  "RND": {"agent": "dqn_rnd"},
  "counts": {"agent": "dqn_counts"},
}
# The paper calls these posterior sampling, and claims that they suffer from noise.
_POSTERIOR = ("bootstrapped_dqn", "successor_uncertainties", "noisy_dqn")
_NEARLY = 0.9  # The share of sizes that counts as nearly all.
# At most 2^N episodes, the number that dithering needs, and 1,500 (bsuite: 10,000).
_LIMITS = {10: 2**10, 14: 1500, 18: 1500}
_MORE_SEEDS = {"stochastic": True, "own_mapping": True, "max_episodes": 10_000}


def suffers_from_noise(claim: str, agents: figures.Selection) -> judge.Claim:
  """That agents, pooled, solve fewer runs of the stochastic version."""
  plain, solved = VERSIONS["deterministic"], figures.Table.solved
  fewer = judge.Above(claim, solved, plain, NOISY, agents, spec=".2f")

  def claimed(table: figures.Table) -> judge.Finding | None:
    finding = fewer(table)
    return finding and dataclasses.replace(finding, seeds=len(table.seeds()))

  return claimed


def _only_tdu(table: figures.Table) -> judge.Checked:
  """Whether TDU's share is above 0.9 in both versions, and no other agent's is."""
  nearly, words = [], []
  for label, agent in _LINES.items():
    solved = [table.where(**agent, **x).solved() for x in VERSIONS.values()]
    shares = [judge.share(int(x.sum()), x.size) for x in solved if x.size]
    nearly.append(judge.all_hold([share.is_above(_NEARLY) for share in shares]))
    words.append(f"{label} {' and '.join(f'{x.sum():.0f}' for x in solved)}")
  tdu, *others = nearly
  held = judge.all_hold([tdu, *(None if x is None else not x for x in others)])
  return held, f"solved: {', '.join(words)}", None


def _without_treasure(table: figures.Table) -> judge.Checked:
  solved, by_bsuite = (table.scores(x) > 0 for x in ("solved", "by_bsuite"))
  empty = np.sum(by_bsuite & ~solved)
  return bool(empty), f"{empty} of {by_bsuite.sum()} runs", None


FIGURES = (
  figures.Figure(
    name="tdu/fig1",
    title="Deep Sea: episodes until it is solved, by agent",
    source=f"{problems.PAPER}, figure 1",
    runs=[
      figures.Grid(
        problems.deep_sea,
        [*_LINES.values()],
        {"size": size, "stochastic": (False, True), "max_episodes": limit},
        seeds_per_task=5,
      )
      for size, limit in _LIMITS.items()
    ],
    quick={"agent": ("tdu",), "size": 10, "max_episodes": 32, "num_seeds": 1},
    panels=[
      [
        problems.solved_rows(
          _LINES, {"size": size, **where}, f"{version}, N = {size}", limit
        )
        for size, limit in _LIMITS.items()
      ]
      for version, where in VERSIONS.items()
    ],
    claims=[
      judge.Check(
        "only TDU solves nearly all sizes of both versions (more than 0.9 of them)",
        _only_tdu,
        test="exact binomial intervals",
      ),
      suffers_from_noise(
        "posterior sampling (bootstrapped DQN, SU and noisy networks, pooled) suffers "
        "where Deep Sea is stochastic",
        {"agent": _POSTERIOR},
      ),
      judge.Above(
        "TDU solves more of the stochastic runs than bootstrapped DQN",
        *(figures.Table.solved, TDU, BOOTSTRAPPED, NOISY),
        spec=".2f",
      ),
      judge.Check(
        "bsuite's rule calls runs of the stochastic version solved that are not by the "
        "treasure",
        *(_without_treasure, NOISY),
      ),
    ],
    problem="size",
  ),
  figures.Figure(
    name="tdu/stochastic",
    title="Stochastic Deep Sea: episodes until it is solved",
    source=f"Our own, of {problems.PAPER}, section 4.1 and figure 1",
    # Alone on a CPU, where in one program all seeds take as long as the slowest; those
    # of the large size together on a GPU, where they take as long as one.
    runs=[
      figures.Grid(
        problems.deep_sea,
        [TDU, BOOTSTRAPPED],
        {"size": sizes, **_MORE_SEEDS},
        num_seeds=num_seeds,
        first_seed=100,
        seeds_per_task=together,
      )
      for sizes, num_seeds, together in (((20, 26, 30), 10, 1), (40, 8, 8))
    ],
    quick={"size": 4, "max_episodes": 110, "num_seeds": 1},
    panels=[
      [
        draw.Marks(
          event="solved",
          lines=problems.LINES,
          x="size",
          guides=[draw.guide("axhline", 10_000)],
          axes={
            "xlabel": "size N of Deep Sea",
            "ylabel": "episodes until it is solved",
            "xticks": (20, 26, 30, 40),
          },
        )
      ]
    ],
    claims=[
      judge.Holm(
        [
          judge.Sooner(
            f"TDU solves N = {', '.join(map(str, sizes))} in fewer episodes than "
            "bootstrapped DQN",
            *(TDU, BOOTSTRAPPED, {"size": sizes}),
          )
          for sizes in ((20, 26, 30), (40,))
        ]
      )
    ],
    problem="size",
  ),
)
