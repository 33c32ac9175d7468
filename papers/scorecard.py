"""All methods on the same tasks: scores, mean ranks and claims.

Each method has one parameter of exploration, with the value of its preset and two
others. The runs are in two stages: all values on a few tasks with the seeds of the
tuning, and then the value with the greatest mean score on all tasks with seeds of their
own.

A run's score is the mean return of its evaluation at the end, where a uniform policy's
is 0 and the task's ceiling 1. In Deep Sea the return is whether the treasure was found.
All methods learn by double Q-learning, without clipped rewards."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.experiments import presets
from explorax.experiments.recording import statistics
from explorax.experiments.reports import markdown
from explorax.papers import compute, draw, figures, judge, tuned

_CHANGES = ("batch_size=32", "target=DoubleQ()", "max_abs_reward=none")
_EPSILON = "exploration.epsilon={:g}"


def _method(
  agent: str, setting: str, *values: float, changes: Sequence[str] = ()
) -> tuned.Method:
  """With the preset's value of its setting, and others."""
  return tuned.Method(agent, setting, (None, *values), (*changes, *_CHANGES))


def _bonus(agent: str, changes: Sequence[str] = ()) -> tuned.Method:
  """With the preset's β, a tenth and ten times of it."""
  beta = presets.PRESETS[agent].config.beta
  return _method(agent, "beta={:g}", beta / 10, beta * 10, changes=changes)


BASELINE = "double DQN"
METHODS = {
  BASELINE: _method("double_dqn", _EPSILON, 0.01, 0.2),
  "εz-greedy": _method("double_dqn_ez", _EPSILON, 0.01, 0.2),
  "noisy networks": _method("noisy_dqn", "noisy_sigma={:g}", 0.1, 1.0),
  "bootstrapped DQN": _method("bootstrapped_dqn", "prior_scale={:g}", 1.0, 10.0),
  "TDU": _bonus("tdu"),
  "UCB": _method("ucb", "exploration.scale={:g}", 1.0, 100.0),
  "epinet": _method("epinet", "prior_scale={:g}", 0.3, 3.0),
  "RND": _bonus("dqn_rnd"),
  "counts": _bonus("dqn_counts"),
  # Its search for neighbours computes over the capacity: most episodes are shorter.
  "NGU": _bonus("ngu_dqn", ["bonus.memory_capacity=1000"]),
  "NovelD": _bonus("dqn_novel_d"),
  "E3B": _bonus("dqn_e3b"),
  "RIDE": _bonus("dqn_ride"),
  "ICM": _bonus("dqn_icm"),
  "disagreement": _bonus("dqn_disagreement"),
  "RE3": _bonus("dqn_re3"),
  "SimHash": _bonus("dqn_simhash"),
}


class Problem(NamedTuple):
  """A task of the table.

  Attributes:
    env: its environment.
    kind: of problem: `DEEP`, `SPARSE` or `FREQUENT`.
    floor: the return whose score is 0.
    ceiling: the return whose score is 1.
    epsilon: the setting of ε: the preset's constant or schedule.
  """

  env: str
  kind: str
  floor: float
  ceiling: float
  epsilon: str = _EPSILON


DEEP, SPARSE, FREQUENT = "deep exploration", "sparse rewards", "frequent rewards"
_HARD = (DEEP, SPARSE)
# A score of 0 is the mean return of a uniform policy, over 1,000 episodes:
# `--set "evaluation=EpsilonGreedy(1.0)"`, with seeds 0 to 19 and 50 episodes of each.
PROBLEMS = {
  "Deep Sea 20": Problem("jax:deep_sea/20", DEEP, 0.0, 1.0),
  "stochastic Deep Sea 14": Problem(
    "jax:deep_sea/14,stochastic=true",
    DEEP,
    0.0,
    (1 - 1 / 14) ** 13,  # What the best policy has.
  ),
  "gridworld 20": Problem("jax:gridworld/20,time_limit=100", SPARSE, 0.0, 1.0),
  "Mountain Car": Problem("jax:mountain_car,time_limit=200", SPARSE, 0.0, 1.0),
  "CartPole": Problem(
    "jax:cartpole",
    FREQUENT,
    22.696,
    500.0,
    "exploration.epsilon=Linear(1.0,{:g},steps=8000)",
  ),
  "Catch": Problem("jax:catch", FREQUENT, -0.636, 1.0),
}
_TUNING = ("Deep Sea 20", "gridworld 20", "CartPole")  # One of each kind.
_FINAL = {"tuning": False}


