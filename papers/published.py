"""Tables of scores that the papers print, in CSV files beside their figures."""

import csv
import importlib.resources
from collections.abc import Mapping


def table2(package: str, columns: Mapping[str, str]) -> dict[str, dict[str, float]]:
  """Scores by game, of the file `table2.csv` in a package.

  Args:
    package: its name.
    columns: key → a column of the file.

  Returns:
    key → game → the number in that column.
  """
  text = importlib.resources.files(package).joinpath("table2.csv")
  rows = list(csv.DictReader(text.read_text(encoding="utf-8").splitlines()))
  return {
    key: {row["game"]: float(row[column]) for row in rows}
    for key, column in columns.items()
  }
