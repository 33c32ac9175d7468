"""The table of all methods: scores, intervals, ranks, profiles, costs and claims."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax.experiments.recording import drawing, statistics
from explorax.experiments.reports import markdown
from explorax.papers import claims, layers, panels, significance, types
from explorax.papers.scorecard import runs

_HARD = (runs.DEEP, runs.SPARSE)
_TAU = np.linspace(0.02, 1.0, 50)
_NAMED = 4  # Methods that the profiles name, beside the baseline.
_DARK = 0.465  # Scores with a colour on which white is as legible as black.


def _final(**settings: Any) -> types.Selection:
  """The runs with settings that have been chosen."""
  return {"uniform": lambda returns: returns is not None, **settings}


def _of_kinds(kinds: Sequence[str]) -> types.Selection:
  return {"problem": lambda name: runs.PROBLEMS[name].kind in kinds}


def ranked(table: types.Table) -> tuple[list[str], statistics.Interval]:
  """The methods by their mean ranks over the problems, and these with intervals."""
  final = table.where(**_final())
  methods = final.values("method")
  ranks = mean_ranks(
    [[*runs.scores(final.where(method=method)).T] for method in methods]
  )
  order = np.argsort(ranks.value, kind="stable")
  return [methods[i] for i in order], ranks.map(lambda x: x[order])


def mean_ranks(scores: Sequence[Sequence[np.ndarray]]) -> statistics.Interval:
  """The mean rank of each method over tasks; the best is 1, and ties share their mean.

  A task's ranks are those of the methods' means over seeds. In each draw, seeds are
  drawn with replacement for each method and task, and then tasks are.

  Args:
    scores: of each of M methods, of each task, the scores `[S]`; S may differ.

  Returns:
    An interval of shape `[M]`.
  """
  rng = np.random.default_rng(0)
  num_draws, num_tasks = statistics.NUM_RESAMPLES, len(scores[0])

  def ranks(means: list[list[Any]]) -> np.ndarray:
    rounded = np.array(means).round(9)  # Sums of equals may differ.
    return scipy.stats.rankdata(-rounded, axis=0)

  def draw(x: np.ndarray) -> np.ndarray:
    return x[rng.integers(len(x), size=(num_draws, len(x)))].mean(axis=1)

  drawn = ranks([[draw(x) for x in of_method] for of_method in scores])  # [M, T, R]
  tasks = rng.integers(num_tasks, size=(1, num_tasks, num_draws))
  means = np.take_along_axis(drawn, tasks, axis=1).mean(axis=1)
  low, high = np.percentile(means, [2.5, 97.5], axis=-1)
  value = ranks([[np.mean(x) for x in of_method] for of_method in scores])
  return statistics.Interval(value.mean(axis=1), low, high)


def profile(table: types.Table) -> np.ndarray:
  """The share of one method's problems with a score of at least τ: `[S, τ]`."""
  return np.mean(runs.scores(table)[..., None] >= _TAU, axis=1)


def milliseconds(table: types.Table, method: str) -> float:
  """Of a step of one seed: the median of the runs that measure the cost.

  NaN if these are too short for a measurement.
  """
  measured = table.where(method=method, cost_run=lambda run: run is not None)
  return float(1000 * np.median([task.results["seconds"][0] for task in measured]))


def best_group(table: types.Table, kind: str) -> tuple[list[str], dict[str, float]]:
  """Methods not significantly worse than the best one in problems of a kind.

  Returns:
    The group, the best first, and the mean score of every method. The group has all
    methods if there are too few seeds for a verdict.
  """
  chosen = table.where(**_final(**_of_kinds([kind])))
  each = {
    method: runs.scores(chosen.where(method=method)).mean(axis=1)
    for method in chosen.values("method")
  }
  means = {method: float(np.mean(x)) for method, x in each.items()}
  enough = min(map(len, each.values())) >= claims.LEAST_SEEDS
  ps = significance.below_best([*each.values()]) if enough else np.ones(len(each))
  group = [x for x, p in zip(each, ps, strict=True) if p >= significance.LEVEL]
  return sorted(group, key=lambda method: -means[method]), means


def _interval(table: types.Table) -> statistics.Interval:
  """The mean score of one method in one problem, with a t-interval over seeds.

  Clopper and Pearson's where an episode has the reward or none, and each seed a return
  of 0 or of the ceiling.
  """
  scores, returns = runs.scores(table)[:, 0], table.per_seed("returns")[:, 0]
  problem = runs.PROBLEMS[table[0].settings["problem"]]
  ceiling = problem.ceiling
  if problem.kind not in _HARD or not np.isin(returns, (0.0, ceiling)).all():
    return statistics.mean(scores)
  uniform = table[0].settings["uniform"]
  found = significance.share(int(np.sum(returns > 0)), len(returns))
  return found.map(lambda x: (x * ceiling - uniform) / (ceiling - uniform))


