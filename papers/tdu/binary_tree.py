"""Paper 4's figures 4 and 5: how TDU scales with the depth of a binary tree."""

import itertools

from explorax.papers import draw, figures, judge
from explorax.papers.tdu import problems

# Without a bonus, explorers and exploiters learn the same: β = 0 is bootstrapped DQN.
_BDQN = {"agent": "bootstrapped_dqn", "beta": 0.0, "num_explorers": 0}
_BETAS = (0.1, 1.0, 3.0)  # Appendix D.2 has 0 to 5.
_DEPTHS = (10, 30, 50, 70, 100)  # L; 10, 20, … 250 in the paper.
_EXPLORERS = (5, 10, 15)  # N of the 20 functions; ours.


def _grid(
  num_explorers: tuple[int | None, ...], sizes: tuple[int, ...], prior_scale: float
) -> figures.Grid:
  tdu = [
    {"agent": "tdu", "beta": beta, "num_explorers": n}
    for n in num_explorers
    for beta in _BETAS
  ]
  return figures.Grid(
    problems.tree,
    [_BDQN, *tdu],
    # 5,000 episodes in Janz et al. (2019), whose problem it is.
    {"size": sizes, "prior_scale": prior_scale, "max_episodes": 2000},
    num_seeds=5,  # Appendix C.
    seeds_per_task=5,  # Side by side; a task ends with the slowest of them.
  )


def _faster_with_beta(table: figures.Table) -> list[judge.Finding]:
  """The greatest β than the least; from one to the next at most a tenth slower."""
  betas = sorted(table.where(beta=bool).values("beta"))
  if len(betas) < 2:
    return []
  x = [table.where(beta=beta).times().episodes.reshape(-1, 1) for beta in betas]
  pairs = [(x[-1], x[0]), *((b, 1.1 * a) for a, b in itertools.pairwise(x))]
  num_seeds = len(table.seeds())
  return [
    judge.above(
      *("", a, b), less=True, log=True, spec=".3f", test=judge.paired, seeds=num_seeds
    )
    for a, b in pairs
  ]


FIGURES = (
  figures.Figure(
    name="tdu/fig4",
    title="Binary tree: episodes to solve against its depth",
    source=f"{problems.PAPER}, figure 4",
    runs=[_grid((None,), _DEPTHS, prior_scale=3.0)],
    quick={"beta": (0.0, 1.0), "size": 8, "max_episodes": 100, "num_seeds": 1},
    panels=[
      [
        draw.Marks(
          event="solved",
          lines={
            "bootstrapped DQN": {"beta": 0.0},
            **{f"TDU, β = {beta:g}": {"beta": beta} for beta in _BETAS},
          },
          x="size",
          axes={
            "xlabel": "depth L of the tree",
            "ylabel": "episodes until it is solved",
            "xticks": _DEPTHS,
          },
        )
      ]
    ],
    claims=[
      *(
        judge.Sooner(
          f"TDU is faster than bootstrapped DQN{words}", {"beta": beta}, {"beta": 0.0}
        )
        for beta, words in ((min(_BETAS), ", even with a small β"), (max(_BETAS), ""))
      ),
      judge.All(
        "the greater β, the faster (largely: no step back of more than a tenth)",
        [_faster_with_beta],
      ),
    ],
    problem="size",
  ),
  figures.Figure(
    name="tdu/fig5",
    title="Binary tree without priors: the bonus and the number of explorers",
    source=f"{problems.PAPER}, figure 5",
    runs=[_grid(_EXPLORERS, (10, 30, 50), prior_scale=0.0)],
    quick={"beta": (0.0, 1.0), "num_explorers": (0, 10), "size": 8, "num_seeds": 1},
    panels=[],
    claims=[
      judge.Sooner(
        "without priors too, TDU is faster than bootstrapped DQN",
        *({"beta": bool}, {"beta": 0.0}),
      ),
      judge.Sooner(
        "more bonus is more exploration, and faster",
        *({"beta": max(_BETAS)}, {"beta": min(_BETAS)}),
      ),
      judge.Sooner(
        "N is similar in its effect to β: more explorers are faster",
        *({"num_explorers": max(_EXPLORERS)}, {"num_explorers": min(_EXPLORERS)}),
      ),
    ],
    problem="size",
  ),
)
