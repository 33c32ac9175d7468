"""Cover times of a chain, for laws of durations (paper 1, definition 1)."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from explorax.environments import chain
from explorax.experiments.figures import ez_chain, ez_runs, types
from explorax.experiments.recording import drawing

if TYPE_CHECKING:
  from matplotlib import figure as mpl_figure

_NUM_ACTIONS = 2


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure, which is not the paper's: all are our own."""

  sizes: tuple[int, ...] = (4, 6, 8, 12, 16, 24, 32)  # |X|.
  mu: float = 2.0  # Of the zeta law.
  decay: float = 0.5  # λ of the exponential law: 2 steps on the average.
  longest: int = 8  # N of the uniform law.
  cap: int = 10_000  # Longest duration of the others.
  steps: int = 100_000  # Of a trial: what is not covered by then counts as this.
  num_seeds: int = 100  # Trials.

  def __post_init__(self):
    ez_runs.check_not_empty(self, "sizes")
    ez_runs.check_at_least(self, sizes=2, mu=1, longest=1, cap=1, steps=2, num_seeds=1)
    if self.mu == 1 or not 0 < self.decay < 1:
      raise ValueError(
        f"mu is {self.mu} and decay {self.decay}; the bounds are of mu above 1 and "
        "decays between 0 and 1."
      )
    if len(self.sizes) < 3 or list(self.sizes) != sorted(self.sizes):
      raise ValueError(
        f"sizes is {self.sizes}; give at least 3, in rising order, to tell how the "
        "cover time grows."
      )


def _tasks(config: Config) -> list[types.Task]:
  # ε-greedy is the exponential law without repeats.
  laws = (
    ("zeta", config.mu),
    ("exponential", config.decay),
    ("exponential", 0.0),
    ("uniform", config.longest),
  )
  return [
    types.Task(
      f"{law}_{parameter:g}_{size}",
      {
        "law": law,
        "parameter": parameter,
        "size": size,
        "cap": config.cap,
        "steps": config.steps,
        "num_seeds": config.num_seeds,
      },
    )
    for law, parameter in laws
    for size in config.sizes
  ]


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  """The step at which the last pair was visited, `[S]`; all steps if some was not."""
  del tick
  size = settings["size"]
  visits = ez_runs.wander(
    chain.Chain(size),
    ez_chain.make_rule(
      settings["law"], settings["parameter"], epsilon=1.0, cap=settings["cap"]
    ),
    ez_runs.ChainCell(),
    size,
    num_seeds=settings["num_seeds"],
    num_steps=settings["steps"],
    shortest_episode=1,
    pairs=True,
  )
  return {
    "cover_steps": visits["first_visits"].max(axis=(1, 2)),
    "covered": visits["visited"].all(axis=(1, 2)),
  }


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  fig, axes = drawing.new(1, 2, width=4.6, height=3.6)
  steps = done[0].settings["steps"]
  for ax in axes.flat:
    for index, (law, parameter) in enumerate(_laws(done)):
      sizes, values = _cover_times(done, law, parameter)
      drawing.curve(
        ax,
        sizes,
        values,
        label=_label(law, parameter),
        index=index,
        statistic=_median,
        markers=True,
      )
      bound = _bound(law, parameter, sizes)
      if bound is not None:
        color = drawing.style(index).color
        ax.plot(sizes, bound, color=color, linewidth=0.8, alpha=0.7)
    ax.axhline(steps, color="#7F7F7F", linestyle=":", linewidth=1)
    ax.set(xlabel="states |X|", yscale="log", ylim=(5, 30 * steps))
    ax.grid(alpha=0.3, which="both")
  axes[0, 0].set_ylabel("cover time (steps, median)")
  axes[0, 1].set_xscale("log", base=2)
  axes[0, 1].set_xlabel("states |X| (logarithmic)")
  axes[0, 1].legend(fontsize="small", loc="upper left")
  return fig


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  findings = []
  for law, parameter in _laws(done):
    if law == "uniform":
      continue
    sizes, values = _cover_times(done, law, parameter)
    medians = np.median(values, axis=0)
    reached = medians < done[0].settings["steps"]
    words = ", ".join(
      f"{m:.0f}" if r else f">{m:.0f}" for m, r in zip(medians, reached, strict=True)
    )
    kind = "polynomial" if law == "zeta" else "exponential"
    held = None
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
        f"{_label(law, parameter)}: the cover time is {kind} in |X|",
        f"medians at {', '.join(map(str, sizes))}: {words}",
        held,
      )
    )
  return findings


def _misfit(x: np.ndarray, y: np.ndarray) -> float:
  """Of the best straight line: its root mean squared error."""
  return float(np.sqrt(np.mean((y - np.polyval(np.polyfit(x, y, 1), x)) ** 2)))


def _bound(law: str, parameter: float, sizes: np.ndarray) -> np.ndarray | None:
  """1/ρ(ω): the appendix's bound on the draws that it takes to cross the chain.

  |A||X|^μ ζ(μ) for the zeta law; for z(n) ∝ λ^{n−1}, |A|/(1 − λ)·λ^{−(|X|−1)}. It is
  no bound on steps, but what polynomial and exponential are said of.
  """
  if law == "zeta":
    # ζ(μ): the sum, and the integral of what it leaves out.
    n = np.arange(1, 10_001, dtype=np.float64)
    rest = (10_000.5) ** (1 - parameter) / (parameter - 1)
    zeta = np.sum(n**-parameter) + rest
    return _NUM_ACTIONS * sizes**parameter * zeta
  if law == "exponential" and parameter > 0:
    return _NUM_ACTIONS / (1 - parameter) * parameter ** -(sizes - 1.0)
  return None


def _laws(done: Sequence[types.Done]) -> list[tuple[str, float]]:
  return list(dict.fromkeys((t.settings["law"], t.settings["parameter"]) for t in done))


def _label(law: str, parameter: float) -> str:
  if law == "zeta":
    return f"zeta, μ = {parameter:g}"
  if law == "uniform":
    return f"uniform, N = {parameter:g}"
  return f"exponential, λ = {parameter:g}" if parameter else "no repeats (ε-greedy)"


def _cover_times(
  done: Sequence[types.Done], law: str, parameter: float
) -> tuple[np.ndarray, np.ndarray]:
  """The sizes, and the cover steps `[S, sizes]`."""
  tasks = types.select(done, law=law, parameter=parameter)
  steps = [task.results["cover_steps"] for task in tasks]
  return np.array([t.settings["size"] for t in tasks]), np.stack(steps, axis=1)


def _median(x: np.ndarray) -> np.ndarray:
  return np.median(x, axis=-2)


FIGURES = (
  types.Figure(
    name="ez/cover",
    title="Cover times of a chain under pure exploration",
    source=f"Of our own, after {ez_runs.PAPER}, definition 1 and appendix A",
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
