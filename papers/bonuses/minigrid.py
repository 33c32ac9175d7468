"""Which bonuses solve tasks of MiniGrid, on double DQN.

Agents are presets with the same network, replay and number of updates. One setting of
each, β if it has a bonus, is the best of three in a smaller task with other seeds, with
which the figure begins.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from explorax import environments, ranges
from explorax.experiments import config as config_lib
from explorax.experiments import parts as parts_lib
from explorax.experiments.reports import markdown
from explorax.papers import claims, layers, panels, significance, training, types
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
      times the preset's, but for Never Give Up.
    changes: other settings.
  """

  agent: str
  setting: str
  values: tuple[float, float, float]
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
    "double_dqn", f"exploration.epsilon={_EPSILON}", _LEAST_EPSILON, _GREEDY[:1]
  ),
  "εz-greedy": Method("double_dqn", _EZ, _LEAST_EPSILON, _GREEDY[:1]),
  "counts": _with_bonus("dqn_counts", 0.1),
  "RND": _with_bonus("dqn_rnd", 0.1),
  "NovelD": _with_bonus("dqn_novel_d", 0.3),
  "E3B": _with_bonus("dqn_e3b", 0.1),
  "RIDE": _with_bonus("dqn_ride", 0.1),
  "ICM": _with_bonus("dqn_icm", 1.0),
  "Disagreement": _with_bonus("dqn_disagreement", 0.1),
  "RE3": _with_bonus("dqn_re3", 0.05),
  # Its bonus alone: seven policies of the preset's mixture only explore, and all
  # training episodes count. In a new state it is up to 1/√(10 ε) ≈ 30, and so its β is
  # about 30 times smaller than by the rule of the others.
  "NGU": Method(
    "ngu_dqn",
    "beta={:g}",
    (0.0003, 0.002, 0.009),
    (*_GREEDY, "num_policies=1", "min_discount=none", "bonus.memory_capacity=641"),
  ),
  "bootstrapped DQN": Method(
    "bootstrapped_dqn",
    "prior_scale={:g}",
    _scaled(3.0),
    ("num_members=10", *_HEADS),
  ),
  "TDU": Method(
    "tdu",
    "beta={:g}",
    _scaled(1.0),
    ("num_members=5", "num_explorers=5", "prior_scale=0.6", *_HEADS),
  ),
}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure; those of agents are `METHODS`'."""

  # Double DQN solved neither DoorKey-8x8 nor MultiRoom-N4-S5 in 300,000 steps, and
  # counts (β = 0.02) not the former: one seed each.
  tasks: types.Distinct[str] = ("DoorKey-6x6", "MultiRoom-N2-S4", "KeyCorridorS3R1")
  methods: types.Distinct[Annotated[str, ranges.OneOf(tuple(METHODS))]] = tuple(METHODS)
  num_steps: ranges.PositiveInt = 200_000  # Of all environments of a seed.
  num_envs: ranges.PositiveInt = 16
  first_seed: ranges.Seed = 100  # Other figures have seeds from 0.
  num_seeds: ranges.PositiveInt = 5
  tuning_task: str = "DoorKey-5x5"
  tuning_steps: ranges.PositiveInt = 100_000
  first_tuning_seed: ranges.Seed = 200
  num_tuning_seeds: ranges.PositiveInt = 2


_QUICK = Config(
  tasks=("DoorKey-5x5",),
  methods=(_BASELINE, "counts"),
  num_steps=4_000,
  num_seeds=1,
  tuning_steps=2_000,
  num_tuning_seeds=1,
)


def _tuning(config: Config) -> list[types.Task]:
  return [
    task
    for label in config.methods
    for value in METHODS[label].values
    for task in _tasks(config, label, value, config.tuning_task, tuning=True)
  ]


def _then(config: Config, tuned: types.Table) -> list[types.Task]:
  """All tasks, with each method's best value."""
  return [
    task
    for name in config.tasks
    for label, value in best(tuned).items()
    for task in _tasks(config, label, value, name, tuning=False)
  ]


def _tasks(
  config: Config, label: str, value: float, name: str, *, tuning: bool
) -> list[types.Task]:
  num_steps = config.tuning_steps if tuning else config.num_steps
  return types.split(
    f"{'tuning_' * tuning}{name}_{label.replace(' ', '_')}_{value:g}",
    {
      "tuning": tuning,
      "task": name,
      "method": label,
      "agent": METHODS[label].agent,
      "value": value,
      "changes": list(METHODS[label].settings(value)),
      "num_steps": num_steps,
      "num_envs": config.num_envs,
    },
    config.num_tuning_seeds if tuning else config.num_seeds,
    seconds_per_seed=num_steps,
    first_seed=config.first_tuning_seed if tuning else config.first_seed,
  )


def best(table: types.Table) -> dict[str, float]:
  """Each method's value with the greatest share of successes in the tuning."""
  return {label: max(x, key=x.__getitem__) for label, x in _shares(table).items()}


def _shares(table: types.Table) -> dict[str, dict[float, float]]:
  """Method → value → the share of successes in the tuning."""
  tuned = table.where(tuning=True)
  return {
    label: {
      value: float(tuned.per_seed("success", method=label, value=value).mean())
      for value in tuned.where(method=label).values("value")
    }
    for label in tuned.values("method")
  }


