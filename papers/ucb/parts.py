"""Which parts of an ensemble explore Deep Sea: rule, networks, priors, or a bonus.

Rules that act on ten members (UCB and voting) are crossed with shared or separate
networks and with priors; the agents of paper 4's figure 2, of twenty separate networks,
are crossed with priors.
"""

import numpy as np

from explorax.experiments.reports import markdown
from explorax.papers import figures, judge
from explorax.papers.tdu import deep_sea, problems

_SCALES = (0.1, 1.0, 10.0)  # λ of UCB; paper 3 has the first, on Atari.
_OF_HEADS = ("ucb", "ensemble_voting")
_SEPARATE = {
  "tdu": "TDU",
  "bootstrapped_dqn": "bootstrapped DQN",
  "qu": "QU",
  "q_ucb": "Q+UCB",
}
_SIZES = (6, 10, 14)


_PARTS = [
  *((f"UCB, λ = {scale:g}", "ucb", scale) for scale in _SCALES),
  ("voting", "ensemble_voting", None),
  *((label, agent, None) for agent, label in _SEPARATE.items()),
]
_LINES = {
  f"{label}{', one torso' if shared else ''}{', priors' if prior else ''}": {
    "agent": agent,
    "scale": scale,
    "shared_torso": shared,
    "prior_scale": prior,
  }
  for label, agent, scale in _PARTS
  for shared in ((True, False) if agent in _OF_HEADS else (False,))
  for prior in (0.0, 3.0)
}


def _table(table: figures.Table) -> str:
  """The number of runs solved, and the median of the episodes of all."""
  rows = []
  for label, line in _LINES.items():
    row = {"agent": label}
    for version, where in deep_sea.VERSIONS.items():
      for size in table.values("size"):
        times = table.where(**line, **where, size=size).times()
        count = times.solved.sum()
        cell = f"{count} ({np.median(times.episodes):.0f})" if count else "0"
        row[f"{version}, N = {size}"] = cell
    rows.append(row)
  return markdown.table(rows)


def _claims() -> list[judge.Claim]:
  """Two families of tests, each corrected by Holm's method: ours, and paper 4's."""
  most, least = {"prior_scale": 3.0}, {"prior_scale": 0.0}
  one_torso, separate = {"shared_torso": True}, {"shared_torso": False}
  tdu, bootstrapped, qu, q_ucb = ({"agent": agent, **most} for agent in _SEPARATE)
  weak, strong = ({"agent": "ucb", "scale": scale} for scale in (0.1, 10.0))
  of_heads = {"agent": _OF_HEADS}
  ours: list[judge.Claim] = [
    judge.Sooner("priors make these agents, pooled, explore", most, least),
    judge.Sooner(
      "separate networks explore more than heads on one torso (UCB and voting)",
      *(separate, one_torso, of_heads),
    ),
    judge.Sooner("UCB with λ = 10 explores more than with Atari's 0.1", strong, weak),
    judge.Sooner(
      "UCB with Atari's λ explores more than voting, on the same networks",
      *(weak, {"agent": "ensemble_voting"}),
    ),
  ]
  of_paper: list[judge.Claim] = [
    judge.Sooner("priors are instrumental for TDU", tdu, {**tdu, **least}),
    *(
      judge.Sooner(
        f"TDU is faster than bootstrapped DQN, {version}", tdu, bootstrapped, where
      )
      for version, where in deep_sea.VERSIONS.items()
    ),
    deep_sea.suffers_from_noise(
      "bootstrapped DQN with priors suffers where Deep Sea is stochastic", bootstrapped
    ),
    judge.Sooner("QU does not match TDU", tdu, qu),
    judge.Sooner("Q+UCB does not match TDU", tdu, q_ucb),
  ]
  return [judge.Holm(ours), judge.Holm(of_paper)]


FIGURES = (
  figures.Figure(
    name="ucb/parts",
    title="Deep Sea: which parts of an ensemble explore",
    source="Our own, of Chen et al. (2017), UCB Exploration via Q-Ensembles, and of "
    f"{problems.PAPER}, figure 2",
    runs=[
      figures.Grid(
        problems.deep_sea,
        [*_LINES.values()],
        # bsuite has 10,000 episodes.
        {"size": _SIZES, "stochastic": (False, True), "max_episodes": 1000},
        num_seeds=10,
        first_seed=100,  # Other figures have seeds from 0.
        seeds_per_task=10,  # They run in one program.
      )
    ],
    quick={
      "agent": ("ucb", "tdu"),
      "scale": (1.0, None),
      "prior_scale": (3.0,),
      "size": (4,),
      "max_episodes": 50,
      "num_seeds": 1,
    },
    panels=[],
    claims=_claims(),
    problem="size",
    table=_table,
  ),
)
