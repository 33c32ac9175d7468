"""Comparisons of εz-greedy and ε-greedy: panels and claims that figures share.

Tasks are those of `domains.task`. `where` selects those of one domain or setting.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from explorax.environments import atari57
from explorax.papers import claims, layers, panels, significance, types
from explorax.papers.ez import domains, runs

LINES = {label: {"rule": rule} for rule, label in runs.LABELS.items()}
EZ, EPSILON = {"rule": "ez"}, {"rule": "epsilon"}


def lines(suffix: str = "", **where: Any) -> dict[str, types.Selection]:
  """A line for each rule."""
  return {f"{label}{suffix}": {**rule, **where} for label, rule in LINES.items()}


def curves(
  *more: panels.Layer, y: str = "discounted_returns", of: Any = LINES, **around: Any
) -> panels.Panel:
  """Learning curves."""
  around = {"ylabel": "discounted return", **around}
  curve = layers.Curves(y, of, blocks=50)
  return panels.Panel(curve, *more, xlabel="episode", **around)


def first_visits(domain: domains.Domain, where: types.Selection) -> panels.Maps:
  """The maps of both rules at ε = 1."""
  logarithmic = isinstance(domain, domains.DeepSea)
  return panels.Maps(
    lambda table: domain.to_map(table.joined("first_visits").mean(axis=0)),
    lines(", ε = 1"),
    "log(mean first visit + 1)" if logarithmic else "mean first visit (step)",
    where={**where, "what": "map"},
    xlabel=domain.map_axes[0],
    ylabel=domain.map_axes[1],
  )


def earns_more(
  label: str,
  where: types.Selection,
  y: str = "discounted_returns",
  spec: str = ".3f",
  test: significance.Test = significance.unpaired,
  kind: types.Kind | None = None,
) -> claims.Compare:
  """That εz-greedy earns more than ε-greedy.

  The text includes the relative improvements of the paper's figures 16 and 17: final,
  and over training.
  """
  what = y.replace("_", " ").removesuffix("s")

  def measured(*rules: types.Table) -> str:
    means = [table.joined(y).mean(axis=0) for table in rules]
    average, final = (
      atari57.relative_improvement(*(mean[part].mean() for mean in means))
      for part in (slice(None), slice(-max(1, len(means[0]) // 10), None))
    )
    return (
      f"{what} {{a:{spec}}} against {{b:{spec}}}, {{gap}}; relative improvement "
      f"{average:+.0f} %, {final:+.0f} % in the last tenth"
    )

  return claims.Compare(
    f"{label}: εz-greedy earns more, over all episodes",
    y,
    {**EZ, **where},
    {**EPSILON, **where},
    measured,
    test=test,
    kind=kind,
  )


def visits_earlier(label: str, where: types.Selection) -> types.Claim:
  """That εz-greedy visits the states of a map earlier.

  Cells that no trial of either rule reached are left out, since many of them cannot be
  reached.
  """

  def claim(table: types.Table) -> types.Finding | None:
    rules = [table.where(**where, **rule, what="map") for rule in (EZ, EPSILON)]
    if not all(rules):
      return None
    visited = [rule.joined("visited") for rule in rules]
    reached = np.concatenate(visited).any(axis=0)
    shares = [x[:, reached].mean() for x in visited]
    ez, epsilon = (rule.joined("first_visits")[:, reached] for rule in rules)
    return claims.compare(
      f"{label}: at ε = 1, εz-greedy visits states earlier",
      ez.mean(axis=1),
      epsilon.mean(axis=1),
      "mean first visit {a:.0f} against {b:.0f} steps, {gap}; "
      f"{shares[0]:.1%} against {shares[1]:.1%} of the cells visited",
      less=True,
      kind="exploration",
    )

  return claim


# -- episodes in the deep sea, against its size ---------------------------------------

# The measures of a run in the deep sea, in episodes: what they lead to, and the result
# that says whether the run got there.
DEEP_SEA = {
  "first_found": ("first treasure", "found"),
  "episodes": ("greedy policy optimal", "stopped"),
}


DEEP_SEA_CAPTION = (
  "A mark is a run of a seed; a hollow one, at the limit, stands for all that did not "
  "get there. Lines join medians where more than half of the seeds got there."
)


def times(measure: str, table: types.Table) -> significance.Times:
  """Episodes of one of `DEEP_SEA`, and whether the runs got there."""
  _, reached = DEEP_SEA[measure]
  return significance.Times(table.per_seed(measure), table.per_seed(reached) > 0)


def deep_sea(
  measure: str, sizes: Sequence[int], most: int, where: types.Selection, title: str
) -> panels.Panel:
  """The runs' numbers of one of `DEEP_SEA` against the size, up to the limit."""
  label, reached = DEEP_SEA[measure]
  return panels.Panel(
    layers.two_to_the_n(sizes),
    layers.horizontal(most, "limit", linestyle=":"),
    layers.Seeds(measure, "size", LINES, reached, "not reached", dodge=1.04),
    where=where,
    title=f"{title}: {label}",
    xlabel="size N",
    ylabel="episodes",
    yscale="log",
    ylim=(1, 3 * most),
    xticks=sizes,
  )


