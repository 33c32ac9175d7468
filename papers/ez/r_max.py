"""Paper 1's figure 15: εz-greedy and R-MAX in a small gridworld."""

import dataclasses

from explorax import exploration, ranges
from explorax.papers import claims, panels, types
from explorax.papers.ez import comparisons, domains, runs
from explorax.papers.tabular import r_max


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure."""

  # Visits until a pair is known (figure 15).
  thresholds: types.Distinct[ranges.PositiveInt] = (1, 10)
  reward_max: ranges.NonNegativeFloat = 1.0  # Of R-MAX: the reward of the goal.
  tolerance: ranges.PositiveFloat = 1e-3  # Of its value iteration (our own).
  gridworld: domains.GridWorld = dataclasses.field(default_factory=domains.GridWorld)
  num_seeds: ranges.PositiveInt = 30  # Appendix B.

  def __post_init__(self) -> None:
    super().__post_init__()
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


def _compute(settings: types.Settings) -> types.Results:
  if settings["rule"] != "r_max":
    return domains.run(settings)
  domain = domains.of(settings)
  problem = domain.problem()
  threshold, num_actions = settings["threshold"], problem.environment.num_actions
  problem = problem._replace(
    learner=r_max.RMax(problem.num_cells, num_actions, threshold),
    learner_params=r_max.Params(
      settings["reward_max"], domain.discount, settings["tolerance"]
    ),
    options={**problem.options, "sequential": True},
  )
  return runs.learn(problem, exploration.Greedy(), settings["seeds"], domain.episodes)


def _panels(config: Config) -> list[list[panels.Panel]]:
  r_max_lines = {f"R-MAX, m = {m}": {"threshold": m} for m in config.thresholds}
  return [[comparisons.curves(of=comparisons.LINES | r_max_lines)]]


def _claims(config: Config) -> list[types.Claim]:
  return [
    claims.Compare(
      f"R-MAX, m = {m}: earns more than εz-greedy, over all episodes"
      + " (the paper's text is silent)" * (m > 1),
      "discounted_returns",
      {"threshold": m},
      comparisons.EZ,
      "discounted return {a:.3f} against {b:.3f}, {gap}",
      kind="ours" if m > 1 else None,
    )
    for m in config.thresholds
  ]


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
    compute=_compute,
    panels=_panels,
    claims=_claims,
    height=3.2,
  ),
)
