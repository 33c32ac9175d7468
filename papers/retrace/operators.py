"""Paper 5's operators on random decision processes: tests of table 1."""

import dataclasses

import numpy as np

from explorax.agents import ranges
from explorax.experiments.recording import drawing, statistics
from explorax.papers import claims, panels, types
from explorax.papers.retrace import measurements

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

  def __post_init__(self) -> None:
    ranges.at_least(self, 2, "num_states", "num_actions", "num_distances")
    ranges.at_least(self, 1, "num_iterations", "num_seeds")
    ranges.at_least(self, 2, "num_trajectories")
    ranges.at_least(self, 1, "lengths")
    ranges.positive(self, "concentration")
    ranges.inside(self, 0, 1, "discount")
    ranges.within(self, 0, 1, "lambdas")
    ranges.inside(self, -1e-9, 1, "worst_share")  # At 1, μ never explores.
    ranges.within(self, 0, measurements.max_distance(self.num_actions), "distance")
    ranges.positive(self, "distance")
    ranges.rising(self, 1, "lengths")
    if 1 not in self.lambdas:
      raise ValueError(
        f"lambdas is {self.lambdas}; it must have 1, which the claims are tested at."
      )


_SHARED = ("num_states", "num_actions", "concentration", "discount", "num_seeds")
# name → (its measurement, the other settings that it reads, its weight).
_PARTS = {
  "contraction": (measurements.contraction, ("lambdas", "num_distances"), 3.0),
  "control": (measurements.control, ("worst_share", "num_iterations"), 1.0),
  "returns": (
    measurements.sampled_returns,
    ("distance", "lengths", "num_trajectories"),
    3.0,
  ),
}


def _tasks(config: Config) -> list[types.Task]:
  return [
    types.Task(
      part,
      {"part": part, **{name: getattr(config, name) for name in (*_SHARED, *names)}},
      weight,
    )
    for part, (_, names, weight) in _PARTS.items()
  ]


def _run(settings: types.Settings, context: types.TaskContext) -> types.Results:
  return _PARTS[settings["part"]][0](settings, context)


def _parts(table: types.Table) -> dict[str, types.Results]:
  return {task.settings["part"]: task.results for task in table}


def _draw(config: Config, table: types.Table) -> types.Drawing:
  parts = _parts(table)
  fig, axes = drawing.new(2, 3, width=4.6, height=3.5)
  for panel, kind in zip(axes[0], measurements.CONTRACTING, strict=True):
    _draw_contraction(panel, config, parts["contraction"], kind)
  for panel in axes[0, 1:]:
    panel.sharey(axes[0, 0])
  _draw_control(axes[1, 0], config, parts["control"])
  _draw_returns(axes[1, 1], config, parts["returns"], "bias")
  _draw_returns(axes[1, 2], config, parts["returns"], "std")
  for panel in axes.flat:
    panel.grid(alpha=0.3)
  return fig


def _label(kind: str) -> str:
  return _LABELS[kind].replace("Q^π", r"$Q^\pi$")


def _draw_contraction(
  panel: types.Axes, config: Config, results: types.Results, kind: str
) -> None:
  x, discount = results["distances"], config.discount
  for i, lambda_ in enumerate(config.lambdas):
    factors = results[kind][i]
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


def _diverged(results: types.Results) -> np.ndarray:
  """Whether Q*(1) ends farther from Q* than its pessimistic start, bool `[N]`."""
  errors = results["q_star"]
  return errors[:, -1] > errors[:, 0]


def _draw_control(panel: types.Axes, config: Config, results: types.Results) -> None:
  diverged = _diverged(results)
  shown = diverged if np.any(diverged) else np.ones_like(diverged)
  runs = measurements.control_runs(config.discount)
  names = {"q_star": "Q*", "q_star_within": "Q*"}
  names |= {"retrace": "Retrace", "tree_backup": "Tree-backup"}
  errors = {
    f"{names[name]}({lambda_:.3g})": np.maximum(results[name][shown], 1e-7)
    for name, (_, lambda_) in runs.items()
  }
  iterations = np.arange(results["q_star"].shape[1])
  geometric = statistics.geometric_mean_over_seeds
  panels.curves(panel, iterations, errors, statistic=geometric)
  of = "diverges" if np.any(diverged) else "does not diverge"
  panels.finish(
    panel,
    title=f"control: the {np.sum(shown)} of {len(shown)} processes where Q*(1) {of}",
    legend="best",
    xlabel="iterations k",
    ylabel=r"$\|Q_k - Q^*\|_\infty$, geometric mean",
    yscale="log",
    ylim=(1e-6, 1e6),
  )


