"""Episodes to solve Deep Sea against its size: deep exploration and ε-greedy.

Not a figure of paper 4, whose figure 1 counts the sizes that are solved. The plot is
that of Osband et al. (2020), Behaviour suite, for the experiment `deep_sea`.
"""

import dataclasses

import numpy as np

from explorax.agents import ranges
from explorax.experiments.recording import drawing, statistics, summary
from explorax.papers import claims, panels, types
from explorax.papers.tdu import runs

_EPINET = "epinet"
_EPSILON_GREEDY = "double_dqn"
_DEEP = (runs.TDU, runs.BOOTSTRAPPED)
# Stochastic Deep Sea is mastered when the treasure is found this often, as a share of
# the best policy's rate.
_MASTERED = 0.9
# N → the limit of episodes in the public script of HyperAgent (Li et al., 2024); linear
# in between.
_BUDGETS = {20: 2_500, 40: 3_000, 50: 4_000, 100: 10_000, 120: 12_500}
_LABELS = {
  runs.TDU: "TDU",
  runs.BOOTSTRAPPED: "bootstrapped DQN",
  _EPSILON_GREEDY: "ε-greedy (double DQN)",
  _EPINET: "epinet",
}


@dataclasses.dataclass(frozen=True)
class Scaling:
  """Settings of the figure; the agents are their presets."""

  # N; 10, 12, … 50 in bsuite. With N = 6, chance finds the treasure in a few episodes.
  sizes: tuple[int, ...] = tuple(range(10, 51, 2))
  max_episodes: int = 10_000  # As in bsuite.
  epsilon_greedy_sizes: tuple[int, ...] = (10, 14, 20)
  epsilon_greedy_episodes: int = 3000  # The limit of ε-greedy's runs.
  # Of TDU and bootstrapped DQN in stochastic Deep Sea; with one seed, as in bsuite.
  stochastic_sizes: tuple[int, ...] = tuple(range(10, 51, 2))
  stochastic_seeds: int = 1
  # Of TDU and bootstrapped DQN beyond bsuite's sizes; each seed has its own mapping.
  large_sizes: tuple[int, ...] = (60,)
  large_seeds: int = 3
  num_seeds: int = 3
  seeds_per_task: int = 1

  def __post_init__(self) -> None:
    runs.check(self)
    sizes = ("epsilon_greedy_sizes", "stochastic_sizes")
    ranges.distinct(self, *sizes, "large_sizes")
    ranges.at_least(self, 2, *sizes)
    ranges.at_least(
      self, 1, "epsilon_greedy_episodes", "stochastic_seeds", "large_seeds"
    )
    ranges.within(self, 2, max(_BUDGETS), "large_sizes")


def _tasks(config: Scaling) -> list[types.Task]:
  tasks = _stochastic_tasks(config) + _large_tasks(config)
  for agent in _LABELS:
    dithers = agent == _EPSILON_GREEDY
    for size in config.epsilon_greedy_sizes if dithers else config.sizes:
      limit = config.epsilon_greedy_episodes if dithers else config.max_episodes
      for seeds in types.seed_chunks(config.num_seeds, config.seeds_per_task):
        settings = {
          "agent": agent,
          "size": size,
          "max_episodes": limit,
          "seeds": seeds,
        }
        weight = len(seeds) * size**3 * (0.2 if dithers else 1.0)
        tasks.append(types.Task(f"{agent}_{size}_seed{seeds[0]}", settings, weight))
  return tasks


def _stochastic_tasks(config: Scaling) -> list[types.Task]:
  return [
    types.Task(
      f"{agent}_{size}_stochastic_seed{seeds[0]}",
      {
        "agent": agent,
        "size": size,
        "stochastic": True,
        "until": _MASTERED,
        "max_episodes": config.max_episodes,
        "seeds": seeds,
      },
      2.0 * len(seeds) * size**3,
    )
    for size in config.stochastic_sizes
    for agent in _DEEP
    for seeds in types.seed_chunks(config.stochastic_seeds, config.seeds_per_task)
  ]


def _large_tasks(config: Scaling) -> list[types.Task]:
  return [
    types.Task(
      f"{agent}_{size}_own_mapping_seed{seeds[0]}",
      {
        "agent": agent,
        "size": size,
        "own_mapping": True,
        "max_episodes": int(np.interp(size, list(_BUDGETS), list(_BUDGETS.values()))),
        "seeds": seeds,
      },
      len(seeds) * size**3,
    )
    for size in config.large_sizes
    for agent in _DEEP
    for seeds in types.seed_chunks(config.large_seeds, config.seeds_per_task)
  ]


