"""Paper 5's operators on random decision processes: tests of table 1."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import scipy  # It imports `stats` when it is first used.

from explorax import ranges
from explorax.experiments.recording import drawing, statistics
from explorax.papers import claims, layers, panels, types
from explorax.papers.retrace import measurements

_SLACK = 1e-4  # Of float32.
_MEASURED = "non_markov_retrace"  # Equation 10's trace, without exact moments.
_LABELS = {
  "importance_sampling": "importance sampling",
  "harutyunyan_q_lambda": "Q^π(λ), Harutyunyan's",
  "tree_backup": "tree-backup(λ)",
  "retrace": "Retrace(λ)",
  "non_markov_retrace": "equation 10's trace",
  "expected_sarsa_lambda": "expected SARSA(λ), uncorrected",
}


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure: ours, since the paper has none on this scale."""

  num_states: types.Size = 6
  num_actions: types.Size = 4
  concentration: ranges.PositiveFloat = (
    0.3  # Of transitions: about two likely successors each.
  )
  discount: Annotated[float, ranges.Range(gt=0, lt=1)] = 0.9
  lambdas: tuple[ranges.Probability, ...] = (0.25, 0.5, 0.75, 1.0)
  num_distances: types.Size = 25  # From ‖π − μ‖₁ = 0 to the farthest.
  worst_share: ranges.BelowOne = (
    0.95  # Of control's μ that takes the action worst by Q*.
  )
  num_iterations: ranges.PositiveInt = 150  # Of control.
  distance: ranges.PositiveFloat = (
    0.8  # ‖π − μ‖₁ in each state, where returns are sampled.
  )
  # Transitions in a return.
  lengths: types.Rising[ranges.PositiveInt] = (1, 2, 4, 8, 16, 32)
  num_trajectories: types.Size = 100  # From each pair of each process.
  num_seeds: ranges.PositiveInt = 100  # Decision processes, each with its policies.

  def __post_init__(self) -> None:
    super().__post_init__()
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


def _compute(settings: types.Settings) -> types.Results:
  return _PARTS[settings["part"]][0](settings)


def _label(kind: str) -> str:
  return _LABELS[kind].replace("Q^π", r"$Q^\pi$")


def _at_one(kind: str) -> str:
  """The label of a return at λ = 1."""
  return _label(kind).partition(",")[0].replace("λ", "1")


def _panels(config: Config) -> list[list[panels.Panel]]:
  returns: dict[str, Any] = {
    "where": {"part": "returns"},
    "xlabel": "transitions in the return",
    "xscale": ("log", {"base": 2}),
    "xticks": config.lengths,
    "xticklabels": config.lengths,
  }
  return [
    [_contraction_panel(config, kind) for kind in measurements.CONTRACTING],
    [
      panels.Panel(
        _draw_control,
        where={"part": "control"},
        legend="row",
        xlabel="iterations k",
        ylabel=r"$\|Q_k - Q^*\|_\infty$, geometric mean",
        yscale="log",
        ylim=(1e-6, 1e6),
      ),
      panels.Panel(
        *_by_kind(config.lengths, "bias"),
        title="bias of a return",
        ylabel="bias / error of $Q$",
        legend="row",
        **returns,
      ),
      panels.Panel(
        *_by_kind(config.lengths, "std"),
        *_by_kind(config.lengths, "measured", thin={"linestyle": "", "markersize": 4}),
        title="standard deviation of a return",
        ylabel="std. / error of $Q$",
        yscale="log",
        legend="row",
        **returns,
      ),
    ],
  ]


def _by_kind(
  lengths: Sequence[int], name: str, thin: Mapping[str, Any] | None = None
) -> list[panels.Layer]:
  """A line for each kind of return; equation 10's has no exact standard deviation."""
  return [
    layers.Curves(
      f"{kind}_{name}",
      {"_" * (thin is not None and kind != _MEASURED) + _at_one(kind): {}},
      lengths,
      markers=thin is not None,
      thin=thin,
      among=["Q*", *map(_at_one, measurements.RETURNS)],
    )
    for kind in measurements.RETURNS
    if kind != _MEASURED or name != "std"
  ]


