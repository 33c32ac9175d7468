"""Comparisons of εz-greedy and ε-greedy: curves, maps of first visits, and claims.

Tasks are those of `domains.task`. If a figure has several domains or settings, the
functions take the table of one of them.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax.environments import atari57
from explorax.experiments.recording import drawing
from explorax.papers import claims, panels, types
from explorax.papers.ez import domains, runs


def of_rules(table: types.Table, name: str) -> dict[str, np.ndarray]:
  """Rule → `Table.per_seed` of a result, `[S, groups]`."""
  return {rule: table.per_seed(name, rule=rule) for rule in runs.RULES}


def joined(table: types.Table, name: str) -> dict[str, np.ndarray]:
  """Rule → `Table.joined` of a result, `[S, …]`."""
  return {rule: table.joined(name, rule=rule) for rule in runs.RULES}


def labelled(values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
  """The same, with the rules' labels as keys."""
  return {runs.LABELS[rule]: value for rule, value in values.items()}


def blocks(values: np.ndarray, num: int = 50) -> tuple[np.ndarray, np.ndarray]:
  """Means over blocks of consecutive episodes, to make long curves readable.

  `[S, E]` → the middle of each block, counting episodes from 1, and the means
  `[S, num]`. If there are fewer than `num` episodes, each episode is a block.
  """
  parts = np.array_split(np.arange(values.shape[1]), min(num, values.shape[1]))
  x = np.array([part.mean() + 1 for part in parts])
  return x, np.stack([values[:, part].mean(axis=1) for part in parts], axis=1)


def draw_curves(
  axes: types.Axes,
  curves: Mapping[str, np.ndarray],
  ylabel: str = "discounted return",
  **around: Any,
) -> None:
  """Draws learning curves, label → `[S, E]`, with what `panels.finish` adds."""
  for index, (label, returns) in enumerate(curves.items()):
    drawing.curve(axes, *blocks(returns), label=label, index=index)
  panels.finish(axes, xlabel="episode", ylabel=ylabel, **around)


def draw_first_visits(axes: np.ndarray, table: types.Table) -> None:
  """Draws the maps of both rules in a domain into two axes."""
  domain = domains.of(table[0].settings)
  logarithmic = isinstance(domain, domains.DeepSea)
  panels.maps(
    axes,
    [domain.to_map(x.mean(axis=0)) for x in joined(table, "first_visits").values()],
    [f"{label}, ε = 1" for label in runs.LABELS.values()],
    "log(mean first visit + 1)" if logarithmic else "mean first visit (step)",
  )
  for ax in axes:
    ax.set_xlabel(domain.map_axes[0], fontsize="small")
  axes[0].set_ylabel(domain.map_axes[1], fontsize="small")


