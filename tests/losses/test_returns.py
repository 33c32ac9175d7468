"""The returns and the traces, against sums written out in float64."""

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies

from explorax import losses
from explorax.losses import traces

pytestmark = pytest.mark.core

few = hypothesis.settings(
  max_examples=8, deadline=None, derandomize=True, database=None
)
lengths = strategies.sampled_from([1, 2, 9])  # Each is compiled once.
off_policy_returns = jax.jit(losses.off_policy_returns)
non_markov_returns = jax.jit(losses.non_markov_returns)
seeds = strategies.integers(0, 2**32 - 1)


def _stream(seed: int, length: int) -> dict[str, np.ndarray]:
  rng = np.random.default_rng(seed)
  return {
    "q_a_t": rng.normal(size=length),
    "v_t": rng.normal(size=length),
    "r_t": rng.normal(size=length),
    "discount_t": rng.choice([0.0, 0.9, 1.0], size=length, p=[0.2, 0.6, 0.2]),
    "c_t": rng.uniform(0, 1.5, size=length),
  }


def _float32(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  return {name: array.astype(np.float32) for name, array in arrays.items()}


def _summed_returns(q_a_t, v_t, r_t, discount_t, c_t) -> np.ndarray:
  """Equation 3's sum of TD errors, each start and each term by itself."""
  returns = []
  for start in range(len(r_t)):
    total = r_t[start] + discount_t[start] * v_t[start]
    for s in range(start + 1, len(r_t)):
      weight = np.prod(discount_t[start:s]) * np.prod(c_t[start:s])
      total += weight * (r_t[s] + discount_t[s] * v_t[s] - q_a_t[s - 1])
    returns.append(total)
  return np.array(returns)


def _literal_non_markov_returns(q_a_t, v_t, r_t, discount_t, rho_t, lambda_):
  """Equation 10 as it is printed, its traces divided out one by one."""
  length = len(r_t)
  lambda_ = np.broadcast_to(lambda_, length)
  returns = []
  for start in range(length):
    traces = []
    for s in range(start, length):
      product = np.prod(traces)
      bound = 1 / product if product > 0 else np.inf
      traces.append(lambda_[s] * min(bound, rho_t[s]))
    c_t = np.concatenate([np.zeros(start), traces])
    returns.append(_summed_returns(q_a_t, v_t, r_t, discount_t, c_t)[start])
  return np.array(returns)


@few
@hypothesis.given(seed=seeds, length=lengths)
def test_off_policy_returns_are_the_sum_of_td_errors(seed, length):
  stream = _stream(seed, length)
  expected = _summed_returns(**stream)
  actual = off_policy_returns(*_float32(stream).values())
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_the_last_value_and_trace_never_matter():
  stream = _float32(_stream(1, 4))
  expected = losses.off_policy_returns(**stream)
  stream["q_a_t"][-1] = np.nan
  stream["c_t"][-1] = np.inf
  np.testing.assert_array_equal(losses.off_policy_returns(**stream), expected)


@pytest.mark.parametrize("cut", ["discount_t", "c_t"])
def test_a_zero_in_mid_sequence_cuts_the_return(cut):
  stream = _float32(_stream(2, 7))
  stream["discount_t"][:] = 0.9
  stream[cut][2] = 0
  before = losses.off_policy_returns(**stream)
  for name in stream:
    stream[name][3:] = 1e30
  stream["q_a_t"][2] = -1e30
  after = losses.off_policy_returns(**stream)
  np.testing.assert_array_equal(after[:3], before[:3])
  bootstrap = stream["discount_t"][2] * stream["v_t"][2]
  np.testing.assert_allclose(after[2], stream["r_t"][2] + bootstrap, rtol=1e-6)


@few
@hypothesis.given(seed=seeds, length=lengths, lambda_=strategies.sampled_from([1, 0.8]))
def test_non_markov_returns_are_equation_10(seed, length, lambda_):
  stream = _stream(seed, length)
  stream["rho_t"] = stream.pop("c_t") * 2
  expected = _literal_non_markov_returns(**stream, lambda_=lambda_)
  actual = non_markov_returns(**_float32(stream), lambda_=lambda_)
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_non_markov_returns_with_a_lambda_for_each_time():
  rng = np.random.default_rng(0)
  for seed in range(3):
    stream = _stream(seed, 9)
    stream["rho_t"] = stream.pop("c_t") * 3
    stream["lambda_"] = rng.choice([0.0, 0.7, 1.0], size=9, p=[0.2, 0.4, 0.4])
    actual = non_markov_returns(**_float32(stream))
    expected = _literal_non_markov_returns(**stream)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


PI = np.array([0.1, 0.5, 1.0, 0.0, 0.3], np.float32)
MU = np.array([0.2, 0.25, 0.5, 0.7, 0.0], np.float32)


@pytest.mark.parametrize(
  ("kind", "unscaled"),
  [
    ("importance_sampling", [0.5, 2.0, 2.0, 0.0, 0.0]),
    ("harutyunyan_q_lambda", [1.0, 1.0, 1.0, 1.0, 1.0]),
    ("tree_backup", [0.1, 0.5, 1.0, 0.0, 0.3]),
    ("retrace", [0.5, 1.0, 1.0, 0.0, 0.0]),
    ("watkins_q_lambda", [0.0, 0.0, 1.0, 0.0, 0.0]),
  ],
)
@pytest.mark.parametrize("lambda_", [0, 0.5, np.array([0, 1, 0.9, 0.5, 1], np.float32)])
def test_traces_are_those_of_the_table(kind, unscaled, lambda_):
  expected = np.asarray(lambda_) * np.array(unscaled)
  actual = getattr(traces, kind)(PI, MU, lambda_)
  np.testing.assert_allclose(actual, expected, rtol=1e-6)