def _draw(config: Scaling, table: types.Table) -> types.Drawing:
  """Draws runs as marks, hollow if the limit ended them; lines join solved medians."""
  bsuites, stochastic, large = _parts(table)
  fig, (each,) = drawing.new(columns=1 + bool(stochastic), width=6.0, height=4.2)
  _draw_panel(config, each[0], bsuites, "solved", large)
  each[0].set_title("deterministic")
  if stochastic:
    _draw_panel(config, each[1], stochastic, "mastered", types.Table())
    seeds = summary.count(config.stochastic_seeds, "seed")
    each[1].set_title(f"stochastic, {seeds}")
  return fig


def _parts(everything: types.Table) -> tuple[types.Table, types.Table, types.Table]:
  """The deterministic and the stochastic sizes of bsuite, and the larger ones."""
  bsuites = everything.where(stochastic=None, own_mapping=None)
  return bsuites, everything.where(stochastic=True), everything.where(own_mapping=True)


def _draw_panel(
  config: Scaling,
  axes: types.Axes,
  table: types.Table,
  by: str,
  large: types.Table,
) -> None:
  """Draws a version of Deep Sea; runs of `large` are marks without a line."""
  agents = {a: label for a, label in _LABELS.items() if table.where(agent=a)}
  own, beyond = sorted(table.values("size")), sorted(large.values("size"))
  sizes = np.linspace(own[0], max(own + beyond), 200)
  axes.plot(sizes, 2.0**sizes, color="0.4", linewidth=1.0, label="$2^N$")
  for agent, label in agents.items():
    style = drawing.style(list(_LABELS).index(agent))
    episodes, solved = _episodes(table, agent, by)
    x = np.array(_sizes(table, agent))
    axes.plot(
      x,
      np.where(solved.mean(axis=0) > 0.5, np.median(episodes, axis=0), np.nan),
      color=style.color,
      linestyle=style.linestyle,
      linewidth=1.6,
    )
    x = np.broadcast_to(x, solved.shape)
    if _sizes(large, agent):
      more = _episodes(large, agent)
      x = np.append(x, np.broadcast_to(beyond, more[0].shape))
      episodes, solved = np.append(episodes, more[0]), np.append(solved, more[1])
    for is_solved, face in ((True, style.color), (False, "none")):
      axes.plot(
        x[solved == is_solved],
        episodes[solved == is_solved],
        style.marker,
        color=style.color,
        markerfacecolor=face,
        markersize=5,
        label=label if is_solved else None,
      )
  axes.plot([], [], "o", color="0.4", markerfacecolor="none", label=f"not {by}")
  panels.finish(
    axes,
    legend={"loc": "lower right", "ncols": 2},
    xlabel="size N of Deep Sea",
    ylabel=f"episodes until it is {by}",
    yscale="log",
    ylim=(10, 3 * config.max_episodes),
    xticks=own[:: -(-len(own) // 12)] + beyond,
  )


def _sizes(table: types.Table, agent: str) -> list[int]:
  return sorted(table.where(agent=agent).values("size"))


def _episodes(
  table: types.Table, agent: str, by: str = "solved"
) -> tuple[np.ndarray, np.ndarray]:
  """Episodes to solve each size, and whether it was: both `[S, sizes]`."""
  found = [
    (np.where(solved > 0, solved, of_size.joined("episodes")), solved > 0)
    for size in _sizes(table, agent)
    for of_size in [table.where(agent=agent, size=size)]
    for solved in [of_size.joined(by)]
  ]
  episodes, solved = zip(*found, strict=True)
  return np.stack(episodes, axis=1), np.stack(solved, axis=1)


def _judge(config: Scaling, everything: types.Table) -> list[types.Finding]:
  table, stochastic, large = _parts(everything)
  findings = [_all_solved(table, agent) for agent in (*_DEEP, _EPINET)]
  findings += [
    _beyond_bsuite(large.where(size=size), agent, size)
    for size in large.values("size")
    for agent in _DEEP
  ]
  if stochastic:
    findings += [_share(config, stochastic, agent) for agent in _DEEP]
    findings.append(_fewer_until_mastered(config, stochastic))
  findings.append(_grows(table, runs.TDU))
  findings.append(
    runs.fewer_episodes(
      "TDU needs fewer episodes than bootstrapped DQN",
      table.where(agent=runs.TDU),
      table.where(agent=runs.BOOTSTRAPPED),
      "TDU and bootstrapped DQN",
    )
  )
  findings.append(
    runs.fewer_episodes(
      "bootstrapped DQN needs fewer episodes than the epinet",
      table.where(agent=runs.BOOTSTRAPPED),
      table.where(agent=_EPINET),
      "bootstrapped DQN and the epinet",
    )
  )
  common = set(_sizes(table, runs.TDU)) & set(_sizes(table, _EPSILON_GREEDY))
  if common:
    findings.append(_beyond_dithering(table, max(common)))
  return findings


def _all_solved(table: types.Table, agent: str) -> types.Finding:
  _, solved = _episodes(table, agent)
  return types.Finding(
    f"{_LABELS[agent]} solves all sizes",
    f"{solved.sum()} of {solved.size} runs, N up to {max(_sizes(table, agent))}",
    bool(solved.all()) if len(solved) >= claims.LEAST_SEEDS else None,
    len(solved),
  )


def _beyond_bsuite(large: types.Table, agent: str, size: int) -> types.Finding:
  episodes, solved = _episodes(large, agent)
  (limit,) = large.values("max_episodes")
  return types.Finding(
    f"{_LABELS[agent]} solves N = {size} in a budget interpolated from HyperAgent's",
    f"{solved.sum()} of {solved.size} runs (limit: {limit} episodes), in episode "
    f"{', '.join(map(str, episodes[solved])) or '–'}",
    bool(solved.all()) if len(solved) >= claims.LEAST_SEEDS else None,
    len(solved),
  )


def _share(config: Scaling, table: types.Table, agent: str) -> types.Finding:
  """The shares of the sizes; most have to be mastered, not only solved."""
  shares = {
    by: np.mean(_episodes(table, agent, by)[1])
    for by in ("by_bsuite", "solved", "mastered")
  }
  return types.Finding(
    f"{_LABELS[agent]} masters most sizes of stochastic Deep Sea",
    f"{shares['by_bsuite']:.0%} by bsuite's rule, {shares['solved']:.0%} by the "
    f"treasure's, and finds it {_MASTERED:.0%} as often as the best policy in "
    f"{shares['mastered']:.0%}; N up to {max(_sizes(table, agent))}",
    bool(shares["mastered"] > 0.5)
    if config.stochastic_seeds >= claims.LEAST_SEEDS
    else None,
    config.stochastic_seeds,
  )


def _fewer_until_mastered(config: Scaling, table: types.Table) -> types.Finding:
  """TDU beside bootstrapped DQN; the interval is over sizes, as seeds are few."""
  logs = [np.log2(_episodes(table, agent, "mastered")[0]) for agent in _DEEP]
  ratio = statistics.mean((logs[0] - logs[1]).mean(axis=0)).map(np.exp2)
  is_decided = config.stochastic_seeds >= claims.LEAST_SEEDS
  return types.Finding(
    "TDU masters stochastic Deep Sea in fewer episodes than bootstrapped DQN",
    f"a ratio of {ratio.words('.2f')}, over sizes; not mastered: the limit",
    ratio.is_below(1) if is_decided else None,
    config.stochastic_seeds,
  )


def _grows(table: types.Table, agent: str) -> types.Finding:
  """The slope of log episodes against log N, over the sizes that all seeds solve."""
  claim = f"{_LABELS[agent]}'s episodes grow as a power of N of at most 3, not as 2^N"
  episodes, solved = _episodes(table, agent)
  whole = solved.all(axis=0)
  sizes = np.array(_sizes(table, agent))[whole]
  if len(sizes) < 3:
    return types.Finding(claim, f"{len(sizes)} sizes are solved by all seeds", None)
  slopes = [np.polyfit(np.log(sizes), np.log(y), 1)[0] for y in episodes[:, whole]]
  exponent = statistics.mean(slopes)
  return types.Finding(
    claim,
    f"exponent {exponent.words('.2f')}, N = {min(sizes)} to {max(sizes)}",
    exponent.is_below(3.0) if len(slopes) >= claims.LEAST_SEEDS else None,
    len(slopes),
  )


def _beyond_dithering(table: types.Table, size: int) -> types.Finding:
  solved = {
    agent: table.where(agent=agent, size=size).joined("solved") > 0 for agent in _LABELS
  }
  tdu, dithering = solved[runs.TDU], solved[_EPSILON_GREEDY]
  limit = max(table.where(agent=_EPSILON_GREEDY).values("max_episodes"))
  return types.Finding(
    f"ε-greedy does not solve N = {size}, which TDU solves",
    f"{dithering.sum()} of {len(dithering)} runs within {limit} episodes; TDU "
    f"{tdu.sum()} of {len(tdu)}",
    bool(tdu.all() and not dithering.any()) if len(tdu) >= claims.LEAST_SEEDS else None,
    len(tdu),
  )


FIGURES = (
  types.Figure(
    name="tdu/scaling",
    title="Deep Sea: episodes to solve against its size",
    source=f"Our own, of {runs.PAPER}, section 4.1, and of Osband et al. (2020), "
    "Behaviour suite for reinforcement learning",
    claim="agents that explore deeply solve Deep Sea in a number of episodes that is "
    "polynomial in N; dithering needs about 2^N.",
    config=Scaling(),
    quick=Scaling(
      sizes=(4, 5),
      epsilon_greedy_sizes=(4,),
      stochastic_sizes=(4,),
      large_sizes=(6,),
      max_episodes=200,
      epsilon_greedy_episodes=200,
      num_seeds=1,
    ),
    tasks=_tasks,
    run=runs.solve_deep_sea,
    draw=_draw,
    judge=_judge,
  ),
)
