"""Paper 4's figures 4 and 5: how TDU scales with the depth of a binary tree."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from explorax import environments
from explorax.agents import ranges
from explorax.environments import binary_tree
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.runners import core
from explorax.papers import claims, types
from explorax.papers.tdu import runs

_NUM_FUNCTIONS = 20  # Value functions in all (appendix C).


@dataclasses.dataclass(frozen=True)
class Depths:
  """Settings of figure 4."""

  sizes: tuple[int, ...] = (10, 30, 50, 70, 100)  # L; 10, 20, … 250 in the paper.
  betas: tuple[float, ...] = (0.0, 0.1, 1.0, 3.0)  # 0 to 5 (appendix D.2); 0: BDQN.
  prior_scale: float = 3.0  # λ (appendix D.2).
  max_episodes: int = 2000  # 5000 in Janz et al. (2019), whose problem it is.
  num_seeds: int = 5  # Appendix C.
  seeds_per_task: int = 5  # Side by side; a task ends with the slowest of them.

  def __post_init__(self) -> None:
    runs.check(self)
    ranges.distinct(self, "betas")
    ranges.not_negative(self, "betas", "prior_scale")


@dataclasses.dataclass(frozen=True)
class Explorers:
  """Settings of figure 5: without priors."""

  sizes: tuple[int, ...] = (10, 30, 50)  # L; 10, 20, … 250 in the paper.
  betas: tuple[float, ...] = (0.1, 1.0, 3.0)  # Of TDU; BDQN is there as well.
  explorers: tuple[int, ...] = (5, 10, 15)  # N of the 20 functions; ours.
  max_episodes: int = 2000  # 5000 in Janz et al. (2019).
  num_seeds: int = 5  # Appendix C.
  seeds_per_task: int = 5

  def __post_init__(self) -> None:
    runs.check(self)
    ranges.distinct(self, "betas", "explorers")
    ranges.not_negative(self, "betas")
    if min(self.betas) == 0:
      raise ValueError("betas has 0, which is BDQN, and is there anyway; leave it out.")
    # A standard deviation needs at least two exploiters.
    ranges.within(self, 1, _NUM_FUNCTIONS - 2, "explorers")


def _tasks(
  config: Any, agents: Sequence[tuple[str, dict[str, Any]]]
) -> list[types.Task]:
  return [
    types.Task(
      f"{label}_{size}_seed{seeds[0]}",
      {**agent, "size": size, "max_episodes": config.max_episodes, "seeds": seeds},
      weight=len(seeds) * (300.0 + size**1.4),  # To compile, and the steps needed.
    )
    for label, agent in agents
    for size in config.sizes
    for seeds in types.seed_chunks(config.num_seeds, config.seeds_per_task)
  ]


def _depth_tasks(config: Depths) -> list[types.Task]:
  return _tasks(
    config,
    [
      (f"beta{beta:g}", runs.agent_settings(beta, config.prior_scale))
      for beta in config.betas
    ],
  )


def _explorer_tasks(config: Explorers) -> list[types.Task]:
  agents = [("bdqn", runs.agent_settings(0.0, 0.0))]
  agents += [
    (f"beta{beta:g}_explorers{n}", runs.agent_settings(beta, 0.0, n))
    for n in config.explorers
    for beta in config.betas
  ]
  return _tasks(config, agents)


def _run(settings: types.Settings, context: types.TaskContext) -> types.Results:
  """Each seed has a tree of its own.

  The paper does not define when a tree is solved. We use Deep Sea's rule: the average
  regret is below 0.9, where an episode's regret is 1 minus its return. The rule applies
  from episode 10, since untrained networks may find the way up a small tree by chance.
  """
  size = settings["size"]
  return runs.solve(
    settings,
    runs.agent_config(settings),
    binary_tree.BinaryTree(size),
    own_params=[
      binary_tree.Params(binary_tree.action_mapping(seed, size))
      for seed in settings["seeds"]
    ],
    rule=lambda: environments.SolvedRule(min_episode=10),
    metrics=_metrics,
    context=context,
  )


def _metrics(episode: core.Episode) -> dict[str, float]:
  """The episode's metrics: the treasure is at the tree's top, with a return of 1."""
  found = episode.episode_return
  return {"bad_episode": 1.0 - found, "denoised_return": found}


def _label(beta: float) -> str:
  return f"TDU, β = {beta:g}" if beta else "BDQN (β = 0)"


def _draw_depths(config: Depths, table: types.Table) -> types.Drawing:
  fig, ((axes,),) = drawing.new(1, 1, width=6.0, height=3.8)
  agents = {_label(beta): table.where(beta=beta) for beta in sorted(config.betas)}
  runs.draw_episodes(axes, agents, xlabel="depth L")
  return fig


def _draw_explorers(config: Explorers, table: types.Table) -> types.Drawing:
  fig, (axes,) = drawing.new(1, len(config.explorers), width=3.6, height=3.4)
  for panel, n in zip(axes, sorted(config.explorers), strict=True):
    agents = {_label(0.0): table.where(beta=0.0)}
    for beta in sorted(config.betas):
      agents[_label(beta)] = table.where(beta=beta, num_explorers=n)
    title = f"N = {n} of {_NUM_FUNCTIONS} explore"
    runs.draw_episodes(panel, agents, xlabel="depth L", title=title)
  return fig


def _log_episodes(table: types.Table) -> np.ndarray:
  """The mean over sizes (and agents) of log10 episodes to solve: `[S]`."""
  return np.log10(runs.episodes_to_solve(table)).mean(axis=1)


def _faster(claim: str, a: types.Table, b: types.Table, who: str) -> types.Finding:
  """Whether `a` needs fewer episodes than `b`, on the seeds' own trees."""
  return runs.fewer_episodes(claim, a, b, who, paired=True)