def _draw_returns(
  panel: types.Axes, config: Config, results: types.Results, what: str
) -> None:
  x = config.lengths
  for i, kind in enumerate(measurements.RETURNS):
    exact = results.get(f"{kind}_{what}")
    measured = results[f"{kind}_measured"]
    s = drawing.style(i)
    if exact is not None:
      drawing.curve(panel, x, exact, label=_label(kind), index=i)
    if what == "std":
      mean = np.mean(measured, axis=0)
      label = None if exact is not None else _label(kind)
      panel.plot(x, mean, s.marker, color=s.color, ms=5, label=label)
  name = {"bias": "bias", "std": "standard deviation"}[what]
  panel.set(
    title=f"λ = 1, ‖π − μ‖₁ = {config.distance:g}: {name} of a return",
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


def _judge(config: Config, table: types.Table) -> list[types.Finding]:
  parts = _parts(table)
  return [
    _safe(config, parts["contraction"]),
    _bounded(config, parts["contraction"]),
    _efficient(config, parts["contraction"]),
    _control(parts["control"]),
    _variance(config, parts["returns"]),
  ]


def _safe(config: Config, results: types.Results) -> types.Finding:
  worst = {kind: np.max(results[kind]) for kind in ("retrace", "tree_backup")}
  return types.Finding(
    "Retrace and tree-backup contract by γ or better, at every μ and λ tried",
    f"greatest factor {worst['retrace']:.4f} and {worst['tree_backup']:.4f}, "
    f"γ = {config.discount:g}",
    bool(max(worst.values()) <= config.discount + _SLACK),
  )


def _bounded(config: Config, results: types.Results) -> types.Finding:
  discount = config.discount
  lambdas = np.array(config.lambdas)[:, None, None]
  distances = results["distances"][None, None]
  factors, radius = results["harutyunyan_q_lambda"], results["radius"]
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


def _efficient(config: Config, results: types.Results) -> types.Finding:
  at = int(np.argmax(config.lambdas))
  retrace, tree_backup = (
    results[kind][at, :, :2] for kind in ("retrace", "tree_backup")
  )
  difference = statistics.bootstrap(retrace - tree_backup)
  near = results["distances"][1]
  return types.Finding(
    "Retrace contracts more than tree-backup near on-policy (λ = 1)",
    f"factors less tree-backup's: {difference.at(0).words('.3f')} at ‖π − μ‖₁ = 0, "
    f"{difference.at(1).words('.3f')} at {near:.2g}",
    claims.all_hold(difference.at(i).is_below() for i in range(2)),
  )


def _control(results: types.Results) -> types.Finding:
  diverged = int(np.sum(_diverged(results)))
  total = len(_diverged(results))
  worst = max(
    np.max(results[name][:, -1] / results[name][:, 0])
    for name in ("retrace", "tree_backup", "q_star_within")
  )
  return types.Finding(
    "Q*(1) may diverge, and Retrace(1), tree-backup(1) and Q*(λ) within its bound do "
    "not, on the same processes",
    f"Q*(1) ends farther than it began on {diverged} of {total}; the others keep at "
    f"most {worst:.2g} of their error",
    bool(diverged > 0 and worst < 0.1),
  )


def _variance(config: Config, results: types.Results) -> types.Finding:
  others = {}
  for kind in measurements.RETURNS[1:]:
    exact = f"{kind}_std"
    found = results[exact if exact in results else f"{kind}_measured"]
    others[kind] = found[:, -1]
  own = results["importance_sampling_std"][:, -1]
  ratios = {
    kind: statistics.mean(np.log(own / other)) for kind, other in others.items()
  }
  closest = min(ratios, key=lambda kind: ratios[kind].value)
  return types.Finding(
    "importance sampling has the highest variance of all",
    f"at {config.lengths[-1]} transitions, exactly computed, "
    f"{ratios[closest].map(np.exp).words()} times the standard deviation of the next, "
    f"{_LABELS[closest]}",
    claims.all_hold(ratio.is_above() for ratio in ratios.values()),
  )


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
