"""The page of a sweep: what it says, section by section."""

from collections.abc import Sequence
from typing import NamedTuple

from explorax.experiments.recording import summary
from explorax.experiments.reports import (
  account,
  catalogue,
  markup,
  pictures,
  read,
  results,
  tables,
  tdu_paper,
  wording,
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
  drawn: list[markup.Picture] = []

  def section(text: str, more: Sequence[markup.Picture] = ()) -> str:
    drawn.extend(more)
    return text + (markup.pictures(more) if more else "")

  sections = [
    ("Scores by tag", section(tables.by_tag(found), pictures.by_tag(found))),
    (
      "Scores by experiment",
      section(tables.by_experiment(sweep, found), pictures.by_experiment(found)),
    ),
    (
      "Learning curves",
      section(_about_curves(sweep), pictures.learning_curves(sweep, found)),
    ),
    ("Deep Sea", section(_about_deep_sea(found), pictures.deep_sea(sweep, found))),
    (
      "Paper 4, figures 6 and 7",
      section(_about_tdu(sweep, found), pictures.tdu_figures(sweep, found)),
    ),
    ("Published scores", section(account.published_scores(sweep, found))),
    ("What is missing", section(account.missing(sweep, found))),
    ("How each number was made", section(account.how_made(sweep, found, command))),
  ]
  title = f"bsuite scores of {summary.count(len(found.agents), 'agent')}"
  return Report(markup.page(title, _introduction(sweep, found), sections), drawn)


def _introduction(sweep: read.Sweep, found: results.Results) -> str:
  tasks = summary.count(len(sweep.logs) + len(sweep.lacking), "task")
  ids = {bsuite_id for _, bsuite_id, _ in sweep.logs}
  every = sum(len(catalogue.ids(experiment)) for experiment in catalogue.EXPERIMENTS)
  parts = [
    markup.paragraph(
      f"{', '.join(found.agents)}: {summary.count(len(ids), 'id')} of bsuite's "
      f"{every}, from {len(found.experiments)} of its {len(catalogue.EXPERIMENTS)} "
      f"experiments, {wording.seeds(sweep.seeds)}. {len(sweep.logs):,} of {tasks} are "
      "done. Scores lie between 0 and 1, and 1 is best."
    )
  ]
  if sweep.cap is not None:
    capped = [e for e in found.experiments if wording.capped(sweep, e)]
    if capped:
      parts.append(
        markup.note(
          f"Episodes were capped at {sweep.cap:,} (--episodes). Scores of capped "
          f"experiments ({', '.join(capped)}) cannot be compared with those of whole "
          "runs, published ones among them: they measure the first episodes alone."
        )
      )
  partial = [e for e in found.experiments if not results.all_whole(found, e)]
  if partial:
    parts.append(
      markup.note(
        f"Of {', '.join(partial)} only some ids were run. Their scores are over those, "
        "and are not bsuite's scores of the whole experiments."
      )
    )
  if len(sweep.seeds) == 1:
    parts.append(
      markup.note("There is one seed, so that no interval can be told for any score.")
    )
  return "\n".join(parts)


def _about_curves(sweep: read.Sweep) -> str:
  return markup.paragraph(
    "The average regret over all episodes so far, at the episodes that bsuite logs: "
    "its mean over ids and seeds, with 95 % bands over seeds. Lower is better. The "
    "dotted line is what the score compares with: a baseline, with whose regret "
    "nothing is scored for it, or a threshold, below which a setting counts as learnt. "
    "What regret is differs between experiments; each axis names it."
    + (f" Episodes end at the cap of {sweep.cap:,}." if sweep.cap is not None else "")
  )


def _about_deep_sea(found: results.Results) -> str:
  shown = [e for e in pictures.DEEP_SEAS if e in found.experiments]
  if not shown:
    return markup.paragraph("Neither Deep Sea nor its stochastic version was run.")
  return markup.paragraph(
    "In which episode Deep Sea of size N is solved, by bsuite's rule (the share of bad "
    "episodes so far is below 0.9; in the stochastic version below 0.8, from episode "
    "100 on), looked up in its log, whose episodes are spaced logarithmically. The "
    "dotted line is 2^N, about what exploration by chance takes."
  )


def _about_tdu(sweep: read.Sweep, found: results.Results) -> str:
  parts = [
    markup.paragraph(
      "Flennerhag et al. (2020), Temporal Difference Uncertainties, compare on bsuite: "
      "in figure 6 TDU by its β (left), and TDU with other signals, QU and Q+UCB "
      "(right); in figure 7 each experiment, by β and with members chosen by UCB1. "
      "Drawn here from this sweep's scores, with the β that were swept (tdu@beta=0.1 "
      "names one); the paper has 0, 0.01, 0.1, 0.5, 1, 2, 3 and 5. That the overall "
      "scores of figure 6 are those by tag is our reading."
    )
  ]
  for figure, (what, _, _) in tdu_paper.FIGURES.items():
    agents = tdu_paper.agents(figure, found, sweep.settings)
    absent = tdu_paper.absent(figure, agents)
    if len(agents) < 2:
      parts.append(
        markup.paragraph(
          f"Figure {figure} ({what}) is not drawn: it needs two of its agents, and "
          f"{', '.join(absent)} {'were' if len(absent) > 1 else 'was'} not swept."
        )
      )
  return "\n".join(parts)
