"""Cover times of a chain, for laws of durations (paper 1, definition 1)."""

import dataclasses
import functools
from typing import Annotated, Any

import numpy as np

from explorax import ranges
from explorax.experiments.recording import drawing
from explorax.papers import claims, layers, panels, types
from explorax.papers.ez import comparisons, runs

_NUM_ACTIONS = 2


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure, which is not in the paper: all are our own."""

  # |X|; three of them are needed to measure growth.
  sizes: Annotated[tuple[types.Size, ...], ranges.Rising(3)] = (
    *(4, 6, 8, 12),
    *(16, 24, 32),
  )
  mu: Annotated[float, ranges.Range(gt=1)] = 2.0  # Of the zeta law.
  decay: Annotated[float, ranges.Range(gt=0, lt=1)] = (
    0.5  # λ of the exponential law: 2 steps on average.
  )
  longest: ranges.PositiveInt = 8  # N of the uniform law.
  cap: ranges.PositiveInt = 10_000  # Longest duration of the others.
  steps: types.Size = 100_000  # Of a trial; the largest cover time.
  num_seeds: ranges.PositiveInt = 100  # Trials.

  @property
  def laws(self) -> list[tuple[str, float, str]]:
    """Each law, its parameter, and a label; ε-greedy is the law without repeats."""
    return [
      ("zeta", self.mu, f"zeta, μ = {self.mu:g}"),
      ("exponential", self.decay, f"exponential, λ = {self.decay:g}"),
      ("exponential", 0.0, "ε-greedy (no repeats)"),
      ("uniform", self.longest, f"uniform, N = {self.longest:g}"),
    ]


def _tasks(config: Config) -> list[types.Task]:
  shared = {"cap": config.cap, "steps": config.steps}
  seeds = list(range(config.num_seeds))
  return [
    types.Task(
      f"{law}_{parameter:g}_{size}",
      {"law": law, "parameter": parameter, "size": size, **shared, "seeds": seeds},
    )
    for law, parameter, _ in config.laws
    for size in config.sizes
  ]


def compute(settings: types.Settings) -> types.Results:
  """The step of the last pair's first visit, `[S]`; `steps` if one has no visit."""
  rule = runs.make_law(settings, epsilon=1.0)
  visits = runs.wander(
    runs.chain(settings["size"]), rule, settings["seeds"], settings["steps"], pairs=True
  )
  return {
    "cover_steps": visits["first_visits"].max(axis=(1, 2)),
    "covered": visits["visited"].all(axis=(1, 2)),
  }


def _panel(config: Config, **around: Any) -> panels.Panel:
  lines = {
    label: {"law": law, "parameter": parameter} for law, parameter, label in config.laws
  }
  bounds = [
    layers.reference(
      config.sizes,
      functools.partial(bound, law, parameter),
      color=drawing.styles([*lines])[label].color,
      linewidth=0.8,
      alpha=0.7,
    )
    for law, parameter, label in config.laws
    if law == "zeta" or (law == "exponential" and parameter > 0)
  ]

  def median(x: np.ndarray, axis: int) -> np.ndarray:
    """NaN where the limit ended half of the trials."""
    steps = np.median(x, axis=axis)
    return np.where(steps < config.steps, steps, np.nan)

  def given_up(axes: types.Axes, table: types.Table) -> None:
    for label, style in drawing.styles([*lines]).items():
      x, y = layers.over("size", table.where(**lines[label]), "cover_steps")
      x = x[np.median(y, axis=0) >= config.steps]
      mark: Any = {"color": style.color, "marker": style.marker, "fillstyle": "none"}
      axes.plot(x, np.full(len(x), config.steps), linestyle="", **mark)

  return panels.Panel(
    layers.Curves("cover_steps", lines, "size", median, markers=True),
    given_up,
    *bounds,
    layers.horizontal(config.steps, linestyle=":"),
    yscale="log",
    ylim=(5, 30 * config.steps),
    ylabel="cover time (steps, median)",
    **around,
  )


def _grows(config: Config, law: str, table: types.Table) -> tuple[str, bool | None]:
  """Whether a power of |X|, or an exponential, has the smaller misfit."""
  sizes, steps = layers.over("size", table, "cover_steps")
  medians = np.median(steps, axis=0)
  words = (
    f"medians at {', '.join(map(str, sizes))}: "
    f"{comparisons.up_to(medians, config.steps)}"
  )
  reached = medians < config.steps
  if reached.sum() < 3:
    return words, None
  as_power = _misfit(np.log(sizes[reached]), np.log(medians[reached]))
  as_exponential = _misfit(sizes[reached], np.log(medians[reached]))
  return (
    f"{words}; root mean squared misfit of the logarithm {as_power:.2f} as a power, "
    f"{as_exponential:.2f} as an exponential"
  ), (as_power < as_exponential) == (law == "zeta")


def _claims(config: Config) -> list[types.Claim]:
  kinds = {"zeta": "polynomial", "exponential": "exponential"}
  return [
    claims.Check(
      f"{label}: the cover time is {kinds[law]} in |X|",
      functools.partial(_grows, config, law),
      {"law": law, "parameter": parameter},
      test="the smaller misfit of two curves",
    )
    for law, parameter, label in config.laws
    if law in kinds
  ]


def _misfit(x: np.ndarray, y: np.ndarray) -> float:
  """The root mean squared error of the best straight line."""
  return float(np.sqrt(np.mean((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2)))


def bound(law: str, parameter: float, sizes: np.ndarray) -> np.ndarray:
  """1/ρ(ω): the appendix's bound on the draws that it takes to cross the chain.

  |A||X|^μ ζ(μ) for the zeta law; for z(n) ∝ λ^{n−1}, |A|/(1 − λ)·λ^{−(|X|−1)}. It does
  not bound the steps; the paper's "polynomial" and "exponential" refer to it.
  """
  if law == "zeta":
    # ζ(μ): the partial sum, and the integral of the remaining terms.
    n = np.arange(1, 10_001, dtype=np.float64)
    rest = (10_000.5) ** (1 - parameter) / (parameter - 1)
    zeta = np.sum(n**-parameter) + rest
    return _NUM_ACTIONS * sizes**parameter * zeta
  return _NUM_ACTIONS / (1 - parameter) * parameter ** -(sizes - 1.0)


FIGURES = (
  types.Figure(
    name="ez/cover",
    title="Cover times of a chain under pure exploration",
    source=f"Of our own, after {runs.PAPER}, definition 1 and appendix A",
    claim="the steps until every state and action has been visited with probability "
    "0.5 grow polynomially with the chain if durations follow a zeta law, but "
    "exponentially if they are geometric.",
    config=Config(),
    quick=Config(sizes=(3, 6, 12), steps=2000, num_seeds=20),
    tasks=_tasks,
    compute=compute,
    panels=lambda config: [
      [
        _panel(config, xlabel="states |X|"),
        _panel(
          config,
          xlabel="states |X| (logarithmic)",
          xscale=("log", {"base": 2}),
        ),
      ]
    ],
    claims=_claims,
    caption="Points: medians over 100 trials with 95 % bootstrap intervals. Thin "
    "lines: 1/ρ(ω), the appendix's bounds, in draws. Hollow, at the dotted limit: "
    "half of the trials or more were given up.",
    kind="exploration",
    height=3.5,
  ),
)
