"""Paper 1's figure 3d: the sparse swing-up of CartPole, which takes long."""

import dataclasses

from explorax.agents import ranges
from explorax.experiments.recording import drawing
from explorax.papers import types
from explorax.papers.ez import comparisons, domains, runs

# For the tasks' weights: time of an episode on one core.
_SECONDS_PER_FEATURE = 5e-6


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure, which shows both bases; the maps use the first one."""

  full: domains.CartPole = dataclasses.field(default_factory=domains.CartPole)
  seeds_per_task: int = 2  # Saved together; on an accelerator, use one task.
  total: domains.CartPole = dataclasses.field(
    # By this number of episodes, εz-greedy's returns no longer rise (our own).
    default_factory=lambda: domains.CartPole(basis="total", episodes=1500)
  )
  total_seeds_per_task: int = 10
  num_seeds: int = 30  # Appendix B.

  def __post_init__(self) -> None:
    ranges.at_least(self, 1, "seeds_per_task", "total_seeds_per_task", "num_seeds")
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
    for seeds in types.seed_chunks(config.num_seeds, seeds_per_task):
      name, weight = f"{domain.basis}_seed{seeds[0]}", seconds * len(seeds)
      tasks += [
        domains.task(name, domain, rule, seeds, weight=weight) for rule in runs.RULES
      ]
  seeds = list(range(config.num_seeds))
  return tasks + [
    domains.task("map", config.full, rule, seeds, what="map") for rule in runs.RULES
  ]


def _bases(config: Config, table: types.Table) -> dict[str, types.Table]:
  """The learning by its basis: its size, in words."""
  return {
    f"{domain.features.num_features:,} features": table.where(
      what="learning", basis=domain.basis
    )
    for domain in (config.full, config.total)
  }


def _draw(config: Config, table: types.Table) -> types.Drawing:
  fig, (axes,) = drawing.new(1, 4, width=3.6, height=2.9)
  bases = _bases(config, table).items()
  for panel, (basis, learning) in zip(axes, bases, strict=False):
    comparisons.draw_curves(
      panel,
      comparisons.labelled(comparisons.joined(learning, "returns")),
      "return (of at most 1000)",
      title=basis,
      legend="upper left",
    )
  comparisons.draw_first_visits(axes[2:], table.where(what="map"))
  return fig


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  return [
    *(
      comparisons.earns_more(f"CartPole, {basis}", learning, "returns", ".3g")
      for basis, learning in _bases(config, table).items()
    ),
    comparisons.visits_earlier("CartPole", table.where(what="map")),
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
    run=domains.run,
    draw=_draw,
    judge=_judge,
  ),
)
