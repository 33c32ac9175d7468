"""Paper 4's main claim with enough seeds: TDU in large stochastic Deep Seas."""

import dataclasses

from explorax import ranges
from explorax.papers import claims, types
from explorax.papers.tdu import episodes, runs

_AGENTS = {runs.TDU: "TDU", runs.BOOTSTRAPPED: "bootstrapped DQN"}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; the agents are their presets."""

  sizes: types.Rising[types.Size] = (20, 26, 30)  # N.
  num_seeds: ranges.PositiveInt = 10
  large_sizes: types.Rising[types.Size] = (40,)
  large_seeds: ranges.PositiveInt = 8
  max_episodes: ranges.PositiveInt = 10_000  # As in bsuite.
  first_seed: ranges.Seed = 100  # Other figures have seeds from 0.
  # Alone, since in one program all seeds take as long as the slowest.
  seeds_per_task: ranges.PositiveInt = 1


def _tasks(config: Config) -> list[types.Task]:
  return [
    task
    for sizes, num in (
      (config.sizes, config.num_seeds),
      (config.large_sizes, config.large_seeds),
    )
    for task in runs.deep_sea_tasks(
      {agent: {"agent": agent} for agent in _AGENTS},
      sizes,
      (True,),
      range(config.first_seed, config.first_seed + num),
      max_episodes=config.max_episodes,
      seeds_per_task=config.seeds_per_task,
    )
  ]


def _claims(config: Config) -> list[types.Claim]:
  """Four tests, corrected by Holm's method: both groups of sizes, sooner and more."""
  found: list[types.Claim] = []
  for sizes in (config.sizes, config.large_sizes):
    tdu, other = (
      {"agent": agent, "size": lambda size, of=sizes: size in of} for agent in _AGENTS
    )
    of_sizes = f"N = {', '.join(map(str, sizes))}"
    found += [
      episodes.fewer(
        f"TDU solves {of_sizes} in fewer episodes than bootstrapped DQN",
        tdu,
        other,
        "TDU and bootstrapped DQN",
      ),
      claims.Compare(
        f"TDU solves more runs of {of_sizes} than bootstrapped DQN",
        lambda table: episodes.is_solved(table).reshape(-1, 1),
        tdu,
        other,
        "shares {a:.2g} and {b:.2g}, {gap}",
        spec=".2f",
      ),
    ]
  return claims.corrected(found)


FIGURES = (
  types.Figure(
    name="tdu/stochastic",
    title="Stochastic Deep Sea: episodes to find the treasure",
    source=f"Our own, of {runs.PAPER}, section 4.1 and figure 1",
    claim="TDU solves the stochastic version of Deep Sea, where posterior sampling "
    "(bootstrapped DQN) suffers.",
    config=Config(),
    quick=Config(
      sizes=(4,), large_sizes=(5,), max_episodes=110, num_seeds=1, large_seeds=1
    ),
    tasks=_tasks,
    compute=runs.solve_deep_sea,
    panels=lambda config: [
      [
        episodes.panel(
          {label: {"agent": agent} for agent, label in _AGENTS.items()},
          (*config.sizes, *config.large_sizes),
          config.max_episodes,
          dodge=1.01,
          xlabel="size N of Deep Sea",
        )
      ]
    ],
    claims=_claims,
    caption="A mark is a run of a seed; hollow, at the limit: not solved. Lines join "
    "medians where more than half of the seeds solved.",
    height=3.6,
    large=True,
  ),
)
