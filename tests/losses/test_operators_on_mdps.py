"""What Munos et al. 2016 say of policies, lemmas 3 and 5."""

import jax
import numpy as np
import pytest

from explorax import losses

pytestmark = pytest.mark.core


def test_lemma_5_the_behaviour_of_equation_9_commutes_with_the_greedy_policy():
  """The greedy action has the same probability 1 − ε in all states."""
  rng, num_states, num_actions = np.random.default_rng(8), 4, 3
  transitions = rng.dirichlet(np.full(num_states, 0.5), (num_states, num_actions))
  greedy = np.eye(num_actions)[rng.integers(num_actions, size=num_states)]
  other = 0.5 * rng.dirichlet(np.full(num_actions, 0.7), num_states) + 0.5 / 3

  def kernel(weights: np.ndarray) -> np.ndarray:
    """P^w over state-action pairs: p(y|x, a) w(y, b)."""
    products = np.einsum("xay,yb->xayb", transitions, weights)
    return products.reshape(num_states * num_actions, -1)

  def commutator(mu: np.ndarray) -> float:
    p, both = kernel(greedy), kernel(np.minimum(greedy, mu))
    return np.max(np.abs(p @ both - both @ p))

  rest = other * (1 - greedy)
  mu = 0.5 * greedy + 0.5 * rest / rest.sum(axis=1, keepdims=True)
  assert commutator(mu) < 1e-12 < 0.01 < commutator(other)


def test_softmax_is_not_increasingly_greedy_at_an_even_temperature():
  """The paper's lemma 3 says it is; its proof evaluates π_k at Q_{k+1}."""

  def expected_value(policy, q_t):
    """E_π q_t, as one-step Retrace sees it."""
    one, zero, action = (
      np.ones(1, np.float32),
      np.zeros(1, np.float32),
      np.zeros(1, int),
    )
    stream = (q_t * 0, q_t, action, action, zero, one, policy, one)
    return losses.retrace(*stream, 0.0)[0]

  q_k = np.array([[0.0, 10.0]], np.float32)
  q_k1 = np.array([[0.0, 0.1]], np.float32)
  before = expected_value(jax.nn.softmax(q_k), q_k1)
  after = expected_value(jax.nn.softmax(q_k1), q_k1)
  assert after < before - 0.04
