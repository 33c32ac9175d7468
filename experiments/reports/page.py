"""The page of a sweep: what it says, section by section."""

import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, NamedTuple

from explorax.environments import bsuite_sweeps
from explorax.experiments import summary
from explorax.experiments.figures import statistics
from explorax.experiments.reports import (
  catalogue,
  markup,
  plots,
  published,
  read,
  results,
  scores,
  tdu_paper,
)

_DEEP_SEAS = ("deep_sea", "deep_sea_stochastic")
_LEAST_TAGS = 3  # Of a radar.
_MOST_ROWS = 12  # Of a drawing of scores.
_INTERVALS = (
  f"Intervals span {100 * statistics.LEVEL:.0f} % of {statistics.NUM_RESAMPLES:,} "
  "bootstrap draws of the seeds (percentiles; over a tag, seeds are drawn in each "
  "experiment by itself), as rliable makes them."
)


class Report(NamedTuple):
  """What is written.

  Attributes:
    html: the page, with all drawings in it.
    pictures: the drawings by themselves.
  """

  html: str
  pictures: Sequence[markup.Picture]


def make(sweep: read.Sweep, found: results.Results, *, command: str) -> Report:
  """Makes the report of a sweep.

  Args:
    sweep: as it was read.
    found: its scores.
    command: that asked for the report.
  """
  pictures: list[markup.Picture] = []

  def show(*drawn: markup.Picture) -> str:
    pictures.extend(drawn)
    return markup.pictures(drawn)

  sections = [
    ("Scores by tag", _by_tag(found) + show(*_tag_pictures(found))),
    (
      "Scores by experiment",
      _by_experiment(sweep, found) + show(*_experiment_pictures(found)),
    ),
    ("Learning curves", _about_curves(sweep) + show(*_curves(sweep, found))),
    ("Deep Sea", _about_deep_sea(found) + show(*_deep_seas(sweep, found))),
    ("Paper 4, figures 6 and 7", _tdu(sweep, found, show)),
    ("Published scores", _published(sweep, found)),
    ("What is missing", _missing(sweep, found)),
    ("How each number was made", _made(sweep, found, command)),
  ]
  title = f"bsuite scores of {_count(len(found.agents), 'agent')}"
  return Report(markup.page(title, _introduction(sweep, found), sections), pictures)


def _introduction(sweep: read.Sweep, found: results.Results) -> str:
  tasks = len(sweep.logs) + len(sweep.lacking)
  ids = {bsuite_id for _, bsuite_id, _ in sweep.logs}
  every = sum(len(catalogue.ids(experiment)) for experiment in catalogue.EXPERIMENTS)
  parts = [
    markup.paragraph(
      f"{', '.join(found.agents)}: {_count(len(ids), 'id')} of bsuite's {every}, from "
      f"{len(found.experiments)} of its {len(catalogue.EXPERIMENTS)} experiments, "
      f"{_seeds(_all_seeds(sweep))}. {len(sweep.logs):,} of {_count(tasks, 'task')} "
      "are done. Scores lie between 0 and 1, and 1 is best."
    )
  ]
  if sweep.cap is not None:
    capped = [e for e in found.experiments if _capped(sweep, e)]
    if capped:
      parts.append(
        markup.note(
          f"Episodes were capped at {sweep.cap:,} (--episodes). Scores of capped "
          f"experiments ({', '.join(capped)}) cannot be compared with those of whole "
          "runs, published ones among them: they measure the first episodes alone."
        )
      )
  partial = [e for e in found.experiments if not _whole(found, e)]
  if partial:
    parts.append(
      markup.note(
        f"Of {', '.join(partial)} only some ids were run. Their scores are over those, "
        "and are not bsuite's scores of the whole experiments."
      )
    )
  if len(_all_seeds(sweep)) == 1:
    parts.append(
      markup.note("There is one seed, so that no interval can be told for any score.")
    )
  return "\n".join(parts)


