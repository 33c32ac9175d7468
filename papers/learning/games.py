"""The picture of docs/atari.md: what agents learn of Pong and Freeway on two cores.

  python -m explorax.papers.learning.runs --only=pong,freeway,montezuma

writes the runs. Those in `results/learning_atari.jsonl` are in the page, whose picture
and tables `python -m explorax.papers.learning.page` makes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from explorax.environments import atari57
from explorax.experiments.recording import drawing
from explorax.papers import panels, types

_FRAMES = 4  # Of the emulator in an environment step.


def draw(runs: Sequence[dict[str, Any]]) -> types.Drawing:
  """Returns of Pong over CPU time, and of Freeway over frames, by agent.

  Dotted lines are the returns of a random policy in `atari57`.
  """
  with drawing.column(3.2) as fig:
    pong, freeway = fig.subplots(1, 2)
    (run,) = _runs(runs, "pong")
    steps, returns = np.array(run["evaluations"]).T
    minutes, frames = np.array(run["evaluated_after"]) / 60, _FRAMES * steps / 1e6
    style = drawing.styles(["double DQN"])["double DQN"]
    drawing.seeds(pong, minutes, returns[None], label="", style=style)
    ends = [0.0, *minutes], [0.0, *frames]
    above = pong.secondary_xaxis(
      "top",
      functions=(lambda x: np.interp(x, *ends), lambda x: np.interp(x, *ends[::-1])),
    )
    above.set_xlabel("millions of frames")
    panels.finish(
      pong,
      title="Pong, double DQN, one seed",
      xlabel="minutes of one core",
      ylabel="return of 3 evaluation episodes",
      ylim=(-22, 22),
    )
    labels = list(dict.fromkeys(run["label"] for run in _runs(runs, "freeway")))
    for label, style in drawing.styles(labels).items():
      evaluations = np.array([r["evaluations"] for r in _runs(runs, "freeway", label)])
      drawing.seeds(
        freeway,
        _FRAMES * evaluations[0, :, 0] / 1e3,
        evaluations[:, :, 1],
        label=label,
        style=style,
      )
    seeds = len({run["seed"] for run in _runs(runs, "freeway")})
    random = {"color": "0.5", "linestyle": ":", "label": "random play"}
    for axes, game in ((freeway, "freeway"), (pong, "pong")):
      axes.axhline(atari57.references()[game].random, **random)
    panels.finish(
      freeway,
      title=f"Freeway, double DQN, mean of {seeds} seeds (thin: each)",
      xlabel="thousands of frames",
      ylabel="return of 3 evaluation episodes",
    )
    handles, names = freeway.get_legend_handles_labels()
    fig.legend(handles, names, loc="outside lower center", ncols=3)
  return fig


def _runs(
  runs: Sequence[dict[str, Any]], experiment: str, label: str | None = None
) -> list[dict[str, Any]]:
  return [
    run
    for run in runs
    if run["experiment"] == experiment and label in (None, run["label"])
  ]
