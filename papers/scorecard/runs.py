"""Methods and tasks of the table, and the choice of each method's setting.

Each method has one parameter of exploration, with the value of its preset and two
others. The runs of a figure are in two stages: all values on a few tasks with the seeds
of the tuning, and then the value with the greatest mean score on all tasks with seeds
of their own.

A run's score is the mean return of its evaluation at the end, where a uniform policy's
is 0 and the task's ceiling 1. In Deep Sea the return is whether the treasure was found.
All methods learn by double Q-learning, without clipped rewards. The cost of a step is
measured in short runs of all methods in turn, since a machine's speed changes in hours.
"""

import dataclasses
import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from explorax import ranges
from explorax.environments import deep_sea, jax_environments
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments import presets
from explorax.papers import training, types
from explorax.papers.tdu import runs as deep_sea_runs


class Method(NamedTuple):
  """A method of exploration.

  Attributes:
    agent: its preset.
    parameter: the name of its parameter of exploration.
    values: of the parameter, beside the preset's.
    changes: of the preset, in all runs.
  """

  agent: str
  parameter: str
  values: tuple[float, float]
  changes: tuple[str, ...] = ()


def _bonus(agent: str, changes: tuple[str, ...] = ()) -> Method:
  """With the preset's β, a tenth and ten times of it."""
  beta = presets.PRESETS[agent].config.beta
  return Method(agent, "beta", (beta / 10, beta * 10), changes)


BASELINE = "double DQN"
METHODS = {
  BASELINE: Method("double_dqn", "exploration.epsilon", (0.01, 0.2)),
  "εz-greedy": Method("double_dqn_ez", "exploration.epsilon", (0.01, 0.2)),
  "noisy networks": Method("noisy_dqn", "noisy_sigma", (0.1, 1.0)),
  "bootstrapped DQN": Method("bootstrapped_dqn", "prior_scale", (1.0, 10.0)),
  "TDU": _bonus("tdu"),
  "UCB": Method("ucb", "exploration.scale", (1.0, 100.0)),
  "epinet": Method("epinet", "prior_scale", (0.3, 3.0)),
  "RND": _bonus("dqn_rnd"),
  "counts": _bonus("dqn_counts"),
  # Its search for neighbours computes over the capacity: most episodes are shorter.
  "NGU": _bonus("ngu_dqn", ("bonus.memory_capacity=1000",)),
  "NovelD": _bonus("dqn_novel_d"),
  "E3B": _bonus("dqn_e3b"),
  "RIDE": _bonus("dqn_ride"),
  "ICM": _bonus("dqn_icm"),
  "disagreement": _bonus("dqn_disagreement"),
  "RE3": _bonus("dqn_re3"),
  "SimHash": _bonus("dqn_simhash"),
}
_UNIFORM = "uniform"  # The policy whose score is 0.


_CHANGES = ("batch_size=32", "target=DoubleQ()", "max_abs_reward=none")


class Problem(NamedTuple):
  """A task of the table.

  Attributes:
    env: its environment.
    kind: of problem: one of `KINDS`.
    ceiling: the return whose score is 1.
    reason: where the ceiling is from.
    changes: of all presets; small batches, so that ensembles take hours on a CPU, and
      not days.
    epsilon: how a value of ε is written: as the preset's constant or schedule.
  """

  env: str
  kind: str
  ceiling: float
  reason: str
  changes: tuple[str, ...] = _CHANGES
  epsilon: str = "{:g}"


