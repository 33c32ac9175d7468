"""Paper 5's theorems 1 and 2: its operators on random decision processes.

Munos et al. (2016), equation 4, computed exactly:

    RQ = Q + (I − γ P^{cμ})⁻¹ (T^π Q − Q)    for a trace c(a, x) of `losses.traces`

For control, π is greedy in Q. All arrays are float64 with any leading axes `...`, one
for each process. Policies and values are `[..., S, A]`; matrices act on pairs (x, a),
numbered x A + a.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.losses import traces
from explorax.papers import draw, figures, judge
from explorax.papers.retrace import scores

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
_UNCORRECTED, _RETRACE, _TREE_BACKUP = (
  {"trace": trace, "lambda": 1.0} for trace in ("harutyunyan", "retrace", "tree_backup")
)
# Within its bound for control, (1 − γ)/(2γ) (section 2).
_WITHIN = {"trace": "harutyunyan", "lambda": 0.05}
_LINES = {
  "Q(1) of Harutyunyan et al.": _UNCORRECTED,
  "Retrace(1)": _RETRACE,
  "Tree-backup(1)": _TREE_BACKUP,
}
_SEEDS: Any = {"num_seeds": 100, "seeds_per_task": 100}
_EVALUATION, _CONTROL = {"num_iterations": None}, {"num_iterations": bool}
_DRAWN = ("seeds", *_PROCESSES)
_SLACK = 1e-5  # Traces are float32.
_HUGE = 1e30  # Above this error, the iteration has diverged, and stops.


class MDP(NamedTuple):
  """A finite decision process, without an end."""

  transitions: np.ndarray  # p(y|x, a), `[..., S, A, S]`.
  rewards: np.ndarray  # r(x, a), `[..., S, A]`.
  discount: float  # γ < 1.

  def bellman(self, pi: np.ndarray, q: np.ndarray) -> np.ndarray:
    """T^π Q = r + γ P^π Q."""
    values = np.sum(pi * q, axis=-1)
    following = np.einsum("...xay,...y->...xa", self.transitions, values)
    return self.rewards + self.discount * following

  def q_star(self) -> np.ndarray:
    """Q*, by value iteration from 0 until only rounding remains."""
    q = np.zeros_like(self.rewards)
    for _ in range(int(np.log(1e-15) / np.log(self.discount))):
      q = self.bellman(greedy(q), q)
    return q

  def pairs(self, weights: np.ndarray) -> np.ndarray:
    """γ P^w: γ p(y|x, a) w(b|y) from pair (x, a) to pair (y, b), `[..., SA, SA]`."""
    matrix = np.einsum("...xay,...yb->...xayb", self.transitions, weights)
    size = weights.shape[-2] * weights.shape[-1]
    return self.discount * matrix.reshape(*matrix.shape[:-4], size, size)


def draw_processes(
  seeds: Sequence[int],
  num_states: int,
  num_actions: int,
  concentration: float,
  discount: float,
) -> tuple[MDP, np.ndarray]:
  """Processes and policies π, `[seeds, S, A]`; a seed's do not depend on the others.

  Transitions are from a Dirichlet distribution with this concentration (near 0, each
  pair has a single successor), rewards from [−1, 1), and policies from the simplex.
  """
  transitions, rewards, policies = [], [], []
  for seed in seeds:
    rng, shape = np.random.default_rng(seed), (num_states, num_actions)
    transitions.append(rng.dirichlet(np.full(num_states, concentration), shape))
    rewards.append(rng.uniform(-1, 1, shape))
    policies.append(rng.dirichlet(np.ones(num_actions), num_states))
  return MDP(np.stack(transitions), np.stack(rewards), discount), np.stack(policies)


def greedy(q: np.ndarray) -> np.ndarray:
  """The policy of the first of the greatest values."""
  return np.eye(q.shape[-1])[np.argmax(q, axis=-1)]


def away_from(policy: np.ndarray, distance: float) -> np.ndarray:
  """A policy μ whose ‖π(·|x) − μ(·|x)‖₁ is the same in every state, as far as possible.

  μ = (1 − κ) π + κ δ(the least likely action),    κ = distance / (2 (1 − min π))
  """
  least = np.min(policy, axis=-1, keepdims=True)
  share = np.minimum(1.0, distance / (2 * (1 - least)))
  return (1 - share) * policy + share * greedy(-policy)


def kernel(
  settings: figures.Settings, mdp: MDP, pi: np.ndarray, mu: np.ndarray
) -> np.ndarray:
  """γ P^{cμ} of the settings' `trace` and `lambda`, `[..., SA, SA]`."""
  c = _TRACES[settings["trace"]](pi, mu, settings["lambda"])  # type: ignore[arg-type]
  return mdp.pairs(np.asarray(c, np.float64) * mu)


