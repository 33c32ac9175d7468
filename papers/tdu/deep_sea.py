"""Paper 4's figure 1: which agents solve Deep Sea, deterministic and stochastic.

A size is solved if the agent finds the treasure often enough (`runs.solve_deep_sea`);
bsuite's own rule is reported beside it. `scaling.py` has the growth of the episodes
with the size, and `ucb/parts.py` what figure 2 compares.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Annotated

import numpy as np

from explorax import ranges
from explorax.papers import claims, panels, significance, types
from explorax.papers.tdu import episodes, runs

_VERSIONS: dict[str, types.Selection] = {
  "deterministic": {"stochastic": False},
  "stochastic": {"stochastic": True},
}
_LABELS = {
  "tdu": "TDU",
  "bootstrapped_dqn": "bootstrapped DQN",
  "dqn_rnd": "RND",
  "dqn_counts": "counts",
  "qex": "QEX",
  "successor_uncertainties": "SU",
  "noisy_dqn": "noisy networks",
}
# The paper calls these posterior sampling, and claims that they suffer from noise.
_POSTERIOR_SAMPLING = ("bootstrapped_dqn", "successor_uncertainties", "noisy_dqn")
_NEARLY = 0.9  # The share of sizes that counts as nearly all.


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure.

  All agents have the settings of their presets. TDU and Bootstrapped DQN have priors of
  scale 3, and TDU has β = 1 (paper 4, appendix D). The other baselines have values that
  are the best of a sweep over three small problems, or not shown to be worse.
  Two of these problems are Deep Sea with N = 10, so that the sweep favours the
  baselines. The paper does not say which values were best in its own.
  """

  # N; 10, 12, … 50 in the paper, and in `tdu/scaling` for TDU and Bootstrapped DQN.
  sizes: types.Distinct[types.Size] = (10, 14, 18)
  agents: types.Distinct[Annotated[str, ranges.OneOf(_LABELS)]] = (
    "tdu",
    "bootstrapped_dqn",
    "successor_uncertainties",
    "noisy_dqn",
    "qex",
    "dqn_rnd",
    "dqn_counts",
  )
  max_episodes: ranges.PositiveInt = 1500  # 10 000 in bsuite.
  num_seeds: ranges.PositiveInt = 5  # Not in the paper.
  # They run in one program; a task ends with the slowest seed.
  seeds_per_task: ranges.PositiveInt = 5


def _tasks(config: Config) -> list[types.Task]:
  return [
    task
    for agent in config.agents
    for size in config.sizes
    for version, settings in _VERSIONS.items()
    for task in types.split(
      f"{agent}_{size}_{version}",
      {"agent": agent, "size": size, **settings, "max_episodes": _limit(config, size)},
      config.num_seeds,
      config.seeds_per_task,
      size * (3.0 if settings["stochastic"] else 1.0),  # These take longer to solve.
    )
  ]


def _limit(config: Config, size: int) -> int:
  """At most 2^N episodes, the number that dithering needs."""
  return min(2**size, config.max_episodes)


def _panels(config: Config) -> list[list[panels.Panel]]:
  return [
    [
      episodes.rows(
        {_LABELS[agent]: {"agent": agent} for agent in config.agents},
        _limit(config, size),
        where={**where, "size": size},
        title=f"{version}, N = {size}",
        **({"yticklabels": []} if where["stochastic"] else {}),
      )
      for version, where in _VERSIONS.items()
    ]
    for size in config.sizes
  ]


def suffers_from_noise(
  claim: str, agents: Sequence[types.Selection]
) -> Callable[[types.Table], types.Finding | None]:
  """That agents, pooled, solve fewer runs of the stochastic version."""

  def claimed(table: types.Table) -> types.Finding | None:
    versions = [
      [episodes.is_solved(group) for agent in agents if (group := one.where(**agent))]
      for one in (table.where(**where) for where in _VERSIONS.values())
    ]
    if not all(versions):
      return None
    pooled = [np.concatenate([x.ravel() for x in each]) for each in versions]
    plain, noisy = pooled
    words = "; ".join(
      f"{version} {x.sum():.0f} of {len(x)} runs"
      for version, x in zip(_VERSIONS, pooled, strict=True)
    )
    finding = claims.compare(
      claim, plain, noisy, f"solved: {words}; {{gap}}", spec=".2f"
    )
    seeds = table.num_seeds()
    held = finding.held if (seeds or 0) >= claims.LEAST_SEEDS else None
    return finding._replace(num_seeds=seeds, held=held)

  return claimed


