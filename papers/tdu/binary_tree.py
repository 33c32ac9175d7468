"""Paper 4's figures 4 and 5: how TDU scales with the depth of a binary tree."""

import dataclasses
import functools
import itertools
from typing import Annotated

import numpy as np

from explorax import ranges
from explorax.experiments.recording import drawing
from explorax.papers import claims, layers, panels, significance, types
from explorax.papers.tdu import episodes, runs

_NUM_FUNCTIONS = 20  # Value functions in all (appendix C).
_BDQN = "bootstrapped DQN"


@dataclasses.dataclass(frozen=True)
class Depths(ranges.Checked):
  """Settings of figure 4."""

  sizes: types.Distinct[types.Size] = (
    10,
    30,
    50,
    70,
    100,
  )  # L; 10, 20, … 250 in the paper.
  # β; 0 to 5 (appendix D.2); 0 is BDQN.
  betas: types.Distinct[ranges.NonNegativeFloat] = (0.0, 0.1, 1.0, 3.0)
  prior_scale: ranges.NonNegativeFloat = 3.0  # λ (appendix D.2).
  max_episodes: ranges.PositiveInt = (
    2000  # 5000 in Janz et al. (2019), whose problem it is.
  )
  num_seeds: ranges.PositiveInt = 5  # Appendix C.
  seeds_per_task: ranges.PositiveInt = (
    5  # Side by side; a task ends with the slowest of them.
  )

  @property
  def agents(self) -> dict[str, dict[str, object]]:
    return {f"beta{b:g}": runs.agent_settings(b, self.prior_scale) for b in self.betas}


@dataclasses.dataclass(frozen=True)
class Explorers(ranges.Checked):
  """Settings of figure 5: without priors."""

  sizes: types.Distinct[types.Size] = (10, 30, 50)  # L; 10, 20, … 250 in the paper.
  betas: types.Distinct[ranges.PositiveFloat] = (0.1, 1.0, 3.0)  # BDQN is there too.
  # N of the 20 functions; ours. A standard deviation needs two exploiters.
  explorers: types.Distinct[
    Annotated[int, ranges.Range(ge=1, le=_NUM_FUNCTIONS - 2)]
  ] = (5, 10, 15)
  max_episodes: ranges.PositiveInt = 2000  # 5000 in Janz et al. (2019).
  num_seeds: ranges.PositiveInt = 5  # Appendix C.
  seeds_per_task: ranges.PositiveInt = 5

  @property
  def agents(self) -> dict[str, dict[str, object]]:
    return {"bdqn": runs.agent_settings(0.0, 0.0)} | {
      f"beta{b:g}_explorers{n}": runs.agent_settings(b, 0.0, n)
      for n in self.explorers
      for b in self.betas
    }


def _tasks(config: Depths | Explorers) -> list[types.Task]:
  return [
    task
    for label, agent in config.agents.items()
    for size in config.sizes
    for task in types.split(
      f"{label}_{size}",
      {**agent, "size": size, "max_episodes": config.max_episodes},
      config.num_seeds,
      config.seeds_per_task,
      300.0 + size**1.4,  # To compile, and the steps needed.
    )
  ]


def _lines(betas: tuple[float, ...], **where: object) -> dict[str, types.Selection]:
  return {_BDQN: {"beta": 0.0}} | {
    f"TDU, β = {b:g}": {"beta": b, **where} for b in sorted(betas) if b
  }


def _draw_ratios(config: Explorers, axes: types.Axes, table: types.Table) -> None:
  """A row for each N and β: the runs' ratios to those without a bonus."""
  base = np.log(episodes.to_solve(table.where(beta=0.0)))
  names = [f"TDU, β = {beta:g}" for beta in sorted(config.betas)]
  labels: list[str] = []
  for n in sorted(config.explorers):
    for beta, style in zip(
      sorted(config.betas), drawing.styles(names).values(), strict=True
    ):
      own = np.log(episodes.to_solve(table.where(beta=beta, num_explorers=n)))
      layers.draw_row(axes, len(labels), (own - base).ravel(), style, np.exp)
      labels.append(f"N = {n}, β = {beta:g}")
  axes.axvline(1, color=layers.GREY, linewidth=1)
  axes.set_yticks(range(len(labels)), labels)
  axes.set_ylim(len(labels) - 0.5, -0.5)


