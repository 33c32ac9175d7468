"""Paper 5's theorems 1 and 2: its operators on random decision processes."""

from typing import Any

import numpy as np

from explorax.losses import traces
from explorax.papers import draw, figures, judge
from explorax.papers.retrace import scores
from explorax.papers.tabular import operators

_TRACES = {
  "retrace": traces.retrace,
  "tree_backup": traces.tree_backup,
  "harutyunyan": traces.harutyunyan_q_lambda,
}
_DISCOUNT = 0.9
# Ours, since the paper has no experiment of this size. With a concentration of 0.3 a
# pair has about two likely successors.
_PROCESSES: dict[str, Any] = {
  "num_states": 6,
  "num_actions": 4,
  "concentration": 0.3,
  "discount": _DISCOUNT,
}
_RETRACE = {"trace": "retrace", "lambda": 1.0}
_TREE_BACKUP = {"trace": "tree_backup", "lambda": 1.0}
_UNCORRECTED = {"trace": "harutyunyan", "lambda": 1.0}
# Within its bound for control, (1 − γ)/(2γ) (section 2).
_WITHIN = {"trace": "harutyunyan", "lambda": 0.05}
_LINES = {
  "Q(1) of Harutyunyan et al.": _UNCORRECTED,
  "Retrace(1)": _RETRACE,
  "Tree-backup(1)": _TREE_BACKUP,
}
_EVALUATION, _CONTROL = {"num_iterations": None}, {"num_iterations": bool}
_SLACK = 1e-5  # Traces are float32.
_HUGE = 1e30  # Above this error, the iteration has diverged, and stops.


def _draw(settings: figures.Settings) -> tuple[operators.MDP, np.ndarray]:
  names = "seeds", "num_states", "num_actions", "concentration"
  return operators.draw(*(settings[name] for name in names))


def _operator(settings: figures.Settings) -> tuple[traces.Trace, float, float]:
  return _TRACES[settings["trace"]], settings["discount"], settings["lambda"]


def evaluation(settings: figures.Settings) -> figures.Results:
  """The factor of ‖Q − Q^π‖∞ against the policies' distance, `[S, D]`.

  The distances `[S, D]` are up to the farthest that every π has, 2 (1 − 1/A).
  """
  mdp, pi = _draw(settings)
  farthest = 2 * (1 - 1 / settings["num_actions"])
  distances = np.linspace(0, farthest, settings["num_distances"])
  trace, discount, lambda_ = _operator(settings)
  policies = [operators.away_from(pi, x) for x in distances]
  factors = [
    operators.contraction(trace, mdp, pi, mu, discount, lambda_) for mu in policies
  ]
  return {
    "factor": np.stack(factors, axis=1).astype(np.float32),
    "distance": np.tile(distances, (len(pi), 1)).astype(np.float32),
  }


def control(settings: figures.Settings) -> figures.Results:
  """‖Q_k − Q*‖∞ of Q_{k+1} = RQ_k with a greedy π, `[S, K + 1]`.

  μ is fixed: it mostly takes the worst action by Q*. Q_0 is pessimistic,
  −R_max/(1 − γ), as theorem 2 requires.
  """
  trace, discount, lambda_ = _operator(settings)
  mdp, _ = _draw(settings)
  best = operators.q_star(mdp, discount)
  share = settings["worst_share"]
  mu = share * operators.greedy(-best) + (1 - share) * operators.greedy(best)
  greatest = np.max(np.abs(mdp.rewards), axis=(1, 2), keepdims=True)
  q = np.tile(-greatest / (1 - discount), best.shape[1:])
  errors = []
  for _ in range(settings["num_iterations"] + 1):
    errors.append(np.max(np.abs(q - best), axis=(1, 2)))
    new = operators.apply(trace, mdp, operators.greedy(q), mu, q, discount, lambda_)
    q = np.where((errors[-1] > _HUGE)[:, None, None], q, new)
  return {"error": np.stack(errors, axis=1).astype(np.float32)}


def _safe(table: figures.Table) -> tuple[bool, str, None]:
  worst = max(task.results["factor"].max() for task in table)
  return (
    bool(worst <= _DISCOUNT + _SLACK),
    f"greatest factor {worst:.4f}, γ = 0.9",
    None,
  )