def _lines(
  problems: Iterable[str], best: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
  """The runs of all methods in some problems; `best` is that of `tuned.lines`."""
  lines = []
  for name in problems:
    problem = PROBLEMS[name]
    methods = {
      label: method._replace(setting=method.setting.replace(_EPSILON, problem.epsilon))
      for label, method in METHODS.items()
    }
    run = {"problem": name, "env": problem.env, "eval_episodes": 50}
    lines += [{**line, **run} for line in tuned.lines(methods, best)]
  return lines


def _grid(
  lines: Sequence[figures.Settings], num_seeds: int, steps: int, first_seed: int = 0
) -> figures.Grid:
  """All seeds of a task are in one program."""
  return figures.Grid(
    run, lines, {"num_steps": steps}, num_seeds, first_seed, seeds_per_task=num_seeds
  )


def run(settings: figures.Settings) -> figures.Results:
  """Trains the seeds of a task and evaluates them at the end.

  In Deep Sea each seed has its own action mapping.

  Returns:
    `returns` `[S]`: the mean return of each seed's evaluation.
  """
  record = compute.train(
    settings,
    env=settings["env"],
    own_mappings=settings["env"].startswith("jax:deep_sea/"),
    steps=settings["num_steps"],
    eval_episodes=settings["eval_episodes"],
  )
  returns = record.per_seed(
    lambda episode: episode.metrics.get("denoised_return", episode.episode_return)
  )
  return {"returns": returns}


def scores(table: figures.Table) -> np.ndarray:
  """Scores of one method, `[S, problems]`."""
  of_problems = [PROBLEMS[x[0].settings["problem"]] for x in table.by_problem()]
  low = np.array([problem.floor for problem in of_problems])
  high = np.array([problem.ceiling for problem in of_problems])
  # Means of equal returns may differ in their last digits.
  return ((table.scores("returns") - low) / (high - low)).round(9)


def tuning_scores(table: figures.Table) -> tuned.Scores:
  """Method → value of its setting → mean score in the tuning; None: the preset's."""
  return tuned.scores(table, lambda tasks: float(scores(tasks).mean()))


def ranked(table: figures.Table) -> dict[str, float]:
  """The methods by their mean ranks over the problems, the best of which is 1.

  A problem's ranks are those of the methods' means over seeds; ties share their mean.
  """
  final = table.where(**_FINAL)
  methods = final.values("method")
  means = np.array([scores(final.where(method=x)).mean(axis=0) for x in methods])
  # Sums of equals may differ.
  ranks = scipy.stats.rankdata(-means.round(9), axis=0).mean(axis=1)
  return {methods[i]: float(ranks[i]) for i in np.argsort(ranks, kind="stable")}


def _of_kinds(kinds: Sequence[str]) -> figures.Selection:
  return {
    "problem": tuple(x for x, problem in PROBLEMS.items() if problem.kind in kinds)
  }


def _map(axes: draw.Axes, table: figures.Table) -> None:
  methods = [*ranked(table)]
  means = [scores(table.where(method=x)).mean(axis=0) for x in methods]
  image = axes.imshow(means, vmin=0, vmax=1, cmap="cividis", aspect="auto")
  count = len(table.seeds())
  label = f"mean score of {count} seeds (0: uniform policy, 1: ceiling)"
  axes.figure.colorbar(image, ax=axes, pad=0.01, label=label)
  problems = [x.replace("stochastic ", "stochastic\n") for x in table.values("problem")]
  axes.set_xticks(range(len(problems)), problems)
  axes.set_yticks(range(len(methods)), methods)


def _claims() -> list[judge.Claim]:
  """Two families of tests against ε-greedy exploration, each with Holm's correction."""
  families = (
    (_HARD, "scores more than", "where rewards are rare", False),
    ((FREQUENT,), "scores less than", "where rewards are frequent", True),
  )
  # A seed's world in Deep Sea, one of the first, is the same for all methods.
  tests = {False: judge.paired, True: judge.welch}
  return [
    judge.Holm(
      [
        judge.Above(
          f"{method} {words} {BASELINE} {where}",
          scores,
          *({"method": x, **_FINAL, **_of_kinds(kinds)} for x in (method, BASELINE)),
          less=less,
          spec="+.2f",
          test=tests[less],
        )
        for method in METHODS
        if method != BASELINE
      ]
    )
    for kinds, words, where, less in families
  ]


def _interval(table: figures.Table) -> str:
  """The mean score of one method in one problem, with a t-interval over seeds.

  Clopper and Pearson's where an episode has the reward or none, and each seed a score
  of 0 or 1; none where all seeds have the same score.
  """
  found = scores(table)[:, 0]
  interval = statistics.mean(found)
  is_hard = PROBLEMS[table[0].settings["problem"]].kind in _HARD
  if is_hard and np.isin(found, (0.0, 1.0)).all():
    interval = judge.share(int(found.sum()), len(found))
  if interval.low < interval.high:
    return interval.to_text(".2f")
  return f"{interval.value:.2f}"


def _table(table: figures.Table) -> str:
  """The methods by rank, and the tuning."""
  rows = []
  for method, rank in ranked(table).items():
    own = table.where(method=method, **_FINAL)
    agent, setting, *_ = METHODS[method]
    value = own[0].settings["value"]
    name = setting.partition("=")[0]
    rows.append(
      {
        "method": method,
        "agent": f"`{agent}`",
        "setting": "the preset's" if value is None else f"`{name}={value:g}`",
        "mean rank": f"{rank:.1f}",
        **{x[0].settings["problem"]: _interval(x) for x in own.by_problem()},
      }
    )
  return "\n\n".join(
    [
      markdown.table(rows),
      f"Mean scores in the tuning, in {', '.join(_TUNING)}:",
      tuned.table(tuning_scores(table), METHODS),
    ]
  )


FIGURES = (
  figures.Figure(
    name="scorecard",
    title="All methods on the same tasks, at equal steps",
    source="Our own",
    runs=[_grid(_lines(_TUNING), 4, 50_000)],
    then=lambda table: [
      _grid(_lines(PROBLEMS, tuned.best(tuning_scores(table))), 8, 50_000, 100)
    ],
    quick={
      "method": (BASELINE, "εz-greedy", "RND", "counts"),
      "problem": ("gridworld 20", "CartPole"),
      "value": (None,),
      "num_steps": 1000,
      "num_seeds": 2,
    },
    panels=[[draw.Panel(guides=[_map], where=_FINAL, grid="", inches=4.5)]],
    claims=_claims(),
    problem="problem",
    table=_table,
  ),
)
