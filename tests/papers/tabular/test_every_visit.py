"""The online every-visit algorithm: equation 8 by its double sum, and its mean."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.papers.tabular import every_visit, operators, random_mdps

pytestmark = pytest.mark.ops

GAMMA, LAMBDA, END, OFFSET, POWER = 0.9, 0.8, 0.2, 3.0, 0.7
S, A = 3, 2


@pytest.fixture(autouse=True, scope="module")
def float64():
  jax.config.update("jax_enable_x64", True)
  yield
  jax.config.update("jax_enable_x64", False)


def make(kind, seed, target_epsilon=lambda k: 0.5 / (1.0 + k)):
  keys = jax.random.split(jax.random.key(seed), 3)
  mdp = random_mdps.random_mdp(keys[0], S, A)
  other = random_mdps.random_policy(keys[1], S, A, 0.2)
  learner = every_visit.Learner(
    mdp=mdp,
    end_prob=END,
    kind=kind,
    discount=GAMMA,
    lambda_=LAMBDA,
    target_epsilon=target_epsilon,
    behaviour=functools.partial(every_visit.greedy_mixture, other=other, epsilon=0.4),
    step_offset=OFFSET,
    step_power=POWER,
  )
  return learner, jax.random.normal(keys[2], (S, A)), np.asarray(other)


def trace(kind, pi, mu):
  return LAMBDA * {
    "retrace": min(1.0, pi / mu),
    "tree_backup": pi,
    "harutyunyan_q_lambda": 1.0,
  }.get(kind, float(pi > 0))


@pytest.mark.parametrize(
  "kind", ["retrace", "tree_backup", "harutyunyan_q_lambda", "watkins_q_lambda"]
)
def test_an_update_is_the_double_sum_of_equation_8(kind):
  greedy = kind == "watkins_q_lambda"
  schedule = (lambda k: 0.0 * k) if greedy else (lambda k: 0.5 / (1.0 + k))
  learner, q, other = make(kind, 3, schedule)
  state, steps = jax.jit(learner.run, static_argnums=1)(
    learner.init(jax.random.key(0), q), 300
  )
  steps = [np.asarray(x) for x in steps]
  rewards, q = np.asarray(learner.mdp.rewards), np.array(q)
  counts, ends = np.zeros((S, A)), np.flatnonzero(steps[3])
  assert len(ends) > 30
  for k, (begin, end) in enumerate(zip([0, *(ends[:-1] + 1)], ends, strict=True)):
    x, a, y, _ = (column[begin : end + 1] for column in steps)
    best = np.argmax(q, axis=1)
    epsilon = 0.0 if greedy else 0.5 / (1 + k)
    pi, mu = np.full((S, A), epsilon / A), np.zeros((S, A))
    for i in range(S):
      pi[i, best[i]] += 1 - epsilon
      for j in range(A):
        rest = 1 - other[i, best[i]]
        mu[i, j] = 0.6 if j == best[i] else 0.4 * other[i, j] / rest
    c = [trace(kind, pi[i, j], mu[i, j]) for i, j in zip(x, a, strict=True)]
    ended = np.arange(len(x)) == len(x) - 1
    values = [0.0 if e else pi[i] @ q[i] for e, i in zip(ended, y, strict=True)]
    errors = rewards[x, a] + GAMMA * np.array(values) - q[x, a]
    updated = q.copy()
    for pair in set(zip(x.tolist(), a.tolist(), strict=True)):
      at = [pair == other_pair for other_pair in zip(x, a, strict=True)]
      total = 0.0
      for t in range(at.index(True), len(x)):
        for j in range(at.index(True), t + 1):
          total += errors[t] * GAMMA ** (t - j) * np.prod(c[j + 1 : t + 1]) * at[j]
      updated[pair] += (OFFSET + counts[pair]) ** -POWER * total
      counts[pair] += 1
    q = updated
  np.testing.assert_allclose(state.q_k, q, rtol=1e-10)
  np.testing.assert_array_equal(state.counts, counts)
  assert state.k == len(ends)


def test_its_mean_is_the_operator_s_step_times_the_visits():
  """E Σ_t δ_t e_t = d (RQ − Q), with (1 − p) γ in the place of γ."""
  learner, q, _ = make("retrace", 1, lambda k: 0.3 + 0.0 * k)
  pi = random_mdps.epsilon_greedy(q, 0.3)
  mu = learner.behaviour(q)
  expected = operators.apply(
    "retrace", learner.mdp, pi, mu, q, (1 - END) * GAMMA, LAMBDA
  )
  # Visits: of the first pair, and of those that follow with probability 1 − p.
  first = (mu / S).reshape(-1)
  kernel = (1 - END) * operators.pair_matrix(learner.mdp, mu)
  visits = jnp.linalg.solve(jnp.eye(S * A) - kernel.T, first).reshape(S, A)
  expected = visits * (expected - q)

  @jax.jit
  @jax.vmap
  def one(key):
    def step(state, _):
      new, _ = learner.run(state, 1)
      return jax.tree.map(lambda n, o: jnp.where(state.k > 0, o, n), new, state), None

    last, _ = jax.lax.scan(step, learner.init(key, q), length=80)
    return OFFSET**POWER * (last.q_k - q)  # By the first trajectory's α.

  drawn = np.asarray(one(jax.random.split(jax.random.key(5), 20_000)))
  error = drawn.std(axis=0) / np.sqrt(len(drawn))
  assert np.all(np.abs(drawn.mean(axis=0) - expected) < 4.5 * error)
  assert np.all(error < 0.1 * np.max(np.abs(expected)))


def test_policies_of_equation_9_commute_and_others_do_not():
  learner, q, other = make("retrace", 2)
  pi = random_mdps.epsilon_greedy(q)

  def commutator(mu):
    both = [operators.pair_matrix(learner.mdp, w) for w in (pi, jnp.minimum(pi, mu))]
    return np.max(np.abs(both[0] @ both[1] - both[1] @ both[0]))

  mu = every_visit.greedy_mixture(q, other, 0.4)
  np.testing.assert_allclose(np.sum(mu, axis=1), 1.0)
  np.testing.assert_allclose(np.sum(mu * pi, axis=1), 0.6)
  assert commutator(mu) < 1e-15 and commutator(other) > 1e-3
