"""The tables of scores: agents by tag, and experiments by agent."""

import math

from explorax.experiments.recording import summary
from explorax.experiments.reports import (
  catalogue,
  markup,
  read,
  results,
  wording,
)


def by_tag(found: results.Results) -> str:
  """A row for each agent, a column for each tag."""
  rows = []
  columns = {
    tag: results.best(results.of_agents(found.by_tag, tag, found.agents))
    for tag in found.tags
  }
  for agent in found.agents:
    cells = []
    for tag in found.tags:
      cell = found.by_tag.get((agent, tag))
      remark = "" if cell is None else _tag_remark(tag, cell)
      cells.append(_score(cell, agent in columns[tag], remark))
    rows.append([markup.name(agent), *cells])
  return markup.table(
    ["agent", *(markup.text(tag.replace("_", " ")) for tag in found.tags)],
    rows,
    caption="The mean over a tag's experiments, over seeds, with 95 % intervals. Bold: "
    "the best of a column, where agents were run on the same ids. An experiment may "
    "have several tags.",
    name="Scores by tag",
  )


def by_experiment(sweep: read.Sweep, found: results.Results) -> str:
  """A row for each experiment, a column for each agent."""
  rows = []
  for experiment in found.experiments:
    cells = results.of_agents(found.by_experiment, experiment, found.agents)
    bold = results.best(cells)
    counts = {len(cell.ids) for cell in cells.values()}
    remarks = [
      wording.num_ids(experiment, cells),
      wording.capped(sweep, experiment),
    ]
    rows.append(
      [
        markup.with_small(markup.name(experiment), "; ".join(filter(None, remarks))),
        *(
          _score(
            cells.get(agent),
            agent in bold,
            _experiment_remark(cells[agent], counts) if agent in cells else "",
          )
          for agent in found.agents
        ),
      ]
    )
  return markup.table(
    ["experiment", *map(markup.name, found.agents)],
    rows,
    caption="The mean over seeds, with 95 % intervals. Bold: the best of a row, where "
    "agents were run on the same ids. –: cannot be told from so few episodes. Empty: "
    "not run.",
    name="Scores by experiment",
  )


def _score(cell: results.Cell | None, bold: bool, remark: str) -> str:
  if cell is None:
    return markup.cell("", "number")
  if not cell.told:
    return markup.cell(markup.with_small("–", remark), "number")
  value = wording.decimals(cell.value)
  shown = f"<strong>{value}</strong>" if bold else value
  if not math.isnan(cell.low):
    shown += f" [{wording.decimals(cell.low)}, {wording.decimals(cell.high)}]"
  return markup.cell(markup.with_small(shown, remark), "number")


def _tag_remark(tag: str, cell: results.Cell) -> str:
  every = [e for e in catalogue.EXPERIMENTS if tag in catalogue.tags(e)]
  remarks = []
  if len(cell.experiments) < len(every):
    remarks.append(f"{len(cell.experiments)} of {len(every)} experiments")
  elif not results.is_whole_tag(tag, cell):
    remarks.append("some ids")
  return "; ".join([*remarks, *_seed_remarks(cell)])


def _experiment_remark(cell: results.Cell, counts: set[int]) -> str:
  remarks = [summary.count(len(cell.ids), "id")] if len(counts) > 1 else []
  return "; ".join([*remarks, *_seed_remarks(cell)])


def _seed_remarks(cell: results.Cell) -> list[str]:
  """What is to be said of a score's seeds."""
  if not cell.seeds:
    return ["no seed has done all of them"]
  remarks = ["one seed"] if len(cell.seeds) == 1 else []
  if cell.left_out:
    remarks.append(f"without {wording.seeds(cell.left_out)}")
  return remarks
