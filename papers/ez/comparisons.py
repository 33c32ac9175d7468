"""Comparisons of εz-greedy and ε-greedy: panels and claims that figures share."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from explorax.papers import draw, figures, judge
from explorax.papers.ez import runs

DISCOUNTED = "discounted_returns"


def curves(
  lines: draw.Lines = runs.RULES,
  y: str = DISCOUNTED,
  axes: Mapping[str, Any] | None = None,
  **panel: Any,
) -> draw.Curves:
  """Learning curves."""
  around = {"xlabel": "episode", "ylabel": "discounted return", **(axes or {})}
  return draw.Curves(y=y, lines=lines, blocks=50, axes=around, **panel)


def maps(
  lines: draw.Lines = runs.RULES,
  where: figures.Selection | None = None,
  *,
  flipped: bool = False,
  logarithmic: bool = False,
  axes: Mapping[str, Any] | None = None,
  columns: int = 2,
) -> draw.Maps:
  """Maps of mean first visits.

  Args:
    lines: title → the settings that select a map's tasks.
    where: the settings that select the panel's tasks.
    flipped: whether the first row is below.
    logarithmic: whether the colour is the logarithm, of the deep sea's lower triangle.
    axes: arguments of `Axes.set`.
    columns: maps in a row.
  """

  def values(table: figures.Table) -> np.ndarray:
    mean = table.joined("first_visits").mean(axis=0)
    square = mean.reshape(2 * (round(len(mean) ** 0.5),))
    if logarithmic:
      square = np.where(np.tri(len(square), dtype=bool), np.log(square + 1.0), np.nan)
    return square[::-1] if flipped else square

  return draw.Maps(
    values=values,
    maps=lines,
    label="log(mean first visit + 1)" if logarithmic else "mean first visit (step)",
    where=where or {},
    columns=columns,
    axes=axes or {},
  )


def earns_more(
  label: str,
  where: figures.Selection,
  y: str = DISCOUNTED,
  test: judge.Test = judge.welch,
) -> judge.Above:
  """That εz-greedy earns more than ε-greedy."""
  claim = f"{label}: εz-greedy earns more, over all episodes"
  return judge.Above(
    claim, y, {**runs.EZ, **where}, {**runs.EPSILON, **where}, test=test
  )


def visits_earlier(label: str, where: figures.Selection) -> judge.Claim:
  """That εz-greedy visits the states of a map earlier.

  Cells that no trial of either rule reached are left out, since many of them cannot be
  reached.
  """

  def claim(table: figures.Table) -> judge.Finding | None:
    rules = [table.where(**where, **rule) for rule in (runs.EZ, runs.EPSILON)]
    if not all(rules):
      return None
    reached = np.concatenate([x.joined("visited") for x in rules]).any(axis=0)
    ez, epsilon = (x.joined("first_visits")[:, reached] for x in rules)
    words = f"{label}: at ε = 1, εz-greedy visits states earlier"
    return judge.above(words, ez, epsilon, less=True)

  return claim


def of_rules(table: figures.Table, name: str) -> tuple[np.ndarray, np.ndarray]:
  """The returns of εz- and of ε-greedy at the values of a setting, `[S, values]`."""
  ez, epsilon = (
    table.where(**rule).over(name, DISCOUNTED)[1] for rule in (runs.EZ, runs.EPSILON)
  )
  return ez, epsilon


def random_ties_earn_more(where: str, **first: Any) -> judge.Above:
  """That εz-greedy earns more at a sweep's first value, with random ties."""
  return judge.Above(
    f"sensitivity, ties at random instead (not the paper's `arg max`): {where}, "
    "εz-greedy earns more",
    DISCOUNTED,
    {**runs.EZ, "ties": "random", **first},
    {**runs.EPSILON, "ties": "random", **first},
    test=judge.paired,
  )


def sweep(
  name: str,
  label: str,
  chosen: tuple[float, ...],
  most: float,
  ties: str | None = None,
) -> list[list[draw.Panel]]:
  """Mean returns against a property, and below the curves at the chosen values.

  All panels have one y scale, up to `most`. `ties`: those of a gridworld's main runs,
  which are beside those with random ties.
  """
  shared = {"ylabel": "discounted return", "ylim": (0, most)}
  title = "mean over all episodes"
  readings = {title: ties, f"{title}, random ties": "random"} if ties else {title: None}
  means: list[draw.Panel] = [
    draw.Curves(
      y=DISCOUNTED,
      lines=runs.RULES,
      x=name,
      where={"ties": reading},
      axes={**shared, "xlabel": label, "title": words},
    )
    for words, reading in readings.items()
  ]
  each: list[draw.Panel] = [
    curves(where={name: x, "ties": ties}, axes={**shared, "title": f"{name} {x:g}"})
    for x in chosen
  ]
  half = len(each) // 2
  return [means, each[:half], each[half:]]


def size_marks(
  event: str, title: str, sizes: tuple[int, ...], limit: int, **panel: Any
) -> draw.Marks:
  """Episodes in the deep sea against its size."""
  axes: dict[str, Any] = {
    "title": title,
    "xlabel": "size N",
    "ylabel": "episodes",
    "xscale": ("log", {"subs": []}),
    "xticks": sizes,
    "xticklabels": sizes,
  }
  guide = draw.function(sizes, lambda n: 2.0**n, "$2^N$")
  return draw.Marks(
    event=event,
    lines=runs.RULES,
    x="size",
    limit=limit,
    guides=[guide],
    axes=axes,
    **panel,
  )