DEEP, SPARSE, FREQUENT = "deep exploration", "sparse rewards", "frequent rewards"
KINDS = (DEEP, SPARSE, FREQUENT)
_TREASURE = "the treasure in each episode"
_GOAL = "the goal in each episode"
_FEW_UPDATES = (*_CHANGES, "updates_per_step=0.25")
_DECAYING = "Linear(1.0,{:g},steps=8000)"
PROBLEMS = {
  "Deep Sea 20": Problem("jax:deep_sea/20", DEEP, 1.0, _TREASURE),
  "stochastic Deep Sea 14": Problem(
    "jax:deep_sea/14,stochastic=true",
    DEEP,
    (1 - 1 / 14) ** 13,
    "the treasure as often as the best policy finds it",
  ),
  "gridworld 20": Problem("jax:gridworld/20,time_limit=100", SPARSE, 1.0, _GOAL),
  "Mountain Car": Problem("jax:mountain_car,time_limit=200", SPARSE, 1.0, _GOAL),
  "MiniGrid DoorKey 6x6": Problem(
    *("gym:MiniGrid-DoorKey-6x6-v0", SPARSE, 1.0, "the goal at once"),
    *(_FEW_UPDATES, _DECAYING),
  ),
  "Breakout": Problem(
    "jax:breakout", FREQUENT, 30.0, "all bricks of the first wall", _FEW_UPDATES
  ),
  "CartPole": Problem(
    *("jax:cartpole", FREQUENT, 500.0, "the longest episode"), epsilon=_DECAYING
  ),
  "Catch": Problem("jax:catch", FREQUENT, 1.0, "each ball caught"),
}
# Images take about seven core hours more (estimated).
_IMAGES = ("MiniGrid DoorKey 6x6", "Breakout")
_VECTORS = tuple(name for name in PROBLEMS if name not in _IMAGES)
PROBLEMS |= {  # Of the quick version.
  "Deep Sea 5": Problem("jax:deep_sea/5", DEEP, 1.0, _TREASURE),
  "gridworld 5": Problem("jax:gridworld/5,time_limit=20", SPARSE, 1.0, _GOAL),
}
# Processor time of a step of double DQN, and how many times as long other agents take,
# from short runs on one core: the full version took 16.5 core hours.
_SECONDS = {"Breakout": 1e-3, "MiniGrid DoorKey 6x6": 1e-3}
_OTHER_SECONDS = 6e-5
_FACTORS = {"bootstrapped_dqn": 35, "tdu": 35, "ngu_dqn": 15, "epinet": 5}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; all others are those of the presets."""

  methods: types.Distinct[Annotated[str, ranges.OneOf(METHODS)]] = tuple(METHODS)
  problems: types.Distinct[Annotated[str, ranges.OneOf(PROBLEMS)]] = _VECTORS
  num_steps: ranges.PositiveInt = 50_000  # Of a run, in all problems.
  eval_episodes: ranges.PositiveInt = 50  # Or 5,000 steps of them.
  first_seed: ranges.Seed = 100
  num_seeds: ranges.PositiveInt = 8
  # Values of each method's parameter; 1: the preset's, without tuning.
  num_values: Annotated[int, ranges.Range(ge=1, le=3)] = 3
  tuning_problems: types.Distinct[Annotated[str, ranges.OneOf(PROBLEMS)]] = (
    "Deep Sea 20",
    "gridworld 20",
    "CartPole",
  )  # One of each kind.
  tuning_seeds: ranges.PositiveInt = 4  # From 0.
  uniform_seeds: ranges.PositiveInt = 20  # Of the uniform policy, from 0.
  # The runs of each method that measure its cost, with the seeds of the tuning.
  cost_problem: Annotated[str, ranges.OneOf(PROBLEMS)] = "Deep Sea 20"
  cost_runs: ranges.PositiveInt = 3
  cost_steps: ranges.PositiveInt = 6000


QUICK = Config(
  problems=("Deep Sea 5", "gridworld 5", "CartPole"),
  num_steps=2000,
  eval_episodes=5,
  num_seeds=2,
  num_values=1,
  tuning_problems=("Deep Sea 5",),
  uniform_seeds=2,
  cost_runs=1,
)


def first_tasks(config: Config) -> list[types.Task]:
  """The uniform policy in all problems, the tuning, and the runs that measure costs."""
  uniform = Method("double_dqn", "", (0.0, 0.0), ("evaluation=EpsilonGreedy(1.0)",))
  tasks = [
    task
    for problem in dict.fromkeys((*config.problems, *config.tuning_problems))
    for task in _tasks(config, _UNIFORM, uniform, problem, None, num_steps=1000)
  ]
  if config.num_values > 1:
    tasks += [
      task
      for label in config.methods
      for problem in config.tuning_problems
      for value in _values(config, METHODS[label])
      for task in _tasks(config, label, METHODS[label], problem, value)
    ]
  return [*tasks, *_cost_tasks(config)]


def _cost_tasks(config: Config) -> list[types.Task]:
  """All methods in turn, several times: small, equal weights keep them in order."""
  problem, steps = config.cost_problem, config.cost_steps
  return [
    task._replace(
      name=task.name.replace("tuning", f"cost{run}", 1),
      settings={**task.settings, "cost_run": run},
      weight=steps * _OTHER_SECONDS,
    )
    for run in range(config.cost_runs)
    for label in config.methods
    for task in _tasks(config, label, METHODS[label], problem, None, num_steps=steps)
  ]


def then_tasks(config: Config, table: types.Table) -> list[types.Task]:
  """All problems, with each method's best value of the tuning."""
  returns = {
    problem: float(np.mean(table.per_seed("returns", method=_UNIFORM, problem=problem)))
    for problem in config.problems
  }
  return [
    task
    for label in config.methods
    for problem in config.problems
    for task in _tasks(
      config,
      label,
      METHODS[label],
      problem,
      best_value(config, table, label),
      uniform=returns[problem],
    )
  ]


