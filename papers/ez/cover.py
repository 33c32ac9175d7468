"""Cover times of a chain, for laws of durations (paper 1, definition 1)."""

import dataclasses
import math
from typing import Any

import numpy as np

from explorax.agents import ranges
from explorax.experiments.recording import drawing, statistics
from explorax.papers import panels, types
from explorax.papers.ez import comparisons, runs

_NUM_ACTIONS = 2


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure, which is not in the paper: all are our own."""

  sizes: tuple[int, ...] = (4, 6, 8, 12, 16, 24, 32)  # |X|.
  mu: float = 2.0  # Of the zeta law.
  decay: float = 0.5  # λ of the exponential law: 2 steps on average.
  longest: int = 8  # N of the uniform law.
  cap: int = 10_000  # Longest duration of the others.
  steps: int = 100_000  # Of a trial; the largest cover time.
  num_seeds: int = 100  # Trials.

  def __post_init__(self) -> None:
    ranges.rising(self, 3, "sizes")  # Needed to measure growth.
    ranges.at_least(self, 2, "sizes", "steps")
    ranges.at_least(self, 1, "longest", "cap", "num_seeds")
    # The laws of the appendix's bounds.
    ranges.inside(self, 1, math.inf, "mu")
    ranges.inside(self, 0, 1, "decay")

  @property
  def laws(self) -> list[tuple[str, float, str]]:
    """Each law, its parameter, and a label; ε-greedy is the law without repeats."""
    return [
      ("zeta", self.mu, f"zeta, μ = {self.mu:g}"),
      ("exponential", self.decay, f"exponential, λ = {self.decay:g}"),
      ("exponential", 0.0, "no repeats (ε-greedy)"),
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


def _run(settings: types.Settings, context: types.TaskContext) -> types.Results:
  """The step of the last pair's first visit, `[S]`; `steps` if one has no visit."""
  del context
  rule = runs.make_law(settings, epsilon=1.0)
  visits = runs.wander(
    runs.chain(settings["size"]), rule, settings["seeds"], settings["steps"], pairs=True
  )
  return {
    "cover_steps": visits["first_visits"].max(axis=(1, 2)),
    "covered": visits["visited"].all(axis=(1, 2)),
  }


def _draw(config: Config, table: types.Table) -> types.Drawing:
  fig, (axes,) = drawing.new(1, 2, width=4.6, height=3.6)
  sizes = np.array(config.sizes)
  for ax in axes:
    for index, (law, parameter, label) in enumerate(config.laws):
      steps = table.per_seed("cover_steps", law=law, parameter=parameter)
      median: Any = {"statistic": statistics.median_over_seeds, "markers": True}
      drawing.curve(ax, sizes, steps, label=label, index=index, **median)
      bound = _bound(law, parameter, sizes)
      if bound is not None:
        color = drawing.style(index).color
        ax.plot(sizes, bound, color=color, linewidth=0.8, alpha=0.7)
    ax.axhline(config.steps, color=panels.GREY, linestyle=":", linewidth=1)
    ax.set(xlabel="states |X|", yscale="log", ylim=(5, 30 * config.steps))
    ax.grid(alpha=0.3, which="both")
  axes[0].set_ylabel("cover time (steps, median)")
  axes[1].set_xscale("log", base=2)
  axes[1].set_xlabel("states |X| (logarithmic)")
  axes[1].legend(fontsize="small", loc="upper left")
  return fig


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  findings, sizes = [], np.array(config.sizes)
  for law, parameter, label in config.laws:
    if law == "uniform":
      continue
    values = table.per_seed("cover_steps", law=law, parameter=parameter)
    medians = np.median(values, axis=0)
    words = comparisons.up_to(medians, config.steps)
    kind = "polynomial" if law == "zeta" else "exponential"
    held, reached = None, medians < config.steps
    if reached.sum() >= 3:
      as_power = _misfit(np.log(sizes[reached]), np.log(medians[reached]))
      as_exponential = _misfit(sizes[reached], np.log(medians[reached]))
      held = (as_power < as_exponential) == (law == "zeta")
      words += (
        f"; root mean squared misfit of the logarithm {as_power:.2f} as a power, "
        f"{as_exponential:.2f} as an exponential"
      )
    findings.append(
      types.Finding(
        f"{label}: the cover time is {kind} in |X|",
        f"medians at {', '.join(map(str, sizes))}: {words}",
        held,
      )
    )
  return findings


def _misfit(x: np.ndarray, y: np.ndarray) -> float:
  """The root mean squared error of the best straight line."""
  return float(np.sqrt(np.mean((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2)))


def _bound(law: str, parameter: float, sizes: np.ndarray) -> np.ndarray | None:
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
  if law == "exponential" and parameter > 0:
    return _NUM_ACTIONS / (1 - parameter) * parameter ** -(sizes - 1.0)
  return None


FIGURES = (
  types.Figure(
    name="ez/cover",
    title="Cover times of a chain under pure exploration",
    source=f"Of our own, after {runs.PAPER}, definition 1 and appendix A",
    claim="the steps until every state and action has been visited with probability "
    "0.5 grow polynomially with the chain if durations follow a zeta law, but "
    "exponentially if they are geometric. Thin lines: 1/ρ(ω), the appendix's bounds, "
    "in draws; dotted: given up.",
    config=Config(),
    quick=Config(sizes=(3, 6, 12), steps=2000, num_seeds=20),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