def earns_more(
  label: str, table: types.Table, name: str = "discounted_returns", spec: str = ".3f"
) -> types.Finding:
  """Whether εz-greedy earns more than ε-greedy, by the named result.

  The text includes the relative improvements of the paper's figures 16 and 17: final,
  and over training.
  """
  returns = of_rules(table, name)
  what = name.replace("_", " ").removesuffix("s")
  curves = {rule: x.mean(axis=0) for rule, x in joined(table, name).items()}
  average, final = (
    atari57.relative_improvement(
      *(curves[rule][part].mean() for rule in ("ez", "epsilon"))
    )
    for part in (slice(None), slice(-max(1, len(curves["ez"]) // 10), None))
  )
  return claims.compare(
    f"{label}: εz-greedy earns more, over all episodes",
    returns["ez"][:, 0],
    returns["epsilon"][:, 0],
    f"{what} {{a:{spec}}} against {{b:{spec}}}, {{gap}}; relative improvement "
    f"{average:+.0f} %, {final:+.0f} % in the last tenth",
  )


def visits_earlier(label: str, table: types.Table) -> types.Finding:
  """Whether εz-greedy visits the states of a map earlier.

  Cells that no trial of either rule reached are left out, since many of them cannot be
  reached.
  """
  visited = joined(table, "visited")
  reached = np.concatenate(list(visited.values())).any(axis=0)
  shares = {rule: x[:, reached].mean() for rule, x in visited.items()}
  first = {
    rule: x[:, reached].mean(axis=1)
    for rule, x in joined(table, "first_visits").items()
  }
  return claims.compare(
    f"{label}: at ε = 1, εz-greedy visits states earlier",
    first["ez"],
    first["epsilon"],
    "mean first visit {a:.0f} against {b:.0f} steps, {gap}; "
    f"{shares['ez']:.1%} against {shares['epsilon']:.1%} of the cells visited",
    less=True,
  )


# -- episodes to the first goal of the deep sea, against its size --------------------


def draw_deep_sea(axes: types.Axes, table: types.Table, title: str) -> None:
  """Draws means and medians of the episodes to the first goal against the size.

  The paper reports the expected time. If the limit stopped some runs, the mean is a
  lower bound; the median is exact if it stopped fewer than half of them.
  """
  sizes, most = np.array(table.values("size")), table[0].settings["episodes"]
  episodes = labelled(of_rules(table, "episodes"))
  panels.curves(axes, sizes, episodes, markers=True)
  for index, (label, y) in enumerate(episodes.items()):
    axes.plot(
      sizes,
      np.median(y, axis=0),
      color=drawing.style(index).color,
      linestyle=":",
      linewidth=1,
      label=f"{label}, median",
    )
  axes.plot(sizes, 2.0**sizes, color=panels.GREY, linewidth=1, label="$2^N$")
  axes.axhline(most, color=panels.GREY, linestyle=":", linewidth=1, label="limit")
  panels.finish(
    axes,
    title=title,
    legend="lower right",
    xlabel="size N",
    ylabel="episodes to the first goal\n(mean)",
    yscale="log",
    ylim=(1, 3 * most),
  )


def deep_sea_episodes(table: types.Table) -> str:
  """Text with each rule's means and medians of the episodes over seeds.

  A mean is written with `≥` if the limit stopped one of its runs.
  """
  most = table[0].settings["episodes"]
  words = []
  for label, episodes in labelled(of_rules(table, "episodes")).items():
    given_up = (episodes >= most).any(axis=0)
    means = ", ".join(
      f"{'≥' if least else ''}{x:.0f}"
      for x, least in zip(episodes.mean(axis=0), given_up, strict=True)
    )
    words.append(f"{label} {means} ({up_to(np.median(episodes, axis=0), most)})")
  sizes = ", ".join(map(str, table.values("size")))
  return f"means (medians) at N = {sizes}: {'; '.join(words)}"


def up_to(numbers: np.ndarray, most: float) -> str:
  """Numbers as text, with `>` before those that ended at the limit."""
  return ", ".join(f"{'>' if x >= most else ''}{x:.0f}" for x in numbers)


# -- learning against a property of the domain ---------------------------------------


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


def random_ties_earn_more(table: types.Table, where: str) -> types.Finding:
  """Whether εz-greedy earns more at a sweep's first value, with random ties."""
  returns = of_rules(table.where(ties="random"), "discounted_returns")
  return claims.compare(
    f"sensitivity, ties at random instead (not the paper's `arg max`): {where}, "
    "εz-greedy earns more",
    returns["ez"][:, 0],
    returns["epsilon"][:, 0],
    "εz-greedy {a:.3f}, ε-greedy {b:.3f}, difference {gap}",
  )


def draw_sweep(
  table: types.Table,
  name: str,
  label: str,
  shown: Sequence[float],
  ties: str | None = None,
) -> types.Drawing:
  """Draws mean returns against all values (left) and the curves of `shown` (right).

  `name` is the property's setting, and `label` the label of its axis. For a gridworld,
  the tasks with `ties` are drawn, and those with random ties as thin lines on the left.
  """
  at_random = table.where(ties="random") if ties else types.Table()
  table = table.where(ties=ties) if ties else table
  fig, axes = drawing.new(2, 1 + (len(shown) + 1) // 2, width=3.5, height=2.6)
  grid = axes[0, 0].get_gridspec()
  for ax in axes[:, 0]:
    ax.remove()
  summary: Any = fig.add_subplot(grid[:, 0])
  means = labelled(of_rules(table, "discounted_returns"))
  panels.curves(summary, table.values(name), means, markers=True)
  if at_random:
    others = of_rules(at_random, "discounted_returns")
    for index, (rule, y) in enumerate(others.items()):
      summary.plot(
        at_random.values(name),
        y.mean(axis=0),
        color=drawing.style(index).color,
        linestyle=":",
        linewidth=1,
        label=f"{runs.LABELS[rule]}, random ties",
      )
  panels.finish(
    summary,
    legend="best",
    xlabel=label,
    ylabel="discounted return,\nmean over all episodes",
  )
  rest = list(axes[:, 1:].flat)
  for ax, value in zip(rest, shown, strict=False):
    returns = joined(table.where(**{name: value}), "discounted_returns")
    curves = labelled(returns)
    draw_curves(ax, curves, title=f"{name} {value:g}")
  for ax in rest[len(shown) :]:
    ax.remove()
  return fig
