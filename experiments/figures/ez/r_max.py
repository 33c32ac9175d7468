"""Paper 1's figure 15: εz-greedy beside R-MAX, which suits a small gridworld."""

import dataclasses

from explorax import exploration
from explorax.agents.tabular import r_max
from explorax.experiments.figures import checks, types
from explorax.experiments.figures.ez import comparisons, domains, runs
from explorax.experiments.recording import drawing, statistics


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure."""

  thresholds: tuple[int, ...] = (1, 10)  # Visits until a pair is known (figure 15).
  reward_max: float = 1.0  # Of R-MAX: the goal's.
  tolerance: float = 1e-3  # Of its value iteration (our own).
  gridworld: domains.GridWorld = dataclasses.field(default_factory=domains.GridWorld)
  num_seeds: int = 30  # Appendix B.

  def __post_init__(self):
    checks.distinct(self, "thresholds")
    checks.at_least(self, thresholds=1, reward_max=0, num_seeds=1)
    checks.inside(self, "tolerance")
    if self.gridworld.discount == 1:
      raise ValueError("gridworld.discount is 1; R-MAX needs one below 1.")


def _tasks(config: Config) -> list[types.Task]:
  seeds = range(config.num_seeds)
  tasks = [domains.task("gridworld", config.gridworld, r, seeds) for r in runs.RULES]
  model = {"reward_max": config.reward_max, "tolerance": config.tolerance}
  for threshold in config.thresholds:
    settings = {**tasks[0].settings, **model, "rule": "r_max", "threshold": threshold}
    tasks.append(types.Task(f"r_max_{threshold}", settings, 1.0 + threshold))
  return tasks


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  if settings["rule"] != "r_max":
    return domains.run(settings, tick)
  domain = domains.of(settings)
  parts = domain.parts()
  return runs.learn(
    parts.environment,
    r_max.RMax(domain.size**2, parts.environment.num_actions, settings["threshold"]),
    r_max.Params(settings["reward_max"], domain.discount, settings["tolerance"]),
    exploration.Greedy(),
    seeds=settings["seeds"],
    num_episodes=domain.episodes,
    environment_params=parts.params,
    sequential=True,
    **parts.options,
  )


def _draw(config: Config, table: types.Table) -> types.Drawing:
  fig, ((axes,),) = drawing.new(1, 1, width=6)
  labels = [*runs.LABELS.values(), *(f"R-MAX, m = {m}" for m in config.thresholds)]
  returns = [task.results["discounted_returns"] for task in table]
  curves = dict(zip(labels, returns, strict=True))
  comparisons.draw_curves(axes, curves, "discounted return")
  axes.legend(fontsize="small")
  return fig


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  findings = []
  ez = table.per_seed("discounted_returns", rule="ez")[:, 0]
  for m in config.thresholds:
    returns = table.per_seed("discounted_returns", threshold=m)[:, 0]
    gap = statistics.difference(returns, ez)
    findings.append(
      types.Finding(
        f"R-MAX, m = {m}: earns more than εz-greedy, over all episodes"
        if m == 1
        else f"R-MAX, m = {m}: how it compares with εz-greedy (the paper's text is "
        "silent)",
        f"discounted return {returns.mean():.3f} against {ez.mean():.3f}, "
        f"{gap.words('+.3g')}",
        gap.is_above() if m == 1 else None,
      )
    )
  return findings


FIGURES = (
  types.Figure(
    name="ez/fig15",
    title="R-MAX in the GridWorld",
    source=f"{runs.PAPER}, figure 15",
    claim="tuned aggressively (a threshold of 1, which supposes a deterministic world) "
    "R-MAX can significantly outperform εz-greedy in a table.",
    config=Config(),
    quick=Config(
      gridworld=domains.GridWorld(size=8, episodes=10),
      num_seeds=3,
    ),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
