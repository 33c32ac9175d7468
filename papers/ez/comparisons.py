"""Grids, panels and claims that the comparisons of εz-greedy and ε-greedy share."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorax.papers import draw, figures, judge
from explorax.papers.ez import runs

DISCOUNTED = "discounted_returns"
Pairs = Sequence[tuple[np.ndarray, np.ndarray]]
RULES = [*runs.RULES.values()]


def grid(
  settings: figures.Settings,
  num_seeds: int = 30,
  lines: Sequence[figures.Settings] = RULES,
  compute: figures.Compute = runs.learn,
  **options: Any,
) -> figures.Grid:
  """The lines at each point, by default both rules; all seeds are one task."""
  seeds: Any = {"num_seeds": num_seeds, "seeds_per_task": num_seeds}
  return figures.Grid(compute, lines, settings, **{**seeds, **options})


def curves(
  where: figures.Selection,
  y: str = DISCOUNTED,
  lines: draw.Lines = runs.RULES,
  guides: Sequence[draw.Guide] = (),
  **axes: Any,
) -> draw.Curves:
  """Learning curves."""
  around = {"xlabel": "episode", "ylabel": "discounted return", **axes}
  return draw.Curves(
    y=y, lines=lines, blocks=50, where=where, guides=guides, axes=around
  )


def earns_more(
  claim: str,
  where: figures.Selection,
  y: str = DISCOUNTED,
  test: judge.Test = judge.paired,
) -> judge.Above:
  """That εz-greedy earns more than ε-greedy."""
  return judge.Above(
    claim, y, {**runs.EZ, **where}, {**runs.EPSILON, **where}, test=test
  )


def visits_earlier(label: str, where: figures.Selection) -> judge.Claim:
  """That εz-greedy visits the states of a map earlier.

  Cells that no trial of either rule reached are left out, since many of them cannot be
  reached.
  """

  def claim(table: figures.Table) -> judge.Finding | None:
    rules = [table.where(**where, **rule) for rule in RULES]
    if not all(rules):
      return None
    reached = np.concatenate([x.joined("visited") for x in rules]).any(axis=0)
    epsilon, ez = (x.joined("first_visits")[:, reached] for x in rules)
    words = f"{label}: at ε = 1, εz-greedy visits states earlier"
    return judge.above(words, ez, epsilon, less=True)

  return claim


def over(
  setting: str,
  where: figures.Selection,
  *claims: tuple[str, Callable[..., Pairs], str],
  lines: Sequence[figures.Settings] = RULES,
  test: judge.Test = judge.paired,
) -> list[judge.Claim]:
  """Claims that in all pairs one return is above (">") or below ("<") the other.

  Each has the statement, a function from the returns `[S, values]` of each line, over
  the rising values of a setting, to the pairs of `[S]`, and the sign.
  """

  def claim(words: str, pairs: Callable[..., Pairs], sign: str) -> judge.Claim:
    def findings(table: figures.Table) -> list[judge.Finding]:
      groups = [table.where(**where, **line) for line in lines]
      compared = pairs(*(x.over(setting, DISCOUNTED)[1] for x in groups))
      options: Any = {"less": sign == "<", "test": test}
      return [judge.above("", x, y, **options) for x, y in compared]

    return judge.All(words, [findings])

  return [claim(*x) for x in claims]


def means(
  name: str, label: str, most: float, ties: str | None = None
) -> list[list[draw.Panel]]:
  """Mean returns over all episodes against a property; of a gridworld with `ties`."""
  axes: Any = {"xlabel": label, "ylabel": "discounted return", "ylim": (0, most)}
  where = {"ties": ties}
  return [[draw.Curves(y=DISCOUNTED, lines=runs.RULES, x=name, where=where, axes=axes)]]


def size_marks(
  event: str, title: str, sizes: tuple[int, ...], where: figures.Selection
) -> draw.Marks:
  """Episodes in the deep sea against its size."""
  return draw.Marks(
    event=event,
    lines=runs.RULES,
    x="size",
    apart=0.04,
    where=where,
    guides=[
      draw.powers_of_two(sizes),
      draw.guide("axhline", runs.DEEP_SEA["episodes"]),
    ],
    axes={"title": title, "xlabel": "size N", "ylabel": "episodes", "xticks": sizes},
  )
