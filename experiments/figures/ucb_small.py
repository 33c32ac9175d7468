"""Paper 3's agents on small problems; the paper itself has Atari games only."""

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.figures import tdu_runs, types, ucb_runs
from explorax.experiments.recording import drawing, statistics

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

_BASELINES = ("double_dqn", "bootstrapped_dqn_no_prior")
# For the tasks' weights, measured on one core: seconds, and steps per second.
_SECONDS_TO_COMPILE = 15.0
_SPEED = {"deep_sea": 3000.0, "breakout": 1000.0}


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure; those of the agents are in `ucb_runs`."""

  agents: tuple[str, ...] = tuple(ucb_runs.AGENTS)
  num_members: int = 10  # K (section 5).
  # Of the ensembles; 0 is none, as in the paper (Osband et al., 2018: 3).
  prior_scale: float = 0.0
  sizes: tuple[int, ...] = (4, 6, 8, 10)  # N of Deep Sea, of which bsuite has the last.
  max_episodes: int = 2000  # In Deep Sea (bsuite: 10 000).
  # In Breakout. The schedules are Table 1's, whose runs have ten million.
  num_steps: int = 100_000
  num_points: int = 50  # Of Breakout's curve.
  num_seeds: int = 5  # Table 2 has 2.
  seeds_per_task: int = 3  # Side by side.

  def __post_init__(self):
    tdu_runs.check(self)
    tdu_runs.check_distinct("agents", self.agents)
    for agent in self.agents:
      if agent not in ucb_runs.AGENTS:
        raise ValueError(
          f"agents has {agent!r}; there are {', '.join(ucb_runs.AGENTS)} for this "
          "figure."
        )
    if self.num_members < 2:
      raise ValueError(
        f"num_members is {self.num_members}; an ensemble has at least 2."
      )
    if not 0 <= self.prior_scale < math.inf:
      raise ValueError(
        f"prior_scale is {self.prior_scale}; it is finite and not negative (0: no "
        "priors)."
      )
    if self.num_points < 2 or self.num_steps < self.num_points * ucb_runs.TIME_LIMIT:
      raise ValueError(
        f"num_steps is {self.num_steps} and num_points {self.num_points}; use at least "
        f"2 points, and {ucb_runs.TIME_LIMIT} steps for each, in which an episode is "
        "sure to end."
      )


def _tasks(config: Config) -> list[types.Task]:
  tasks = []
  for agent in config.agents:
    for seeds in tdu_runs.seed_chunks(config.num_seeds, config.seeds_per_task):
      settings: dict[str, Any] = {
        "agent": agent,
        "num_members": config.num_members,
        "prior_scale": config.prior_scale,
        "seeds": seeds,
      }
      for size in config.sizes:
        sea = {"problem": "deep_sea", "size": size, "max_episodes": config.max_episodes}
        name = f"deep_sea_{size}_{agent}_seed{seeds[0]}"
        tasks.append(_task(name, settings | sea, size * config.max_episodes))
      game = {
        "problem": "breakout",
        "num_steps": config.num_steps,
        "num_points": config.num_points,
      }
      name = f"breakout_{agent}_seed{seeds[0]}"
      tasks.append(_task(name, settings | game, config.num_steps))
  return tasks


def _task(name: str, settings: types.Settings, num_steps: int) -> types.Task:
  seconds = len(settings["seeds"]) * num_steps / _SPEED[settings["problem"]]
  return types.Task(name, settings, _SECONDS_TO_COMPILE + seconds)


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  if settings["problem"] == "deep_sea":
    return ucb_runs.run_deep_sea(settings, tick)
  return ucb_runs.run_breakout(settings, tick)


def _lines(
  done: Sequence[types.Done], problem: str
) -> list[tuple[str, list[types.Done]]]:
  """Each agent's tasks of a problem, by preset, in one order for all figures."""
  chosen = types.select(done, problem=problem)
  lines = [(agent, types.select(chosen, agent=agent)) for agent in ucb_runs.AGENTS]
  return [(agent, tasks) for agent, tasks in lines if tasks]


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  fig, ((sea, game),) = drawing.new(1, 2, width=5.0, height=3.8)
  lines = _lines(done, "deep_sea")
  tdu_runs.draw_episodes(
    sea,
    [(ucb_runs.AGENTS[agent], tasks) for agent, tasks in lines],
    xlabel="size N",
  )
  sizes = tdu_runs.sizes(types.select(done, problem="deep_sea"))
  (chance,) = sea.plot(
    sizes, 2.0 ** np.array(sizes), color="0.6", linewidth=1, label="$2^N$"
  )
  # The agents are named beside it.
  sea.legend(handles=[chance], fontsize="small", loc="lower right")
  sea.set_ylim(top=2.5 * lines[0][1][0].settings["max_episodes"])
  sea.set_title("Deep Sea", fontsize="medium")
  for index, (agent, tasks) in enumerate(_lines(done, "breakout")):
    drawing.curve(
      game,
      ucb_runs.points(tasks[0].settings) / 1000,
      tdu_runs.over_seeds(tasks, "curve"),
      label=ucb_runs.AGENTS[agent],
      index=index,
    )
  game.set(
    xlabel="environment steps (thousands)",
    ylabel=f"bricks per episode (mean of {ucb_runs.WINDOW})",
    xlim=(0, None),
    ylim=(0, 1.45 * game.get_ylim()[1]),  # With room for the legend.
  )
  game.legend(fontsize="small", loc="upper left", ncols=2)
  game.set_title("Breakout", fontsize="medium")
  game.grid(alpha=0.3)
  return fig


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  agents = dict(_lines(done, "breakout"))
  claims = (
    ("ucb", _BASELINES),
    ("ensemble_voting", _BASELINES),
    ("ucb", ("ensemble_voting",)),
  )
  findings = []
  for title, compare in (
    ("Breakout", _compare_bricks),
    ("Deep Sea", _compare_episodes),
  ):
    for agent, others in claims:
      if not {agent, *others} <= set(agents):
        continue
      compared = [compare(done, agent, other) for other in others]
      named = " and ".join(ucb_runs.AGENTS[other] for other in others)
      findings.append(
        types.Finding(
          f"{title}: {ucb_runs.AGENTS[agent]} outperforms {named}",
          "; ".join(text for _, text in compared),
          all(gain.low > 0 for gain, _ in compared),
        )
      )
  if {"ucb", "ucb_infogain"} <= set(agents):
    bricks, in_game = _compare_bricks(done, "ucb_infogain", "ucb")
    episodes, in_sea = _compare_episodes(done, "ucb_infogain", "ucb")
    findings.append(
      types.Finding(
        "InfoGain has no uniform benefit on top of UCB exploration",
        f"{in_game}; {in_sea}",
        not (bricks.low > 0 and episodes.low > 0),
      )
    )
  return findings


