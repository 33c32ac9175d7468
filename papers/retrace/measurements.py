"""Measurements of paper 5's operators: contraction, control, and sampled returns.

A seed is a random decision process with a random target policy. Seed s does not depend
on the number of seeds.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from explorax.papers import types
from explorax.papers.tabular import operators, random_mdps, sampled_operators

CONTRACTING = ("retrace", "tree_backup", "harutyunyan_q_lambda")
RETURNS = (
  "importance_sampling",
  "harutyunyan_q_lambda",
  "tree_backup",
  "retrace",
  "non_markov_retrace",
  "expected_sarsa_lambda",
)
_HUGE = 1e30  # Above this error, the iteration has diverged, and stops.

Array = jax.Array


def max_distance(num_actions: int) -> float:
  """The ‖π − μ‖₁ that `away_from` reaches from every π."""
  return 2 * (1 - 1 / num_actions)


def control_runs(discount: float) -> dict[str, tuple[str, float]]:
  """Name → kind and λ; the bound is Q*(λ)'s, (1 − γ)/(2γ) (section 2)."""
  return {
    "q_star": ("harutyunyan_q_lambda", 1.0),
    "q_star_within": (
      "harutyunyan_q_lambda",
      min(1.0, 0.9 * (1 - discount) / (2 * discount)),
    ),
    "retrace": ("retrace", 1.0),
    "tree_backup": ("tree_backup", 1.0),
  }


def contraction(settings: types.Settings) -> types.Results:
  """The factor ‖M‖∞ of each operator, at each λ and distance between π and μ.

  Returns:
    distances `[D]`; a kind's factors `[L, N, D]`; radius `[L, N, D]`, the spectral
    radius of M of Q^π(λ), above 1 where iterating it diverges.
  """
  distances = np.linspace(
    0, max_distance(settings["num_actions"]), settings["num_distances"]
  )
  mdps, pis, _ = draw(settings)

  def at(
    kind: str, mdp: random_mdps.MDP, pi: Array, lambda_: float, distance: Array
  ) -> Array:
    mu = random_mdps.away_from(pi, distance)
    return operators.error_matrix(kind, mdp, pi, mu, settings["discount"], lambda_)

  results = {"distances": distances}
  radii = []
  for kind in CONTRACTING:
    over_distances = jax.vmap(functools.partial(at, kind), (None, None, None, 0))
    matrices = jax.jit(jax.vmap(over_distances, (0, 0, None, None)))
    norms = []
    for lambda_ in settings["lambdas"]:
      found = np.asarray(matrices(mdps, pis, lambda_, distances), np.float64)
      norms.append(np.max(np.sum(np.abs(found), axis=-1), axis=-1))
      if kind == "harutyunyan_q_lambda":
        radii.append(np.max(np.abs(np.linalg.eigvals(found)), axis=-1))
    results[kind] = np.stack(norms)
  return {**results, "radius": np.stack(radii)}


def control(settings: types.Settings) -> types.Results:
  """‖Q_k − Q*‖∞ of Q_{k+1} = RQ_k with a greedy π, `[N, K + 1]` for each run.

  μ is fixed: it mostly takes the worst action by Q*. Q_0 is pessimistic,
  −R_max/(1 − γ), as theorem 2 requires.
  """
  discount, share = settings["discount"], settings["worst_share"]
  mdps, _, _ = draw(settings)

  greedy = random_mdps.epsilon_greedy
  bests = jax.jit(jax.vmap(operators.q_star, (0, None)))(mdps, discount)

  @functools.partial(jax.jit, static_argnums=0)
  @functools.partial(jax.vmap, in_axes=(None, None, 0, 0))
  def errors_of(kind: str, lambda_: float, mdp: random_mdps.MDP, best: Array) -> Array:
    mu = share * greedy(-best) + (1 - share) * greedy(best)
    start = jnp.full_like(best, -jnp.max(jnp.abs(mdp.rewards)) / (1 - discount))

    def step(q: Array, _: None) -> tuple[Array, Array]:
      updated = operators.apply(kind, mdp, greedy(q), mu, q, discount, lambda_)
      error = jnp.max(jnp.abs(q - best))
      return jnp.where(error > _HUGE, q, updated), error

    _, errors = jax.lax.scan(step, start, None, settings["num_iterations"] + 1)
    return errors

  results = {}
  for name, (kind, lambda_) in control_runs(discount).items():
    results[name] = np.asarray(errors_of(kind, lambda_, mdps, bests))
  return results


