"""Which bonuses solve tasks of MiniGrid, on double DQN, and the tuning of their scales.

Agents are presets with the same network, replay and number of updates. One setting of
each, β if it has a bonus, is the best of three in `bonuses/minigrid_tuning`, a smaller
task with other seeds.
"""

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from explorax import environments, ranges
from explorax.experiments import config as config_lib
from explorax.experiments import job, launch
from explorax.experiments.recording import significance
from explorax.experiments.runners import core
from explorax.papers import claims, layers, panels, types
from explorax.papers.bonuses import navix_tasks

_BASELINE = "double DQN"
_COMMON = (
  "target=DoubleQ()",
  "n_step=3",
  "batch_size=32",
  "updates_per_step=0.125",
  "learning_rate=0.0005",
  "target_update_period=250",
  "replay_capacity=100000",
  "min_replay_size=2000",
)
_EPSILON = "Linear(1.0, {}, steps=50000)"  # Environment steps.
_GREEDY = ("hidden_sizes=64", f"exploration.epsilon={_EPSILON.format(0.05)}")
# Ten heads on the torso of the others.
_HEADS = ("hidden_sizes=", "head_size=64", "shared_torso=true")
_WINDOW, _SHARE = 100, 0.8  # Solved: this share of so many last episodes succeeded.
NUM_BINS = 30  # Of a run's steps.


class Method(NamedTuple):
  """An agent of the comparison.

  Attributes:
    agent: the preset.
    setting: that is tuned, a template of its value.
    values: of it, in the tuning. Of β and of the priors' scale they are 0.03, 0.2 and 1
      times the preset's.
    chosen: the index of the best of these.
    changes: other settings.
  """

  agent: str
  setting: str
  values: tuple[float, float, float]
  chosen: int = 1
  changes: tuple[str, ...] = _GREEDY

  def settings(self, value: float) -> tuple[str, ...]:
    return (*_COMMON, *self.changes, self.setting.format(value))


def _with_bonus(agent: str, beta: float, *changes: str) -> Method:
  """An agent with a bonus; `beta` is its preset's."""
  return Method(agent, "beta={:g}", _scaled(beta), changes=(*_GREEDY, *changes))


def _scaled(value: float) -> tuple[float, float, float]:
  return (round(0.03 * value, 6), round(0.2 * value, 6), value)


_LEAST_EPSILON = (0.01, 0.05, 0.1)
_EZ = f"exploration=EzGreedy(epsilon={_EPSILON.format('{}')})"
METHODS = {
  _BASELINE: Method(
    "double_dqn", f"exploration.epsilon={_EPSILON}", _LEAST_EPSILON, 1, _GREEDY[:1]
  ),
  "εz-greedy": Method("double_dqn", _EZ, _LEAST_EPSILON, 1, _GREEDY[:1]),
  "counts": _with_bonus("dqn_counts", 0.1),
  "RND": _with_bonus("dqn_rnd", 0.1),
  "NovelD": _with_bonus("dqn_novel_d", 0.3),
  "E3B": _with_bonus("dqn_e3b", 0.1),
  "RIDE": _with_bonus("dqn_ride", 0.1),
  "ICM": _with_bonus("dqn_icm", 1.0),
  "Disagreement": _with_bonus("dqn_disagreement", 0.1),
  "RE3": _with_bonus("dqn_re3", 0.05),
  "NGU": _with_bonus("ngu_dqn", 0.3, "bonus.memory_capacity=641"),
  "bootstrapped DQN": Method(
    "bootstrapped_dqn",
    "prior_scale={:g}",
    _scaled(3.0),
    1,
    ("num_members=10", *_HEADS),
  ),
  "TDU": Method(
    "tdu",
    "beta={:g}",
    _scaled(1.0),
    1,
    ("num_members=5", "num_explorers=5", "prior_scale=0.6", *_HEADS),
  ),
}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figures; those of agents are `METHODS`'."""

  # Double DQN solved neither DoorKey-8x8 nor MultiRoom-N4-S5 in 300,000 steps, and
  # counts (β = 0.02) not the former: one seed each.
  tasks: types.Distinct[str] = ("DoorKey-6x6", "MultiRoom-N2-S4", "KeyCorridorS3R1")
  methods: types.Distinct[Annotated[str, ranges.OneOf(tuple(METHODS))]] = tuple(METHODS)
  num_steps: ranges.PositiveInt = 200_000  # Of all environments of a seed.
  num_envs: ranges.PositiveInt = 16
  first_seed: ranges.Seed = 100  # Other figures have seeds from 0.
  num_seeds: ranges.PositiveInt = 5
  seeds_per_task: ranges.PositiveInt = 1  # They run in one program.


