"""Paper 4's main claim with enough seeds: TDU in large stochastic Deep Seas."""

import dataclasses

from explorax import ranges
from explorax.papers import claims, types
from explorax.papers.tdu import episodes, runs

_AGENTS = {runs.TDU: "TDU", runs.BOOTSTRAPPED: "bootstrapped DQN"}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; the agents are their presets.

  They differ in β alone, 1 and 0, and each seed has its own action mapping.
  """

  sizes: types.Rising[types.Size] = (20, 26, 30)  # N.
  num_seeds: ranges.PositiveInt = 10
  large_sizes: types.Rising[types.Size] = (40,)
  large_seeds: ranges.PositiveInt = 8
  max_episodes: ranges.PositiveInt = 10_000  # As in bsuite.
  first_seed: ranges.Seed = 100  # Other figures have seeds from 0.
  # Alone on a CPU, where in one program all seeds take as long as the slowest; those of
  # the large sizes together on a GPU, where they take as long as one.
  seeds_per_task: ranges.PositiveInt = 1
  large_seeds_per_task: ranges.PositiveInt = 8


def _tasks(config: Config) -> list[types.Task]:
  return [
    task
    for sizes, num, together in (
      (config.sizes, config.num_seeds, config.seeds_per_task),
      (config.large_sizes, config.large_seeds, config.large_seeds_per_task),
    )
    for task in runs.deep_sea_tasks(
      {agent: {"agent": agent, "own_mapping": True} for agent in _AGENTS},
      sizes,
      (True,),
      range(config.first_seed, config.first_seed + num),
      max_episodes=config.max_episodes,
      seeds_per_task=together,
    )
  ]


def _claims(config: Config) -> list[types.Claim]:
  """Both groups of sizes, corrected by Holm's method."""

  def fewer(sizes: tuple[int, ...]) -> types.Claim:
    tdu, other = ({"agent": x, "size": lambda size: size in sizes} for x in _AGENTS)
    return episodes.fewer(
      f"TDU solves N = {', '.join(map(str, sizes))} in fewer episodes than "
      "bootstrapped DQN",
      tdu,
      other,
      "TDU and bootstrapped DQN",
    )

  return claims.corrected([fewer(config.sizes), fewer(config.large_sizes)])


FIGURES = (
  types.Figure(
    name="tdu/stochastic",
    title="Stochastic Deep Sea: episodes until it is solved",
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
          dodge=1.015,
          xlabel="size N of Deep Sea",
        )
      ]
    ],
    claims=_claims,
    caption="A mark is a run of a seed, which has its own action mapping; a hollow "
    "one, at the limit, stands for all that were not solved. Lines join medians where "
    "more than half of the seeds solved. Both agents have twenty networks "
    "with priors (λ = 3).",
    height=3.6,
    large=True,
  ),
)
