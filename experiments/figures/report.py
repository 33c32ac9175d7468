"""What a figure leaves behind: its drawing, its findings, and a page of all figures.

    ez_fig3.png   the drawing, with the claim and what was found below it
    ez_fig3.json  the findings, and everything needed to repeat them
    figures.md    all figures of the directory, each with its findings
    raw/          the results of its tasks (`cache.py`)

The names of a smoke version end in `_quick`, those of one with other settings than the
figure's own in a digest of them.
"""

import datetime
import hashlib
import json
import os
import pathlib
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import jax

from explorax.experiments import output, overrides, versions
from explorax.experiments.figures import cache, registry, types
from explorax.experiments.recording import drawing, summary

_LEAST_SEEDS = 3  # Fewer tell nothing about other seeds.
_PAGE = "figures.md"


def leave(
  figure: types.Figure,
  config: Any,
  done: Sequence[types.Done],
  directory: output.RunDirectory,
  *,
  command: str,
  quick: bool,
) -> tuple[list[types.Finding], pathlib.Path]:
  """Draws a figure, and writes what it found.

  Args:
    figure: that was computed.
    config: its settings.
    done: the results of all its tasks.
    directory: where it goes.
    command: that made it.
    quick: whether it is the smoke version, which tells nothing of the claims.

  Returns:
    The findings, and the drawing's path.

  Raises:
    OutputError: if something cannot be written.
  """
  findings = list(figure.judge(done))
  if quick or config.num_seeds < min(_LEAST_SEEDS, figure.config.num_seeds):
    findings = [finding._replace(held=None) for finding in findings]
  seconds = sum(task.seconds for task in done)
  note = (
    f"{'Smoke version, ' if quick else ''}{seeds(config)}; bands: 95 % bootstrap "
    f"intervals over seeds. Computed in {summary.duration(seconds)} of one process "
    f"({_machine()}). explorax, {datetime.date.today().isoformat()}."
  )
  name = _file_name(figure, config)
  fig = figure.draw(done)
  caption = [
    f"{figure.source}. Claim: {figure.claim}",
    *(f"{found.verdict}: {found.claim} ({found.measured})." for found in findings),
    note,
  ]
  directory.write(
    f"{name}.png",
    lambda file: drawing.save(file, fig, title=figure.title, caption=caption),
  )
  directory.write_json(
    f"{name}.json",
    {
      "figure": figure.name,
      "title": figure.title,
      "source": figure.source,
      "claim": figure.claim,
      "findings": [{**f._asdict(), "verdict": f.verdict} for f in findings],
      "command": command,
      "config": overrides.to_dict(config),
      "quick": quick,
      "process_seconds": seconds,
      "machine": _machine(),
      "versions": versions.collect(),
    },
  )
  text = _page(directory.path)
  directory.write(_PAGE, lambda file: file.write(text.encode()))
  return findings, directory.path / f"{name}.png"


def _file_name(figure: types.Figure, config: Any) -> str:
  """Of the figure's files, without their endings."""
  name = cache.file_name(figure.name)
  if config == figure.config:
    return name
  if config == figure.quick:
    return f"{name}_quick"
  text = json.dumps(overrides.to_dict(config), sort_keys=True)
  return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def table(findings: Sequence[types.Finding]) -> str:
  """The findings for a terminal."""
  rows = [("", "claim", "measured")]
  rows += [(f.verdict, f.claim, f.measured) for f in findings]
  widths = [max(len(row[i]) for row in rows) for i in range(2)]
  return "\n".join(
    f"  {row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}" for row in rows
  )


def seeds(config: Any) -> str:
  """`30 seeds`."""
  return f"{config.num_seeds} seed{'s' if config.num_seeds != 1 else ''}"


def _machine() -> str:
  device = jax.devices()[0]
  if device.platform != "cpu":
    return device.device_kind
  return f"{platform.machine()}, {os.cpu_count()} cores"


def _page(directory: pathlib.Path) -> str:
  """All figures that are drawn in the directory, those of earlier calls too.

  What cannot be read is named there: it must not stop what can.
  """
  parts = [
    "# Figures\n\nEach was made by the command below it. Bands are 95 % bootstrap "
    "intervals over seeds; times are those of all processes added up."
  ]
  for figure in registry.FIGURES:
    name = cache.file_name(figure)
    own = [directory / f"{name}.json", directory / f"{name}_quick.json"]
    for path in [*own, *sorted(directory.glob(f"{name}-*.json"))]:
      try:
        parts.append(_section(path.stem, json.loads(path.read_text(encoding="utf-8"))))
      except FileNotFoundError:
        continue
      except (OSError, ValueError, KeyError, TypeError):
        parts.append(f"## {path.name}\n\nThis file cannot be read.")
  return "\n\n".join(parts) + "\n"


def _section(name: str, record: Mapping[str, Any]) -> str:
  rows = [
    f"| {finding['verdict']} | {_cell(finding['claim'])} | "
    f"{_cell(finding['measured'])} |"
    for finding in record["findings"]
  ]
  seconds = summary.duration(record["process_seconds"])
  return "\n".join(
    [
      f"## {record['figure']}: {record['title']}",
      "",
      f"{record['source']}. Claim: {record['claim']}",
      "",
      f"![{record['title']}]({name}.png)",
      "",
      "| | claim | measured |",
      "| --- | --- | --- |",
      *rows,
      "",
      f"`{record['command']}`: {seconds} on {record['machine']}.",
    ]
  )


def _cell(text: str) -> str:
  return text.replace("|", "\\|").replace("\n", " ")
