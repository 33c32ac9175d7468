"""The drawings of a report, each with its name, its caption and its words."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from explorax.experiments.reports import (
  catalogue,
  markup,
  plots,
  read,
  results,
  scores,
  tdu_paper,
  wording,
)

DEEP_SEAS = ("deep_sea", "deep_sea_stochastic")
_NAMES = re.compile(
  r"(scores_by_tag|scores_by_experiment(_\d+)?|radar|paper4_figure(6_left|6_right|7(_\d+)?)"
  rf"|scaling_({'|'.join(DEEP_SEAS)})|curve_({'|'.join(catalogue.EXPERIMENTS)}))\.png"
)
_LEAST_TAGS = 3  # Of a radar.
_MOST_ROWS = 12  # Of a drawing of scores.


def is_drawing(name: str) -> bool:
  """Whether a file has the name of one of a report's drawings."""
  return _NAMES.fullmatch(name) is not None


def by_tag(found: results.Results) -> list[markup.Picture]:
  """Scores by tag; and as a radar, if there are tags enough for one."""
  drawn = [
    _picture(
      "scores_by_tag",
      plots.forest(
        _tag_rows(found, found.agents), _same(found.agents), title="Scores by tag"
      ),
      "The scores of the table above as marks with bars for their intervals, a row for "
      "each tag.",
      "Scores by tag; bars are 95 % intervals over seeds.",
    )
  ]
  if len(found.tags) >= _LEAST_TAGS:
    drawn.append(
      _picture(
        "radar",
        plots.radar(found.tags, found.by_tag, found.agents),
        "A radar chart of the same scores: a closed line for each agent around a "
        "circle of tags, 0 in the middle and 1 at the rim.",
        "The same scores as a radar: 0 in the middle, 1 at the rim.",
      )
    )
  return drawn


def by_experiment(found: results.Results) -> list[markup.Picture]:
  """Scores by experiment."""
  return _forests(
    found,
    _same(found.agents),
    name="scores_by_experiment",
    title="Scores by experiment",
    alt="The scores of the table above as marks with bars for their intervals, a row "
    "for each experiment",
    caption="Scores by experiment; bars are 95 % intervals over seeds.",
  )


def learning_curves(sweep: read.Sweep, found: results.Results) -> list[markup.Picture]:
  """A drawing for each experiment."""
  return [
    _picture(
      f"curve_{experiment}",
      plots.learning_curves(sweep, found, experiment),
      f"Learning curves of {experiment}: {scores.regret_name(experiment)}, averaged "
      "so far, against the episode, a line for each agent. "
      + _ends(sweep, found, experiment),
      f"{experiment}: {scores.regret_name(experiment)}, on average so far.",
    )
    for experiment in found.experiments
  ]


def deep_sea(sweep: read.Sweep, found: results.Results) -> list[markup.Picture]:
  """Episodes to solve against N, in each version of Deep Sea that was run."""
  return [
    _picture(
      f"scaling_{experiment}",
      plots.deep_sea_scaling(sweep, found, experiment),
      f"Episodes to solve {experiment} against its size N, on a logarithmic scale, a "
      "line for each agent and a dotted line for 2 to the power of N. "
      + _solved(sweep, found, experiment),
      f"{experiment}: median over seeds with 95 % bars. Hollow marks, at the end of "
      "the log: half of the seeds or more have not solved it.",
    )
    for experiment in DEEP_SEAS
    if experiment in found.experiments
  ]


def _tag_rows(
  found: results.Results, agents: Sequence[str]
) -> list[tuple[str, dict[str, results.Cell]]]:
  return [
    (tag.replace("_", "\n"), results.of_agents(found.by_tag, tag, agents))
    for tag in found.tags
  ]


def tdu_figures(sweep: read.Sweep, found: results.Results) -> list[markup.Picture]:
  """Paper 4's figures 6 and 7, those of which two agents were swept."""
  drawn = []
  for figure, (what, _, _) in tdu_paper.FIGURES.items():
    agents = tdu_paper.agents(figure, found, sweep.settings)
    if len(agents) < 2:
      continue
    absent = tdu_paper.absent(figure, agents)
    labels = {agent: tdu_paper.label(agent, sweep.settings[agent]) for agent in agents}
    name = f"paper4_figure{figure.replace(', ', '_')}"
    title = f"Figure {figure}"
    alt = (
      f"Paper 4's figure {figure}, of this sweep: {what}; the tables above have the "
      "numbers"
    )
    caption = f"{title}: {what}; bars are 95 % intervals over seeds."
    if absent:
      caption += f" Not swept: {', '.join(absent)}."
    if figure == "7":
      drawn += _forests(found, labels, name=name, title=title, alt=alt, caption=caption)
    else:
      fig = plots.forest(_tag_rows(found, agents), labels, title=title)
      drawn.append(_picture(name, fig, f"{alt}.", caption))
  return drawn


def _forests(
  found: results.Results,
  labels: plots.Labels,
  *,
  name: str,
  title: str,
  alt: str,
  caption: str,
) -> list[markup.Picture]:
  """Scores by experiment of some agents, in as many drawings as they need."""
  rows = []
  for experiment in found.experiments:
    cells = results.of_agents(found.by_experiment, experiment, labels)
    if cells:
      part = wording.num_ids(experiment, cells)
      rows.append((experiment, f"{experiment}\n{part}".rstrip(), cells))
  count = math.ceil(len(rows) / _MOST_ROWS)
  share = math.ceil(len(rows) / count)
  drawn = []
  for number in range(count):
    chosen = rows[number * share : (number + 1) * share]
    of = f" ({number + 1} of {count})" if count > 1 else ""
    drawn.append(
      _picture(
        f"{name}_{number + 1}" if count > 1 else name,
        plots.forest([row[1:] for row in chosen], labels, title=title + of),
        f"{alt}: {', '.join(row[0] for row in chosen)}.",
        caption + of,
      )
    )
  return drawn


def _ends(sweep: read.Sweep, found: results.Results, experiment: str) -> str:
  """Where the curves end, for those who do not see them."""
  ends = []
  for agent in found.agents:
    cell = found.by_experiment.get((agent, experiment))
    if cell is not None:
      _, values = plots.regrets(sweep, agent, experiment, cell)
      ends.append(f"{agent} at {values[:, -1].mean():.3g}")
  return f"They end with {', '.join(ends)}."


def _solved(sweep: read.Sweep, found: results.Results, experiment: str) -> str:
  parts = []
  for agent in found.agents:
    cell = found.by_experiment.get((agent, experiment))
    if cell is not None:
      _, _, solved = plots.solutions(sweep, agent, cell)
      parts.append(f"{agent} has solved {int(solved.sum())} of {solved.size} runs")
  return f"{'; '.join(parts)}."


def _picture(name: str, fig: Any, alt: str, caption: str) -> markup.Picture:
  return markup.Picture(f"{name}.png", plots.png(fig), alt, caption)


def _same(agents: Iterable[str]) -> dict[str, str]:
  return {agent: agent for agent in agents}
