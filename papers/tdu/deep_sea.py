"""Paper 4's figures 1 and 2: which agents solve Deep Sea, deterministic and stochastic.

Figure 1 compares agents. Figure 2 varies the scales of TDU's bonus and of the priors,
and compares TDU with its rivals. A size is solved if the agent finds the treasure often
enough (`runs.solve_deep_sea`); bsuite's own rule is reported beside it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from explorax.agents import ranges
from explorax.experiments.recording import drawing, statistics
from explorax.papers import claims, types
from explorax.papers.tdu import runs

_VERSIONS = {"deterministic": False, "stochastic": True}
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
class Agents:
  """Settings of figure 1.

  All agents have the settings of their presets. TDU and Bootstrapped DQN have priors of
  scale 3, and TDU has β = 1 (paper 4, appendix D). The other baselines have values that
  are the best of a sweep over three small problems, or cannot be told from the best.
  Two of these problems are Deep Sea with N = 10, so that the sweep favours the
  baselines. The paper does not say which values were best in its own.
  """

  # N; 10, 12, … 50 in the paper, and in `tdu/scaling` for TDU and Bootstrapped DQN.
  sizes: tuple[int, ...] = (10,)
  agents: tuple[str, ...] = (
    "tdu",
    "bootstrapped_dqn",
    "successor_uncertainties",
    "noisy_dqn",
    "qex",
    "dqn_rnd",
    "dqn_counts",
  )
  max_episodes: int = 1500  # 10 000 in bsuite.
  num_seeds: int = 5  # Not in the paper.
  seeds_per_task: int = 5  # They run in parallel; a task ends with the slowest seed.

  def __post_init__(self) -> None:
    runs.check(self)
    ranges.distinct(self, "agents")
    ranges.one_of(self, "agents", _LABELS)


@dataclasses.dataclass(frozen=True)
class Scales:
  """Settings of figure 2: scales β of TDU's bonus and λ of the priors, and two rivals.

  The rivals use the uncertainty of values instead of that of TD errors.
  """

  sizes: tuple[int, ...] = (14,)  # N; 10, 12, … 50 in the paper.
  betas: tuple[float, ...] = (0.0, 1.0)  # 0 to 5 in appendix D.2; 0 is BDQN.
  prior_scales: tuple[float, ...] = (0.0, 3.0)  # λ; the paper also has 1 (table 3).
  rivals: tuple[str, ...] = ("qu", "q_ucb")  # Their presets have β = 1 and λ = 3.
  max_episodes: int = 300  # 10 000 in bsuite.
  num_seeds: int = 3  # Not in the paper.
  seeds_per_task: int = 3

  def __post_init__(self) -> None:
    runs.check(self)
    ranges.distinct(self, "betas", "prior_scales")
    ranges.not_negative(self, "betas", "prior_scales")
    ranges.one_of(self, "rivals", ("qu", "q_ucb"))
    if max(self.betas) == 0:
      raise ValueError("betas has no β above 0, so TDU is missing; add one.")


def _tasks(
  config: Any, agents: Sequence[tuple[str, dict[str, Any]]]
) -> list[types.Task]:
  """A task for each agent (label and settings), size, version and chunk of seeds."""
  tasks = []
  for label, agent in agents:
    for size in config.sizes:
      for version, stochastic in _VERSIONS.items():
        for seeds in types.seed_chunks(config.num_seeds, config.seeds_per_task):
          settings = {
            **agent,
            "size": size,
            "stochastic": stochastic,
            # At most 2^N episodes, the number that dithering needs.
            "max_episodes": min(2**size, config.max_episodes),
            "seeds": seeds,
          }
          # Stochastic ones take longer to solve.
          weight = len(seeds) * size * (3.0 if stochastic else 1.0)
          name = f"{label}_{size}_{version}_seed{seeds[0]}"
          tasks.append(types.Task(name, settings, weight))
  return tasks


def _agent_tasks(config: Agents) -> list[types.Task]:
  return _tasks(config, [(agent, {"agent": agent}) for agent in config.agents])


def _scale_tasks(config: Scales) -> list[types.Task]:
  agents = [
    (f"beta{beta:g}_prior{scale:g}", runs.agent_settings(beta, scale))
    for beta in config.betas
    for scale in config.prior_scales
  ]
  return _tasks(config, agents + [(rival, {"agent": rival}) for rival in config.rivals])


def _draw_agents(config: Agents, table: types.Table) -> types.Drawing:
  fig, (axes,) = drawing.new(1, 3, width=4.0, height=3.4)
  _draw_bars(axes[0], {agent: table.where(agent=agent) for agent in config.agents})
  for panel, (version, stochastic) in zip(axes[1:], _VERSIONS.items(), strict=True):
    chosen = table.where(stochastic=stochastic)
    agents = {_LABELS[agent]: chosen.where(agent=agent) for agent in config.agents}
    runs.draw_episodes(panel, agents, xlabel="size N", title=version)
  axes[1].set_ylim(bottom=min(panel.get_ylim()[0] for panel in axes[1:]))
  axes[2].sharey(axes[1])
  return fig


def _draw_bars(axes: types.Axes, agents: dict[str, types.Table]) -> None:
  """The score of each agent in each version, with intervals over seeds."""
  width = 0.38
  for index, (version, stochastic) in enumerate(_VERSIONS.items()):
    solved = [t.per_seed("solved", stochastic=stochastic) > 0 for t in agents.values()]
    means = [statistics.stratified([*x.T], statistics.mean_of_tasks) for x in solved]
    value, low, high = np.array(means).T
    axes.bar(
      np.arange(len(agents)) + (index - 0.5) * width,
      value,
      width,
      yerr=[value - low, high - value],
      capsize=3,
      color=drawing.style(index).color,
      hatch=("", "//")[index],
      edgecolor="white",
      label=version,
    )
    by_bsuite = [
      np.mean(runs.scores(t, by="by_bsuite", stochastic=stochastic))
      for t in agents.values()
    ]
    axes.plot(
      np.arange(len(agents)) + (index - 0.5) * width,
      by_bsuite,
      "D",
      color="black",
      markerfacecolor="none",
      markersize=5,
      label=None if index else "by bsuite's rule",
    )
  axes.set_xticks(range(len(agents)), [_LABELS[agent] for agent in agents])
  axes.set(ylabel="share of runs solved", ylim=(0, 1.3), yticks=np.arange(0, 1.1, 0.2))
  axes.legend(fontsize="x-small", loc="upper center", ncols=3, columnspacing=1.0)
  axes.grid(alpha=0.3, axis="y")


def _judge_agents(config: Agents, table: types.Table) -> list[types.Finding]:
  scores = {
    (agent, version): runs.scores(table, agent=agent, stochastic=stochastic)
    for agent in config.agents
    for version, stochastic in _VERSIONS.items()
  }
  worst = {
    agent: min(float(np.mean(scores[agent, version])) for version in _VERSIONS)
    for agent in config.agents
  }
  findings = []
  if runs.TDU in worst:
    nearly = {
      agent: claims.all_hold(
        statistics.mean(scores[agent, version]).is_above(_NEARLY)
        for version in _VERSIONS
      )
      for agent in config.agents
    }
    others = [agent for agent in config.agents if agent != runs.TDU]
    told = [f"{_LABELS[agent]} {worst[agent]:.2f}" for agent in (runs.TDU, *others)]
    findings.append(
      types.Finding(
        f"only TDU solves nearly all sizes of both versions (more than {_NEARLY:g} of "
        "them)",
        f"share in the worse version: {', '.join(told)}",
        claims.all_hold(
          [nearly[runs.TDU], *(claims.negated(nearly[a]) for a in others)]
        ),
      )
    )
  findings += [
    _loses_where_stochastic(_LABELS[agent], table.where(agent=agent))
    for agent in _POSTERIOR_SAMPLING
    if agent in config.agents
  ]
  if {runs.TDU, runs.BOOTSTRAPPED} <= set(config.agents):
    findings.append(
      claims.compare_means(
        "TDU solves more of the stochastic sizes than BDQN",
        scores[runs.TDU, "stochastic"],
        scores[runs.BOOTSTRAPPED, "stochastic"],
        "share of sizes, TDU's and BDQN's:",
      )
    )
  return [*findings, _solved_without_treasure(config, table)]


def _solved_without_treasure(config: Agents, table: types.Table) -> types.Finding:
  """Our own finding: how many of bsuite's solutions do not find the treasure."""
  told, without = [], 0
  for agent in config.agents:
    solved, by_bsuite, treasures = (
      table.per_seed(name, agent=agent, stochastic=True)
      for name in ("solved", "by_bsuite", "treasures")
    )
    empty = (by_bsuite > 0) & (solved == 0)
    without += empty.sum()
    if empty.any():
      never = np.sum(empty & (treasures == 0))
      told.append(
        f"{_LABELS[agent]} {empty.sum()} of {np.sum(by_bsuite > 0)} (treasure never "
        f"found: {never})"
      )
  return types.Finding(
    "bsuite's rule calls runs of the stochastic version solved that are not by the "
    "treasure",
    "; ".join(told) or "none",
    bool(without),
  )


