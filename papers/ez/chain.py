"""Paper 1's figure 2: the law of durations with the highest return in a chain."""

import numpy as np

from explorax.papers import draw, figures, judge
from explorax.papers.ez import comparisons, runs

_CAP = {"cap": 10_000}  # Longest duration of the zeta and exponential laws (appendix).
# The paper's text gives no settings. With γ = 0.99, the best stop is the ninth reward,
# in state 53, with a value of 5.28. We chose α = 0.5 over 0.1 after runs of both with
# 30 seeds: at 0.1, all laws learn less within these episodes.
_CHAIN = {
  **runs.CHAIN,
  "size": 100,
  "episodes": 1000,
  "epsilon": 0.1,
  "step_size": 0.5,
  "discount": 0.99,
}
# Law → the symbol of its parameter, and its values.
_LAWS = {
  "zeta": ("μ", (1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)),
  "exponential": ("λ", (0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)),
  "uniform": ("N", (1, 2, 4, 8, 16, 64, 256, 1024)),
}


def _best(law: str, table: figures.Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """The best parameter of a law, chosen with half of the seeds.

  Returns:
    The parameters, the returns of the other seeds at each one, and at the best one.
  """
  parameters, y = table.where(law=law).over("parameter", comparisons.DISCOUNTED)
  return parameters, y[1::2], y[1::2, int(np.argmax(y[::2].mean(axis=0)))]


def _above_both_ends(table: figures.Table) -> list[judge.Finding]:
  _, returns, best = _best("zeta", table)
  return [judge.above("", best, returns[:, at]) for at in (0, -1)]


def _beats_epsilon_greedy(table: figures.Table) -> judge.Finding:
  """The uniform law of durations of at most 1 is ε-greedy."""
  (_, _, zeta), (_, uniform, _) = _best("zeta", table), _best("uniform", table)
  return judge.above(
    "durations beyond 1 are needed: the best zeta law beats ε-greedy",
    *(zeta, uniform[:, 0]),
  )


def _long_uniform_is_poor(table: figures.Table) -> judge.Finding:
  (_, _, zeta), (numbers, uniform, _) = _best("zeta", table), _best("uniform", table)
  return judge.above(
    f"a uniform law on a large support (N = {max(numbers):g}) is poor",
    *(uniform[:, -1], zeta),
    less=True,
  )


def _above_other_laws(table: figures.Table) -> list[judge.Finding]:
  zeta, *others = (_best(law, table)[2] for law in _LAWS)
  return [judge.above("", zeta, other) for other in others]


FIGURES = (
  figures.Figure(
    name="ez/fig2",
    title="Laws of durations in the chain",
    source=f"{runs.PAPER}, figure 2, Q-learning",
    runs=[
      figures.Grid(
        runs.learn,
        [{"law": law} for law in _LAWS if law == name],
        {"parameter": values, **_CAP, **_CHAIN},
        num_seeds=30,
        seeds_per_task=30,
      )
      for name, (_, values) in _LAWS.items()
    ],
    quick={"size": 20, "episodes": 50, "num_seeds": 4},
    panels=[
      [
        draw.Curves(
          y=comparisons.DISCOUNTED,
          lines={law: {"law": law}},
          x="parameter",
          axes={
            "title": f"{law} durations",
            "xlabel": symbol,
            "xscale": "log" if law == "uniform" else "linear",
            "ylabel": "discounted return",
            "ylim": (0.8, 1.8),
          },
        )
        for law, (symbol, _) in _LAWS.items()
      ]
    ],
    claims=[
      judge.All(
        "an inverted U over μ: the best one earns more than the least and the greatest",
        [_above_both_ends],
      ),
      _beats_epsilon_greedy,
      _long_uniform_is_poor,
      judge.All("the best zeta law beats the best of the others", [_above_other_laws]),
    ],
  ),
)