_TUNING = Config(
  tasks=("DoorKey-5x5",),
  num_steps=100_000,
  first_seed=200,
  num_seeds=2,
  seeds_per_task=2,
)
_QUICK: dict[str, Any] = {
  "tasks": ("DoorKey-5x5",),
  "methods": (_BASELINE, "counts"),
  "num_steps": 4_000,
  "num_seeds": 1,
}


def _tasks(config: Config, *, tuning: bool) -> list[types.Task]:
  return [
    task
    for name in config.tasks
    for label in config.methods
    for i, value in enumerate(METHODS[label].values)
    if tuning or i == METHODS[label].chosen
    for task in types.split(
      f"{name}_{label.replace(' ', '_')}_{value:g}",
      {
        "task": name,
        "method": label,
        "agent": METHODS[label].agent,
        "value": value,
        "changes": list(METHODS[label].settings(value)),
        "num_steps": config.num_steps,
        "num_envs": config.num_envs,
      },
      config.num_seeds,
      config.seeds_per_task,
      config.num_steps,
      config.first_seed,
    )
  ]


def run(settings: types.Settings, context: types.TaskContext) -> types.Results:
  """Trains the seeds of a task in one program; returns what `Successes` counts."""
  seeds, num_steps = settings["seeds"], settings["num_steps"]
  successes = Successes(seeds, num_steps)
  steps = 0

  def after_episode(episode: core.Episode) -> None:
    nonlocal steps
    steps = episode.env_steps
    successes.count(episode.seed, steps, episode.episode_return)

  def stop() -> bool:
    context.report(min(1.0, steps / num_steps))
    return False

  results = launch.train_without_files(
    config_lib.RunConfig(
      agent=settings["agent"],
      settings=tuple(settings["changes"]),
      env=f"navix:Navix-{settings['task']}-v0",
      runner="device",
      seed=seeds[0],
      num_seeds=len(seeds),
      num_envs=settings["num_envs"],
      steps=num_steps,
      eval_episodes=0,
    ),
    core.Hooks(on_episode=after_episode, stop=stop),
    job.Given(
      environment=environments.wrap(navix_tasks.make(settings["task"]), seed=seeds[0])
    ),
  )
  if any(result.interrupted for result in results.values()):
    raise types.InterruptedTaskError
  return successes.results()


class Successes:
  """Counts the episodes that reach the goal, whose return is not 0."""

  def __init__(self, seeds: Sequence[int], num_steps: int):
    self._num_steps = num_steps
    self._ends: dict[int, list[tuple[int, bool]]] = {seed: [] for seed in seeds}
    self._solved = dict.fromkeys(seeds, 0)

  def count(self, seed: int, steps: int, episode_return: float) -> None:
    """Counts an episode that ended after so many environment steps."""
    ends = self._ends[seed]
    ends.append((steps, episode_return > 0))
    latest = [success for _, success in ends[-_WINDOW:]]
    if len(latest) == _WINDOW and np.mean(latest) >= _SHARE:
      self._solved[seed] = self._solved[seed] or steps

  def results(self) -> types.Results:
    """Of each seed `[S]`.

    `solved` is the number of environment steps after which 80 % of the last 100
    training episodes reached the goal, or 0; `limit` is that of the run; `success` is
    the share of all episodes that reached it; `successes`, `[S, 30]`, the same of those
    that ended in each thirtieth of the run (with none, as before).
    """
    ends = [np.array(x, np.float64).reshape(-1, 2) for x in self._ends.values()]
    return {
      "solved": np.array([*self._solved.values()]),
      "limit": np.full(len(ends), self._num_steps),
      "success": np.array([np.mean(x[:, 1]) if len(x) else 0.0 for x in ends]),
      "successes": np.stack([_binned(x, self._num_steps) for x in ends]),
    }


