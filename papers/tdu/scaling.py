"""Episodes to solve Deep Sea against its size: deep exploration and ε-greedy.

Not a figure of paper 4, whose figure 1 counts the sizes that are solved. The plot is
that of Osband et al. (2020), Behaviour suite, for the experiment `deep_sea`.
"""

import dataclasses
import functools
from typing import Annotated

import numpy as np

from explorax import ranges
from explorax.experiments.recording import statistics, summary
from explorax.papers import claims, layers, panels, significance, types
from explorax.papers.tdu import episodes, runs

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
  _EPSILON_GREEDY: "double DQN (ε-greedy)",
  _EPINET: "epinet",
}


@dataclasses.dataclass(frozen=True)
class Scaling(ranges.Checked):
  """Settings of the figure; the agents are their presets."""

  # N; 10, 12, … 50 in bsuite. With N = 6, chance finds the treasure in a few episodes.
  sizes: types.Distinct[types.Size] = tuple(range(10, 51, 2))
  max_episodes: ranges.PositiveInt = 10_000  # As in bsuite.
  epsilon_greedy_sizes: types.Distinct[types.Size] = (10, 14, 20)
  epsilon_greedy_episodes: ranges.PositiveInt = 3000  # The limit of ε-greedy's runs.
  # Of TDU and bootstrapped DQN in stochastic Deep Sea; with one seed, as in bsuite.
  stochastic_sizes: types.Distinct[types.Size] = tuple(range(10, 51, 2))
  stochastic_seeds: ranges.PositiveInt = 1
  # Of TDU and bootstrapped DQN beyond bsuite's sizes; each seed has its own mapping.
  large_sizes: types.Distinct[Annotated[int, ranges.Range(ge=2, le=max(_BUDGETS))]] = (
    60,
  )
  large_seeds: ranges.PositiveInt = 3
  num_seeds: ranges.PositiveInt = 3
  seeds_per_task: ranges.PositiveInt = 1


def _tasks(config: Scaling) -> list[types.Task]:
  """The stochastic sizes, those beyond bsuite's, and the deterministic ones."""

  def split(
    name: str, settings: types.Settings, num_seeds: int, cost: float = 1.0
  ) -> list[types.Task]:
    cost *= settings["size"] ** 3
    return types.split(name, settings, num_seeds, config.seeds_per_task, cost)

  tasks = []
  for size in config.stochastic_sizes:
    end = {"until": _MASTERED, "max_episodes": config.max_episodes}
    for agent in _DEEP:
      settings = {"agent": agent, "size": size, "stochastic": True, **end}
      name = f"{agent}_{size}_stochastic"
      tasks += split(name, settings, config.stochastic_seeds, 2.0)
  for size in config.large_sizes:
    limit = int(np.interp(size, list(_BUDGETS), list(_BUDGETS.values())))
    for agent in _DEEP:
      settings = {"agent": agent, "size": size, "own_mapping": True}
      name = f"{agent}_{size}_own_mapping"
      tasks += split(name, {**settings, "max_episodes": limit}, config.large_seeds)
  for agent in _LABELS:
    dithers = agent == _EPSILON_GREEDY
    for size in config.epsilon_greedy_sizes if dithers else config.sizes:
      limit = config.epsilon_greedy_episodes if dithers else config.max_episodes
      settings = {"agent": agent, "size": size, "max_episodes": limit}
      cost = 0.2 if dithers else 1.0
      tasks += split(f"{agent}_{size}", settings, config.num_seeds, cost)
  return tasks


# bsuite's deterministic sizes.
_DETERMINISTIC: dict[str, None] = {"stochastic": None, "own_mapping": None}


def _until_mastered(table: types.Table) -> np.ndarray:
  """Episodes until each size was mastered, `[S, sizes]`; else the limit."""
  mastered = table.per_seed("mastered")
  return np.where(mastered > 0, mastered, table.per_seed("episodes"))


def _is_reached(by: str, table: types.Table) -> np.ndarray:
  """Whether each run got there, 0 or 1, `[S, sizes]`."""
  return (table.per_seed(by) > 0).astype(np.float64)


