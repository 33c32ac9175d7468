"""The verdict of every claim, in one table: `docs/figures/verdicts.csv`.

  python -m explorax.papers.verdicts

It is written from the findings in docs/figures/*.json. A test judges the stored results
again and compares the verdicts, effects and tests with the table; words are free.
"""

import csv
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

PATH = pathlib.Path(__file__).resolve().parents[1] / "docs/figures/verdicts.csv"
COLUMNS = (
  *("figure", "claim", "verdict", "effect", "low", "high", "p", "seeds", "test"),
  *("robust", "measured"),
)
# A number with its interval, as `Interval.to_text` writes them; the first one counts.
_EFFECT = re.compile(r"(\S+) \[([^,\]\s]+), ([^,\]\s]+)\]")

_WORDS = {
  r"; with Holm's correction of (\d+)": r", Holm of \1",
  r" \(Holm's correction of (\d+), the greatest p\)": r", greatest of \1 (Holm)",
  r", p [=<] [\d.e-]+": "",
}
# `p = 0.012` or `p < 0.0001`: two digits.
_P = re.compile(r"p ([=<] [\d.e-]+)")


def row(figure: str, finding: Mapping[str, Any]) -> dict[str, str]:
  """A row of the table, with the p of the decision: corrected where the test is.

  Args:
    figure: the figure's name.
    finding: the fields of a `types.Finding`, and its verdict.
  """
  effect = _EFFECT.search(finding["measured"])
  numbers = ("", "", "") if effect is None else effect.groups()
  ps = _P.findall(finding["test"])
  p, test = ps[-1].replace("= ", "") if ps else "", finding["test"]
  for pattern, words in _WORDS.items():
    test = re.sub(pattern, words, test)
  values = finding["claim"], finding["verdict"], *numbers, p, finding["num_seeds"], test
  values += "", ""
  return dict(zip(COLUMNS, map(str, (figure, *values)), strict=True))


def read() -> list[dict[str, str]]:
  """The rows of the table."""
  with open(PATH, encoding="utf-8", newline="") as file:
    return list(csv.DictReader(file))


def main() -> None:
  """Writes the table."""
  records = [
    json.loads(path.read_text()) for path in sorted(PATH.parent.glob("*.json"))
  ]
  own = {record["figure"] for record in records}
  rows = [one for one in read() if one["figure"] not in own]
  for record in records:
    rows += [row(record["figure"], finding) for finding in record["findings"]]
  with open(PATH, "w", encoding="utf-8", newline="") as file:
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows, key=lambda one: one["figure"]))


if __name__ == "__main__":
  main()
