"""TD errors of successor features, against a loop in float64."""

import numpy as np
import pytest

from explorax import losses

pytestmark = pytest.mark.core

N, A, D = 5, 3, 4


def _batch(seed: int = 0) -> tuple[np.ndarray, ...]:
  rng = np.random.default_rng(seed)
  psi_tm1, psi_t = rng.normal(size=(2, N, A, D)).astype(np.float32)
  a_tm1 = rng.integers(0, A, N).astype(np.int32)
  phi_tm1 = rng.normal(size=(N, D)).astype(np.float32)
  discount_t = np.array([0.9, 0.0, 0.5, 1.0, 0.99], np.float32)
  pi_t = rng.dirichlet(np.ones(A), N).astype(np.float32)
  return psi_tm1, a_tm1, phi_tm1, discount_t, psi_t, pi_t


def _expected(psi_tm1, a_tm1, phi_tm1, discount_t, psi_t, pi_t) -> np.ndarray:
  td = np.zeros(D)
  for d in range(D):
    td[d] = float(phi_tm1[d]) - float(psi_tm1[a_tm1, d])
    for a in range(A):
      td[d] += float(discount_t) * float(pi_t[a]) * float(psi_t[a, d])
  return td


def test_td_error_is_that_of_a_plain_loop():
  batch = _batch()
  expected = [_expected(*row) for row in zip(*batch, strict=True)]
  singly = [losses.successor_features(*row) for row in zip(*batch, strict=True)]
  np.testing.assert_allclose(singly, expected, rtol=1e-5, atol=1e-6)


def test_one_feature_that_is_the_reward_is_q_learning():
  """With D = 1, φ the reward, and a greedy policy."""
  psi_tm1, a_tm1, phi_tm1, discount_t, psi_t, _ = (row[0] for row in _batch(1))
  greedy = np.eye(A, dtype=np.float32)[np.argmax(psi_t[:, 0])]
  td = losses.successor_features(
    psi_tm1[:, :1], a_tm1, phi_tm1[:1], discount_t, psi_t[:, :1], greedy
  )
  expected = losses.q_learning(
    psi_tm1[:, 0], a_tm1, phi_tm1[0], discount_t, psi_t[:, 0]
  )
  np.testing.assert_allclose(td, [expected], rtol=1e-5)