def _judge_depths(config: Depths, table: types.Table) -> list[types.Finding]:
  findings, betas = [], sorted({*config.betas} - {0.0})
  if 0.0 in config.betas:
    findings += [
      _faster(
        f"TDU is faster than BDQN{', even with a small β' if b == betas[0] else ''}",
        table.where(beta=b),
        table.where(beta=0.0),
        f"with β = {b:g} and BDQN",
      )
      for b in dict.fromkeys((betas[0], betas[-1]))
    ]
  logs = [_log_episodes(table.where(beta=b)) for b in betas]
  if len(betas) > 1:
    listed = ", ".join(
      f"{10 ** np.mean(x):.0f} (β = {b:g})" for x, b in zip(logs, betas, strict=True)
    )
    steps = [statistics.mean(y - x) for x, y in itertools.pairwise(logs)]
    findings.append(
      types.Finding(
        "the greater β, the faster (largely: no step back of more than a tenth)",
        f"episodes to solve (geometric means): {listed}",
        claims.all_hold(
          [
            statistics.mean(logs[-1] - logs[0]).is_below(),
            *(step.is_below(np.log10(1.1)) for step in steps),
          ]
        ),
        len(logs[0]),
      )
    )
  return findings


def _judge_explorers(config: Explorers, table: types.Table) -> list[types.Finding]:
  bonus = types.Table(task for task in table if task.settings["beta"])
  betas, explorers = sorted(config.betas), sorted(config.explorers)
  findings = [
    _faster(
      "without priors too, TDU is faster than BDQN",
      bonus,
      table.where(beta=0.0),
      "TDU over all β and N, and BDQN",
    )
  ]
  if len(betas) > 1:
    findings.append(
      _faster(
        "more bonus is more exploration, and faster",
        bonus.where(beta=betas[-1]),
        bonus.where(beta=betas[0]),
        f"with β = {betas[-1]:g} and {betas[0]:g}",
      )
    )
  if len(explorers) > 1:
    findings.append(
      _faster(
        "N is similar in its effect to β: more explorers are faster",
        bonus.where(num_explorers=explorers[-1]),
        bonus.where(num_explorers=explorers[0]),
        f"with N = {explorers[-1]} and {explorers[0]}",
      )
    )
  return findings


FIGURES = (
  types.Figure(
    name="tdu/fig4",
    title="Binary tree: episodes to solve against its depth",
    source=f"{runs.PAPER}, figure 4",
    claim="TDU has a clear benefit, even for small β, and performance largely grows "
    "with β.",
    config=Depths(),
    quick=Depths(sizes=(8,), betas=(0.0, 1.0), max_episodes=100, num_seeds=1),
    tasks=_depth_tasks,
    run=_run,
    draw=_draw_depths,
    judge=_judge_depths,
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
    tasks=_explorer_tasks,
    run=_run,
    draw=_draw_explorers,
    judge=_judge_explorers,
  ),
)