def _contraction_panel(config: Config, kind: str) -> panels.Panel:
  discount = config.discount
  labels = [f"λ = {lambda_:g}" for lambda_ in config.lambdas]
  ticks = [0, 0.5, discount, 2, 5, 10]

  def factors(index: int, table: types.Table) -> np.ndarray:
    return np.asarray(table[0].results[kind][index])

  def bounds(axes: types.Axes, table: types.Table) -> None:
    """Stars where Q^π(λ)'s bound on the distance is."""
    x = table[0].results["distances"]
    for i, lambda_ in enumerate(config.lambdas):
      bound = (1 - discount) / (discount * lambda_) if lambda_ else np.inf
      if bound <= x[-1]:
        height = np.interp(bound, x, np.mean(factors(i, table), axis=0))
        color = [*drawing.styles(labels).values()][i].color
        axes.plot(bound, height, "*", color=color, ms=11, mec="black", zorder=5)
    axes.plot([], [], "*", color="white", ms=11, mec="black", label="its bound")

  return panels.Panel(
    *(
      layers.Curves(
        functools.partial(factors, i),
        {label: {}},
        lambda table: table[0].results["distances"],
        among=labels,
      )
      for i, label in enumerate(labels)
    ),
    *([bounds] if kind == "harutyunyan_q_lambda" else []),
    layers.horizontal(1, color="black"),
    layers.horizontal(discount, color="black", linestyle=":"),
    where={"part": "contraction"},
    share_y=True,
    legend="row",
    title=_label(kind),
    xlabel="off-policyness ‖π − μ‖₁",
    ylabel=r"factor on $\|Q - Q^\pi\|_\infty$",
    yscale=("symlog", {"linthresh": 1}),
    yticks=ticks,
    yticklabels=[f"γ = {t:g}" if t == discount else f"{t:g}" for t in ticks],
  )


def _diverged(results: types.Results) -> np.ndarray:
  """Whether Q*(1) ends farther from Q* than its pessimistic start, bool `[N]`."""
  errors = results["q_star"]
  return np.asarray(errors[:, -1] > errors[:, 0])


def _draw_control(axes: types.Axes, table: types.Table) -> None:
  """Errors on the processes where Q*(1) diverges, or on all if it does on none."""
  (task,), (discount,) = table, table.values("discount")
  diverged = _diverged(task.results)
  chosen = diverged if np.any(diverged) else np.ones_like(diverged)
  names = {"q_star": "Q*", "q_star_within": "Q*"}
  names |= {"retrace": "Retrace", "tree_backup": "tree-backup"}
  lambdas = measurements.control_runs(discount)
  labels = {f"{label}({lambdas[name][1]:.3g})": name for name, label in names.items()}
  for label, style in drawing.styles([*labels]).items():
    errors = np.maximum(task.results[labels[label]][chosen], 1e-7)
    drawing.seeds(
      axes,
      np.arange(errors.shape[1]),
      errors,
      label=label,
      style=style,
      statistic=scipy.stats.gmean,
    )
  of = "diverges" if np.any(diverged) else "does not diverge"
  axes.set_title(f"control, where Q*(1) {of}")


def _safe(table: types.Table) -> tuple[str, bool]:
  retrace, tree_backup = (
    np.max(table[0].results[kind]) for kind in ("retrace", "tree_backup")
  )
  (discount,) = table.values("discount")
  return (
    f"greatest factor {retrace:.4f} and {tree_backup:.4f}, γ = {discount:g}",
    bool(max(retrace, tree_backup) <= discount + _SLACK),
  )