def _binned(ends: np.ndarray, num_steps: int) -> np.ndarray:
  """(step, success) `[N, 2]` → the share of successes in each part of the run."""
  bins = np.minimum((ends[:, 0] - 1) * NUM_BINS // num_steps, NUM_BINS - 1)
  shares, last = np.zeros(NUM_BINS), 0.0
  for i in range(NUM_BINS):
    if (bins == i).any():
      last = float(np.mean(ends[bins == i, 1]))
    shares[i] = last
  return shares


def best(tuned: Iterable[types.CompletedTask]) -> dict[str, int]:
  """The index of each method's value with the greatest share of successes."""
  scores: dict[str, list[tuple[float, int]]] = {}
  for task in tuned:
    label, value = task.settings["method"], task.settings["value"]
    score = float(np.mean(task.results["success"]))
    index = METHODS[label].values.index(value)
    scores.setdefault(label, []).append((score, index))
  return {label: max(of_label)[1] for label, of_label in scores.items()}


def _are_chosen(table: types.Table) -> tuple[str, bool | None]:
  """Whether the best values are those of `METHODS`; the best ones in words."""
  found = best(table)
  words = ", ".join(
    f"{label} {METHODS[label].values[i]:g}" for label, i in found.items()
  )
  return words, all(METHODS[label].chosen == i for label, i in found.items())


def is_solved(table: types.Table) -> np.ndarray:
  """Whether each task was solved, 0 or 1, `[S, tasks]`."""
  return (table.per_seed("solved") > 0).astype(np.float64)


def steps_to_solve(table: types.Table) -> np.ndarray:
  """Environment steps, `[S, tasks]`; the limit if a task was not solved."""
  solved = table.per_seed("solved")
  return np.where(solved > 0, solved, table.per_seed("limit"))


def _sooner(label: str, table: types.Table) -> types.Finding | None:
  groups = [table.where(method=name) for name in (label, _BASELINE)]
  if not all(groups):
    return None
  return claims.sooner(
    f"{label} solves the tasks in fewer steps than double DQN",
    [significance.Times(steps_to_solve(x), is_solved(x)) for x in groups],
    f"{label} and double DQN",
    "ours",
    unit="steps",
  )


def _claims(config: Config) -> list[types.Claim]:
  """Two families, each corrected by Holm's method: more runs, and fewer steps."""
  others = [label for label in config.methods if label != _BASELINE]
  more: Sequence[types.Claim] = [
    claims.Compare(
      f"{label} solves more runs than double DQN",
      lambda table: is_solved(table).reshape(-1, 1),
      {"method": label},
      {"method": _BASELINE},
      "shares {a:.2g} and {b:.2g}, {gap}",
      spec=".2f",
      kind="ours",
    )
    for label in others
  ]
  fewer = [functools.partial(_sooner, label) for label in others]
  return [*claims.corrected(more), *claims.corrected(fewer)]


def _panels(config: Config) -> list[list[panels.Panel]]:
  def of_task(task: str) -> panels.Panel:
    lines = {label: {"method": label, "task": task} for label in config.methods}
    unnamed: dict[str, Any] = {"yticklabels": []} if task != config.tasks[0] else {}
    return panels.Panel(
      layers.Rows(steps_to_solve, lines, is_solved, "not solved"),
      layers.vertical(config.num_steps, linestyle=":"),
      grid="x",
      xscale="log",
      xlabel="environment steps until it is solved",
      title=task,
      **unnamed,
    )

  return [[of_task(task) for task in config.tasks]]


def _tuning_panels(config: Config) -> list[list[panels.Panel]]:
  lines = {
    f"{label}, {METHODS[label].values[i]:g}": {
      "method": label,
      "value": METHODS[label].values[i],
    }
    for label in config.methods
    for i in range(3)
  }
  return [
    [
      panels.Panel(
        layers.Rows("success", lines),
        grid="x",
        xlabel=f"share of the training episodes at the goal, {config.tasks[0]}",
      )
    ]
  ]


FIGURES = (
  types.Figure(
    name="bonuses/minigrid",
    title="MiniGrid: environment steps until a task is solved",
    source="Our own",
    claim="which bonuses make a double DQN solve sparse tasks of MiniGrid that "
    "ε-greedy exploration does not solve is our question.",
    config=Config(),
    quick=Config(**_QUICK),
    tasks=functools.partial(_tasks, tuning=False),
    compute=run,
    panels=_panels,
    claims=_claims,
    caption="A mark is a run of a seed; hollow, at the limit: not solved. Solved: 80 % "
    "of the last 100 training episodes reached the goal. On the right: the number of "
    "runs solved.",
    kind="ours",
    height=4.4,
    large=True,
  ),
  types.Figure(
    name="bonuses/minigrid_tuning",
    title="MiniGrid: the scale of each method on a smaller task",
    source="Our own",
    claim="the values of `bonuses/minigrid` are the best here.",
    config=_TUNING,
    quick=dataclasses.replace(_TUNING, **_QUICK, seeds_per_task=1),
    tasks=functools.partial(_tasks, tuning=True),
    compute=run,
    panels=_tuning_panels,
    claims=lambda config: [
      claims.Check("`bonuses/minigrid` has the best values", _are_chosen, exact=True)
    ],
    caption="A row for each value of the setting that is tuned: β; ε of double DQN and "
    "εz-greedy; the priors' scale of bootstrapped DQN. Small marks are seeds.",
    kind="ours",
    height=9.0,
    large=True,
  ),
)
