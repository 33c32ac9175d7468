"""Paper 1's figure 3d: the sparse swing-up of CartPole, which takes long."""

import dataclasses
from typing import Any

from explorax import ranges
from explorax.papers import types
from explorax.papers.ez import comparisons, domains, runs

# For the tasks' weights: time of an episode on one core.
_SECONDS_PER_FEATURE = 5e-6


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure, which shows both bases; the maps use the first one."""

  full: domains.CartPole = dataclasses.field(default_factory=domains.CartPole)
  seeds_per_task: ranges.PositiveInt = (
    2  # Saved together; on an accelerator, use one task.
  )
  total: domains.CartPole = dataclasses.field(
    # By this number of episodes, εz-greedy's returns no longer rise (our own).
    default_factory=lambda: domains.CartPole(basis="total", episodes=1500)
  )
  total_seeds_per_task: ranges.PositiveInt = 10
  num_seeds: ranges.PositiveInt = 30  # Appendix B.

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.full.basis == self.total.basis:
      raise ValueError(
        f"full and total both have basis {self.total.basis!r}; give one the other."
      )


def _tasks(config: Config) -> list[types.Task]:
  tasks = []
  for domain, seeds_per_task in (
    (config.full, config.seeds_per_task),
    (config.total, config.total_seeds_per_task),
  ):
    seconds = _SECONDS_PER_FEATURE * domain.features.num_features * domain.episodes
    for first in range(0, config.num_seeds, seeds_per_task):
      seeds = range(first, min(first + seeds_per_task, config.num_seeds))
      name, weight = f"{domain.basis}_seed{first}", seconds * len(seeds)
      tasks += [
        domains.task(name, domain, rule, seeds, weight=weight) for rule in runs.RULES
      ]
  seeds = range(config.num_seeds)
  return tasks + [
    domains.task("map", config.full, rule, seeds, what="map") for rule in runs.RULES
  ]


def _bases(config: Config) -> dict[str, types.Selection]:
  """The size of a basis, in words → its learning."""
  return {
    f"{domain.features.num_features:,} features": {
      "what": "learning",
      "basis": domain.basis,
    }
    for domain in (config.full, config.total)
  }


def _panels(config: Config) -> list[list[Any]]:
  curves = [
    comparisons.curves(
      y="returns", where=where, title=basis, ylabel="return (of at most 1000)"
    )
    for basis, where in _bases(config).items()
  ]
  maps = comparisons.first_visits(config.full, {})
  return [curves, [maps, maps]]


def _claims(config: Config) -> list[types.Claim]:
  return [
    *(
      comparisons.earns_more(f"CartPole, {basis}", where, "returns", ".3g")
      for basis, where in _bases(config).items()
    ),
    comparisons.visits_earlier("CartPole", {}),
  ]


FIGURES = (
  types.Figure(
    name="ez/fig3_cartpole",
    title="ε-greedy and εz-greedy in the sparse swing-up of CartPole",
    source=f"{runs.PAPER}, figure 3d",
    claim="εz-greedy performs significantly better, and covers the states "
    "significantly better in pure exploration.",
    config=Config(),
    quick=Config(
      full=domains.CartPole(episodes=3, order=2, time_limit=200, map_steps=1000),
      total=domains.CartPole(basis="total", episodes=3, order=2, time_limit=200),
      num_seeds=2,
    ),
    tasks=_tasks,
    compute=domains.run,
    panels=_panels,
    claims=_claims,
    height=2.7,
  ),
)