def _words(cell: statistics.Interval) -> str:
  """The mean alone where all seeds have the same score, and so no t-interval."""
  return cell.to_text(".2f") if cell.low < cell.high else f"{cell.value:.2f}"


def _heat_map(axes: types.Axes, table: types.Table) -> None:
  """Mean scores over seeds with t-intervals, a row for each method, sorted by rank."""
  methods, _ = ranked(table)
  cells = [
    [_interval(group) for group in table.where(method=method).by_problem()]
    for method in methods
  ]
  values = np.array([[cell.value for cell in row] for row in cells])
  axes.imshow(values, cmap="cividis", vmin=0, vmax=1, aspect="auto")
  for i, row in enumerate(cells):
    for j, cell in enumerate(row):
      style: Any = {"ha": "center", "color": "white" if cell.value < _DARK else "black"}
      value, _, ends = _words(cell).partition(" ")
      axes.text(j, i, value, va="bottom" if ends else "center", fontsize=8.5, **style)
      ends = ends.strip("[]").replace(",", " to")
      axes.text(j, i + 0.06, ends, va="top", fontsize=7, **style)
  labels = table.values("problem")
  wrapped = [textwrap.fill(label, 13) for label in labels]
  axes.set_xticks(range(len(labels)), wrapped, fontsize=8)
  axes.set_yticks(range(len(methods)), methods)
  axes.tick_params(length=0, labeltop=True, labelbottom=False)
  axes.spines[:].set_visible(False)


def _styles(methods: Sequence[str]) -> dict[str, drawing.Style]:
  """Of the best methods and the baseline; all others are grey."""
  named = [*methods[:_NAMED], *(x for x in methods[_NAMED:] if x == runs.BASELINE)]
  grey = drawing.Style(layers.GREY, "-", "o")
  return dict.fromkeys(methods, grey) | drawing.styles(named)


def _rows(axes: types.Axes, methods: Sequence[str]) -> None:
  axes.set_yticks(range(len(methods)), methods)
  axes.set_ylim(len(methods) - 0.5, -0.5)


def _ranks(axes: types.Axes, table: types.Table) -> None:
  methods, ranks = ranked(table)
  for row, style in enumerate(_styles(methods).values()):
    value, *ends = ranks.at(row)
    axes.plot(ends, [row, row], color=style.color, linewidth=1.8)
    axes.plot(value, row, style.marker, color=style.color, ms=6, mec="white")
  _rows(axes, methods)


def _costs(axes: types.Axes, table: types.Table) -> None:
  methods, _ = ranked(table)
  costs = [milliseconds(table, method) for method in methods]
  for row, (cost, style) in enumerate(
    zip(costs, _styles(methods).values(), strict=True)
  ):
    axes.plot(cost, row, style.marker, color=style.color, ms=6, mec="white")
  if np.isnan(costs).all():  # A logarithmic axis needs limits.
    axes.set_xlim(0.01, 1)
  _rows(axes, methods)


def _profiles(axes: types.Axes, table: types.Table) -> None:
  methods, _ = ranked(table)
  for method, style in _styles(methods).items():
    of_method = profile(table.where(method=method))
    if style.color == layers.GREY:
      axes.plot(_TAU, of_method.mean(axis=0), color="#BBBBBB", linewidth=0.7)
    else:
      drawing.seeds(axes, _TAU, of_method, label=method, style=style)


def _panels(config: runs.Config) -> list[list[panels.Panel]]:
  del config
  around: dict[str, Any] = {"where": _final(), "legend": None}
  scores = panels.Panel(_heat_map, grid=None, **around)
  ranks = panels.Panel(
    _ranks, grid="x", title="Mean rank", xlabel="rank (1: best)", **around
  )
  profiles = panels.Panel(
    _profiles,
    title="Profiles",
    xlabel="score τ",
    ylabel="share of runs with a score ≥ τ",
    **around | {"legend": "figure"},
  )
  costs = panels.Panel(
    _costs,
    grid="x",
    title="Cost",
    xlabel="milliseconds of a step",
    xscale="log",
    yticklabels=[],
    legend=None,
  )
  return [[scores] * 3, [scores] * 3, [ranks, costs, profiles]]


