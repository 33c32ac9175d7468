"""TD errors of the off-policy algorithms, against sums written out in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import rlax

from explorax import losses

pytestmark = pytest.mark.core

HYPERBOLIC = losses.signed_hyperbolic_pair()
LENGTH, NUM_ACTIONS = 8, 3
WITH_POLICIES = (
  "retrace",
  "tree_backup",
  "harutyunyan_q_lambda",
  "importance_sampling",
  "non_markov_retrace",
)
NAMES = (*WITH_POLICIES, "watkins_q_lambda")


@functools.cache
def _compiled(name: str, transformed: bool = False):
  tx_pair = HYPERBOLIC if transformed else losses.identity_pair
  return jax.jit(functools.partial(getattr(losses, name), tx_pair=tx_pair))


def _stream(seed: int, length: int = LENGTH) -> dict[str, np.ndarray]:
  rng, num_actions = np.random.default_rng(seed), NUM_ACTIONS
  actions = rng.integers(0, num_actions, size=(2, length)).astype(np.int32)
  pi_t = rng.dirichlet(np.full(num_actions, 0.5), size=length)
  return {
    "q_tm1": rng.normal(size=(length, num_actions)),
    "q_t": rng.normal(size=(length, num_actions)),
    "a_tm1": actions[0],
    "a_t": actions[1],
    "r_t": rng.normal(size=length),
    "discount_t": rng.choice([0.0, 0.9, 1.0], size=length, p=[0.1, 0.7, 0.2]),
    "pi_t": pi_t,
    "mu_t": rng.uniform(0.1, 1, size=length),
    "lambda_": rng.choice([0.0, 0.6, 1.0], size=length, p=[0.2, 0.4, 0.4]),
  }


def _arguments(name: str, stream: dict[str, np.ndarray]) -> tuple[np.ndarray, ...]:
  """The arguments of the function of that name from a stream, in float32."""
  dropped = {
    "importance_sampling": ("lambda_",),
    "watkins_q_lambda": ("pi_t", "mu_t"),
  }.get(name, ())
  return tuple(
    array.astype(np.float32) if array.dtype == np.float64 else array
    for key, array in stream.items()
    if key not in dropped
  )


def _expected(name: str, stream: dict[str, np.ndarray], transformed: bool):
  """Equation 3 with the traces of section 2's table, term by term in float64."""
  s = stream
  q_t = oracles.h_inv(s["q_t"]) if transformed else s["q_t"]
  errors = []
  for start in range(len(s["r_t"])):
    total, product, discount = 0.0, 1.0, 1.0
    for t in range(start, len(s["r_t"])):
      pi_t = s["pi_t"][t]
      if name == "watkins_q_lambda":
        pi_t = np.eye(len(pi_t))[np.argmax(s["q_t"][t])]
      delta = s["r_t"][t] + s["discount_t"][t] * np.dot(pi_t, q_t[t])
      if t > start:
        delta -= q_t[t - 1, s["a_t"][t - 1]]
      total += discount * product * delta
      discount *= s["discount_t"][t]
      pi, mu = pi_t[s["a_t"][t]], s["mu_t"][t]
      lambda_ = s["lambda_"][t]
      product *= {
        "retrace": lambda_ * min(1, pi / mu),
        "tree_backup": lambda_ * pi,
        "harutyunyan_q_lambda": lambda_,
        "importance_sampling": pi / mu,
        "watkins_q_lambda": lambda_ * pi,
        "non_markov_retrace": lambda_ * min(1 / product if product else 0, pi / mu),
      }[name]
    target = oracles.h(total) if transformed else total
    errors.append(target - s["q_tm1"][start, s["a_tm1"][start]])
  return np.array(errors)


