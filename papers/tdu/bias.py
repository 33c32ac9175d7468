"""Paper 4's proposition 2: whether TD errors estimate uncertainty with less bias.

An agent's belief is a distribution p(M) over decision processes, each with its own
value Q^M_π. A distribution p(θ) over value functions estimates it. The bias of a moment
is its value under p(θ) minus its value under p(M). Here both distributions are sets of
finitely many functions, so that moments are exact sums, computed in float64.
"""

import dataclasses
import functools
import itertools
from typing import Annotated

import numpy as np

from explorax import ranges
from explorax.experiments.recording import statistics
from explorax.papers import claims, layers, panels, types
from explorax.papers.tdu import runs

WORLDS = {"chain": "chain, smooth features", "random": "random, random features"}
# The greatest distances of ρ, φ, κ and α from 1.
DISTANCES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_NEAR = 0.01  # One of them.
_EXACT = 1e-9  # Biases below this count as zero.
_MOMENTS = {"means": "E", "variances": "V"}
_DRAWN = {"what": "moments"}  # The tasks that draw pairs of distributions.


@dataclasses.dataclass(frozen=True)
class Config(ranges.Checked):
  """Settings of the figure. None of them is from the paper."""

  discount: Annotated[float, ranges.Range(gt=0, lt=1)] = 0.99  # γ.
  num_draws: ranges.PositiveInt = (
    400  # Pairs of distributions for each seed and distance.
  )
  num_models: types.Size = 200  # Decision processes drawn from a belief.
  num_states: types.Size = 20
  # n, of 40 states and actions.
  num_features: types.Distinct[ranges.PositiveInt] = (2, 5, 10, 20)
  num_seeds: ranges.PositiveInt = 30  # Beliefs.


def _tasks(config: Config) -> list[types.Task]:
  values, seeds = dataclasses.asdict(config), list(range(config.num_seeds))
  common = {"discount": values["discount"], "seeds": seeds}
  draws = {"num_draws": config.num_draws}
  belief = {name: values[name] for name in ("num_models", "num_states")}
  return [
    types.Task("moments", {"what": "moments", **common, **draws}),
    *(
      types.Task(
        f"{world}_{n}",
        {"what": "worlds", "world": world, "num_features": n, **common, **belief},
      )
      for world in WORLDS
      for n in config.num_features
    ),
  ]


def _compute(settings: types.Settings) -> types.Results:
  seeds, found = settings["seeds"], []
  one = _moments if settings["what"] == "moments" else _world
  for seed in seeds:
    found.append(one(settings, np.random.default_rng(seed)))
  return {name: np.stack([x[name] for x in found]) for name in found[0]}


def biases(belief: np.ndarray, estimate: np.ndarray, discount: float) -> np.ndarray:
  """Biases of E[Q], V[Q], E[δ | τ] and V[δ | τ]: `[4, ...]`.

  Args:
    belief: `[2, P, ...]`, Q^M_π(s, a) and Q^M_π(s', π(s')) of P models.
    estimate: `[2, P', ...]`, the same values of P' functions.
    discount: γ. All have the same reward of τ, which cancels.
  """

  def moments(q: np.ndarray) -> np.ndarray:
    delta = discount * q[1] - q[0]
    return np.stack([q[0].mean(0), q[0].var(0), delta.mean(0), delta.var(0)])

  return moments(estimate) - moments(belief)


def _ratios(belief: np.ndarray, estimate: np.ndarray) -> np.ndarray:
  """ρ, φ, κ and α of equations 5 to 8: `[4, ...]`; arguments as in `biases`."""

  def bias(f: np.ndarray, g: np.ndarray) -> np.ndarray:
    return f.mean(0) - g.mean(0)

  (q, q_t), (own, own_t) = belief, estimate
  return np.stack(
    [
      bias(own_t, q_t) / bias(own, q),
      bias(own_t**2, q_t**2) / bias(own**2, q**2),
      bias(own * own_t, q * q_t) / bias(own**2, q**2),
      q_t.mean(0) / q.mean(0),
    ]
  )