def _only_tdu(table: types.Table) -> types.Finding | None:
  """Whether TDU's share is above 0.9 in both versions, and no other agent's is."""
  counts = {
    agent: [
      (int(x.sum()), x.size)
      for where in _VERSIONS.values()
      if (x := episodes.is_solved(table.where(agent=agent, **where))).size
    ]
    for agent in sorted(table.values("agent"), key=lambda agent: agent != runs.TDU)
  }
  if runs.TDU not in counts:
    return None
  nearly = {
    agent: claims.all_hold(
      significance.share(*x).is_above(_NEARLY) for x in of_versions
    )
    for agent, of_versions in counts.items()
  }
  listed = ", ".join(
    f"{_LABELS[agent]} {' and '.join(f'{k} of {n}' for k, n in of_versions)}"
    for agent, of_versions in counts.items()
  )
  others = [claims.negated(held) for agent, held in nearly.items() if agent != runs.TDU]
  return types.Finding(
    f"only TDU solves nearly all sizes of both versions (more than {_NEARLY:g} of "
    "them)",
    f"runs solved, deterministic and stochastic: {listed}; 36 of 36 would have decided",
    claims.all_hold([nearly[runs.TDU], *others]),
    table.num_seeds(),
    test="exact binomial intervals",
  )


def _solved_without_treasure(table: types.Table) -> types.Finding:
  """Our own finding: how many of bsuite's solutions do not find the treasure."""
  listed = []
  for agent in table.values("agent"):
    solved, by_bsuite = (
      table.per_seed(name, agent=agent, stochastic=True) > 0
      for name in ("solved", "by_bsuite")
    )
    if (empty := by_bsuite & ~solved).any():
      listed.append(f"{_LABELS[agent]} {empty.sum()} of {by_bsuite.sum()}")
  return types.Finding(
    "bsuite's rule calls runs of the stochastic version solved that are not by the "
    "treasure",
    "; ".join(listed) or "none",
    bool(listed),
    table.num_seeds(),
    "ours",
    "counted",
  )


def _claims(config: Config) -> list[types.Claim]:
  stochastic = {"stochastic": True}
  posterior = [agent for agent in _POSTERIOR_SAMPLING if agent in config.agents]
  return [
    _only_tdu,
    suffers_from_noise(
      "posterior sampling (bootstrapped DQN, SU and noisy networks, pooled) suffers "
      "where Deep Sea is stochastic",
      [{"agent": agent} for agent in posterior],
    ),
    claims.Compare(
      "TDU solves more of the stochastic runs than bootstrapped DQN",
      lambda table: episodes.is_solved(table).reshape(-1, 1),
      {"agent": runs.TDU, **stochastic},
      {"agent": runs.BOOTSTRAPPED, **stochastic},
      "shares {a:.2g} and {b:.2g}, {gap}",
      spec=".2f",
    ),
    _solved_without_treasure,
  ]


FIGURES = (
  types.Figure(
    name="tdu/fig1",
    title="Deep Sea: episodes until it is solved, by agent",
    source=f"{runs.PAPER}, figure 1",
    claim="only TDU performs near-optimally on both versions of Deep Sea; posterior "
    "sampling (BDQN, SU and NNS) does well on the deterministic one, and suffers on "
    "the stochastic one. Solved is by the share of episodes that find the treasure, "
    "of the best policy's; bsuite's rule does not ask for it.",
    config=Config(),
    quick=Config(sizes=(5,), agents=("tdu",), num_seeds=1),
    tasks=_tasks,
    compute=runs.solve_deep_sea,
    panels=_panels,
    claims=_claims,
    caption="A mark is a run of a seed; a hollow one, at the limit, stands for all "
    "that were not solved. On the right: the number of runs solved, by the treasure.",
  ),
)
