"""Paper 4's figures 1 and 2: which agents solve Deep Sea, deterministic and stochastic.

Figure 1 compares agents. Figure 2 varies the scales of TDU's bonus and of the priors,
and compares TDU with its rivals. A size is solved if the agent finds the treasure often
enough (`runs.solve_deep_sea`); bsuite's own rule is reported beside it. `scaling.py`
has the growth of the episodes with the size.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np

from explorax import ranges
from explorax.experiments.recording import significance
from explorax.papers import claims, layers, panels, types
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
  "qu": "QU",
  "q_ucb": "Q+UCB",
}
# The paper calls these posterior sampling, and claims that they suffer from noise.
_POSTERIOR_SAMPLING = ("bootstrapped_dqn", "successor_uncertainties", "noisy_dqn")
_NEARLY = 0.9  # The share of sizes that counts as nearly all.


@dataclasses.dataclass(frozen=True)
class Agents(ranges.Checked):
  """Settings of figure 1.

  All agents have the settings of their presets. TDU and Bootstrapped DQN have priors of
  scale 3, and TDU has β = 1 (paper 4, appendix D). The other baselines have values that
  are the best of a sweep over three small problems, or not shown to be worse.
  Two of these problems are Deep Sea with N = 10, so that the sweep favours the
  baselines. The paper does not say which values were best in its own.
  """

  # N; 10, 12, … 50 in the paper, and in `tdu/scaling` for TDU and Bootstrapped DQN.
  sizes: types.Distinct[types.Size] = (10,)
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
  seeds_per_task: ranges.PositiveInt = (
    5  # They run in parallel; a task ends with the slowest seed.
  )


@dataclasses.dataclass(frozen=True)
class Scales(ranges.Checked):
  """Settings of figure 2: scales β of TDU's bonus and λ of the priors, and two rivals.

  The rivals use the uncertainty of values instead of that of TD errors.
  """

  sizes: types.Distinct[types.Size] = (14,)  # N; 10, 12, … 50 in the paper.
  # β; 0 to 5 in appendix D.2; 0 is BDQN.
  betas: types.Distinct[ranges.NonNegativeFloat] = (0.0, 1.0)
  # λ; the paper also has 1 (table 3).
  prior_scales: types.Distinct[ranges.NonNegativeFloat] = (0.0, 3.0)
  rivals: tuple[Literal["qu", "q_ucb"], ...] = (
    "qu",
    "q_ucb",
  )  # Their presets have β = 1 and λ = 3.
  max_episodes: ranges.PositiveInt = 300  # 10 000 in bsuite.
  num_seeds: ranges.PositiveInt = 3  # Not in the paper.
  seeds_per_task: ranges.PositiveInt = 3

  def __post_init__(self) -> None:
    super().__post_init__()
    if max(self.betas) == 0:
      raise ValueError("betas has no β above 0, so TDU is missing; add one.")


def _tasks(config: Any, agents: Mapping[str, Mapping[str, Any]]) -> list[types.Task]:
  """Tasks for each agent (label → settings), size and version."""
  return [
    task
    for label, agent in agents.items()
    for size in config.sizes
    for version, settings in _VERSIONS.items()
    for task in types.split(
      f"{label}_{size}_{version}",
      # At most 2^N episodes, the number that dithering needs.
      {**agent, "size": size, **settings, "max_episodes": _limit(config, size)},
      config.num_seeds,
      config.seeds_per_task,
      size * (3.0 if settings["stochastic"] else 1.0),  # These take longer to solve.
    )
  ]


def _limit(config: Any, size: int) -> int:
  return min(2**size, config.max_episodes)


def _panels(config: Any, lines: layers.Lines) -> list[list[panels.Panel]]:
  return [
    [
      episodes.rows(
        lines,
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


# -- figure 1: agents -----------------------------------------------------------------


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


def _agent_claims(config: Agents) -> list[types.Claim]:
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


# -- figure 2: scales of the bonus and of the priors ----------------------------------


def _scale_tasks(config: Scales) -> list[types.Task]:
  agents = {
    f"beta{beta:g}_prior{scale:g}": runs.agent_settings(beta, scale)
    for beta in config.betas
    for scale in config.prior_scales
  }
  return _tasks(config, agents | {rival: {"agent": rival} for rival in config.rivals})


def _like_presets(config: Scales) -> types.Selection:
  """TDU with the scales of its rivals, or with the nearest ones."""
  beta = min((b for b in config.betas if b > 0), key=lambda b: abs(b - 1.0))
  scale = min(config.prior_scales, key=lambda s: abs(s - 3.0))
  return {"beta": beta, "prior_scale": scale}


def _scale_lines(config: Scales) -> layers.Lines:
  names = {0.0: _LABELS[runs.BOOTSTRAPPED]}
  return {
    f"{names.get(beta, f'TDU, β = {beta:g}')}, λ = {scale:g}": {
      "beta": beta,
      "prior_scale": scale,
    }
    for beta in config.betas
    for scale in config.prior_scales
  } | {f"{_LABELS[rival]}, λ = 3": {"agent": rival} for rival in config.rivals}


def _scale_claims(config: Scales) -> list[types.Claim]:
  most, least = max(config.prior_scales), min(config.prior_scales)
  bonus = {"beta": bool, "prior_scale": most}
  bdqn = {"beta": 0.0, "prior_scale": most}
  return [
    episodes.fewer(
      "priors are instrumental, whatever the bonus",
      bonus,
      {"beta": bool, "prior_scale": least},
      f"TDU with λ = {most:g} and without",
    ),
    *(
      episodes.fewer(
        f"with priors, TDU is faster than bootstrapped DQN (β = 0), {version}",
        {**bonus, **where},
        {**bdqn, **where},
        f"TDU and bootstrapped DQN with λ = {most:g}",
      )
      for version, where in _VERSIONS.items()
    ),
    suffers_from_noise(
      f"bootstrapped DQN with λ = {most:g} suffers where Deep Sea is stochastic", [bdqn]
    ),
    *(
      episodes.fewer(
        f"{_LABELS[rival]} does not match TDU",
        _like_presets(config),
        {"agent": rival},
        f"TDU and {_LABELS[rival]}",
      )
      for rival in config.rivals
    ),
  ]


FIGURES = (
  types.Figure(
    name="tdu/fig1",
    title="Deep Sea: episodes to find the treasure, by agent",
    source=f"{runs.PAPER}, figure 1",
    claim="only TDU performs near-optimally on both versions of Deep Sea; posterior "
    "sampling (BDQN, SU and NNS) does well on the deterministic one, and suffers on "
    "the stochastic one. Solved is by the share of episodes that find the treasure, "
    "of the best policy's; bsuite's rule does not ask for it.",
    config=Agents(),
    quick=Agents(sizes=(5,), agents=("tdu",), num_seeds=1),
    tasks=lambda config: _tasks(config, {x: {"agent": x} for x in config.agents}),
    compute=runs.solve_deep_sea,
    panels=lambda config: _panels(
      config, {_LABELS[agent]: {"agent": agent} for agent in config.agents}
    ),
    claims=_agent_claims,
    caption="A mark is a run of a seed; hollow, at the limit: not solved. On the "
    "right: the number of runs solved, by the treasure.",
    revision=2,
  ),
  types.Figure(
    name="tdu/fig2",
    title="Deep Sea: TDU's bonus against the priors",
    source=f"{runs.PAPER}, figure 2",
    claim="prior functions are instrumental, even for large bonuses; for a given prior "
    "scale, TDU does better than Bootstrapped DQN, which loses on the stochastic "
    "version; the same uncertainty of values instead of TD errors (QU, Q+UCB) does not "
    "match it.",
    config=Scales(),
    quick=Scales(sizes=(5,), betas=(1.0,), prior_scales=(3.0,), rivals=(), num_seeds=1),
    tasks=_scale_tasks,
    compute=runs.solve_deep_sea,
    panels=lambda config: _panels(config, _scale_lines(config)),
    claims=_scale_claims,
    caption="β scales TDU's bonus, λ the priors; QU and Q+UCB have β = 1. A mark is a "
    "run of a seed; hollow, at the limit: not solved. On the right: the number of runs "
    "solved, by the treasure.",
    revision=2,
  ),
)
