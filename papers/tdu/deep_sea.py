"""Paper 4's figures 1 and 2: which agents solve Deep Sea, deterministic and stochastic.

Figure 1 compares agents. Figure 2 varies the scales of TDU's bonus and of the priors,
and compares TDU with its rivals. A size is solved if the agent finds the treasure often
enough (`runs.solve_deep_sea`); bsuite's own rule is reported beside it. `scaling.py`
has the growth of the episodes with the size.
"""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np

from explorax import ranges
from explorax.experiments.recording import statistics
from explorax.papers import claims, layers, panels, types
from explorax.papers.tdu import episodes, runs

_VERSIONS: dict[str, types.Selection] = {
  "deterministic": {"stochastic": False},
  "stochastic": {"stochastic": True},
}
_LABELS = {
  "tdu": "TDU",
  "bootstrapped_dqn": "BDQN",
  "dqn_rnd": "RND",
  "dqn_counts": "counts",
  "qex": "QEX",
  "successor_uncertainties": "SU",
  "noisy_dqn": "NNS",
  "qu": "QU",
  "q_ucb": "Q+UCB",
}
# The paper calls these posterior sampling, and claims that they do worse in the
# stochastic version.
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


def _bars(groups: layers.Lines) -> panels.Panel:
  """The share of runs that an agent solves in each version."""
  return panels.Panel(
    layers.Bars(
      episodes.is_solved,
      groups,
      _VERSIONS,
      episodes.is_solved_by_bsuite,
      "by bsuite's rule",
    ),
    legend={
      "fontsize": "x-small",
      "loc": "upper center",
      "ncols": 3,
      "columnspacing": 1.0,
    },
    grid="y",
    ylabel="share of runs solved",
    ylim=(0, 1.3),
    yticks=np.arange(0, 1.1, 0.2),
  )


def _loses_where_stochastic(
  label: str, agent: types.Selection, when: str = ""
) -> claims.Compare:
  return claims.Compare(
    f"{label} loses where Deep Sea is stochastic",
    episodes.is_solved,
    {**agent, "stochastic": False},
    {**agent, "stochastic": True},
    f"share of sizes{when}, deterministic and stochastic: {{a:.3g}} and {{b:.3g}}, a "
    "difference of {gap}",
    spec=".3g",
  )


# -- figure 1: agents -----------------------------------------------------------------


def _agent_panels(config: Agents) -> list[list[panels.Panel]]:
  agents = {_LABELS[agent]: {"agent": agent} for agent in config.agents}
  limit = max(_limit(config, size) for size in config.sizes)
  return [
    [
      _bars(agents),
      *(
        episodes.panel(
          agents,
          config.sizes,
          limit,
          where=where,
          share_y=True,
          xlabel="size N",
          title=version,
        )
        for version, where in _VERSIONS.items()
      ),
    ]
  ]


def _only_tdu(table: types.Table) -> types.Finding | None:
  """Whether TDU's share is above 0.9 in both versions, and no other agent's is."""
  shares = {
    agent: [
      table.where(agent=agent, **where).score(episodes.is_solved)
      for where in _VERSIONS.values()
    ]
    for agent in sorted(table.values("agent"), key=lambda agent: agent != runs.TDU)
  }
  if runs.TDU not in shares:
    return None
  nearly = {
    agent: claims.all_hold(statistics.mean(x).is_above(_NEARLY) for x in of_versions)
    for agent, of_versions in shares.items()
  }
  listed = ", ".join(
    f"{_LABELS[agent]} {min(map(np.mean, of_versions)):.2f}"
    for agent, of_versions in shares.items()
  )
  others = [claims.negated(held) for agent, held in nearly.items() if agent != runs.TDU]
  return types.Finding(
    f"only TDU solves nearly all sizes of both versions (more than {_NEARLY:g} of "
    "them)",
    f"share in the worse version: {listed}",
    claims.all_hold([nearly[runs.TDU], *others]),
  )


def _solved_without_treasure(table: types.Table) -> types.Finding:
  """Our own finding: how many of bsuite's solutions do not find the treasure."""
  listed = []
  for agent in table.values("agent"):
    solved, by_bsuite, treasures = (
      table.per_seed(name, agent=agent, stochastic=True)
      for name in ("solved", "by_bsuite", "treasures")
    )
    empty = (by_bsuite > 0) & (solved == 0)
    if empty.any():
      never = np.sum(empty & (treasures == 0))
      listed.append(
        f"{_LABELS[agent]} {empty.sum()} of {np.sum(by_bsuite > 0)} (treasure never "
        f"found: {never})"
      )
  return types.Finding(
    "bsuite's rule calls runs of the stochastic version solved that are not by the "
    "treasure",
    "; ".join(listed) or "none",
    bool(listed),
  )


def _agent_claims(config: Agents) -> list[types.Claim]:
  del config
  stochastic = {"stochastic": True}
  return [
    _only_tdu,
    *(
      _loses_where_stochastic(_LABELS[agent], {"agent": agent})
      for agent in _POSTERIOR_SAMPLING
    ),
    claims.Compare(
      "TDU solves more of the stochastic sizes than BDQN",
      episodes.is_solved,
      {"agent": runs.TDU, **stochastic},
      {"agent": runs.BOOTSTRAPPED, **stochastic},
      "share of sizes, TDU's and BDQN's: {a:.3g} and {b:.3g}, a difference of {gap}",
      spec=".3g",
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


def _scale_panels(config: Scales) -> list[list[panels.Panel]]:
  heat_map = layers.HeatMap(
    episodes.is_solved, "beta", "prior_scale", "share of runs solved"
  )
  around: dict[str, Any] = {
    "grid": None,
    "xlabel": "bonus scale β (0: BDQN)",
    "ylabel": "prior scale λ",
  }
  rivals = {_LABELS[rival]: {"agent": rival} for rival in config.rivals}
  return [
    [
      *(
        panels.Panel(heat_map, where=where, title=version, **around)
        for version, where in _VERSIONS.items()
      ),
      _bars({"TDU": _like_presets(config), **rivals}),
    ]
  ]


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
        f"with priors, TDU is faster than BDQN (β = 0), {version}",
        {**bonus, **where},
        {**bdqn, **where},
        f"TDU and BDQN with λ = {most:g}",
      )
      for version, where in _VERSIONS.items()
    ),
    _loses_where_stochastic("BDQN", bdqn, f" with λ = {most:g}"),
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
    title="Deep Sea: which sizes an agent solves",
    source=f"{runs.PAPER}, figure 1",
    claim="only TDU performs near-optimally on both versions of Deep Sea; posterior "
    "sampling (BDQN, SU and NNS) does well on the deterministic one, and suffers on "
    "the stochastic one. Solved is by the share of episodes that find the treasure, "
    "of the best policy's; bsuite's rule does not ask for it.",
    config=Agents(),
    quick=Agents(sizes=(5,), agents=("tdu",), num_seeds=1),
    tasks=lambda config: _tasks(config, {x: {"agent": x} for x in config.agents}),
    compute=runs.solve_deep_sea,
    panels=_agent_panels,
    claims=_agent_claims,
    size=(4.0, 3.4),
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
    panels=_scale_panels,
    claims=_scale_claims,
    size=(3.7, 3.3),
    revision=2,
  ),
)
