"""The picture of docs/atari.md: what agents learn of Freeway on two cores.

  python benchmarks/learning.py --only=freeway

writes the runs. Those in benchmarks/results/learning_atari.jsonl are in the page, whose
picture and tables `python benchmarks/page.py` makes.
"""

from collections.abc import Sequence

import bench
import numpy as np

from explorax.experiments.figures import panels, types
from explorax.experiments.recording import drawing

_FRAMES = 4  # Of the emulator in an environment step.


def draw(runs: Sequence[bench.Row]) -> types.Drawing:
  """Returns of Freeway over frames, by agent."""
  fig, ((freeway,),) = drawing.new(1, 1, width=4.6, height=3.4)
  labels = list(dict.fromkeys(run["label"] for run in _runs(runs, "freeway")))
  for index, label in enumerate(labels):
    evaluations = np.array([r["evaluations"] for r in _runs(runs, "freeway", label)])
    drawing.curve(
      freeway,
      _FRAMES * evaluations[0, :, 0] / 1e3,
      evaluations[:, :, 1],
      label=f"{label} ({len(evaluations)} seeds)",
      index=index,
    )
  panels.finish(
    freeway,
    legend="best",
    xlabel="thousands of frames",
    ylabel="return of 3 evaluation episodes",
  )
  return fig


def _runs(
  runs: Sequence[bench.Row], experiment: str, label: str | None = None
) -> list[bench.Row]:
  return [
    run
    for run in runs
    if run["experiment"] == experiment and label in (None, run["label"])
  ]
