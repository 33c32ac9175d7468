"""Paper 4's figure 1, which agents solve Deep Sea, and TDU's claim with more seeds.

A size is solved if the agent finds the treasure often enough (`problems.deep_sea`);
bsuite's own rule is reported beside it. `scaling.py` has the growth of the episodes
with the size, and `ucb/parts.py` what figure 2 compares.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from explorax.papers import draw, figures, judge
from explorax.papers.tdu import problems

VERSIONS = {
  "deterministic": {"stochastic": False},
  "stochastic": {"stochastic": True},
}
# The presets' settings: TDU and bootstrapped DQN with priors of scale 3, TDU with β = 1
# (paper 4, appendix D). The others have the best values of a sweep over three small
# problems, two of them Deep Sea with N = 10, or values not shown to be worse.
_LINES = {
  "TDU": {"agent": "tdu"},
  "bootstrapped DQN": {"agent": "bootstrapped_dqn"},
  "SU": {"agent": "successor_uncertainties"},
  "noisy networks": {"agent": "noisy_dqn"},
  "QEX": {"agent": "qex"},
  "RND": {"agent": "dqn_rnd"},
  "counts": {"agent": "dqn_counts"},
}
# The paper calls these posterior sampling, and claims that they suffer from noise.
_POSTERIOR = ("bootstrapped_dqn", "successor_uncertainties", "noisy_dqn")
_NEARLY = 0.9  # The share of sizes that counts as nearly all.
_DEEP = {label: _LINES[label] for label in ("TDU", "bootstrapped DQN")}
# At most 2^N episodes, the number that dithering needs, and 1,500 (bsuite: 10,000).
_LIMITS = {10: 2**10, 14: 1500, 18: 1500}


def is_solved(table: figures.Table) -> np.ndarray:
  """Whether each run solved its problem, by the treasure, 0 or 1: `[S, problems]`."""
  return (table.scores("solved") > 0).astype(np.float64)


def suffers_from_noise(
  claim: str, agents: figures.Selection
) -> Callable[[figures.Table], judge.Finding | None]:
  """That agents, pooled, solve fewer runs of the stochastic version."""
  plain, noisy = ({**agents, **version} for version in VERSIONS.values())
  fewer = judge.Above(claim, is_solved, plain, noisy, pooled=True, spec=".2f")

  def claimed(table: figures.Table) -> judge.Finding | None:
    found = fewer(table)
    return found and dataclasses.replace(found, seeds=len(table.seeds()))

  return claimed


def _only_tdu(table: figures.Table) -> tuple[bool | None, str, None]:
  """Whether TDU's share is above 0.9 in both versions, and no other agent's is."""
  nearly, words = {}, []
  for label, agent in _LINES.items():
    solved = [is_solved(table.where(**agent, **x)).ravel() for x in VERSIONS.values()]
    each = [
      judge.share(int(x.sum()), x.size).is_above(_NEARLY) for x in solved if x.size
    ]
    nearly[label] = judge.all_hold(each)
    words.append(f"{label} {' and '.join(f'{x.sum():.0f}' for x in solved)}")
  own = nearly.pop("TDU")
  others = [None if held is None else not held for held in nearly.values()]
  return judge.all_hold([own, *others]), f"solved: {', '.join(words)}", None


def _without_treasure(table: figures.Table) -> tuple[bool, str, None]:
  solved, by_bsuite = (table.scores(x) > 0 for x in ("solved", "by_bsuite"))
  empty = np.sum(by_bsuite & ~solved)
  return bool(empty), f"{empty} of {by_bsuite.sum()} runs", None


def _cost(settings: figures.Settings) -> float:
  return float(settings["size"] ** 2 * (3 if settings["stochastic"] else 1))


def _rows(size: int, version: str) -> draw.Rows:
  last = version == "stochastic"
  return draw.Rows(
    lines=_LINES,
    event="solved",
    where={"size": size, **VERSIONS[version]},
    limit=_LIMITS[size],
    names=size == min(_LIMITS),
    ratio=1.0,
    axes={
      "title": f"{version}, N = {size}",
      "xscale": "log",
      "xlim": (1.5, 2200),
      "xlabel": "episodes until it is solved" if last else "",
    },
  )


def _grid(sizes: tuple[int, ...], **more: Any) -> figures.Grid:
  axes = {
    "size": sizes,
    "stochastic": True,
    "own_mapping": True,
    "max_episodes": 10_000,
  }
  lines = [*_DEEP.values()]
  return figures.Grid(
    problems.deep_sea, lines, axes, first_seed=100, cost=_cost, **more
  )


FIGURES = (
  figures.Figure(
    name="tdu/fig1",
    title="Deep Sea: episodes until it is solved, by agent",
    source=f"{problems.PAPER}, figure 1",
    runs=[
      figures.Grid(
        problems.deep_sea,
        [*_LINES.values()],
        {"size": sizes, "stochastic": (False, True), "max_episodes": limit},
        seeds_per_task=5,
        cost=_cost,
      )
      for sizes, limit in (((10,), 2**10), ((14, 18), 1500))
    ],
    quick={"agent": ("tdu",), "size": (5,), "max_episodes": 32, "num_seeds": 1},
    panels=[[_rows(size, version) for size in _LIMITS] for version in VERSIONS],
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
        is_solved,
        *({**agent, **VERSIONS["stochastic"]} for agent in _DEEP.values()),
        pooled=True,
        spec=".2f",
      ),
      judge.Check(
        "bsuite's rule calls runs of the stochastic version solved that are not by the "
        "treasure",
        _without_treasure,
        VERSIONS["stochastic"],
      ),
    ],
    problem="size",
    caption="A mark is a run of a seed; a hollow one, at the limit, stands for all "
    "that were not solved. On the right: the number of runs solved, by the treasure.",
  ),
  figures.Figure(
    name="tdu/stochastic",
    title="Stochastic Deep Sea: episodes until it is solved",
    source=f"Our own, of {problems.PAPER}, section 4.1 and figure 1",
    # Alone on a CPU, where in one program all seeds take as long as the slowest; those
    # of the large size together on a GPU, where they take as long as one.
    runs=[
      _grid((20, 26, 30), num_seeds=10),
      _grid((40,), num_seeds=8, seeds_per_task=8),
    ],
    quick={"size": (4,), "max_episodes": 110, "num_seeds": 1},
    panels=[
      [
        draw.Marks(
          event="solved",
          lines=_DEEP,
          x="size",
          limit=10_000,
          axes={
            "xlabel": "size N of Deep Sea",
            "ylabel": "episodes until it is solved",
            "xticks": (20, 26, 30, 40),
            "xticklabels": (20, 26, 30, 40),
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
            *({**agent, "size": sizes} for agent in _DEEP.values()),
          )
          for sizes in ((20, 26, 30), (40,))
        ]
      )
    ],
    problem="size",
    caption="A mark is a run of a seed, which has its own action mapping; a hollow "
    "one, at the limit, stands for all that were not solved, with their number. Lines "
    "join medians. Both agents have twenty networks with priors (λ = 3).",
  ),
)