def draw_pair(
  rng: np.random.Generator, rho: float, phi: float, kappa: float, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
  """A belief and an estimate, `[2, 4]` each, whose biases have these ratios.

  Four points can have any mean and covariance in two dimensions: the mean, plus and
  minus √2 times each column of a square root of the covariance. Pairs are drawn until
  the estimate's matrix is positive semi-definite, as a covariance must be.
  """

  def four(mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    # Unlike a Cholesky factor, this root exists for singular covariances too.
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(2 * np.maximum(values, 0))
    return mean[:, None] + np.concatenate([root, -root], axis=1)

  while True:
    mean = rng.uniform(0.5, 2) * np.array([1.0, alpha])
    root = rng.normal(size=(2, 2))
    # The two values of a transition are similar where the ratios are near 1.
    root[1] = root[0] + (abs(alpha - 1) + abs(kappa - 1)) * root[1]
    covariance = root @ root.T
    bias_q, bias_square = rng.normal(), rng.normal() * 3
    own_mean = mean + bias_q * np.array([1.0, rho])
    second = covariance + np.outer(mean, mean)
    second = second + bias_square * np.array([[1.0, kappa], [kappa, phi]])
    own = second - np.outer(own_mean, own_mean)
    if np.linalg.eigvalsh(own)[0] >= -1e-12 and own[0, 0] > 0.01:
      return four(mean, covariance), four(own_mean, own)


def _moments(settings: types.Settings, rng: np.random.Generator) -> types.Results:
  """Measures the proposition on D random pairs of distributions with given ratios.

  Returns:
    A dictionary with:
    `rho` `[D]`: drawn values of ρ, with κ = ρ, φ = ρ² and α = 1.
    `of_means` `[D]`: |Bias E[δ]| / |Bias E[Q]| of these pairs.
    `less` `[distances]`: the share of draws in which V[δ] has less bias than V[Q].
    `at_one` `[D]`: where all ratios are 1, the relative error of (γ − 1)² as the ratio
    of the biases of V[δ] and V[Q].
    `unbiased` `[2]`: the greatest bias of E[δ] and V[δ] where ρ = κ = 1/γ and
    φ = 1/γ².
  """
  gamma, num = settings["discount"], settings["num_draws"]
  rho = rng.uniform(-0.5, 2.5, num) / gamma
  ones = [1.0, 1.0, 1.0, 1.0]
  mean_ratio = []
  for x in rho:  # With κ = ρ and φ = ρ² the estimate has a valid covariance.
    pair = draw_pair(rng, x, x**2, x, 1.0)
    bias = biases(*pair, gamma)
    mean_ratio.append(abs(bias[2] / bias[0]))
  less, at_one = [], np.zeros(num)
  for distance in DISTANCES:
    count = 0
    for i in range(num):
      ratios = ones + distance * rng.uniform(-1, 1, 4)
      _, of_q, _, of_delta = biases(*draw_pair(rng, *ratios), gamma)
      count += abs(of_delta) < abs(of_q)
      if distance == 0:
        at_one[i] = abs(of_delta / of_q / (gamma - 1) ** 2 - 1)
    less.append(count / num)
  unbiased = np.zeros(2)
  for _ in range(num):
    pair = draw_pair(rng, 1 / gamma, 1 / gamma**2, 1 / gamma, rng.uniform(0.5, 2))
    unbiased = np.maximum(unbiased, np.abs(biases(*pair, gamma)[2:]))
  return {
    "rho": rho,
    "of_means": np.array(mean_ratio),
    "less": np.array(less),
    "at_one": at_one,
    "unbiased": unbiased,
  }


def _world(settings: types.Settings, rng: np.random.Generator) -> types.Results:
  """Measures biases of linear functions fitted to the Q_π of each model of a belief.

  The belief is a Dirichlet posterior of transitions and a normal posterior of rewards.
  Each estimate has n features and is the least-squares fit of one model's values.

  Returns:
    A dictionary of shares, `[]` each, of the transitions that are possible under the
    belief:
    `means`: those where E[δ] has less bias than E[Q].
    `variances`: those where V[δ] has less bias than V[Q].
    `in_range`: those with ρ in (0, 2/γ).
    `agrees`: those that are in both of `means` and `in_range`, or in neither.
  """
  gamma, size = settings["discount"], settings["num_states"]
  num_models = settings["num_models"]
  if settings["world"] == "chain":
    support, features = _chain(size, settings["num_features"])
  else:
    support = rng.random((size, 2, size)) < 3 / size
    support |= np.eye(size, dtype=bool)[rng.integers(size, size=(size, 2))]
    features = rng.normal(size=(2 * size, settings["num_features"]))
  counts = np.where(support, rng.integers(1, 10, support.shape), 0.0)
  weights = rng.gamma(np.where(support, counts, 1.0), size=(num_models, *counts.shape))
  p = np.where(support, weights, 0.0)
  p /= p.sum(-1, keepdims=True)
  reward = rng.normal(size=(size, 2)) + 0.3 * rng.normal(size=(num_models, size, 2))
  policy = rng.integers(2, size=(size,))
  # Q = r + γ P_π Q on the 2 · size pairs.
  follow = np.zeros((num_models, size, 2, size, 2))
  follow[..., np.arange(size), policy] = p
  follow = follow.reshape(num_models, 2 * size, 2 * size)
  flat = reward.reshape(num_models, 2 * size, 1)
  q = np.linalg.solve(np.eye(2 * size) - gamma * follow, flat)[..., 0]
  fit = features @ np.linalg.lstsq(features, q.T, rcond=None)[0]  # [2 · size, P]
  state, action, following = np.nonzero(support)
  source, target = 2 * state + action, 2 * following + policy[following]
  kept = source != target
  source, target = source[kept], target[kept]
  belief = np.stack([q.T[source].T, q.T[target].T])
  estimate = np.stack([fit[source].T, fit[target].T])
  bias = np.abs(biases(belief, estimate, gamma))
  rho = _ratios(belief, estimate)[0]
  in_range = (rho > 0) & (rho < 2 / gamma)
  means = bias[2] < bias[0]
  return {
    "means": np.mean(means),
    "variances": np.mean(bias[3] < bias[1]),
    "in_range": np.mean(in_range),
    "agrees": np.mean(in_range == means),
  }


def _chain(size: int, num_features: int) -> tuple[np.ndarray, np.ndarray]:
  """Support and features of a chain: one step back, none or one ahead; cosines."""
  support = np.zeros((size, 2, size), bool)
  at = np.arange(size)
  for step in (-1, 0, 1):
    support[at, :, np.clip(at + step, 0, size - 1)] = True
  # Each frequency comes twice: with the same sign for both actions, then with opposite
  # signs.
  order = np.arange(num_features) // 2
  waves = np.cos(np.pi * order * (at[:, None] + 0.5) / size)
  both = np.stack([waves, waves], axis=1)
  both[:, 1, 1::2] *= -1
  return support, both.reshape(2 * size, num_features)


def _panels(config: Config) -> list[list[panels.Panel]]:
  shares = itertools.product(WORLDS, _MOMENTS.items())
  return [
    [
      panels.Panel(
        layers.Dots("rho", "of_means"),
        layers.horizontal(1),
        layers.vertical(0, linestyle=":"),
        layers.vertical(2 / config.discount, linestyle=":"),
        where=_DRAWN,
        title="expectations",
        xlabel="ρ (dotted: 0 and 2/γ)",
        ylabel="|bias of E[δ]| / |bias of E[Q]|",
      ),
      panels.Panel(
        layers.Curves("less", {"_less": _DRAWN}, DISTANCES, markers=True),
        title="variances",
        xlabel="distance of the ratios from 1",
        xscale=("symlog", {"linthresh": DISTANCES[1]}),
        ylabel="share where V[δ] has less bias",
        ylim=(0, 1.05),
      ),
      panels.Panel(
        *(
          layers.Curves(
            name,
            {f"{moment}[δ], {world}": {"world": world}},
            "num_features",
            markers=True,
            among=[f"{m}[δ], {w}" for w in WORLDS for m in _MOMENTS.values()],
          )
          for world, (name, moment) in shares
        ),
        title="beliefs over processes",
        legend="panel",
        xlabel=f"features n, of {2 * config.num_states} pairs",
        ylabel="share of transitions",
        ylim=(0, 1.05),
      ),
    ]
  ]


def _exactly_in_range(table: types.Table) -> tuple[str, bool]:
  drawn, (gamma,) = table.where(**_DRAWN), table.values("discount")
  rho, of_means = drawn.joined("rho"), drawn.joined("of_means")
  inside = (rho > 0) & (rho < 2 / gamma)
  agrees = np.mean(inside == (of_means < 1))
  of_worlds = np.mean(table.where(what="worlds").score("agrees"))
  return (
    f"{agrees:.2%} of {rho.size} pairs of distributions, and {of_worlds:.2%} of the "
    "transitions of decision processes"
  ), bool(agrees == 1 and of_worlds == 1)


def _alike(table: types.Table) -> tuple[str, bool]:
  error = table.joined("at_one").max()
  return f"greatest relative error {error:.1e}", bool(error < 1e-4)


def _unbiased(table: types.Table) -> tuple[str, bool]:
  bias = table.joined("unbiased").max(axis=0)
  return f"greatest bias {bias[0]:.1e} and {bias[1]:.1e}", bool(bias.max() < _EXACT)


def _mostly_less(table: types.Table) -> tuple[str, bool | None]:
  less = table.joined("less")
  listed = ", ".join(
    f"{x:.1%} within {d:g}" for x, d in zip(less.mean(0), DISTANCES, strict=True)
  )
  share = statistics.mean(less[:, DISTANCES.index(_NEAR)])
  return f"share of the pairs: {listed}", share.is_above(0.5)


def _in_most_transitions(name: str, table: types.Table) -> tuple[str, bool | None]:
  """Whether it is so with each number of features."""
  numbers, shares = layers.over("num_features", table, name)
  each = [statistics.mean(x) for x in shares.T]
  listed = ", ".join(
    f"{x.to_text('.2f')} with n = {n}" for x, n in zip(each, numbers, strict=True)
  )
  return (
    f"share of transitions {listed}",
    claims.all_hold(x.is_above(0.5) for x in each),
  )


def _claims(config: Config) -> list[types.Claim]:
  del config
  return [
    claims.Check(
      "E[δ | τ] has less bias than E[Q] exactly where ρ is in (0, 2/γ)",
      _exactly_in_range,
    ),
    claims.Check(
      "with ρ = φ = κ = α = 1 the bias of V[δ | τ] is (γ − 1)² that of V[Q]",
      _alike,
      _DRAWN,
    ),
    claims.Check(
      "with ρ = κ = 1/γ and φ = 1/γ², E[δ | τ] and V[δ | τ] have no bias, for any α",
      _unbiased,
      _DRAWN,
    ),
    claims.Check(
      f"with ratios near 1 (within {_NEAR:g}), V[δ | τ] has less bias than V[Q] in "
      "most cases",
      _mostly_less,
      _DRAWN,
      test="t-interval against one half",
    ),
    *(
      claims.Check(
        f"in most transitions of a decision process ({label}), {moment}[δ | τ] has "
        f"less bias than {moment}[Q]",
        functools.partial(_in_most_transitions, name),
        {"world": world},
        test="t-intervals against one half",
      )
      for world, label in WORLDS.items()
      for name, moment in _MOMENTS.items()
    ),
  ]


FIGURES = (
  types.Figure(
    name="tdu/proposition2",
    title="The bias of uncertainty about TD errors and about values",
    source=f"{runs.PAPER}, proposition 2",
    claim="if the ratio ρ of the biases of Q(s', π(s')) and Q(s, a) is in (0, 2/γ), "
    "the expected TD error has less bias than the expected value; the variance of TD "
    "errors has less than that of values where biases and values are alike at both "
    "ends; for most transitions it is reasonable to assume that this holds.",
    config=Config(),
    quick=Config(num_draws=20, num_models=10, num_features=(2, 5), num_seeds=3),
    tasks=_tasks,
    compute=_compute,
    panels=_panels,
    claims=_claims,
    caption="Left: the ratio of biases against ρ; dotted: 0 and 2/γ. Middle: the share "
    "of pairs of distributions, against the greatest distance of ρ, φ, κ and α from 1. "
    "Right: the share of the transitions of decision processes in which the TD error "
    "has less bias than the value. Bands: 95 % bootstrap intervals over 30 beliefs.",
    kind="formula",
    height=3.5,
  ),
)