def deep_sea_episodes(measure: str, table: types.Table) -> str:
  """Text with each rule's means and medians of the measure over seeds.

  A mean is written with `≥` if the limit stopped one of its runs.
  """
  most, words = table[0].settings["episodes"], []
  for label, rule in LINES.items():
    _, episodes = layers.over("size", table.where(**rule), measure)
    means = ", ".join(
      f"{'≥' if of_size.max() >= most else ''}{of_size.mean():.0f}"
      for of_size in episodes.T
    )
    words.append(f"{label} {means} ({up_to(np.median(episodes, axis=0), most)})")
  sizes = ", ".join(map(str, sorted(table.values("size"))))
  return f"means (medians) at N = {sizes}: {'; '.join(words)}"


def up_to(numbers: np.ndarray, most: float) -> str:
  """Numbers as text, with `>` before those that ended at the limit."""
  return ", ".join(f"{'>' if x >= most else ''}{x:.0f}" for x in numbers)


# -- learning against a property of the domain ---------------------------------------


def check_shown(config: Any, name: str) -> None:
  """Refuses values of `shown` that are not among those of the sweep."""
  for value in config.shown:
    if value not in getattr(config, name):
      raise ValueError(f"shown has {value}, which {name} does not have.")


def sweep_tasks(
  domain: Any,
  name: str,
  values: Sequence[float],
  num_seeds: int,
  sensitivity_seeds: int = 0,
) -> list[types.Task]:
  """Tasks that learn in the domain with each value of a property, for both rules.

  A gridworld may also have sensitivity seeds: the same tasks with random ties.
  """
  readings = [("", domain, num_seeds)]
  if sensitivity_seeds:
    at_random = dataclasses.replace(domain, ties="random")
    readings.append(("random_ties_", at_random, sensitivity_seeds))
  return [
    domains.task(
      f"{prefix}{name}_{value}",
      dataclasses.replace(reading, **{name: value}),
      rule,
      range(seeds),
    )
    for prefix, reading, seeds in readings
    for value in values
    for rule in runs.RULES
  ]


def sweep_panels(
  domain: Any, name: str, label: str, chosen: Sequence[float]
) -> list[list[panels.Panel | None]]:
  """Mean returns against all values (left), and the curves of the chosen ones (right).

  `name` is the property's setting, and `label` that of its axis. Random ties of a
  gridworld are thin lines on the left.
  """
  main = lines(ties=getattr(domain, "ties", None))
  at_random = lines(", random ties", ties="random")
  y = "discounted_returns"
  summary = panels.Panel(
    layers.Curves(y, main, name, markers=True),
    layers.Curves(y, at_random, name, thin=layers.THIN),
    title="mean over all episodes",
    xlabel=label,
    ylabel="discounted return",
  )
  each: list[panels.Panel | None] = [
    curves(of=main, where={name: value}, title=f"{name} {value:g}") for value in chosen
  ]
  half = (len(each) + 1) // 2
  return [[summary, *each[:half]], [summary, *each[half:]]]


def sweep_caption(ties: str) -> str:
  """Of a gridworld's sweep; `ties`: how those of its main lines are broken."""
  return (
    "Lines: means over seeds; bands: 95 % bootstrap intervals. Ties are broken "
    f"{ties}; thin dotted lines, without bands: at random, with fewer seeds."
  )


def of_rules(table: types.Table, name: str) -> dict[str, np.ndarray]:
  """Rule → the returns of each seed at the values of the setting, `[S, values]`."""
  return {
    rule: layers.over(name, table.where(rule=rule), "discounted_returns")[1]
    for rule in runs.RULES
  }


def random_ties_earn_more(where: str, **first: Any) -> claims.Compare:
  """That εz-greedy earns more at a sweep's first value, with random ties."""
  return claims.Compare(
    f"sensitivity, ties at random instead (not the paper's `arg max`): {where}, "
    "εz-greedy earns more",
    "discounted_returns",
    {**EZ, "ties": "random", **first},
    {**EPSILON, "ties": "random", **first},
    "εz-greedy {a:.3f}, ε-greedy {b:.3f}, difference {gap}",
    test=significance.paired,
    kind="ours",
  )