def tuning_text(table: types.Table, task: str, settings: Mapping[str, str]) -> str:
  """A table of the tuning; `settings`: method → the name of what was tuned."""
  rows = []
  for label, shares in _shares(table).items():
    columns = {
      f"value {i}": f"{value:g}: {share:.2f}"
      for i, (value, share) in enumerate(shares.items(), start=1)
    }
    chosen = f"{max(shares, key=shares.__getitem__):g}"
    rows.append(
      {"method": label, "setting": f"`{settings[label]}`", **columns, "best": chosen}
    )
  return (
    f"The share of the training episodes at the goal in {task}, by the value of the "
    f"setting that was tuned:\n\n{markdown.table(rows)}"
  )


def run(settings: types.Settings) -> types.Results:
  """Trains a seed until it has solved its task, in the tuning to the end.

  Returns:
    `successes`.
  """
  (seed,), name, num_steps = settings["seeds"], settings["task"], settings["num_steps"]
  ends: list[tuple[int, float]] = []

  def is_over() -> bool:
    return bool(ends) and not settings["tuning"] and _solved_at(np.array(ends)) > 0

  training.train(
    config_lib.RunConfig(
      agent=settings["agent"],
      settings=tuple(settings["changes"]),
      env=f"navix:Navix-{name}-v0",
      runner="device",
      seed=seed,
      num_envs=settings["num_envs"],
      steps=num_steps,
      eval_episodes=0,
    ),
    parts_lib.CallerObjects(
      environment=environments.wrap(navix_tasks.make(name), seed=seed)
    ),
    on_episode=lambda x: ends.append((x.env_steps, x.episode_return)),
    is_over=is_over,
  )
  return successes({seed: ends}, num_steps)


def successes(
  ends: Mapping[int, Sequence[tuple[int, float]]], num_steps: int
) -> types.Results:
  """Counts the episodes that reach the goal, whose return is not 0.

  Args:
    ends: seed → the environment steps and the return at each episode's end.
    num_steps: of the run.

  Returns:
    Of each seed `[S]`: `solved`, the environment steps after which 80 % of the last 100
    training episodes reached the goal, or 0; `limit`, the steps of the run; `success`,
    the share of all episodes that reached it; `successes`, `[S, 30]`, the same of those
    that ended in each thirtieth of the run (with none, as before).
  """
  each = [np.array(x, np.float64).reshape(-1, 2) for x in ends.values()]
  reached = [x[:, 1] > 0 for x in each]
  return {
    "solved": np.array([_solved_at(x) for x in each], np.int64),
    "limit": np.full(len(each), num_steps),
    "success": np.array([np.mean(x) if x.size else 0.0 for x in reached]),
    "successes": np.stack(
      [_binned(x[:, 0], y, num_steps) for x, y in zip(each, reached, strict=True)]
    ),
  }


def _solved_at(ends: np.ndarray) -> int:
  """The steps after which a run of these ends, `[N, 2]`, has solved its task, or 0."""
  until = np.concatenate([[0], np.cumsum(ends[:, 1] > 0)])
  latest = until[_WINDOW:] - until[:-_WINDOW]
  at = np.flatnonzero(latest >= _SHARE * _WINDOW)
  return int(ends[at[0] + _WINDOW - 1, 0]) if at.size else 0


def _binned(steps: np.ndarray, reached: np.ndarray, num_steps: int) -> np.ndarray:
  """The share of successes in each part of the run."""
  bins = np.minimum((steps - 1) * NUM_BINS // num_steps, NUM_BINS - 1)
  shares, last = np.zeros(NUM_BINS), 0.0
  for i in range(NUM_BINS):
    if (bins == i).any():
      last = float(np.mean(reached[bins == i]))
    shares[i] = last
  return shares


def is_solved(table: types.Table) -> np.ndarray:
  """Whether each task was solved, 0 or 1, `[S, tasks]`."""
  return (table.per_seed("solved") > 0).astype(np.float64)


def steps_to_solve(table: types.Table) -> np.ndarray:
  """Environment steps, `[S, tasks]`; the limit if a task was not solved."""
  solved = table.per_seed("solved")
  return np.where(solved > 0, solved, table.per_seed("limit"))


def _sooner(label: str, table: types.Table) -> types.Finding | None:
  groups = [table.where(tuning=False, method=x) for x in (label, _BASELINE)]
  if not all(groups):
    return None
  return claims.sooner(
    f"{label} solves the tasks in fewer steps than double DQN",
    [
      significance.Times(steps_to_solve(x), is_solved(x), tuple(x.values("task")))
      for x in groups
    ],
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
      {"method": label, "tuning": False},
      {"method": _BASELINE, "tuning": False},
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
      where={"tuning": False},
      grid="x",
      xscale="log",
      xlabel="environment steps",
      xlim=(config.num_steps / 15, 1.1 * config.num_steps),
      title=task,
      **unnamed,
    )

  return [[of_task(task) for task in config.tasks]]


def _text(config: Config, table: types.Table) -> str:
  settings = {x: method.setting.partition("=")[0] for x, method in METHODS.items()}
  return tuning_text(table, config.tuning_task, settings)


FIGURES = (
  types.Figure(
    name="bonuses/minigrid",
    title="MiniGrid: environment steps until a task is solved",
    source="Our own",
    claim="which bonuses make a double DQN solve sparse tasks of MiniGrid that "
    "ε-greedy exploration does not solve is our question.",
    config=Config(),
    quick=_QUICK,
    tasks=_tuning,
    then=_then,
    compute=run,
    panels=_panels,
    claims=_claims,
    text=_text,
    caption="A mark is a run of a seed; a hollow one, at the limit, stands for all "
    "that were not solved. Solved: 80 % of the last 100 training episodes reached the "
    "goal. On the right: the number of runs solved. NGU's setting was changed after "
    "its first runs had been seen.",
    kind="ours",
    height=4.4,
    large=True,
  ),
)