def _by_tag(found: results.Results) -> str:
  rows = []
  columns = {
    tag: results.best(_agents_of(found.by_tag, tag, found.agents)) for tag in found.tags
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


def _by_experiment(sweep: read.Sweep, found: results.Results) -> str:
  rows = []
  for experiment in found.experiments:
    cells = _agents_of(found.by_experiment, experiment, found.agents)
    bold = results.best(cells)
    total = len(catalogue.ids(experiment))
    counts = {len(cell.ids) for cell in cells.values()}
    remarks = [_capped(sweep, experiment)]
    if counts != {total}:
      remarks.insert(0, f"{_either(counts)} of {total} ids")
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
  value = _decimals(cell.value)
  shown = f"<strong>{value}</strong>" if bold else value
  if not math.isnan(cell.low):
    shown += f" [{_decimals(cell.low)}, {_decimals(cell.high)}]"
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
  remarks = [_count(len(cell.ids), "id")] if len(counts) > 1 else []
  return "; ".join([*remarks, *_seed_remarks(cell)])


def _seed_remarks(cell: results.Cell) -> list[str]:
  """What is to be said of a score's seeds."""
  if not cell.seeds:
    return ["no seed has done all of them"]
  remarks = ["one seed"] if len(cell.seeds) == 1 else []
  if cell.left_out:
    remarks.append(f"without {_seeds(cell.left_out)}")
  return remarks


def _tag_pictures(found: results.Results) -> list[markup.Picture]:
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


def _tag_rows(
  found: results.Results, agents: Iterable[str]
) -> list[tuple[str, dict[str, results.Cell]]]:
  agents = list(agents)
  return [
    (tag.replace("_", "\n"), _agents_of(found.by_tag, tag, agents))
    for tag in found.tags
  ]


def _experiment_pictures(found: results.Results) -> list[markup.Picture]:
  return _forests(
    found,
    _same(found.agents),
    name="scores_by_experiment",
    title="Scores by experiment",
    alt="The scores of the table above as marks with bars for their intervals, a row "
    "for each experiment",
    caption="Scores by experiment; bars are 95 % intervals over seeds.",
  )


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
    cells = _agents_of(found.by_experiment, experiment, labels)
    if cells:
      total = len(catalogue.ids(experiment))
      counts = {len(cell.ids) for cell in cells.values()}
      part = "" if counts == {total} else f"\n{_either(counts)} of {total} ids"
      rows.append((experiment, experiment + part, cells))
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


def _about_curves(sweep: read.Sweep) -> str:
  return markup.paragraph(
    "The average regret over all episodes so far, at the episodes that bsuite logs: "
    "its mean over ids and seeds, with 95 % bands over seeds. Lower is better. The "
    "dotted line is what the score compares with: a baseline, with whose regret "
    "nothing is scored for it, or a threshold, below which a setting counts as learnt. "
    "What regret is differs between experiments; each axis names it."
    + (f" Episodes end at the cap of {sweep.cap:,}." if sweep.cap is not None else "")
  )


def _curves(sweep: read.Sweep, found: results.Results) -> list[markup.Picture]:
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


def _ends(sweep: read.Sweep, found: results.Results, experiment: str) -> str:
  """Where the curves end, for those who do not see them."""
  ends = []
  for agent in found.agents:
    cell = found.by_experiment.get((agent, experiment))
    if cell is not None:
      _, values = plots.regrets(sweep, agent, experiment, cell)
      ends.append(f"{agent} at {values[:, -1].mean():.3g}")
  return f"They end with {', '.join(ends)}."


def _about_deep_sea(found: results.Results) -> str:
  shown = [e for e in _DEEP_SEAS if e in found.experiments]
  if not shown:
    return markup.paragraph("Neither Deep Sea nor its stochastic version was run.")
  return markup.paragraph(
    "In which episode Deep Sea of size N is solved, by bsuite's rule (the share of bad "
    "episodes so far is below 0.9; in the stochastic version below 0.8, from episode "
    "100 on), looked up in its log, whose episodes are spaced logarithmically. The "
    "dotted line is 2^N, about what exploration by chance takes."
  )


def _deep_seas(sweep: read.Sweep, found: results.Results) -> list[markup.Picture]:
  return [
    _picture(
      f"scaling_{experiment}",
      plots.deep_sea_scaling(sweep, found, experiment),
      f"Episodes to solve {experiment} against its size N, on a logarithmic scale, a "
      "line for each agent and a dotted line for 2 to the power of N. "
      + _solved(sweep, found, experiment),
      f"{experiment}: median over seeds with 95 % bars. Hollow marks: solved by fewer "
      "than half of the seeds, the others counting with the last episode in the log.",
    )
    for experiment in _DEEP_SEAS
    if experiment in found.experiments
  ]


def _solved(sweep: read.Sweep, found: results.Results, experiment: str) -> str:
  parts = []
  for agent in found.agents:
    cell = found.by_experiment.get((agent, experiment))
    if cell is not None:
      _, _, solved = plots.solutions(sweep, agent, cell)
      parts.append(f"{agent} has solved {int(solved.sum())} of {solved.size} runs")
  return f"{'; '.join(parts)}."


def _tdu(sweep: read.Sweep, found: results.Results, show: Any) -> str:
  """Paper 4's figures, of what was swept."""
  parts = [
    markup.paragraph(
      "Flennerhag et al. (2020), Temporal Difference Uncertainties, compare on bsuite: "
      "in figure 6 TDU by its β (left), and TDU with other signals, QU and Q+UCB "
      "(right); in figure 7 each experiment, by β and with members chosen by UCB1. "
      "Drawn here from this sweep's scores, with the β of its presets; the paper has "
      "0, 0.01, 0.1, 0.5, 1, 2, 3 and 5. That the overall scores of figure 6 are those "
      "by tag is our reading."
    )
  ]
  drawn = []
  for figure, (what, _) in tdu_paper.FIGURES.items():
    agents = tdu_paper.agents(figure, found)
    absent = tdu_paper.absent(figure, found)
    if len(agents) < 2:
      parts.append(
        markup.paragraph(
          f"Figure {figure} ({what}) is not drawn: it needs two of its agents, and "
          f"{', '.join(absent)} {'were' if len(absent) > 1 else 'was'} not swept."
        )
      )
      continue
    labels = {a: tdu_paper.label(a, sweep.settings[a] or {}) for a in agents}
    without = f" Not swept: {', '.join(absent)}." if absent else ""
    texts = {
      "title": f"Figure {figure}",
      "alt": f"Paper 4's figure {figure}, of this sweep: {what}; the tables above have "
      "the numbers",
      "caption": f"Figure {figure}: {what}; bars are 95 % intervals over seeds."
      + without,
    }
    name = f"paper4_figure{figure.replace(', ', '_')}"
    if figure == "7":
      drawn += _forests(found, labels, name=name, **texts)
    else:
      fig = plots.forest(_tag_rows(found, agents), labels, title=texts["title"])
      drawn.append(_picture(name, fig, texts["alt"] + ".", texts["caption"]))
  return "\n".join(parts) + (show(*drawn) if drawn else "")


def _published(sweep: read.Sweep, found: results.Results) -> str:
  rows = []
  for score in published.SCORES:
    is_tag = score.name in catalogue.TAGS
    cells = found.by_tag if is_tag else found.by_experiment
    cell = cells.get((score.agent, score.name))
    if cell is None:
      ours = "not run"
    else:
      whole = results.is_whole_tag if is_tag else results.is_whole
      reasons = [] if whole(score.name, cell) else ["only some ids"]
      if any(_capped(sweep, experiment) for experiment in cell.experiments):
        reasons.append("capped")
      ours = f"{_decimals(cell.value)}" if cell.told else "–"
      ours += f" (not comparable: {', '.join(reasons)})" if reasons else ""
    rows.append(
      [
        markup.name(score.name),
        markup.cell(f"{score.value:.2f}, published, not run here", "number"),
        markup.cell(markup.text(ours), "number"),
        markup.cell(markup.text(score.source)),
      ]
    )
  return markup.table(
    ["of", "published score", f"{published.SCORES[0].agent} in this sweep", "source"],
    rows,
    caption="For comparison, from the literature; what is published was not run here.",
    name="Published scores",
  )


def _missing(sweep: read.Sweep, found: results.Results) -> str:
  groups: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
  for entry in sweep.lacking:
    experiment = bsuite_sweeps.experiment(entry["bsuite_id"])
    key = experiment, entry["status"], str(entry.get("reason", ""))
    groups.setdefault(key, []).append(entry)
  parts = []
  if groups:
    rows = [
      [
        markup.name(experiment),
        markup.cell(f"{len(entries):,} {markup.text(status)}", "number"),
        markup.cell(markup.text(_whose(entries))),
        markup.cell(markup.text(reason)),
      ]
      for (experiment, status, reason), entries in groups.items()
    ]
    parts.append(
      markup.table(
        ["experiment", "tasks", "agents and seeds", "why"],
        rows,
        caption="Tasks that were asked for and have no results.",
        name="Missing tasks",
      )
    )
  else:
    parts.append(markup.paragraph("All tasks that were asked for are done."))
  asked = set(found.experiments) | {experiment for experiment, _, _ in groups}
  others = [e for e in catalogue.EXPERIMENTS if e not in asked]
  if others:
    parts.append(
      markup.paragraph(f"Experiments that were not asked for: {', '.join(others)}.")
    )
  partial = [
    f"{experiment} ({_either(counts)} of {len(catalogue.ids(experiment))})"
    for experiment in found.experiments
    if not _whole(found, experiment)
    for counts in [
      {
        len(cell.ids)
        for cell in _agents_of(found.by_experiment, experiment, found.agents).values()
      }
    ]
  ]
  if partial:
    parts.append(
      markup.paragraph(f"Experiments with some of their ids: {', '.join(partial)}.")
    )
  mnist = [e for e in catalogue.EXPERIMENTS if e.startswith("mnist")]
  if not any(e in found.experiments for e in mnist):
    parts.append(
      markup.paragraph(
        f"Of mnist ({', '.join(mnist)}) there is nothing: its data are files of their "
        "own, which a sweep needs (--mnist_dir). The scores by tag are without it."
      )
    )
  return "\n".join(parts)


def _made(sweep: read.Sweep, found: results.Results, command: str) -> str:
  packages = sweep.versions.get("packages") or {}
  shown = {"python": sweep.versions.get("python"), **packages}
  shown["commit"] = sweep.versions.get("git_commit")
  ours = ("explorax", "numpy", "matplotlib", "bsuite")
  rows = [
    [
      markup.name(experiment),
      markup.cell(markup.text(scores.formula(experiment))),
      markup.cell(markup.text(scores.regret_name(experiment))),
      markup.cell(markup.text(", ".join(catalogue.tags(experiment)))),
    ]
    for experiment in found.experiments
  ]
  return "\n".join(
    [
      "<h3>The sweep</h3>",
      markup.paragraph("It was called by:"),
      markup.preformatted(sweep.commands),
      markup.paragraph(
        f"Seeds: {', '.join(map(str, _all_seeds(sweep)))}. Tasks took "
        f"{summary.duration(sweep.seconds)} of one process, added up. Episodes: "
        + ("bsuite's own numbers" if sweep.cap is None else f"at most {sweep.cap:,}")
        + f". The index was written at {sweep.written}."
      ),
      markup.paragraph(
        "Made with "
        + ", ".join(f"{name} {value}" for name, value in shown.items() if value)
        + f", on {sweep.versions.get('platform')}."
      ),
      "<h3>This page</h3>",
      markup.preformatted([command]),
      markup.paragraph(
        f"Made with python {platform.python_version()}, "
        + ", ".join(f"{name} {metadata.version(name)}" for name in ours)
        + f". It reads {os.fspath(sweep.path)}/sweep.json and, of each task that is "
        "done, bsuite's log in bsuite_csv/AGENT/seedSEED, whose checksum is compared "
        "with what the sweep noted."
      ),
      "<h3>Scores and intervals</h3>",
      markup.paragraph(
        "Scores follow bsuite 0.3.6 (bsuite/experiments/*/analysis.py), computed anew "
        "without pandas and equal to bsuite's own on the same logs. A score is "
        "computed for each seed over all of its ids, and the mean over seeds is shown. "
        + _INTERVALS
      ),
      markup.table(
        ["experiment", "score", "regret", "tags"],
        rows,
        caption="How experiments are scored. “At least 0” is also at most 1.",
        name="Formulas",
      ),
    ]
  )


def _picture(name: str, fig: Any, alt: str, caption: str) -> markup.Picture:
  return markup.Picture(f"{name}.png", plots.png(fig), alt, caption)


def _agents_of(
  cells: Mapping[tuple[str, str], results.Cell], name: str, agents: Iterable[str]
) -> dict[str, results.Cell]:
  """Agent → score, of those that have one."""
  return {agent: cells[agent, name] for agent in agents if (agent, name) in cells}


def _same(agents: Iterable[str]) -> dict[str, str]:
  return {agent: agent for agent in agents}


def _whole(found: results.Results, experiment: str) -> bool:
  cells = _agents_of(found.by_experiment, experiment, found.agents)
  return all(results.is_whole(experiment, cell) for cell in cells.values())


def _capped(sweep: read.Sweep, experiment: str) -> str:
  """`120 of 10,000 episodes`; '' where the cap cuts nothing off."""
  own = bsuite_sweeps.num_episodes(catalogue.ids(experiment)[0])
  if sweep.cap is None or sweep.cap >= own:
    return ""
  return f"{sweep.cap:,} of {own:,} episodes"


def _all_seeds(sweep: read.Sweep) -> list[int]:
  return sorted({seed for _, _, seed in sweep.logs})


def _whose(entries: Sequence[Mapping[str, Any]]) -> str:
  """`dqn (seeds 0, 1), tdu (seed 0)`."""
  seeds: dict[str, set[int]] = {}
  for entry in entries:
    seeds.setdefault(entry["agent"], set()).add(entry["seed"])
  return ", ".join(f"{agent} ({_seeds(sorted(own))})" for agent, own in seeds.items())


def _seeds(seeds: Sequence[int]) -> str:
  """`seed 3`, `seeds 0 to 4`, `seeds 0, 2`."""
  if len(seeds) == 1:
    return f"seed {seeds[0]}"
  if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
    return f"seeds {seeds[0]} to {seeds[-1]}"
  return f"seeds {', '.join(map(str, seeds))}"


def _either(counts: set[int]) -> str:
  """`3`, or `1 to 3` where agents differ."""
  low, high = min(counts), max(counts)
  return str(low) if low == high else f"{low} to {high}"


def _decimals(value: float) -> str:
  return f"{value:.{results.DIGITS}f}"


def _count(number: int, noun: str) -> str:
  return f"{number:,} {noun}{'' if number == 1 else 's'}"
