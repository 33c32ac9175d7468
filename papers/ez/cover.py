"""Our own: cover times of a chain, for laws of durations (paper 1, definition 1)."""

import numpy as np

from explorax.papers import draw, figures, judge
from explorax.papers.ez import runs

_ZETA, _EXPONENTIAL = "zeta, μ = 2", "exponential, λ = 0.5"
_NO_REPEATS = "ε-greedy (no repeats)"
_LAWS = {
  _ZETA: {"law": "zeta", "parameter": 2.0},
  _EXPONENTIAL: {"law": "exponential", "parameter": 0.5},  # 2 steps on average.
  _NO_REPEATS: {"law": "exponential", "parameter": 0.0},
  "uniform, N = 8": {"law": "uniform", "parameter": 8},
}
_SIZES = (4, 6, 8, 12, 16, 24, 32)
_STEPS = 100_000  # Of a trial; the largest cover time.


def compute(settings: figures.Settings) -> figures.Results:
  """The step of the last pair's first visit, `[S]`; `steps` if one has no visit."""
  record = runs.explore(
    runs.problem({**runs.CHAIN, **settings}), {**settings, "epsilon": 1.0}, pairs=True
  )
  return {"cover_steps": np.asarray(record.first_visits).max(axis=(1, 2))}


def _is_power(table: figures.Table) -> tuple[bool | None, str, None]:
  """Whether a power of |X| fits the logarithm better than an exponential."""
  sizes, steps = table.over("size", "cover_steps")
  medians = np.median(steps, axis=0)
  covered = medians < table.values("steps")[0]
  if covered.sum() < 3:
    return None, "too few sizes are covered", None
  y = np.log(medians[covered])
  power, exponential = (
    np.sqrt(np.mean((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2))
    for x in (np.log(sizes[covered]), sizes[covered])
  )
  words = f"misfit {power:.2f} as a power, {exponential:.2f} as an exponential"
  return bool(power < exponential), words, None


def _is_exponential(table: figures.Table) -> tuple[bool | None, str, None]:
  held, words, _ = _is_power(table)
  return None if held is None else not held, words, None


FIGURES = (
  figures.Figure(
    name="ez/cover",
    title="Cover times of a chain under pure exploration",
    source=f"Our own, after {runs.PAPER}, definition 1 and appendix A",
    runs=[
      figures.Grid(
        compute,
        [*_LAWS.values()],
        {"size": _SIZES, "cap": 10_000, "steps": _STEPS},
        num_seeds=100,
        seeds_per_task=100,
      )
    ],
    quick={"size": (3, 6, 12), "steps": 2000, "num_seeds": 20},
    panels=[
      [
        draw.Curves(
          y="cover_steps",
          lines=_LAWS,
          x="size",
          statistic=np.median,
          guides=[draw.horizontal(_STEPS, linestyle=":")],
          axes={
            "xscale": ("log", {"subs": []}),
            "yscale": "log",
            "xlabel": "states |X|",
            "ylabel": "cover time (steps)",
            "xticks": _SIZES,
            "xticklabels": _SIZES,
          },
        )
      ]
    ],
    claims=[
      judge.Check(
        f"{label}: the cover time is {growth} in |X|",
        check,
        _LAWS[label],
        test="the smaller misfit of two curves",
      )
      for label, growth, check in (
        (_ZETA, "polynomial", _is_power),
        (_EXPONENTIAL, "exponential", _is_exponential),
        (_NO_REPEATS, "exponential", _is_exponential),
      )
    ],
  ),
)