def _panels(config: Scaling) -> list[list[panels.Panel]]:
  lines = {label: {"agent": agent} for agent, label in _LABELS.items()}
  most, fewer = config.max_episodes, config.epsilon_greedy_episodes
  of_epsilon_greedy = layers.horizontal(fewer, linestyle=":", xmax=0.25)
  deterministic, stochastic = (
    episodes.panel(
      chosen,
      sizes,
      most,
      layers.two_to_the_n((*sizes, *more)),
      *limits,
      y={"solved": episodes.to_solve, "mastered": _until_mastered}[by],
      filled=functools.partial(_is_reached, by),
      what=by,
      dodge=dodge,
      joined={"own_mapping": None},
      where=where,
      title=title,
      xlabel="size N of Deep Sea",
      ylim=(30, 2 * most),
      xticks=[*sizes[:: -(-len(sizes) // 8)], *more],
    )
    for by, sizes, more, where, chosen, dodge, limits, title in (
      (
        *("solved", config.sizes, config.large_sizes, {"stochastic": None}, lines),
        *(1.012, [of_epsilon_greedy]),
        f"deterministic, {summary.count(config.num_seeds, 'seed')}",
      ),
      (
        *("mastered", config.stochastic_sizes, (), {"stochastic": True}),
        *({_LABELS[agent]: {"agent": agent} for agent in _DEEP}, 1.016, []),
        f"stochastic, {summary.count(config.stochastic_seeds, 'seed')}",
      ),
    )
  )
  return [[deterministic, stochastic]]


def _all_solved(table: types.Table) -> tuple[str, bool]:
  solved, sizes = episodes.is_solved(table), table.values("size")
  words = f"{int(solved.sum())} of {solved.size} runs, N up to {max(sizes)}"
  return words, bool(solved.all())


def _within_budget(table: types.Table) -> tuple[str, bool]:
  solved, (limit,) = table.joined("solved"), table.values("max_episodes")
  when = ", ".join(map(str, solved[solved > 0])) or "–"
  count = np.sum(solved > 0)
  words = f"{count} of {len(solved)} runs (limit: {limit} episodes), in episode {when}"
  return words, bool(count == len(solved))


def _most_mastered(table: types.Table) -> tuple[str, bool]:
  by_bsuite, solved, mastered = (
    np.mean(table.per_seed(name) > 0) for name in ("by_bsuite", "solved", "mastered")
  )
  return (
    f"{by_bsuite:.0%} by bsuite's rule, {solved:.0%} by the treasure's, and finds it "
    f"{_MASTERED:.0%} as often as the best policy in {mastered:.0%}; N up to "
    f"{max(table.values('size'))}"
  ), bool(mastered > 0.5)


def _masters_sooner(table: types.Table) -> types.Finding | None:
  groups = [table.where(agent=agent, stochastic=True) for agent in _DEEP]
  if not all(groups):
    return None
  return claims.sooner(
    "TDU masters stochastic Deep Sea in fewer episodes than bootstrapped DQN",
    (
      significance.Times(
        _until_mastered(group),
        group.per_seed("mastered") > 0,
        episodes.names_of_problems(group),
      )
      for group in groups
    ),
    "TDU and bootstrapped DQN (mastered counts as solved)",
  )


def _exponent(table: types.Table) -> tuple[str, bool | None]:
  """The slope of log episodes against log N, over the sizes that all seeds solve."""
  sizes, solved = layers.over("size", table, episodes.is_solved)
  _, y = layers.over("size", table, episodes.to_solve)
  whole = solved.all(axis=0)
  if whole.sum() < 3:
    return f"{whole.sum()} sizes are solved by all seeds", None
  x = np.log(sizes[whole])
  exponent = statistics.mean([np.polyfit(x, np.log(z), 1)[0] for z in y[:, whole]])
  span = f"N = {min(sizes[whole])} to {max(sizes[whole])}"
  return f"exponent {exponent.to_text('.2f')}, {span}", exponent.is_below(3.0)


def _only_deep(table: types.Table) -> tuple[str, bool | None]:
  tdu, dithering = (
    table.where(agent=agent).joined("solved") > 0
    for agent in (runs.TDU, _EPSILON_GREEDY)
  )
  (limit,) = table.where(agent=_EPSILON_GREEDY).values("max_episodes")
  return (
    f"{dithering.sum()} of {len(dithering)} runs within {limit} episodes; TDU "
    f"{tdu.sum()} of {len(tdu)}"
  ), bool(tdu.all() and not dithering.any())


def _fewer(
  agent: str, other: str, names: tuple[str, str], kind: types.Kind | None = None
) -> types.Claim:
  return episodes.fewer(
    f"{names[0]} needs fewer episodes than {names[1]}",
    {"agent": agent, **_DETERMINISTIC},
    {"agent": other, **_DETERMINISTIC},
    " and ".join(names),
    kind,
  )


def _claims(config: Scaling) -> list[types.Claim]:
  common = max({*config.sizes} & {*config.epsilon_greedy_sizes}, default=None)
  return [
    *(
      claims.Check(
        f"{_LABELS[agent]} solves all sizes",
        _all_solved,
        {"agent": agent, **_DETERMINISTIC},
        kind="ours" if agent == _EPINET else None,
      )
      for agent in (*_DEEP, _EPINET)
    ),
    *(
      claims.Check(
        f"{_LABELS[agent]} solves N = {size} in a budget interpolated from "
        "HyperAgent's",
        _within_budget,
        {"agent": agent, "size": size, "own_mapping": True},
        kind="ours",
      )
      for size in config.large_sizes
      for agent in _DEEP
    ),
    *(
      claims.Check(
        f"{_LABELS[agent]} masters most sizes of stochastic Deep Sea",
        _most_mastered,
        {"agent": agent, "stochastic": True},
      )
      for agent in _DEEP
    ),
    _masters_sooner,
    claims.Check(
      "TDU's episodes grow as a power of N of at most 3, not as 2^N",
      _exponent,
      {"agent": runs.TDU, **_DETERMINISTIC},
      test="t-interval of the seeds' slopes",
      kind="ours",
    ),
    _fewer(*_DEEP, ("TDU", "bootstrapped DQN")),
    _fewer(runs.BOOTSTRAPPED, _EPINET, ("bootstrapped DQN", "the epinet"), "ours"),
    claims.Check(
      f"ε-greedy does not solve N = {common}, which TDU solves",
      _only_deep,
      {"size": common or 0, **_DETERMINISTIC},
      kind="ours",
    ),
  ]


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
    compute=runs.solve_deep_sea,
    panels=_panels,
    claims=_claims,
    caption="A mark is a run of a seed; a hollow one, at the limit, stands for all "
    "that were not solved, or not mastered (the treasure found in 90 % as many of 500 "
    "episodes as by the best policy). Lines join medians where more than half of the "
    "seeds solved. N = 60 has another limit and a mapping of each seed; double DQN's "
    "limit is 3,000, the short dotted line.",
    height=4.2,
  ),
)