def _bounded(table: types.Table) -> tuple[str, bool]:
  ((_, settings, results, *_),) = table
  discount = settings["discount"]
  lambdas = np.array(settings["lambdas"])[:, None, None]
  factors, radius = results["harutyunyan_q_lambda"], results["radius"]
  within = lambdas * discount * results["distances"] < 1 - discount
  within = np.broadcast_to(within, factors.shape)
  worst = np.max(factors[within], initial=0.0)
  expands, diverges = (
    np.mean(x[~within] > 1 + _SLACK) if not within.all() else 0.0
    for x in (factors, radius)
  )
  return (
    f"greatest factor within {worst:.4f}; beyond, it expands in {expands:.1%} of the "
    f"cases, and repeating it diverges in {diverges:.1%}"
  ), bool(worst < 1 + _SLACK and expands > 0)


def _efficient(table: types.Table) -> tuple[str, bool | None]:
  ((_, settings, results, *_),) = table
  at = int(np.argmax(settings["lambdas"]))
  gaps = results["retrace"][at, :, :2] - results["tree_backup"][at, :, :2]
  difference, near = statistics.bootstrap(gaps), results["distances"][1]
  return (
    f"factors less tree-backup's: {difference.at(0).to_text('.3f')} at ‖π − μ‖₁ = 0, "
    f"{difference.at(1).to_text('.3f')} at {near:.2g}"
  ), claims.all_hold(difference.at(i).is_below() for i in range(2))


def _only_q_star_diverges(table: types.Table) -> tuple[str, bool]:
  results = table[0].results
  diverged = _diverged(results)
  worst = max(
    np.max(results[name][:, -1] / results[name][:, 0])
    for name in ("retrace", "tree_backup", "q_star_within")
  )
  return (
    f"Q*(1) ends farther than it began on {diverged.sum()} of {len(diverged)}; the "
    f"others keep at most {worst:.2g} of their error"
  ), bool(diverged.any() and worst < 0.1)


def _highest_variance(table: types.Table) -> tuple[str, bool | None]:
  ((_, settings, results, *_),) = table
  stds = {
    kind: results[f"{kind}_{'measured' if kind == _MEASURED else 'std'}"][:, -1]
    for kind in measurements.RETURNS
  }
  own = stds.pop("importance_sampling")
  ratios = {kind: statistics.mean(np.log(own / std)) for kind, std in stds.items()}
  closest = min(ratios, key=lambda kind: ratios[kind].value)
  return (
    f"at {settings['lengths'][-1]} transitions, exactly computed, "
    f"{ratios[closest].map(np.exp).to_text()} times the standard deviation of the "
    f"next, {_LABELS[closest]}"
  ), claims.all_hold(ratio.is_above() for ratio in ratios.values())


_CLAIMS = (
  claims.Check(
    "Retrace and tree-backup contract by γ or better, at every μ and λ tried",
    _safe,
    {"part": "contraction"},
  ),
  claims.Check(
    "Q^π(λ) contracts for λ < (1 − γ)/(γ‖π − μ‖₁), and may expand beyond",
    _bounded,
    {"part": "contraction"},
  ),
  claims.Check(
    "Retrace contracts more than tree-backup near on-policy (λ = 1)",
    _efficient,
    {"part": "contraction"},
    test="bootstrap intervals",
  ),
  claims.Check(
    "Q*(1) may diverge, and Retrace(1), tree-backup(1) and Q*(λ) within its bound do "
    "not, on the same processes",
    _only_q_star_diverges,
    {"part": "control"},
  ),
  claims.Check(
    "importance sampling has the highest variance of all",
    _highest_variance,
    {"part": "returns"},
    test="t-intervals of the ratios",
  ),
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
    compute=_compute,
    panels=_panels,
    claims=lambda config: _CLAIMS,
    caption="Above: the greatest factor by which an operator changes an error, against "
    "the distance of the policies; a star is at Q^π(λ)'s bound. Below, left: control "
    "with a fixed behaviour, on the processes on which Q*(1) diverges, where "
    "Retrace(1), tree-backup(1) and Q*(0.05) coincide; middle and right: returns at "
    "λ = 1 and ‖π − μ‖₁ = 0.8, where lines are exact and marks measured, with too few "
    "trajectories for importance sampling's rare great weights at 32 transitions. "
    "Means over 100 decision processes (control: geometric); bands: 95 % bootstrap "
    "intervals.",
    kind="operator",
    height=3.3,
  ),
)