@pytest.mark.parametrize("transformed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_td_errors_are_the_papers_sum(name, transformed):
  for seed, length in enumerate([LENGTH, LENGTH, 1][: 3 - transformed]):
    stream = _stream(seed, length)
    actual = _compiled(name, transformed)(*_arguments(name, stream))
    expected = _expected(name, stream, transformed)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", WITH_POLICIES)
def test_mu_may_be_given_for_all_actions(name):
  stream, function = _stream(5), _compiled(name)
  mu_t = np.random.default_rng(0).dirichlet(np.ones(NUM_ACTIONS), size=LENGTH)
  chosen = stream | {"mu_t": mu_t[np.arange(LENGTH), stream["a_t"]]}
  np.testing.assert_array_equal(
    function(*_arguments(name, stream | {"mu_t": mu_t})),
    function(*_arguments(name, chosen)),
  )


@pytest.mark.parametrize("name", sorted({*NAMES} - {"importance_sampling"}))
def test_a_scalar_lambda_is_the_same_at_all_times(name):
  *arguments, lambda_ = _arguments(name, _stream(6))
  function = _compiled(name)
  np.testing.assert_array_equal(
    function(*arguments, 0.5), function(*arguments, np.full_like(lambda_, 0.5))
  )


def _with_dummy_rows(stream, num_real: int, garbage: float):
  """A stream of which only the first `num_real` transitions are real.

  As replay gives it: the row after them, an episode's last, has an observation but
  no transition, and the rows behind that are padding.
  """
  stream = {name: array.copy() for name, array in stream.items()}
  for name in ("q_tm1", "r_t"):
    stream[name][num_real:] = garbage
  stream["q_t"][num_real:] = -garbage
  stream["pi_t"][num_real:] = 0
  for name in ("discount_t", "mu_t", "lambda_"):
    stream[name][num_real:] = 0
  # The trace of the last row of the episode.
  stream["lambda_"][num_real - 1] = 0
  if garbage:
    stream["a_t"][num_real - 1 :] = 0
  return stream


@pytest.mark.parametrize("name", NAMES)
def test_no_dummy_row_enters_the_errors_of_a_truncated_episode(name):
  stream = _stream(7)
  stream["discount_t"][:] = 0.9
  if name == "importance_sampling":
    stream["mu_t"][4] = 0
  alone = {key: array[:5] for key, array in stream.items()}
  function = _compiled(name, transformed=True)
  expected = function(*_arguments(name, alone))
  # Importance sampling is told by μ = 0 what the others are told by λ = 0.
  for garbage in (1e3, -1e9):
    padded = _with_dummy_rows(stream, 5, garbage)
    actual = function(*_arguments(name, padded))
    np.testing.assert_array_equal(actual[:5], expected)
    assert np.all(np.isfinite(actual))


def test_a_mu_of_zero_cuts_the_trace_and_gives_no_nan():
  stream = _stream(8)
  stream["discount_t"][:] = 0.9
  stream["mu_t"][2] = 0
  stream["pi_t"][2] = 0
  for name in ("retrace", "importance_sampling", "non_markov_retrace"):
    before = _compiled(name)(*_arguments(name, stream))
    assert np.all(np.isfinite(before))
    changed = stream | {"r_t": np.where(np.arange(LENGTH) > 2, 1e5, stream["r_t"])}
    after = _compiled(name)(*_arguments(name, changed))
    np.testing.assert_array_equal(after[:3], before[:3])


@pytest.mark.parametrize("mu", [np.nan, -0.5])
@pytest.mark.parametrize(
  "name", ["retrace", "importance_sampling", "non_markov_retrace"]
)
def test_a_mu_that_is_no_probability_gives_nan(name, mu):
  stream = _stream(8)
  stream["discount_t"][:], stream["lambda_"][:] = 0.9, 0.5
  stream["mu_t"][2] = mu
  errors = _compiled(name)(*_arguments(name, stream))
  assert np.isnan(errors[:3]).all() and np.isfinite(errors[3:]).all()


# Identities between algorithms.


def test_retrace_without_traces_is_one_step_expected_sarsa():
  stream = _stream(10) | {"lambda_": np.zeros(LENGTH)}
  arguments = _arguments("retrace", stream)
  q_tm1, q_t, a_tm1, _, r_t, discount_t, pi_t, _, _ = arguments
  one_step = jax.jit(jax.vmap(rlax.expected_sarsa))
  expected = one_step(q_tm1, a_tm1, r_t, discount_t, q_t, pi_t)
  np.testing.assert_allclose(_compiled("retrace")(*arguments), expected, atol=1e-6)


def test_retrace_on_policy_with_full_traces_is_the_uncorrected_return():
  stream = _stream(11)
  mu_t = np.take_along_axis(stream["pi_t"], stream["a_t"][:, None], 1)[:, 0]
  stream |= {"mu_t": mu_t, "lambda_": np.ones(LENGTH)}
  arguments = _arguments("retrace", stream)
  errors = _compiled("retrace")(*arguments)
  uncorrected = _compiled("importance_sampling")(*arguments[:-1])
  no_correction = _compiled("harutyunyan_q_lambda")(*arguments)
  np.testing.assert_allclose(errors, uncorrected, atol=1e-5)
  np.testing.assert_allclose(errors, no_correction, atol=1e-5)


def test_watkins_with_a_selector_is_retrace_greedy_in_the_selector():
  stream = _stream(14)
  selector = np.random.default_rng(0).normal(size=stream["q_t"].shape)
  greedy = np.eye(NUM_ACTIONS)[np.argmax(selector, axis=1)]
  expected = _compiled("retrace")(*_arguments("retrace", stream | {"pi_t": greedy}))
  arguments = _arguments("watkins_q_lambda", stream)
  actual = _compiled("watkins_q_lambda")(*arguments, selector.astype(np.float32))
  np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def test_watkins_takes_the_action_taken_among_several_greedy_ones():
  stream = _stream(15)
  stream["q_t"][:] = 2.0
  stream["discount_t"][:] = 1.0
  stream["lambda_"][:] = 1.0
  errors = _compiled("watkins_q_lambda")(*_arguments("watkins_q_lambda", stream))
  returns = np.cumsum(stream["r_t"][::-1])[::-1] + 2.0
  q_a_tm1 = stream["q_tm1"][np.arange(LENGTH), stream["a_tm1"]]
  np.testing.assert_allclose(errors, returns - q_a_tm1, rtol=1e-5)


# Bad input.


def test_expectations_of_bfloat16_are_computed_in_float32():
  """Rounded to 8 bits, a value of 50 would lose 0.34."""
  rng = np.random.default_rng(0)
  q = jnp.asarray(50 + rng.normal(size=(6, 18)), jnp.bfloat16)
  pi = jnp.asarray(rng.dirichlet(np.ones(18), 6), jnp.bfloat16)
  actions, numbers = np.zeros(6, int), np.ones(6, np.float32)
  results = []
  for dtype in (jnp.bfloat16, jnp.float32):
    zeros, values, policy = (x.astype(dtype) for x in (jnp.zeros((6, 18)), q, pi))
    stream = (zeros, values, actions, actions, numbers, numbers, policy, numbers)
    results.append(_compiled("harutyunyan_q_lambda", transformed=True)(*stream, 0.9))
  np.testing.assert_allclose(*results, rtol=1e-6)
