"""Paper 5's four targets on small games, each with its best step size, and by λ."""

from collections.abc import Callable
from typing import Any

import numpy as np

from explorax.papers import figures, judge, tuned
from explorax.papers.retrace import scores

_LAMBDAS = ("0.5", "0.9", "1")
_LABELS = [
  *(f"{name}({x})" for name in ("Retrace", "Tree-backup") for x in _LAMBDAS),
  "Q-learning",
  *(f"Q*({x})" for x in _LAMBDAS),
]


def _method(agent: str, changes: list[str]) -> tuned.Method:
  return tuned.Method(agent, "learning_rate={:g}", (3e-4, 1e-3, 3e-3), tuple(changes))


_METHODS = {label: _method(**scores.line(label)) for label in _LABELS}
_AXES: dict[str, Any] = {"game": tuple(scores.GAMES), "num_steps": 100_000}


def _then(table: figures.Table) -> list[figures.Grid]:
  """The runs that test.

  The seeds of a task share a draw of ε's schedules: these run alone, so that their
  differences are independent.
  """
  lines = tuned.lines(_METHODS, tuned.best(_tuning_scores(table)))
  # `retrace/fig1` has the seeds 0 to 4.
  return [figures.Grid(scores.run, lines, _AXES, num_seeds=9, first_seed=300)]


def _normalised(table: figures.Table) -> Callable[[figures.Table], np.ndarray]:
  """One agent's runs → their scores, `[S, games, 10]`, of each tenth of the run.

  In each game, 0 and 1 are the worst and the best mean at the end of the tuning's runs,
  over all agents and step sizes, so that the tested runs do not affect the scale.
  """
  ends = []
  for label in table.values("method"):
    own = table.where(tuning=True, method=label)
    each = [scores.by_game(own.where(value=x)) for x in own.values("value")]
    ends += [x[:, :, scores.LAST].mean(axis=0) for x in each]
  low, high = np.min(ends, axis=0)[:, None], np.max(ends, axis=0)[:, None]
  span = np.where(high > low, high - low, 1.0)
  return lambda runs: (scores.by_game(runs) - low) / span


def _tuning_scores(table: figures.Table) -> tuned.Scores:
  """The mean scores over seeds, games and the whole run."""
  normalised = _normalised(table)
  return tuned.scores(table, lambda runs: float(normalised(runs).mean()))


def tested(table: figures.Table) -> dict[str, np.ndarray]:
  """Of the tested runs; see `scores.Scores`."""
  tested = table.where(tuning=False)
  if not tested or len(tested) == len(table):  # Without some seed.
    return {}
  normalised = _normalised(table)
  return {x: normalised(tested.where(method=x)) for x in tested.values("method")}


def _above(*compared: tuple[str, str, int]) -> judge.Claim:
  when = {scores.EARLY: "early", scores.LAST: "at the end"}
  return scores.above(
    tested, *((f"{a} is above {b} {when[x]}", a, b, x) for a, b, x in compared)
  )


def _table(table: figures.Table) -> str:
  return tuned.table(_tuning_scores(table), _METHODS)


FIGURES = (
  figures.Figure(
    name="retrace/tuned",
    title="Retrace and its relatives, each with its best step size",
    source=f"Our own, of {scores.PAPER}, figure 1",
    runs=[
      figures.Grid(
        scores.run,
        tuned.lines(_METHODS),
        _AXES,
        first_seed=200,
        seeds_per_task=5,
      )
    ],
    then=_then,
    quick={
      "game": "gridworld",
      "method": ("Retrace(1)", "Tree-backup(1)", "Q-learning", "Q*(1)"),
      "value": 1e-3,
      "num_steps": 20_000,
      "num_seeds": 1,
    },
    panels=[scores.means(tested, _LABELS, "mean score")],
    claims=[
      judge.Holm(
        [
          _above(
            ("Retrace(1)", "Q-learning", scores.EARLY),
            ("Retrace(1)", "Q-learning", scores.LAST),
            ("Tree-backup(1)", "Q-learning", scores.EARLY),
            ("Tree-backup(1)", "Q-learning", scores.LAST),
            ("Retrace(1)", "Tree-backup(1)", scores.EARLY),
            ("Retrace(1)", "Tree-backup(1)", scores.LAST),
            ("Retrace(1)", "Q*(1)", scores.LAST),
          )
        ]
      ),
      judge.Holm(
        [
          _above(
            ("Retrace(1)", "Retrace(0.9)", scores.LAST),
            ("Retrace(1)", "Retrace(0.5)", scores.LAST),
            ("Tree-backup(1)", "Tree-backup(0.9)", scores.LAST),
            ("Tree-backup(1)", "Tree-backup(0.5)", scores.LAST),
            ("Q*(0.5)", "Q*(0.9)", scores.LAST),
            ("Q*(0.5)", "Q*(1)", scores.LAST),
          )
        ]
      ),
    ],
    problem="game",
    table=_table,
  ),
)