def _claims(config: runs.Config) -> list[types.Claim]:
  """Two families of tests against ε-greedy exploration, each with Holm's correction."""
  families = (
    (_HARD, "scores more than", "where rewards are rare", False),
    ((runs.FREQUENT,), "scores less than", "where rewards are frequent", True),
  )
  # A seed's world in Deep Sea, one of the first, is the same for all methods.
  tests = {False: significance.paired, True: significance.unpaired}
  return [
    claim
    for kinds, words, where, less in families
    for claim in claims.corrected(
      [
        claims.Compare(
          f"{method} {words} {runs.BASELINE} {where}",
          runs.scores,
          _final(method=method, **_of_kinds(kinds)),
          _final(method=runs.BASELINE, **_of_kinds(kinds)),
          "mean scores {a:.2f} and {b:.2f}, a difference of {gap}",
          less=less,
          spec="+.2f",
          test=tests[less],
          games=[x for x in config.problems if runs.PROBLEMS[x].kind in kinds],
        )
        for method in config.methods
        if method != runs.BASELINE
      ]
    )
  ]


def text(config: runs.Config, table: types.Table) -> str:
  """The methods by rank, the best ones for each kind of problem, and the scales."""
  methods, ranks = ranked(table)
  final = table.where(**_final())
  problems = final.values("problem")
  rows = []
  for i, method in enumerate(methods):
    own = final.where(method=method)
    value, cost = own[0].settings["value"], milliseconds(table, method)
    chosen = "" if value is None else f"`{runs.METHODS[method].parameter}={value:g}`"
    rows.append(
      {
        "method": method,
        "agent": f"`{runs.METHODS[method].agent}`",
        "setting": chosen or "the preset's",
        "mean rank": ranks.at(i).to_text(".1f"),
        **{
          problem: _words(_interval(group))
          for problem, group in zip(problems, own.by_problem(), strict=True)
        },
        "ms of a step": "" if math.isnan(cost) else f"{cost:.2g}",
      }
    )
  scales = [
    {
      "task": problem,
      "`--env`": f"`{runs.PROBLEMS[problem].env}`",
      "kind": runs.PROBLEMS[problem].kind,
      "return of score 0": f"{final.where(problem=problem)[0].settings['uniform']:.3g}",
      "return of score 1": f"{runs.PROBLEMS[problem].ceiling:.3g}: "
      + runs.PROBLEMS[problem].reason,
    }
    for problem in problems
  ]
  groups = []
  for kind in runs.KINDS:
    labels = [x for x in problems if runs.PROBLEMS[x].kind == kind]
    if labels:
      group, means = best_group(table, kind)
      names = ", ".join(f"{method} ({means[method]:.2f})" for method in group)
      groups.append(f"- {kind} ({', '.join(labels)}): {names}")
  return "\n\n".join(
    [
      markdown.table(rows),
      "The best methods by mean score, and those that are not significantly worse "
      "(Games and Howell's test of all pairs), which need not be as good:",
      "\n".join(groups),
      markdown.table(scales),
      *_tuning(config, table),
    ]
  )


def _tuning(config: runs.Config, table: types.Table) -> list[str]:
  """How each method's value was chosen."""
  if config.num_values == 1:
    return []
  rows = []
  for method in config.methods:
    scores = runs.tuning_scores(config, table, method)
    each = {
      f"value {i}": f"{'preset' if value is None else f'{value:g}'}: {score:.2f}"
      for i, (value, score) in enumerate(scores.items(), start=1)
    }
    rows.append(
      {"method": method, "parameter": f"`{runs.METHODS[method].parameter}`", **each}
    )
  problems = ", ".join(config.tuning_problems)
  return [f"Mean scores in the tuning, in {problems}:", markdown.table(rows)]


FIGURES = (
  types.Figure(
    name="scorecard",
    title="All methods on the same tasks, at equal steps",
    source="Our own",
    claim="whether methods that explore score more than ε-greedy exploration where "
    "rewards are rare, and less where they are frequent, is our question.",
    config=runs.Config(),
    quick=runs.QUICK,
    tasks=runs.first_tasks,
    then=runs.then_tasks,
    compute=runs.compute,
    panels=_panels,
    claims=_claims,
    text=text,
    caption="Above: mean scores of the evaluation at the end of the run, below them "
    "95 % intervals over seeds (exact ones where rewards are rare and each run finds "
    "them always or never, else t-intervals, and none where all seeds have the same "
    "score); methods by their mean rank. Below: mean ranks over "
    "tasks with 95 % bootstrap intervals, for which tasks and the seeds of each method "
    "and task are drawn; processor time of a step of acting and learning of a seed in "
    "Deep Sea 20, where one program trains four (median of short runs of all methods "
    "in turn); the share of all runs that score τ or more, with 95 % bootstrap "
    "intervals over seeds (grey: all other methods). Each method has the one of three "
    "values of its parameter of exploration that scored best in three of the tasks "
    "with four other seeds, but in quick versions the preset's.",
    kind="ours",
    height=3.0,
    large=True,
  ),
)