def best_value(config: Config, table: types.Table, label: str) -> float | None:
  """The value of a method's parameter with the greatest mean score in the tuning.

  None is the preset's, which is preferred to values that are as good.
  """
  scores = tuning_scores(config, table, label)
  return max(scores, key=scores.__getitem__)


def tuning_scores(
  config: Config, table: types.Table, label: str
) -> dict[float | None, float]:
  """Value of a method's parameter → mean score in the tuning; None is the preset's."""
  values = _values(config, METHODS[label])
  if len(values) == 1:  # Without tuning.
    return {None: math.nan}
  scores = {}
  for value in values:
    each = []
    for problem in config.tuning_problems:
      uniform = table.per_seed("returns", method=_UNIFORM, problem=problem).mean()
      chosen = {"method": label, "problem": problem, "value": value}
      tuned = table.where(uniform=None, cost_run=None, **chosen)
      found = tuned.per_seed("returns").mean()
      each.append((found - uniform) / (PROBLEMS[problem].ceiling - uniform))
    scores[value] = float(np.mean(each))
  return scores


def _values(config: Config, method: Method) -> list[float | None]:
  return [None, *method.values][: config.num_values]


def _tasks(
  config: Config,
  label: str,
  method: Method,
  problem: str,
  value: float | None,
  *,
  uniform: float | None = None,
  num_steps: int | None = None,
) -> list[types.Task]:
  """Tasks of a method in a problem: as in the tuning, if the uniform return is None.

  One program trains all seeds where the environment is written in JAX.
  """
  name = f"{label if label == _UNIFORM else method.agent}_{problem}"
  changes = (*method.changes, *PROBLEMS[problem].changes)
  if value is not None:
    is_epsilon = method.parameter == "exploration.epsilon"
    written = (PROBLEMS[problem].epsilon if is_epsilon else "{:g}").format(value)
    changes = (*changes, f"{method.parameter}={written}")
    name += f"_{value:g}"
  num_steps, env = num_steps or config.num_steps, PROBLEMS[problem].env
  settings: dict[str, Any] = {
    "method": label,
    "problem": problem,
    "env": env,
    "value": value,
    "agent": method.agent,
    "changes": list(changes),
    "num_steps": num_steps,
    "eval_episodes": config.eval_episodes,
  }
  if env.startswith("jax:deep_sea"):
    settings["own_mapping"] = True
  if uniform is None:
    is_uniform = label == _UNIFORM
    num_seeds = config.uniform_seeds if is_uniform else config.tuning_seeds
    name, first = f"tuning_{name}", 0
  else:
    settings["uniform"] = uniform
    num_seeds, first = config.num_seeds, config.first_seed
  return types.split(
    config_lib.safe_name(name),
    settings,
    num_seeds,
    num_seeds if env.startswith("jax:") else 1,
    num_steps * _SECONDS.get(problem, _OTHER_SECONDS) * _FACTORS.get(method.agent, 1),
    first,
  )


def compute(settings: types.Settings) -> types.Results:
  """Trains the seeds of a task and evaluates them at the end.

  In Deep Sea each seed has its own action mapping.

  Returns:
    Of each seed `[S]`: `returns`, the mean return of the evaluation, and `seconds`, the
    processor time of a step of training, the same for all of them.
  """
  seeds, env, given = settings["seeds"], settings["env"], None
  if settings.get("own_mapping", False):
    sea, _ = jax_environments.make(env.removeprefix("jax:"))
    assert isinstance(sea, deep_sea.DeepSea)
    given = parts_lib.CallerObjects(params=deep_sea_runs.own_mappings(sea, seeds))
  trained = training.train(
    config_lib.RunConfig(
      agent=settings["agent"],
      settings=tuple(settings["changes"]),
      env=env,
      runner="device" if env.startswith("jax:") else "local",
      seed=seeds[0],
      num_seeds=len(seeds),
      steps=settings["num_steps"],
      eval_episodes=settings["eval_episodes"],
    ),
    given,
  )
  returns = [
    [
      episode.metrics.get("denoised_return", episode.episode_return)
      for episode in trained.evaluations[seed][-1].episodes
    ]
    for seed in seeds
  ]
  return {
    "returns": np.array([np.mean(x) for x in returns]),
    "seconds": np.full(len(seeds), trained.step_seconds),
  }


def scores(table: types.Table) -> np.ndarray:
  """Scores of one method, `[S, problems]`."""
  groups = table.by_problem()
  low = np.array([group[0].settings["uniform"] for group in groups])
  high = np.array([PROBLEMS[group[0].settings["problem"]].ceiling for group in groups])
  found = (table.per_seed("returns") - low) / (high - low)
  return found.round(9)  # Means of equal returns may differ in their last digits.