def _compare_bricks(
  done: Sequence[types.Done], agent: str, other: str
) -> tuple[statistics.Interval, str]:
  """By how much an agent's best mean is above the other's, and the words for it."""
  lines = dict(_lines(done, "breakout"))
  a, b = (tdu_runs.over_seeds(lines[name], "best") for name in (agent, other))
  gain = statistics.difference(a, b)
  return gain, (
    f"bricks {np.mean(a):.1f} and {np.mean(b):.1f} ({ucb_runs.AGENTS[other]}), a "
    f"difference of {gain.value:.1f} [{gain.low:.1f}, {gain.high:.1f}]"
  )


def _compare_episodes(
  done: Sequence[types.Done], agent: str, other: str
) -> tuple[statistics.Interval, str]:
  """log₂ of how many times fewer episodes an agent needs, and the words for it."""
  lines = dict(_lines(done, "deep_sea"))

  def log_episodes(name: str) -> np.ndarray:
    """The mean over sizes, `[S]`."""
    sizes = tdu_runs.sizes(lines[name])
    tasks = [types.select(lines[name], size=size) for size in sizes]
    return np.mean([np.log2(tdu_runs.episodes_to_solve(t)) for t in tasks], axis=0)

  gain = statistics.difference(-log_episodes(agent), -log_episodes(other))
  times, low, high = (2.0**-x for x in (gain.value, gain.high, gain.low))
  scores = [np.mean(tdu_runs.scores(lines[name])) for name in (agent, other)]
  return gain, (
    f"solved {scores[0]:.0%} and {scores[1]:.0%} ({ucb_runs.AGENTS[other]}), in "
    f"{times:.2f} times as many episodes [{low:.2f}, {high:.2f}]"
  )


FIGURES = (
  types.Figure(
    name="ucb/small",
    title="Exploration by Q-ensembles on small problems",
    source="Chen et al. (2017), UCB Exploration via Q-Ensembles; a figure of our own",
    claim="on Atari, ensemble voting outperforms double DQN and bootstrapped DQN, UCB "
    "exploration outperforms ensemble voting, and InfoGain has no uniform benefit on "
    "top of it. Here the same agents are on Deep Sea, where actions are permuted and "
    "unsolved ones count with the limit, and on Breakout by MinAtar's rules, judged by "
    f"the best mean of {ucb_runs.WINDOW} consecutive episodes.",
    config=Config(),
    quick=Config(
      agents=("ucb",),
      sizes=(4,),
      max_episodes=50,
      num_steps=2000,
      num_points=2,
      num_seeds=1,
    ),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
