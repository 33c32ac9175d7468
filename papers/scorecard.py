"""All methods on the same tasks: scores, ranks, profiles, costs and claims.

Each method has one parameter of exploration, with the value of its preset and two
others. The runs are in two stages: all values on a few tasks with the seeds of the
tuning, and then the value with the greatest mean score on all tasks with seeds of their
own.

A run's score is the mean return of its evaluation at the end, where a uniform policy's
is 0 and the task's ceiling 1. In Deep Sea the return is whether the treasure was found.
All methods learn by double Q-learning, without clipped rewards. The cost of a step is
measured in short runs of all methods in turn, since a machine's speed changes in hours.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.environments import deep_sea, jax_environments
from explorax.experiments import errors, presets
from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import markdown
from explorax.papers import compute, draw, figures, judge, tuned
from explorax.papers.tdu import problems


def _bonus(agent: str, changes: tuple[str, ...] = ()) -> tuned.Method:
  """With the preset's β, a tenth and ten times of it."""
  beta = presets.PRESETS[agent].config.beta
  return tuned.Method(agent, "beta={:g}", (None, beta / 10, beta * 10), changes)


_EPSILON = "exploration.epsilon={}"
BASELINE = "double DQN"
METHODS = {
  BASELINE: tuned.Method("double_dqn", _EPSILON, (None, 0.01, 0.2)),
  "εz-greedy": tuned.Method("double_dqn_ez", _EPSILON, (None, 0.01, 0.2)),
  "noisy networks": tuned.Method("noisy_dqn", "noisy_sigma={:g}", (None, 0.1, 1.0)),
  "bootstrapped DQN": tuned.Method(
    "bootstrapped_dqn", "prior_scale={:g}", (None, 1.0, 10.0)
  ),
  "TDU": _bonus("tdu"),
  "UCB": tuned.Method("ucb", "exploration.scale={:g}", (None, 1.0, 100.0)),
  "epinet": tuned.Method("epinet", "prior_scale={:g}", (None, 0.3, 3.0)),
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
    epsilon: how a value of ε is written: as the preset's constant or schedule.
  """

  env: str
  kind: str
  ceiling: float
  reason: str
  epsilon: str = "{:g}"


DEEP, SPARSE, FREQUENT = "deep exploration", "sparse rewards", "frequent rewards"
KINDS = (DEEP, SPARSE, FREQUENT)
_HARD = (DEEP, SPARSE)
_GOAL = "the goal in each episode"
PROBLEMS = {
  "Deep Sea 20": Problem("jax:deep_sea/20", DEEP, 1.0, "the treasure in each episode"),
  "stochastic Deep Sea 14": Problem(
    "jax:deep_sea/14,stochastic=true",
    DEEP,
    (1 - 1 / 14) ** 13,
    "the treasure as often as the best policy finds it",
  ),
  "gridworld 20": Problem("jax:gridworld/20,time_limit=100", SPARSE, 1.0, _GOAL),
  "Mountain Car": Problem("jax:mountain_car,time_limit=200", SPARSE, 1.0, _GOAL),
  "CartPole": Problem(
    "jax:cartpole",
    FREQUENT,
    500.0,
    "the longest episode",
    "Linear(1.0,{:g},steps=8000)",
  ),
  "Catch": Problem("jax:catch", FREQUENT, 1.0, "each ball caught"),
}
_TUNING = ("Deep Sea 20", "gridworld 20", "CartPole")  # One of each kind.
_TAU = np.linspace(0.02, 1.0, 50)
_FINAL = {"uniform": lambda returns: returns is not None}


def _line(label: str, method: tuned.Method, problem: str, value: Any) -> dict[str, Any]:
  """The settings of a method's runs in a problem."""
  task = PROBLEMS[problem]
  changes = [*method.changes, *_CHANGES]
  if value is not None:
    written = f"{value:g}"
    if method.setting == _EPSILON:
      written = task.epsilon.format(value)
    changes.append(f"{method.setting.partition('=')[0]}={written}")
  settings = {"method": label, "problem": problem, "env": task.env, "value": value}
  settings |= {"agent": method.agent, "changes": changes, "eval_episodes": 50}
  own = {"own_mapping": True} if task.kind == DEEP else {}
  return settings | own


def _grid(lines: list[dict[str, Any]], num_seeds: int, steps: int) -> figures.Grid:
  """All seeds of a task are in one program."""

  def cost(settings: figures.Settings) -> float:
    slow = {"bootstrapped_dqn": 35, "tdu": 35, "ngu_dqn": 15, "epinet": 5}
    return slow.get(settings["agent"], 1) * settings["num_steps"]

  axes = {"num_steps": steps}
  return figures.Grid(
    run, lines, axes, num_seeds=num_seeds, seeds_per_task=num_seeds, cost=cost
  )


def _first() -> list[figures.Grid]:
  """The uniform policy in all problems, the tuning, and the runs that measure costs."""
  uniform = tuned.Method("double_dqn", "", (), ("evaluation=EpsilonGreedy(1.0)",))
  tuning = [
    _line(label, method, problem, value)
    for label, method in METHODS.items()
    for problem in _TUNING
    for value in method.values
  ]
  costs = [
    {**_line(label, method, "Deep Sea 20", None), "cost_run": i}
    for i in range(3)
    for label, method in METHODS.items()
  ]
  return [
    _grid([_line(_UNIFORM, uniform, x, None) for x in PROBLEMS], 20, 1000),
    _grid(tuning, 4, 50_000),
    _grid(costs, 4, 6000),
  ]


def _then(table: figures.Table) -> list[figures.Grid]:
  """All problems, with each method's best value of the tuning."""
  if not {_UNIFORM, BASELINE} <= {*table.values("method")}:
    raise errors.SetUpError(
      f"the scorecard compares with {_UNIFORM!r} and {BASELINE!r}: add them to --set "
      "method."
    )
  best = tuned.best(tuning_scores(table))
  lines = [
    {
      **_line(label, METHODS[label], problem, best[label]),
      "uniform": _uniform_return(table, problem),
    }
    for label in best
    for problem in table.where(method=_UNIFORM).values("problem")
  ]
  return [dataclasses.replace(_grid(lines, 8, 50_000), first_seed=100)]


def _uniform_return(table: figures.Table, problem: str) -> float:
  tasks = table.where(method=_UNIFORM, problem=problem)
  return float(np.mean(tasks.scores("returns")))


def tuning_scores(table: figures.Table) -> tuned.Scores:
  """Method → value of its parameter → mean score in the tuning; None: the preset's."""
  tuning = table.where(method=tuple(METHODS), uniform=None, cost_run=None)
  found: dict[str, dict[Any, float]] = {}
  for label in tuning.values("method"):
    of_method = tuning.where(method=label)
    found[label] = {}
    for value in of_method.values("value"):
      each = []
      for problem in of_method.values("problem"):
        low = _uniform_return(table, problem)
        own = of_method.where(value=value, problem=problem).scores("returns").mean()
        each.append((own - low) / (PROBLEMS[problem].ceiling - low))
      found[label][value] = float(np.mean(each))
  return found


def run(settings: figures.Settings) -> figures.Results:
  """Trains the seeds of a task and evaluates them at the end.

  In Deep Sea each seed has its own action mapping.

  Returns:
    Of each seed `[S]`: `returns`, the mean return of the evaluation, and `seconds`, the
    processor time of a step of training, the same for all of them.
  """
  params: Sequence[Any] = ()
  if settings.get("own_mapping", False):
    sea, _ = jax_environments.make(settings["env"].removeprefix("jax:"))
    assert isinstance(sea, deep_sea.DeepSea)
    params = problems.own_mappings(sea, settings)
  record = compute.train(
    settings,
    env=settings["env"],
    params=params,
    steps=settings["num_steps"],
    eval_episodes=settings["eval_episodes"],
  )
  returns = record.per_seed(
    lambda episode: episode.metrics.get("denoised_return", episode.episode_return)
  )
  return {"returns": returns, "seconds": np.full(len(returns), record.step_seconds)}


def scores(table: figures.Table) -> np.ndarray:
  """Scores of one method, `[S, problems]`."""
  groups = table.by_problem()
  low = np.array([group[0].settings["uniform"] for group in groups])
  high = np.array([PROBLEMS[group[0].settings["problem"]].ceiling for group in groups])
  found = (table.scores("returns") - low) / (high - low)
  return found.round(9)  # Means of equal returns may differ in their last digits.


def ranked(table: figures.Table) -> tuple[list[str], statistics.Interval]:
  """The methods by their mean ranks over the problems, and these with intervals."""
  final = table.where(**_FINAL)
  methods = final.values("method")
  ranks = mean_ranks([[*scores(final.where(method=x)).T] for x in methods])
  order = np.argsort(ranks.value, kind="stable")
  return [methods[i] for i in order], ranks.map(lambda x: x[order])


def mean_ranks(found: Sequence[Sequence[np.ndarray]]) -> statistics.Interval:
  """The mean rank of each method over tasks; the best is 1, and ties share their mean.

  A task's ranks are those of the methods' means over seeds. In each draw, seeds are
  drawn with replacement for each method and task, and then tasks are.

  Args:
    found: of each of M methods, of each task, the scores `[S]`; S may differ.

  Returns:
    An interval of shape `[M]`.
  """
  rng = np.random.default_rng(0)
  num_draws, num_tasks = statistics.NUM_RESAMPLES, len(found[0])

  def ranks(means: list[list[Any]]) -> np.ndarray:
    rounded = np.array(means).round(9)  # Sums of equals may differ.
    return scipy.stats.rankdata(-rounded, axis=0)

  def draw_means(x: np.ndarray) -> np.ndarray:
    return x[rng.integers(len(x), size=(num_draws, len(x)))].mean(axis=1)

  drawn = ranks([[draw_means(x) for x in of_method] for of_method in found])
  tasks = rng.integers(num_tasks, size=(1, num_tasks, num_draws))
  means = np.take_along_axis(drawn, tasks, axis=1).mean(axis=1)
  low, high = np.percentile(means, [2.5, 97.5], axis=-1)
  value = ranks([[np.mean(x) for x in of_method] for of_method in found])
  return statistics.Interval(value.mean(axis=1), low, high)


def milliseconds(table: figures.Table, method: str) -> float:
  """Of a step of one seed: the median of the runs that measure the cost.

  NaN if these are too short for a measurement.
  """
  measured = table.where(method=method, cost_run=lambda x: x is not None)
  seconds = [task.results["seconds"][0] for task in measured]
  return float(1000 * np.median(seconds or [np.nan]))


def below_best(groups: Sequence[np.ndarray]) -> np.ndarray:
  """Whether each of G groups `[S]` is below the one with the greatest mean.

  Games and Howell's test of all pairs (1976), which allows for that the best one is
  known from the same data. As `scipy.stats.tukey_hsd(equal_var=False)`, which computes
  all pairs, and is NaN where two groups are constant.

  Returns:
    p of each group, `[G]`; 1 of the best one.
  """
  best = max(groups, key=np.mean)

  def p_of(group: np.ndarray) -> float:
    if np.ptp(group) == np.ptp(best) == 0:
      return float(np.mean(best) == np.mean(group))
    found = scipy.stats.ttest_ind(best, group, equal_var=False)
    q = np.sqrt(2) * abs(found.statistic)
    return float(scipy.stats.studentized_range.sf(q, len(groups), found.df))

  return np.array([p_of(group) for group in groups])


def best_group(table: figures.Table, kind: str) -> list[tuple[str, float]]:
  """Methods not significantly worse than the best in problems of a kind, with means."""
  chosen = table.where(**_FINAL, **_of_kinds([kind]))
  each = {
    x: scores(chosen.where(method=x)).mean(axis=1) for x in chosen.values("method")
  }
  ps = below_best([*each.values()])
  group = [
    (x, float(np.mean(each[x]))) for x, p in zip(each, ps, strict=True) if p >= 0.05
  ]
  return sorted(group, key=lambda x: -x[1])


def _of_kinds(kinds: Sequence[str]) -> figures.Selection:
  return {
    "problem": tuple(x for x, problem in PROBLEMS.items() if problem.kind in kinds)
  }


def _map(table: figures.Table) -> np.ndarray:
  return np.stack(
    [scores(table.where(method=x)).mean(axis=0) for x in ranked(table)[0]]
  )


def _names(table: figures.Table) -> tuple[list[str], list[str]]:
  problems = [x.replace("stochastic ", "stochastic\n") for x in table.values("problem")]
  return ranked(table)[0], problems


def _draw_rows(axes: draw.Axes, names: Sequence[str]) -> None:
  axes.set_yticks(range(len(names)), names)
  axes.set_ylim(len(names) - 0.5, -0.5)


def _ranks(axes: draw.Axes, table: figures.Table) -> None:
  methods, ranks = ranked(table)
  for row, (value, *ends) in enumerate(zip(*ranks, strict=True)):
    axes.plot(ends, [row, row], color=draw.GREY, linewidth=1.8)
    axes.plot(value, row, "o", color="black", ms=5)
  _draw_rows(axes, methods)


def _costs(axes: draw.Axes, table: figures.Table) -> None:
  methods, _ = ranked(table)
  costs = [milliseconds(table, method) for method in methods]
  axes.plot(costs, range(len(costs)), "o", color="black", ms=5)
  if np.isnan(costs).all():  # A logarithmic axis needs limits.
    axes.set_xlim(0.01, 1)
  _draw_rows(axes, [""] * len(methods))


def _profiles(axes: draw.Axes, table: figures.Table) -> None:
  """The shares of runs with a score of at least τ; all but a few methods are grey."""
  methods, _ = ranked(table)
  named = [*methods[:4], *(x for x in methods[4:] if x == BASELINE)]
  styles = drawing.styles(named)
  for method in methods:
    shares = np.mean(scores(table.where(method=method))[..., None] >= _TAU, axis=1)
    if method in named:
      solid = styles[method]._replace(linestyle="-")
      drawing.seeds(axes, _TAU, shares, label=method, style=solid)
    else:
      axes.plot(_TAU, shares.mean(axis=0), color="#BBBBBB", linewidth=0.7)


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

  Clopper and Pearson's where an episode has the reward or none, and each seed a return
  of 0 or of the ceiling; none where all seeds have the same score.
  """
  found, returns = scores(table)[:, 0], table.scores("returns")[:, 0]
  problem, uniform = (
    PROBLEMS[table[0].settings["problem"]],
    table[0].settings["uniform"],
  )
  interval = statistics.mean(found)
  if problem.kind in _HARD and np.isin(returns, (0.0, problem.ceiling)).all():
    share = judge.share(int(np.sum(returns > 0)), len(returns))
    span = problem.ceiling - uniform
    interval = share.map(lambda x: (x * problem.ceiling - uniform) / span)
  if interval.low < interval.high:
    return interval.to_text(".2f")
  return f"{interval.value:.2f}"


def _table(table: figures.Table) -> str:
  """The methods by rank, the best ones for each kind of problem, and the scales."""
  methods, ranks = ranked(table)
  final, tuning = table.where(**_FINAL), tuning_scores(table)
  rows, names = [], {x: METHODS[x].setting.partition("=")[0] for x in METHODS}
  for i, method in enumerate(methods):
    own, cost = final.where(method=method), milliseconds(table, method)
    value = own[0].settings["value"]
    preset = value is None
    rows.append(
      {
        "method": method,
        "agent": f"`{METHODS[method].agent}`",
        "setting": "the preset's" if preset else f"`{names[method]}={value:g}`",
        "mean rank": ranks.at(i).to_text(".1f"),
        **{x[0].settings["problem"]: _interval(x) for x in own.by_problem()},
        "ms of a step": "" if np.isnan(cost) else f"{cost:.2g}",
      }
    )
  scales = [
    {
      "task": x,
      "`--env`": f"`{PROBLEMS[x].env}`",
      "kind": PROBLEMS[x].kind,
      "return of score 0": f"{final.where(problem=x)[0].settings['uniform']:.3g}",
      "return of score 1": f"{PROBLEMS[x].ceiling:.3g}: {PROBLEMS[x].reason}",
    }
    for x in final.values("problem")
  ]
  groups = [
    f"- {kind}: "
    + ", ".join(f"{x} ({mean:.2f})" for x, mean in best_group(table, kind))
    for kind in KINDS
    if final.where(**_of_kinds([kind]))
  ]
  return "\n\n".join(
    [
      markdown.table(rows),
      "The best methods by mean score, and those that are not significantly worse "
      "(Games and Howell's test of all pairs), which need not be as good:",
      "\n".join(groups),
      markdown.table(scales),
      f"Mean scores in the tuning, in {', '.join(_TUNING)}:",
      tuned.table(tuning, names),
    ]
  )


FIGURES = (
  figures.Figure(
    name="scorecard",
    title="All methods on the same tasks, at equal steps",
    source="Our own",
    runs=_first(),
    then=_then,
    quick={
      "method": (_UNIFORM, BASELINE, "εz-greedy", "RND", "counts"),
      "problem": ("gridworld 20", "CartPole"),
      "value": (None,),
      "num_steps": 1000,
      "num_seeds": 2,
    },
    panels=[
      [
        draw.Maps(
          values=_map,
          maps={"": {}},
          label="mean score of 8 seeds (0: uniform policy, 1: ceiling)",
          names=_names,
          bounds=(0.0, 1.0),
          where=_FINAL,
        )
      ]
    ],
    pictures={
      "ranks": [
        [
          draw.Panel(
            guides=[_ranks],
            grid="x",
            axes={"title": "mean rank over tasks", "xlabel": "rank (1: best)"},
          ),
          draw.Panel(
            guides=[_costs],
            grid="x",
            axes={
              "title": "cost",
              "xlabel": "milliseconds of a step",
              "xscale": "log",
            },
          ),
        ]
      ],
      "profiles": [
        [
          draw.Panel(
            guides=[_profiles],
            where=_FINAL,
            axes={
              "title": "profiles of all tasks (n = 8; grey: the other methods)",
              "xlabel": "score τ",
              "ylabel": "share of runs with a score ≥ τ",
            },
          )
        ]
      ],
    },
    claims=_claims(),
    problem="problem",
    table=_table,
    caption="Mean scores of the evaluation at the end of the run, methods by their "
    "mean rank. Ranks: with 95 % bootstrap intervals, for which tasks and the seeds of "
    "each method and task are drawn; processor time of a step of acting and learning "
    "of a seed in Deep Sea 20 (median of short runs in turn). Profiles: with "
    "95 % bootstrap intervals over seeds. Each method has the one of three values of "
    "its parameter of exploration that scored best in three of the tasks with four "
    "other seeds.",
  ),
)