def _bounded(table: figures.Table) -> tuple[bool, str, None]:
  within, beyond = [], []
  for task in table:
    bounded = task.settings["lambda"] * task.results["distance"] * _DISCOUNT
    inside = bounded < 1 - _DISCOUNT
    within.append(task.results["factor"][inside])
    beyond.append(task.results["factor"][~inside])
  worst = np.concatenate(within).max()
  expands = np.mean(np.concatenate(beyond) > 1 + _SLACK)
  words = f"greatest factor within {worst:.4f}; beyond, it expands in {expands:.1%}"
  return bool(worst < 1 + _SLACK and expands > 0), words, None


def _near(table: figures.Table) -> np.ndarray:
  """The factors at the first distance above 0."""
  return table.joined("factor")[:, 1]


def _only_uncorrected(table: figures.Table) -> tuple[bool, str, None]:
  errors = table.where(**_UNCORRECTED).joined("error")
  diverged = errors[:, -1] > errors[:, 0]
  others = [table.where(**x).joined("error") for x in (_RETRACE, _TREE_BACKUP, _WITHIN)]
  left = max(np.max(x[:, -1] / x[:, 0]) for x in others)
  words = f"ends farther than it began on {diverged.sum()} of {len(diverged)}"
  words += f"; the others keep at most {left:.2g} of their error"
  return bool(diverged.any() and left < 0.1), words, None


def _upper_decile(errors: np.ndarray, axis: int) -> np.ndarray:
  return np.asarray(np.quantile(errors, 0.9, axis=axis))


FIGURES = (
  figures.Figure(
    name="retrace/operators",
    title="Off-policy operators: contraction in evaluation, convergence in control",
    source=f"Our own, of {scores.PAPER}, table 1 and theorems 1 and 2",
    runs=[
      figures.Grid(
        evaluation,
        [{"trace": x} for x in _TRACES],
        {"lambda": (0.25, 0.5, 0.75, 1.0), **_PROCESSES, "num_distances": 25},
        num_seeds=100,
        seeds_per_task=100,
      ),
      figures.Grid(
        control,
        [*_LINES.values(), _WITHIN],
        {**_PROCESSES, "worst_share": 0.95, "num_iterations": 150},
        num_seeds=100,
        seeds_per_task=100,
      ),
    ],
    quick={"num_states": 4, "num_distances": 9, "num_iterations": 50, "num_seeds": 10},
    panels=[
      [
        draw.Curves(
          y="factor",
          lines=_LINES,
          where=_EVALUATION,
          x=lambda table: table.joined("distance")[0],
          guides=[
            draw.horizontal(1, color="black"),
            draw.horizontal(_DISCOUNT, color="black", linestyle=":"),
          ],
          axes={
            "title": "evaluation: greatest factor",
            "xlabel": "off-policyness ‖π − μ‖₁",
            "ylabel": r"factor of $\|Q - Q^\pi\|_\infty$",
            "yscale": ("symlog", {"linthresh": 1}),
            "yticks": (0, 0.5, _DISCOUNT, 2, 5, 10),
            "yticklabels": ("0", "0.5", "γ = 0.9", "2", "5", "10"),
          },
        ),
        draw.Curves(
          y="error",
          lines=_LINES,
          where=_CONTROL,
          x=lambda table: np.arange(table.joined("error").shape[1]),
          statistic=_upper_decile,
          axes={
            "title": "control: error by iteration",
            "xlabel": "iterations k",
            "ylabel": r"$\|Q_k - Q^*\|_\infty$, upper decile",
            "yscale": "log",
            "ylim": (1e-6, 1e6),
          },
        ),
      ]
    ],
    claims=[
      judge.Check(
        "Retrace and tree-backup contract by γ or better, at every μ and λ tried",
        _safe,
        {"trace": ("retrace", "tree_backup"), **_EVALUATION},
      ),
      judge.Check(
        "Q^π(λ) contracts for λ < (1 − γ)/(γ‖π − μ‖₁), and may expand beyond",
        _bounded,
        {"trace": "harutyunyan", **_EVALUATION},
      ),
      judge.Above(
        "Retrace contracts more than tree-backup near on-policy (λ = 1)",
        _near,
        {**_RETRACE, **_EVALUATION},
        {**_TREE_BACKUP, **_EVALUATION},
        less=True,
        test=judge.paired,
        spec="+.3f",
      ),
      judge.Check(
        "Q*(1) may diverge, and Retrace(1), tree-backup(1) and Q*(λ) within its bound "
        "do not, on the same processes",
        _only_uncorrected,
        _CONTROL,
      ),
    ],
  ),
)
