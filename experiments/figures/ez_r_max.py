"""Paper 1's figure 15: εz-greedy beside R-MAX, which suits a small gridworld."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from explorax import exploration
from explorax.agents.tabular import r_max
from explorax.environments import gridworld
from explorax.experiments.figures import ez_domains, ez_runs, types
from explorax.experiments.recording import drawing

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure."""

  thresholds: tuple[int, ...] = (1, 10)  # Visits until a pair is known (figure 15).
  reward_max: float = 1.0  # Of R-MAX: the goal's.
  tolerance: float = 1e-3  # Of its value iteration (our own).
  gridworld: ez_domains.GridWorld = dataclasses.field(
    default_factory=ez_domains.GridWorld
  )
  num_seeds: int = 30  # Appendix B.

  def __post_init__(self):
    ez_runs.check_not_empty(self, "thresholds")
    ez_runs.check_at_least(self, thresholds=1, reward_max=0, num_seeds=1)
    if not self.tolerance > 0:
      raise ValueError(f"tolerance is {self.tolerance}; it must be positive.")
    if self.gridworld.discount == 1:
      raise ValueError("gridworld.discount is 1; R-MAX needs one below 1.")


def _tasks(config: Config) -> list[types.Task]:
  shared = {
    "setup": dataclasses.asdict(config.gridworld),
    "num_seeds": config.num_seeds,
  }
  tasks = [types.Task(rule, {"agent": rule, **shared}) for rule in ez_runs.RULES]
  for threshold in config.thresholds:
    settings = {
      "agent": f"R-MAX, m = {threshold}",
      "threshold": threshold,
      "reward_max": config.reward_max,
      "tolerance": config.tolerance,
      **shared,
    }
    tasks.append(types.Task(f"r_max_{threshold}", settings, 1.0 + threshold))
  return tasks


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  del tick
  setup = ez_domains.GridWorld(**settings["setup"])
  seeds = (0, settings["num_seeds"])
  if "threshold" not in settings:
    return setup.learn(settings["agent"], seeds)
  environment = gridworld.GridWorld(setup.size)
  return ez_runs.learn(
    environment,
    r_max.RMax(setup.size**2, environment.num_actions, settings["threshold"]),
    r_max.Params(settings["reward_max"], setup.discount, settings["tolerance"]),
    exploration.Greedy(),
    seeds=seeds,
    num_episodes=setup.episodes,
    environment_params=environment.default_params()._replace(
      time_limit=setup.time_limit
    ),
    observe=ez_runs.GridCell(setup.size),
    sequential=True,
  )


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  fig, axes = drawing.new(1, 1, width=6)
  ez_runs.curves(
    axes[0, 0],
    {task.settings["agent"]: task.results["discounted_returns"] for task in done},
  )
  axes[0, 0].legend(fontsize="small")
  return fig


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  means = {
    task.settings["agent"]: task.results["discounted_returns"].mean(axis=1)
    for task in done
  }
  findings = []
  for agent in means:
    if agent in ez_runs.RULES:
      continue
    interval, words = ez_runs.gap(means[agent], means["ez"])
    aggressive = agent.endswith("= 1")
    findings.append(
      types.Finding(
        f"{agent}: earns more than εz-greedy, over all episodes"
        if aggressive
        else f"{agent}: how it compares with εz-greedy (the paper's text is silent)",
        f"discounted return {np.mean(means[agent]):.3f} against "
        f"{np.mean(means['ez']):.3f}, {words}",
        bool(interval.low > 0) if aggressive else None,
      )
    )
  return findings


FIGURES = (
  types.Figure(
    name="ez/fig15",
    title="R-MAX in the GridWorld",
    source=f"{ez_runs.PAPER}, figure 15",
    claim="tuned aggressively (a threshold of 1, which supposes a deterministic world) "
    "R-MAX can significantly outperform εz-greedy in a table.",
    config=Config(),
    quick=Config(
      gridworld=ez_domains.GridWorld(size=8, episodes=10),
      num_seeds=3,
    ),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