def _loses_where_stochastic(
  label: str, table: types.Table, when: str = ""
) -> types.Finding:
  return claims.compare_means(
    f"{label} loses where Deep Sea is stochastic",
    runs.scores(table, stochastic=False),
    runs.scores(table, stochastic=True),
    f"share of sizes{when}, deterministic and stochastic:",
  )


def _draw_scales(config: Scales, table: types.Table) -> types.Drawing:
  fig, (axes,) = drawing.new(1, 3, width=3.7, height=3.3)
  betas, scales = sorted(config.betas), sorted(config.prior_scales)
  for panel, (version, stochastic) in zip(axes, _VERSIONS.items(), strict=False):
    chosen = table.where(stochastic=stochastic)
    values = np.array(
      [
        [np.mean(runs.scores(chosen, beta=b, prior_scale=s)) for b in betas]
        for s in scales
      ]
    )
    drawing.heat_map(
      panel,
      values,
      title=version,
      label="share of runs solved",
      vmin=0,
      vmax=1,
      origin="lower",
      aspect="auto",
    )
    panel.set_xticks(range(len(betas)), [f"{b:g}" for b in betas])
    panel.set_yticks(range(len(scales)), [f"{s:g}" for s in scales])
    panel.set(xlabel="bonus scale β (0: BDQN)", ylabel="prior scale λ")
    for (row, column), value in np.ndenumerate(values):
      panel.text(
        column,
        row,
        f"{value:.2f}",
        ha="center",
        va="center",
        color="white" if value < 0.5 else "black",
        fontsize="small",
      )
  rivals = {rival: table.where(agent=rival) for rival in config.rivals}
  _draw_bars(axes[2], {runs.TDU: _like_presets(config, table), **rivals})
  return fig


