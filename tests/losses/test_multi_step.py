"""Multi-step TD errors, against returns written out in float64."""

import jax
import numpy as np
import oracles
import pytest
import rlax

from explorax import losses

pytestmark = pytest.mark.core

PAIRS = losses.identity_pair, losses.signed_hyperbolic_pair()
# Compiled once for each shape, pair and n.
peng_q_lambda = jax.jit(losses.peng_q_lambda, static_argnames="tx_pair")
expected_sarsa_lambda = jax.jit(losses.expected_sarsa_lambda, static_argnames="tx_pair")
n_step_q = jax.jit(losses.n_step_q, static_argnames=("n", "tx_pair"))


def _stream(seed: int, length: int = 7, num_actions: int = 3) -> dict[str, np.ndarray]:
  rng = np.random.default_rng(seed)
  return {
    "q_tm1": rng.normal(size=(length, num_actions)),
    "a_tm1": rng.integers(0, num_actions, size=length).astype(np.int32),
    "r_t": rng.normal(size=length),
    "discount_t": rng.choice([0.0, 0.9, 1.0], size=length, p=[0.1, 0.7, 0.2]),
    "q_t": rng.normal(size=(length, num_actions)),
    "q_t_selector": rng.normal(size=(length, num_actions)),
    "pi_t": rng.dirichlet(np.ones(num_actions), size=length),
    "lambda_": rng.choice([0.0, 0.6, 1.0], size=length, p=[0.2, 0.4, 0.4]),
  }


def _arguments(stream, *others):
  names = ("q_tm1", "a_tm1", "r_t", "discount_t", "q_t", *others)
  return tuple(
    stream[n].astype(np.float32) if stream[n].dtype == np.float64 else stream[n]
    for n in names
  )


def _mixed_return(s, v_t, start: int, lambda_: np.ndarray, last: int) -> float:
  """The forward view: returns that stop at each time, weighed by their share."""
  total, share, discount, rewards = 0.0, 1.0, 1.0, 0.0
  for t in range(start, last + 1):
    rewards += discount * s["r_t"][t]
    discount *= s["discount_t"][t]
    stops = 1.0 if t == last else 1 - lambda_[t]
    total += share * stops * (rewards + discount * v_t[t])
    share *= lambda_[t]
  return total


def _expected(s, v_t, lambda_, transformed, n=None):
  length = len(s["r_t"])
  errors = []
  for start in range(length):
    last = length - 1 if n is None else min(start + n, length) - 1
    target = _mixed_return(s, v_t, start, lambda_, last)
    target = oracles.h(target) if transformed else target
    errors.append(target - s["q_tm1"][start, s["a_tm1"][start]])
  return np.array(errors)


def _greedy_values(s, transformed, selector="q_t"):
  q_t = oracles.h_inv(s["q_t"]) if transformed else s["q_t"]
  return np.array([q[np.argmax(z)] for q, z in zip(q_t, s[selector], strict=True)])


def _assert_close(actual, expected):
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
  ("length", "selector", "transformed"),
  [(1, "q_t", False), (7, "q_t", True), (7, "q_t_selector", False)],
)
def test_peng_q_lambda_is_the_forward_view(length, selector, transformed):
  s = _stream(0, length)
  v_t = _greedy_values(s, transformed, selector)
  expected = _expected(s, v_t, s["lambda_"], transformed)
  others = ("lambda_",) if selector == "q_t" else ("lambda_", selector)
  actual = peng_q_lambda(*_arguments(s, *others), tx_pair=PAIRS[transformed])
  _assert_close(actual, expected)


@pytest.mark.parametrize("transformed", [False, True])
def test_expected_sarsa_lambda_is_the_forward_view(transformed):
  s = _stream(2)
  q_t = oracles.h_inv(s["q_t"]) if transformed else s["q_t"]
  v_t = np.array([np.dot(p, q) for p, q in zip(s["pi_t"], q_t, strict=True)])
  expected = _expected(s, v_t, s["lambda_"], transformed)
  arguments = _arguments(s, "pi_t", "lambda_")
  actual = expected_sarsa_lambda(*arguments, tx_pair=PAIRS[transformed])
  _assert_close(actual, expected)


@pytest.mark.parametrize(
  ("n", "transformed"), [(1, True), (3, False), (3, True), (20, False)]
)
def test_n_step_q_bootstraps_the_tail_from_the_last_value(n, transformed):
  s = _stream(3)
  v_t = _greedy_values(s, transformed, "q_t_selector")
  expected = _expected(s, v_t, np.ones(7), transformed, n)
  *arguments, selector = _arguments(s, "q_t_selector")
  tx_pair = PAIRS[transformed]
  actual = n_step_q(*arguments, n, q_t_selector=selector, tx_pair=tx_pair)
  _assert_close(actual, expected)


def test_n_step_q_bootstraps_where_lambda_is_zero():
  s = _stream(4)
  v_t = _greedy_values(s, False)
  expected = _expected(s, v_t, s["lambda_"], False, 4)
  *arguments, lambda_ = _arguments(s, "lambda_")
  _assert_close(n_step_q(*arguments, 4, lambda_), expected)


def test_without_traces_all_are_one_step():
  s = _stream(5)
  one_step = jax.jit(jax.vmap(rlax.q_learning))(*_arguments(s))
  zeros = np.zeros(7, np.float32)
  np.testing.assert_allclose(peng_q_lambda(*_arguments(s), zeros), one_step, atol=1e-6)
  np.testing.assert_allclose(n_step_q(*_arguments(s), 1), one_step, atol=1e-6)
  np.testing.assert_allclose(
    expected_sarsa_lambda(*_arguments(s, "pi_t"), zeros),
    jax.jit(jax.vmap(rlax.expected_sarsa))(*_arguments(s, "pi_t")),
    atol=1e-6,
  )


def test_one_step_is_double_q_with_the_same_selector():
  s = _stream(6)
  selector = s["q_t_selector"].astype(np.float32)
  expected = jax.jit(jax.vmap(losses.double_q))(*_arguments(s), selector)
  actual = n_step_q(*_arguments(s), 1, q_t_selector=selector)
  np.testing.assert_allclose(actual, expected, atol=1e-6)


@pytest.mark.parametrize("n", [0, -1, 2.0])
def test_an_invalid_number_of_steps_is_refused(n):
  with pytest.raises(ValueError, match=rf"n_step_q: n is {n}; .* at least 1"):
    losses.n_step_q(*_arguments(_stream(0)), n)