def apply(mdp: MDP, kernel: np.ndarray, pi: np.ndarray, q: np.ndarray) -> np.ndarray:
  """RQ, the mean of infinite returns."""
  errors = (mdp.bellman(pi, q) - q).reshape(*kernel.shape[:-1], 1)
  return q + np.linalg.solve(np.eye(kernel.shape[-1]) - kernel, errors).reshape(q.shape)


def contraction(mdp: MDP, kernel: np.ndarray, pi: np.ndarray) -> np.ndarray:
  """‖M‖∞ of RQ − RQ' = M (Q − Q'), the greatest factor of an error, `[...]`.

  M = (I − γ P^{cμ})⁻¹ (γ P^π − γ P^{cμ})    (lemma 1)
  """
  matrix = np.linalg.solve(np.eye(kernel.shape[-1]) - kernel, mdp.pairs(pi) - kernel)
  return np.max(np.sum(np.abs(matrix), axis=-1), axis=-1)


def evaluation(settings: figures.Settings) -> figures.Results:
  """The factor of ‖Q − Q^π‖∞ against the policies' distance, `[S, D]`.

  The distances `[S, D]` are up to the farthest that every π has, 2 (1 − 1/A).
  """
  mdp, pi = draw_processes(*(settings[name] for name in _DRAWN))
  farthest = 2 * (1 - 1 / settings["num_actions"])
  distances = np.linspace(0, farthest, settings["num_distances"])
  policies = [away_from(pi, distance) for distance in distances]
  factors = [contraction(mdp, kernel(settings, mdp, pi, mu), pi) for mu in policies]
  return {
    "factor": np.stack(factors, axis=1).astype(np.float32),
    "distance": np.tile(distances, (len(pi), 1)).astype(np.float32),
  }


def control(settings: figures.Settings) -> figures.Results:
  """‖Q_k − Q*‖∞ of Q_{k+1} = RQ_k with a greedy π, `[S, K + 1]`.

  μ is fixed: it mostly takes the worst action by Q*. Q_0 is pessimistic,
  −R_max/(1 − γ), as theorem 2 requires.
  """
  mdp, _ = draw_processes(*(settings[name] for name in _DRAWN))
  best, share = mdp.q_star(), settings["worst_share"]
  mu = share * greedy(-best) + (1 - share) * greedy(best)
  greatest = np.max(np.abs(mdp.rewards), axis=(1, 2), keepdims=True)
  q = np.tile(-greatest / (1 - mdp.discount), best.shape[1:])
  errors = []
  for _ in range(settings["num_iterations"] + 1):
    errors.append(np.max(np.abs(q - best), axis=(1, 2)))
    pi = greedy(q)
    new = apply(mdp, kernel(settings, mdp, pi, mu), pi, q)
    q = np.where((errors[-1] > _HUGE)[:, None, None], q, new)
  return {"error": np.stack(errors, axis=1).astype(np.float32)}


def _safe(table: figures.Table) -> tuple[bool, str, None]:
  worst = max(task.results["factor"].max() for task in table)
  held = bool(worst <= _DISCOUNT + _SLACK)
  return held, f"greatest factor {worst:.4f}, γ = 0.9", None


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
        **_SEEDS,
      ),
      figures.Grid(
        control,
        [*_LINES.values(), _WITHIN],
        {**_PROCESSES, "worst_share": 0.95, "num_iterations": 150},
        **_SEEDS,
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
            draw.guide("axhline", 1, color="black", linestyle="-"),
            draw.guide("axhline", _DISCOUNT, color="black"),
            lambda axes, table: axes.set_yscale("symlog", linthresh=1),
          ],
          axes={
            "title": "evaluation: greatest factor",
            "xlabel": "off-policyness ‖π − μ‖₁",
            "ylabel": r"factor of $\|Q - Q^\pi\|_\infty$",
            "yticks": (0, 0.5, _DISCOUNT, 2, 5, 10),
            "yticklabels": ("0", "0.5", "γ = 0.9", "2", "5", "10"),
          },
        ),
        draw.Curves(
          y="error",
          lines=_LINES,
          where=_CONTROL,
          x=lambda table: np.arange(table.joined("error").shape[1]),
          statistic=lambda errors, axis: np.quantile(errors, 0.9, axis=axis),
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