def _greater_is_faster(table: types.Table) -> types.Finding:
  """Largely: from one β to the next, at most a tenth more episodes."""
  bonus = table.where(beta=bool)
  betas = sorted(bonus.values("beta"))
  logs = [np.log(episodes.to_solve(bonus.where(beta=b))).ravel() for b in betas]
  means = ", ".join(
    f"{np.exp(x.mean()):.0f} (β = {b:g})" for b, x in zip(betas, logs, strict=True)
  )
  parts = [
    claims.compare(
      "", y, x, "{gap}", less=True, ratio=True, spec=".3f", test=significance.paired
    )
    for x, y in [
      (logs[0], logs[-1]),
      *((x + np.log(1.1), y) for x, y in itertools.pairwise(logs)),
    ]
  ]
  finding = claims.all_of(
    "the greater β, the faster (largely: no step back of more than a tenth)", parts
  )
  ratio = parts[0].words
  words = f"geometric means {means}; the greatest to the least β: {ratio}"
  return finding._replace(measured=words, num_seeds=table.num_seeds())


def _depth_claims(config: Depths) -> list[types.Claim]:
  least, greatest = min(filter(None, config.betas)), max(config.betas)
  return [
    episodes.fewer(
      "TDU is faster than bootstrapped DQN, even with a small β",
      {"beta": least},
      {"beta": 0.0},
      f"with β = {least:g} and bootstrapped DQN",
    ),
    episodes.fewer(
      "TDU is faster than bootstrapped DQN",
      {"beta": greatest},
      {"beta": 0.0},
      f"with β = {greatest:g} and bootstrapped DQN",
    ),
    _greater_is_faster,
  ]


def _explorer_claims(config: Explorers) -> list[types.Claim]:
  betas, explorers = sorted(config.betas), sorted(config.explorers)
  return [
    episodes.fewer(
      "without priors too, TDU is faster than bootstrapped DQN",
      {"beta": bool},
      {"beta": 0.0},
      "TDU over all β and N, and bootstrapped DQN",
    ),
    episodes.fewer(
      "more bonus is more exploration, and faster",
      {"beta": betas[-1]},
      {"beta": betas[0]},
      f"with β = {betas[-1]:g} and {betas[0]:g}",
    ),
    episodes.fewer(
      "N is similar in its effect to β: more explorers are faster",
      {"num_explorers": explorers[-1]},
      {"num_explorers": explorers[0]},
      f"with N = {explorers[-1]} and {explorers[0]}",
    ),
  ]


FIGURES = (
  types.Figure(
    name="tdu/fig4",
    title="Binary tree: episodes to solve against its depth",
    source=f"{runs.PAPER}, figure 4",
    claim="TDU has a clear benefit, even for small β, and performance largely grows "
    "with β.",
    config=Depths(),
    quick=Depths(sizes=(8,), betas=(0.0, 1.0), max_episodes=100, num_seeds=1),
    tasks=_tasks,
    compute=runs.solve_tree,
    panels=lambda config: [
      [
        episodes.panel(
          _lines(config.betas),
          config.sizes,
          config.max_episodes,
          dodge=1.025,
          xscale="log",
          xlabel="depth L of the tree",
          xticklabels=config.sizes,
        )
      ]
    ],
    claims=_depth_claims,
    caption="A mark is a run of a seed; lines join their medians. All runs solved "
    "their tree. Seeds of the same number have the same tree.",
    height=3.8,
  ),
  types.Figure(
    name="tdu/fig5",
    title="Binary tree without priors: the bonus and the number of explorers",
    source=f"{runs.PAPER}, figure 5",
    claim="of 20 value functions without priors, the number N of those that explore "
    "has a similar effect to β, with a slightly larger tendency to explore too much.",
    config=Explorers(),
    quick=Explorers(
      sizes=(8,), betas=(1.0,), explorers=(10,), max_episodes=100, num_seeds=1
    ),
    tasks=_tasks,
    compute=runs.solve_tree,
    panels=lambda config: [
      [
        panels.Panel(
          functools.partial(_draw_ratios, config),
          grid="x",
          xlabel=f"episodes to solve, relative to {_BDQN} on the same tree",
        )
      ]
    ],
    claims=_explorer_claims,
    caption="Small marks are single runs (5 seeds, depths 10, 30 and 50), large ones "
    "their geometric means with 95 % t-intervals. Left of the line, TDU is faster.",
    height=3.6,
  ),
)