def sampled_returns(settings: types.Settings) -> types.Results:
  """Bias and standard deviation of returns at λ = 1 from the values Q of some policy.

  Q are the values of a random policy that differs from π. All results are
  `[N, lengths]`, with a row for each seed. They are root mean squares over the
  state-action pairs at which returns begin, divided by the root mean square of Q − Q^π.

  Returns:
    A dictionary with, for each kind of trace:
    `*_bias` and `*_std`: exact bias and standard deviation. Equation 10's trace has no
    `*_std`, and its bias is measured and corrected for the variance of the sample mean.
    `*_measured`: the standard deviation of the returns that `losses` computes from
    sampled trajectories.
  """
  drawn = draw(settings)
  static = {x: settings[x] for x in ("discount", "distance", "num_trajectories")}
  lengths = tuple(settings["lengths"])
  parts = []
  for seed in range(settings["num_seeds"]):
    one = jax.tree.map(lambda x, seed=seed: x[seed], drawn)
    key = jax.random.fold_in(jax.random.key(2), seed)
    parts.append(_returns_of_one(key, *one, lengths=lengths, **static))
  return {
    name: np.stack([np.asarray(part[name]) for part in parts]) for name in parts[0]
  }


@functools.partial(
  jax.jit, static_argnames=("discount", "distance", "num_trajectories", "lengths")
)
def _returns_of_one(
  key: Array,
  mdp: random_mdps.MDP,
  pi: Array,
  other: Array,
  discount: float,
  distance: float,
  num_trajectories: int,
  lengths: tuple[int, ...],
) -> dict[str, Array]:
  mu = random_mdps.away_from(pi, distance)
  q, q_pi = (operators.q_pi(mdp, policy, discount) for policy in (other, pi))
  scale = jnp.sqrt(jnp.mean(jnp.square(q - q_pi)))
  num_states, num_actions = pi.shape
  keys = jax.random.split(key, (num_states, num_actions, num_trajectories))

  # All kinds and lengths use the same trajectories.
  sample = functools.partial(sampled_operators.sample_trajectory, length=max(lengths))
  for axes in ((0, None, None, None, None), (0, None, None, None, 0)):
    sample = jax.vmap(sample, axes)
  sample = jax.vmap(sample, (0, None, None, 0, None))
  trajectories = sample(keys, mdp, mu, jnp.arange(num_states), jnp.arange(num_actions))

  def first_return(
    kind: str, end: Array, trajectory: sampled_operators.Trajectory
  ) -> Array:
    errors = sampled_operators.td_errors(
      kind, trajectory, pi, mu, q, discount, 1.0, end
    )
    return q[trajectory.states[0], trajectory.actions[0]] + errors[0]

  def root(mean_square: Array) -> Array:
    return jnp.sqrt(jnp.maximum(0.0, jnp.mean(mean_square, axis=(-2, -1)))) / scale

  results = {}
  for kind in RETURNS:
    returns = functools.partial(first_return, kind)
    for _ in range(3):  # Trajectory, action and state.
      returns = jax.vmap(returns, (None, 0))
    drawn = jax.vmap(returns, (0, None))(jnp.asarray(lengths), trajectories)
    variance = jnp.var(drawn, axis=-1, ddof=1)
    results[f"{kind}_measured"] = root(variance)
    if kind == "non_markov_retrace":
      bias = jnp.square(jnp.mean(drawn, axis=-1) - q_pi[None])
      results[f"{kind}_bias"] = root(bias - variance / drawn.shape[-1])
      continue
    of_length = functools.partial(
      operators.moments, kind, mdp, pi, mu, q, discount, 1.0
    )
    mean, variance = jax.vmap(of_length)(jnp.asarray(lengths))
    results[f"{kind}_bias"] = root(jnp.square(mean - q_pi[None]))
    results[f"{kind}_std"] = root(variance)
  return results


def draw(settings: types.Settings) -> tuple[random_mdps.MDP, jax.Array, jax.Array]:
  """The seeds' processes, target policies and other policies, with an axis `[N]`."""
  sizes = (settings[name] for name in ("num_states", "num_actions", "num_seeds"))
  return _processes(*sizes, settings["concentration"])


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _processes(
  num_states: int, num_actions: int, num_seeds: int, concentration: float
) -> tuple[random_mdps.MDP, Array, Array]:
  def of_one(seed: Array) -> tuple[random_mdps.MDP, Array, Array]:
    keys = jax.random.split(jax.random.fold_in(jax.random.key(1), seed), 3)
    mdp = random_mdps.random_mdp(keys[0], num_states, num_actions, concentration)
    draw = functools.partial(
      random_mdps.random_policy, num_states=num_states, num_actions=num_actions
    )
    return mdp, draw(keys[1]), draw(keys[2])

  return jax.vmap(of_one)(jnp.arange(num_seeds))
