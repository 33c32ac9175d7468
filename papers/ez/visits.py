"""What exploration visits: paper 1's figure 1, and cover times (its definition 1)."""

import numpy as np

from explorax.environments import gridworld
from explorax.papers import draw, figures, judge
from explorax.papers.ez import comparisons, runs

_DOWN = gridworld.MOVES.index((1, 0))
_FAR = 4  # A state is far from the greedy path beyond size / _FAR columns.
_SELDOM = 0.1  # The highest share of trials that reach such a state.
_EPSILONS = (0.1, 0.5, 0.9, 1.0)
_ZETA, _EXPONENTIAL = "zeta, μ = 2", "exponential, λ = 0.5"
_NO_REPEATS = "ε-greedy (no repeats)"
_LAWS = {
  _ZETA: {"law": "zeta", "parameter": 2.0},
  _EXPONENTIAL: {"law": "exponential", "parameter": 0.5},  # 2 steps on average.
  _NO_REPEATS: {"law": "exponential", "parameter": 0.0},
}
_SIZES = (4, 6, 8, 12, 16, 24, 32)
_STEPS = 100_000  # Of a trial; the largest cover time.


def from_the_top(settings: figures.Settings) -> figures.Results:
  """First visits in "a similar gridworld": without a goal, so of one episode."""
  steps = settings["steps"]
  room = runs.problem({**runs.GRIDWORLD, **settings, "time_limit": steps})
  params = room.params._replace(goal=np.array([-1, -1]))
  of = room._replace(params=params, shortest_episode=steps)
  return runs.explore(settings, of, greedy_action=_DOWN)


def cover(settings: figures.Settings) -> figures.Results:
  """The step of the last pair's first visit, `[S]`; `steps` if one has no visit."""
  visits = runs.explore({**runs.CHAIN, **settings, "epsilon": 1.0}, pairs=True)
  return {"cover_steps": visits["first_visits"].max(axis=(1, 2))}


def _in_a_band(table: figures.Table) -> tuple[bool, str, None]:
  """Of the states outside the band, the share that a trial reaches."""
  (size,), epsilons = table.values("size"), sorted(table.values("epsilon"))
  outside = np.abs(np.arange(size) - size // 2) > size // _FAR
  shares = []
  for epsilon in epsilons:
    visited = table.where(epsilon=epsilon, **runs.EPSILON).joined("visited")
    shares.append(visited.reshape(-1, size, size)[:, :-1, outside].mean())
  each = zip(shares, epsilons, strict=True)
  words = ", ".join(f"{share:.1%} at ε = {epsilon}" for share, epsilon in each)
  return max(shares) < _SELDOM, words, None


def _map(table: figures.Table) -> np.ndarray:
  mean = table.joined("first_visits").mean(axis=0)
  return mean.reshape(2 * table.values("size"))


def _bottom_corners(table: figures.Table) -> np.ndarray:
  size = table.values("size")[0]
  return table.joined("first_visits")[:, [size * (size - 1), -1]]


def _earlier(claim: str, measure: figures.Measure, epsilon: float) -> judge.Above:
  """That εz-greedy visits these cells earlier on average than ε-greedy."""
  ez, other = ({**rule, "epsilon": epsilon} for rule in (runs.EZ, runs.EPSILON))
  return judge.Above(claim, measure, ez, other, less=True)


def _grows(label: str, as_power: bool) -> judge.Check:
  """Whether a power of |X| fits the logarithm better than an exponential."""

  def check(table: figures.Table) -> tuple[bool | None, str, None]:
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
    return bool(power < exponential) == as_power, words, None

  return judge.Check(
    f"{label}: the cover time is {'polynomial' if as_power else 'exponential'} in |X|",
    check,
    _LAWS[label],
    test="the smaller misfit of two curves",
  )


FIGURES = (
  figures.Figure(
    name="ez/fig1",
    title="First visits around a policy that goes straight down",
    source=f"{runs.PAPER}, figure 1",
    runs=[
      # The paper's table of the size and the steps is lost. In rooms of 20 × 20, most
      # repeats end at a wall, and both rules visit the room about equally early at
      # ε = 1; in those of 40 and 50, εz-greedy is earlier.
      comparisons.grid(
        {"epsilon": _EPSILONS, "size": 50, "steps": 5000}, 200, compute=from_the_top
      )
    ],
    quick={"size": 10, "steps": 200, "num_seeds": 10},
    panels=[
      [
        draw.Maps(
          values=_map,
          maps={
            f"{label}, ε = {epsilon}": {**rule, "epsilon": epsilon}
            for label, rule in runs.RULES.items()
            for epsilon in _EPSILONS
          },
          label="mean first visit (step)",
          columns=len(_EPSILONS),
        )
      ]
    ],
    claims=[
      judge.Check(
        "with ε ≤ 0.5, ε-greedy reaches a state outside a narrow band (a quarter of "
        f"the width away, above the last row) in less than {_SELDOM:.0%} of trials",
        _in_a_band,
        {"epsilon": lambda epsilon: epsilon <= 0.5},
        test="the mean share",
      ),
      judge.All(
        "at every ε tried, εz-greedy visits states earlier",
        [_earlier("", "first_visits", epsilon) for epsilon in _EPSILONS],
      ),
      _earlier(
        "at ε = 1, εz-greedy is earlier at the bottom corners", _bottom_corners, 1.0
      ),
    ],
  ),
  figures.Figure(
    name="ez/cover",
    title="Cover times of a chain under pure exploration",
    source=f"Our own, after {runs.PAPER}, definition 1 and appendix A",
    runs=[
      comparisons.grid(
        {"size": _SIZES, "cap": 10_000, "steps": _STEPS},
        *(100, [*_LAWS.values()], cover),
      )
    ],
    quick={"size": (3, 6, 12), "steps": 2000, "num_seeds": 20},
    panels=[],
    claims=[
      _grows(_ZETA, as_power=True),
      _grows(_EXPONENTIAL, as_power=False),
      _grows(_NO_REPEATS, as_power=False),
    ],
  ),
)
