"""Paper 5's operators on random decision processes: what table 1 says, measured."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorax.experiments.figures import retrace_measurements, types
from explorax.experiments.recording import drawing, statistics

if TYPE_CHECKING:
  from matplotlib import axes as mpl_axes
  from matplotlib import figure as mpl_figure

_SLACK = 1e-4  # Of float32.
_LABELS = {
  "importance_sampling": "importance sampling",
  "harutyunyan_q_lambda": "Q^π(λ), Harutyunyan's",
  "tree_backup": "tree-backup(λ)",
  "retrace": "Retrace(λ)",
  "non_markov_retrace": "equation 10's trace",
  "expected_sarsa_lambda": "expected SARSA(λ), uncorrected",
}


@dataclasses.dataclass(frozen=True)
class Config:
  """Settings of the figure: ours, since the paper has none on this scale."""

  num_states: int = 6
  num_actions: int = 4
  concentration: float = 0.3  # Of transitions: about two likely successors each.
  discount: float = 0.9
  lambdas: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)
  num_distances: int = 25  # From ‖π − μ‖₁ = 0 to the farthest.
  worst_share: float = 0.95  # Of control's μ that takes the action worst by Q*.
  num_iterations: int = 150  # Of control.
  distance: float = 0.8  # ‖π − μ‖₁ in each state, where returns are sampled.
  lengths: tuple[int, ...] = (1, 2, 4, 8, 16, 32)  # Transitions in a return.
  num_trajectories: int = 100  # From each pair of each process.
  num_seeds: int = 100  # Decision processes, each with its policies.

  def __post_init__(self):
    farthest = retrace_measurements.max_distance(max(self.num_actions, 1))
    checks = {
      "num_states": (self.num_states >= 2, "at least 2"),
      "num_actions": (self.num_actions >= 2, "at least 2"),
      "concentration": (self.concentration > 0, "above 0"),
      "discount": (0 < self.discount < 1, "in (0, 1)"),
      "lambdas": (
        1 in self.lambdas and all(0 <= x <= 1 for x in self.lambdas),
        "numbers in [0, 1], 1 among them, which the claims are tested at",
      ),
      "num_distances": (self.num_distances >= 2, "at least 2"),
      "worst_share": (0 <= self.worst_share < 1, "in [0, 1), or μ never explores"),
      "num_iterations": (self.num_iterations >= 1, "at least 1"),
      "distance": (
        0 < self.distance <= farthest,
        f"in (0, {farthest:.4g}], what {self.num_actions} actions allow",
      ),
      "lengths": (
        min(self.lengths, default=0) >= 1
        and list(self.lengths) == sorted(set(self.lengths)),
        "whole numbers of at least 1 that rise",
      ),
      "num_trajectories": (self.num_trajectories >= 2, "at least 2"),
      "num_seeds": (self.num_seeds >= 1, "at least 1"),
    }
    for name, (right, needed) in checks.items():
      if not right:
        raise ValueError(f"{name} is {getattr(self, name)}; it must be {needed}.")


_SHARED = ("num_states", "num_actions", "concentration", "discount", "num_seeds")
_PARTS = {
  "contraction": (retrace_measurements.contraction, ("lambdas", "num_distances")),
  "control": (retrace_measurements.control, ("worst_share", "num_iterations")),
  "returns": (
    retrace_measurements.sampled_returns,
    ("distance", "lengths", "num_trajectories"),
  ),
}
_WEIGHTS = {"contraction": 3.0, "control": 1.0, "returns": 3.0}


def _tasks(config: Config) -> list[types.Task]:
  def setting(name: str) -> Any:
    value = getattr(config, name)
    return list(value) if isinstance(value, tuple) else value

  return [
    types.Task(
      part,
      {"part": part, **{name: setting(name) for name in (*_SHARED, *names)}},
      _WEIGHTS[part],
    )
    for part, (_, names) in _PARTS.items()
  ]


def _run(settings: types.Settings, tick: types.Tick) -> types.Results:
  measure, _ = _PARTS[settings["part"]]
  return measure(settings, tick)


def _parts(done: Sequence[types.Done]) -> dict[str, types.Done]:
  return {task.settings["part"]: task for task in done}


def _draw(done: Sequence[types.Done]) -> "mpl_figure.Figure":
  parts = _parts(done)
  fig, axes = drawing.new(2, 3, width=4.6, height=3.5)
  kinds = retrace_measurements.CONTRACTING
  for panel, kind in zip(axes[0], kinds, strict=True):
    _draw_contraction(panel, parts["contraction"], kind)
  for panel in axes[0, 1:]:
    panel.sharey(axes[0, 0])
  _draw_control(axes[1, 0], parts["control"])
  _draw_returns(axes[1, 1], parts["returns"], "bias")
  _draw_returns(axes[1, 2], parts["returns"], "std")
  for panel in axes.flat:
    panel.grid(alpha=0.3)
  return fig


def _label(kind: str) -> str:
  return _LABELS[kind].replace("Q^π", r"$Q^\pi$")


def _draw_contraction(panel: "mpl_axes.Axes", task: types.Done, kind: str) -> None:
  x, discount = task.results["distances"], task.settings["discount"]
  for i, lambda_ in enumerate(task.settings["lambdas"]):
    factors = task.results[kind][i]
    drawing.curve(panel, x, factors, label=f"λ = {lambda_:g}", index=i)
    if kind == "harutyunyan_q_lambda" and lambda_ > 0:
      bound = (1 - discount) / (discount * lambda_)
      if bound <= x[-1]:
        height = np.interp(bound, x, np.mean(factors, axis=0))
        color = drawing.style(i).color
        panel.plot(bound, height, "*", color=color, ms=11, mec="black", zorder=5)
  if kind == "harutyunyan_q_lambda":
    panel.plot([], [], "*", color="white", ms=11, mec="black", label="its bound")
  panel.axhline(1, color="black", linewidth=0.8)
  panel.axhline(discount, color="black", linewidth=0.8, linestyle=":")
  panel.set(
    title=f"{_label(kind)}: contraction",
    xlabel="off-policyness ‖π − μ‖₁",
    ylabel=r"greatest factor on $\|Q - Q^\pi\|_\infty$",
  )
  panel.set_yscale("symlog", linthresh=1)
  ticks = [0, 0.5, discount, 2, 5, 10]
  panel.set_yticks(ticks, [f"γ = {t:g}" if t == discount else f"{t:g}" for t in ticks])
  panel.legend(fontsize="small")


def _diverged(task: types.Done) -> np.ndarray:
  """Where Q*(1) ends farther from Q* than its pessimistic start was, bool `[N]`."""
  errors = task.results["q_star"]
  return errors[:, -1] > errors[:, 0]


def _draw_control(panel: "mpl_axes.Axes", task: types.Done) -> None:
  diverged = _diverged(task)
  shown = diverged if np.any(diverged) else np.ones_like(diverged)
  runs = retrace_measurements.control_runs(task.settings["discount"])
  names = {"q_star": "Q*", "q_star_within": "Q*"}
  names |= {"retrace": "Retrace", "tree_backup": "Tree-backup"}
  for i, (name, (_, lambda_)) in enumerate(runs.items()):
    errors = np.maximum(task.results[name][shown], 1e-7)
    drawing.curve(
      panel,
      np.arange(errors.shape[1]),
      errors,
      label=f"{names[name]}({lambda_:.3g})",
      index=i,
      statistic=_geometric_mean,
    )
  of = "diverges" if np.any(diverged) else "does not diverge"
  panel.set(
    title=f"control: the {np.sum(shown)} of {len(shown)} processes where Q*(1) {of}",
    xlabel="iterations k",
    ylabel=r"$\|Q_k - Q^*\|_\infty$, geometric mean",
    yscale="log",
    ylim=(1e-6, 1e6),
  )
  panel.title.set_fontsize("medium")
  panel.legend(fontsize="small")


def _geometric_mean(x: np.ndarray) -> np.ndarray:
  return np.exp(np.mean(np.log(x), axis=-2))


def _draw_returns(panel: "mpl_axes.Axes", task: types.Done, what: str) -> None:
  x = task.settings["lengths"]
  for i, kind in enumerate(retrace_measurements.RETURNS):
    exact = task.results.get(f"{kind}_{what}")
    measured = task.results[f"{kind}_measured"]
    s = drawing.style(i)
    if exact is not None:
      drawing.curve(panel, x, exact, label=_label(kind), index=i)
    if what == "std":
      mean = np.mean(measured, axis=0)
      label = None if exact is not None else _label(kind)
      panel.plot(x, mean, s.marker, color=s.color, ms=5, label=label)
  distance = task.settings["distance"]
  name = {"bias": "bias", "std": "standard deviation"}[what]
  panel.set(
    title=f"λ = 1, ‖π − μ‖₁ = {distance:g}: {name} of a return",
    xlabel="transitions in the return",
    ylabel=f"{name} / error of $Q$",
    xscale="log",
    yscale="linear" if what == "bias" else "log",
  )
  panel.title.set_fontsize("medium")
  panel.set_xticks(x, [str(length) for length in x])
  panel.minorticks_off()
  if what == "std":
    panel.plot([], [], "o", color="grey", ms=5, label="(marks: measured)")
  panel.legend(fontsize="x-small")


def _judge(done: Sequence[types.Done]) -> list[types.Finding]:
  parts = _parts(done)
  return [
    _safe(parts["contraction"]),
    _bounded(parts["contraction"]),
    _efficient(parts["contraction"]),
    _control(parts["control"]),
    _variance(parts["returns"]),
  ]


def _safe(task: types.Done) -> types.Finding:
  worst = {kind: np.max(task.results[kind]) for kind in ("retrace", "tree_backup")}
  return types.Finding(
    "Retrace and tree-backup contract by γ or better, at every μ and λ tried",
    f"greatest factor {worst['retrace']:.4f} and {worst['tree_backup']:.4f}, "
    f"γ = {task.settings['discount']:g}",
    bool(max(worst.values()) <= task.settings["discount"] + _SLACK),
  )


def _bounded(task: types.Done) -> types.Finding:
  discount = task.settings["discount"]
  lambdas = np.array(task.settings["lambdas"])[:, None, None]
  distances = task.results["distances"][None, None]
  factors, radius = task.results["harutyunyan_q_lambda"], task.results["radius"]
  within = np.broadcast_to(lambdas * discount * distances < 1 - discount, factors.shape)
  worst = np.max(factors[within], initial=0.0)
  beyond = factors[~within]
  expands = np.mean(beyond > 1 + _SLACK) if beyond.size else 0.0
  diverges = np.mean(radius[~within] > 1 + _SLACK) if beyond.size else 0.0
  return types.Finding(
    "Q^π(λ) contracts for λ < (1 − γ)/(γ‖π − μ‖₁), and may expand beyond",
    f"greatest factor within {worst:.4f}; beyond, it expands in {expands:.1%} of the "
    f"cases, and repeating it diverges in {diverges:.1%}",
    bool(worst < 1 + _SLACK and expands > 0),
  )


def _efficient(task: types.Done) -> types.Finding:
  at = int(np.argmax(task.settings["lambdas"]))
  retrace, tree_backup = (
    task.results[kind][at, :, :2] for kind in ("retrace", "tree_backup")
  )
  difference = statistics.bootstrap(retrace - tree_backup)
  near = task.results["distances"][1]
  return types.Finding(
    "Retrace contracts more than tree-backup near on-policy (λ = 1)",
    f"factors less tree-backup's: {_interval(difference, 0)} at ‖π − μ‖₁ = 0, "
    f"{_interval(difference, 1)} at {near:.2g}",
    bool(np.all(difference.high < 0)),
  )


def _control(task: types.Done) -> types.Finding:
  diverged = int(np.sum(_diverged(task)))
  total = len(_diverged(task))
  worst = max(
    np.max(task.results[name][:, -1] / task.results[name][:, 0])
    for name in ("retrace", "tree_backup", "q_star_within")
  )
  return types.Finding(
    "Q*(1) may diverge, and Retrace(1), tree-backup(1) and Q*(λ) within its bound do "
    "not, on the same processes",
    f"Q*(1) ends farther than it began on {diverged} of {total}; the others keep at "
    f"most {worst:.2g} of their error",
    bool(diverged > 0 and worst < 0.1),
  )


def _variance(task: types.Done) -> types.Finding:
  results = task.results
  others = {
    kind: results.get(f"{kind}_std", results[f"{kind}_measured"])[:, -1]
    for kind in retrace_measurements.RETURNS
    if kind != "importance_sampling"
  }
  own = results["importance_sampling_std"][:, -1]
  ratios = {
    kind: statistics.bootstrap(np.log(own / other)[:, None])
    for kind, other in others.items()
  }
  closest = min(ratios, key=lambda kind: ratios[kind].value[0])
  times = [float(np.exp(bound[0])) for bound in ratios[closest]]
  return types.Finding(
    "importance sampling has the highest variance of all",
    f"at {task.settings['lengths'][-1]} transitions, exactly computed, {times[0]:.3g} "
    f"(95 %: {times[1]:.3g} to {times[2]:.3g}) times the standard deviation of the "
    f"next, {_LABELS[closest]}",
    bool(all(ratio.low[0] > 0 for ratio in ratios.values())),
  )


def _interval(interval: statistics.Interval, at: int) -> str:
  value, low, high = (bound[at] for bound in interval)
  return f"{value:.3f} ({low:.3f} to {high:.3f})"


FIGURES = (
  types.Figure(
    name="retrace/operators",
    title="Off-policy returns: contraction, control, bias and variance",
    source="Our own, of Munos et al. (2016), Safe and efficient off-policy "
    "reinforcement learning, table 1 and theorems 1 and 2",
    claim="Retrace and tree-backup converge for all policies, Q(λ) of Harutyunyan et "
    "al. only where μ is close to π; Retrace uses full returns near on-policy, which "
    "tree-backup does not; importance sampling has a high variance.",
    config=Config(),
    quick=Config(
      num_states=4,
      num_actions=3,
      num_distances=9,
      num_iterations=100,
      lengths=(1, 4, 16),
      num_trajectories=20,
      num_seeds=10,
    ),
    tasks=_tasks,
    run=_run,
    draw=_draw,
    judge=_judge,
  ),
)
