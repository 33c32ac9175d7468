"""Makes `data/expected.json`: bsuite's scores of the logs in `data/logs.tar.gz`.

    python tests/experiments/reports/make_expected.py

It needs the extra `plots` on Python 3.11, whose versions of pandas and plotnine are old
enough for bsuite's own scores. The logs have the columns of bsuite's logger with random
regrets, so that scores lie between 0 and 1. `long` has ids of all experiments, with
many episodes, mnist's and bandit's being all; `short` has few, and ids that end before
others.
"""

import importlib.metadata
import json
import math
import pathlib
import tarfile
import tempfile

from bsuite.experiments import summary_analysis
from bsuite.logging import csv_load

DATA = pathlib.Path(__file__).parent / "data"
PACKAGES = ("bsuite", "pandas", "plotnine", "numpy")
SETS = ("long", "short")


def main() -> None:
  with tempfile.TemporaryDirectory() as folder:
    with tarfile.open(DATA / "logs.tar.gz") as archive:
      archive.extractall(folder, filter="data")
    logs = csv_load.load_bsuite({name: f"{folder}/{name}" for name in SETS})
    frame = summary_analysis.bsuite_score(*logs)
  scores: dict[str, dict[str, float | None]] = {name: {} for name in SETS}
  for _, row in frame.iterrows():
    value = None if math.isnan(row["score"]) else float(row["score"])
    scores[row["agent_name"]][row["bsuite_env"]] = value
  tags = {name: list(info.tags) for name, info in summary_analysis.BSUITE_INFO.items()}
  expected = {
    "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    "scores": scores,
    "tags_of": tags,
  }
  text = json.dumps(expected, indent=1, sort_keys=True, allow_nan=False)
  (DATA / "expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
  main()