def _like_presets(config: Scales, table: types.Table) -> types.Table:
  """TDU's settings with the scales of its rivals, or with the nearest ones."""
  beta = min((b for b in config.betas if b > 0), key=lambda b: abs(b - 1.0))
  scale = min(config.prior_scales, key=lambda s: abs(s - 3.0))
  return table.where(beta=beta, prior_scale=scale)


def _judge_scales(config: Scales, table: types.Table) -> list[types.Finding]:
  most, least = max(config.prior_scales), min(config.prior_scales)
  bonus = types.Table(task for task in table if task.settings.get("beta"))
  with_prior = bonus.where(prior_scale=most)
  findings = []
  if least == 0 < most:
    findings.append(
      runs.fewer_episodes(
        "priors are instrumental, whatever the bonus",
        with_prior,
        bonus.where(prior_scale=least),
        f"TDU with λ = {most:g} and without",
      )
    )
  if 0.0 in config.betas:
    bdqn = table.where(beta=0.0, prior_scale=most)
    for version, stochastic in _VERSIONS.items():
      findings.append(
        runs.fewer_episodes(
          f"with priors, TDU is faster than BDQN (β = 0), {version}",
          with_prior.where(stochastic=stochastic),
          bdqn.where(stochastic=stochastic),
          f"TDU and BDQN with λ = {most:g}",
        )
      )
    findings.append(_loses_where_stochastic("BDQN", bdqn, f" with λ = {most:g}"))
  findings += [
    runs.fewer_episodes(
      f"{_LABELS[rival]} does not match TDU",
      _like_presets(config, table),
      table.where(agent=rival),
      f"TDU and {_LABELS[rival]}",
    )
    for rival in config.rivals
  ]
  return findings


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
    tasks=_agent_tasks,
    run=runs.solve_deep_sea,
    draw=_draw_agents,
    judge=_judge_agents,
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
    run=runs.solve_deep_sea,
    draw=_draw_scales,
    judge=_judge_scales,
    revision=2,
  ),
)
