"""Makes `data/logs.tar.gz` and `data/expected.json`: bsuite's scores of some logs.

    python tests/experiments/reports/make_expected.py

It needs the extra `plots` on Python 3.11, whose versions of pandas and plotnine are old
enough for bsuite's own scores. The logs have the columns of bsuite's logger with random
regrets, so that scores lie between 0 and 1. Run twice, it writes the same.

`long` has ids of all experiments, with many episodes, mnist's and bandit's being all;
`short` has few, and ids that end before others.
"""

import gzip
import importlib.metadata
import io
import json
import math
import pathlib
import tarfile
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from bsuite import sweep
from bsuite.experiments import summary_analysis
from bsuite.logging import csv_load

from explorax.environments import bsuite_sweeps
from explorax.experiments.reports import bsuite_scores

DATA = pathlib.Path(__file__).parent / "data"
PACKAGES = ("bsuite", "pandas", "plotnine", "numpy")
LONG = {"bandit": 10_000, "mnist": 10_000, "deep_sea": 1400}  # Episodes; others 400.
SHORT = 25
SHORT_OF_STOCHASTIC = 170  # Its score begins at the hundredth.
LATE = ("deep_sea/0", "deep_sea_stochastic/0")  # Solved after 2^10 + 100 episodes.


def main() -> None:
  rng = np.random.default_rng(0)
  with tempfile.TemporaryDirectory() as folder:
    root = pathlib.Path(folder)
    for name, bsuite_id, episodes in runs():
      (root / name).mkdir(exist_ok=True)
      path = root / name / bsuite_sweeps.csv_name(bsuite_id)
      pd.DataFrame(log(bsuite_id, episodes, rng)).round(3).to_csv(path, index=False)
    (DATA / "logs.tar.gz").write_bytes(pack(root))
    paths = {name: str(root / name) for name in ("long", "short")}
    scores = summary_analysis.bsuite_score(*csv_load.load_bsuite(paths))
  tags = {name: list(info.tags) for name, info in summary_analysis.BSUITE_INFO.items()}
  expected = {
    "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    "scores": table(scores),
    "tags_of": tags,
  }
  text = json.dumps(expected, indent=1, sort_keys=True, allow_nan=False)
  (DATA / "expected.json").write_text(text + "\n", encoding="utf-8")


def runs() -> Iterator[tuple[str, str, int]]:
  """(set, id, episodes) of all logs."""
  for experiment in summary_analysis.BSUITE_INFO:
    ids = [i for i in sweep.SWEEP if i.partition("/")[0] == experiment]
    is_variant = experiment.endswith(("_noise", "_scale"))
    for bsuite_id in ids[:1] + ids[3:17:4] + ids[17:19] if is_variant else ids[::3]:
      long = [n for name, n in LONG.items() if experiment.startswith(name)]
      yield "long", bsuite_id, (long or [400])[0]
    for number, bsuite_id in enumerate(ids[:9:4]):
      short = SHORT_OF_STOCHASTIC if experiment == "deep_sea_stochastic" else SHORT
      yield "short", bsuite_id, short if number else short // 3


def log(bsuite_id: str, episodes: int, rng: np.random.Generator) -> dict[str, Any]:
  """The columns of a log of random regrets, around those that the score refers to."""
  kind = bsuite_scores.kind(bsuite_id.partition("/")[0])
  regret = 1.5 * rng.random() * kind.reference * 2 * rng.random(episodes)
  if bsuite_id.startswith("deep_sea"):
    begin = 1200 if bsuite_id in LATE else rng.integers(2 * episodes)
    regret = np.arange(episodes) < begin
  episode = np.array([n for n in range(1, episodes + 1) if bsuite_sweeps.is_logged(n)])
  total = np.cumsum(regret)[episode - 1]
  column = total if kind.best is None else kind.best * episode - total / kind.scale
  columns = {"steps": 10 * episode, "episode": episode, kind.column: column}
  if kind.good is not None:
    columns["best_episode"] = np.maximum.accumulate(
      1.5 * kind.good * rng.random() * rng.random(len(episode))
    )
  return columns


def pack(root: pathlib.Path) -> bytes:
  """The folder as a tar.gz that is the same each time."""
  tar = io.BytesIO()
  with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
    for path in sorted(root.rglob("*.csv")):
      content = path.read_bytes()
      info = tarfile.TarInfo(path.relative_to(root).as_posix())
      info.size = len(content)
      archive.addfile(info, io.BytesIO(content))
  return gzip.compress(tar.getvalue(), compresslevel=9, mtime=0)


def table(frame: Any) -> dict[str, dict[str, float | None]]:
  """Set → experiment → score; None for NaN."""
  scores: dict[str, dict[str, float | None]] = {}
  for _, row in frame.iterrows():
    value = None if math.isnan(row["score"]) else float(row["score"])
    scores.setdefault(row["agent_name"], {})[row["bsuite_env"]] = value
  return scores


if __name__ == "__main__":
  main()
