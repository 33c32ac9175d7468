"""Fixed random functions added to an ensemble."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import networks

SPEC = dm_env.specs.Array((4,), np.float32)
X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def evaluate(nets, params, prior_params, x):
  """Values `[K, B, A]` of observations."""
  inputs = networks.StepInputs(x[:, None], np.zeros((len(x), 1), np.int32))
  q, _ = nets.unroll(params, prior_params, inputs, jnp.zeros((len(x), 0)))
  return q[:, :, 0]


@pytest.fixture
def priors(random_params):
  def make(scale, prior=None):
    nets = networks.make_perceptrons(SPEC, 3, 2, (6,))
    with_prior = networks.with_prior(
      networks.feed_forward(nets), scale, networks.feed_forward(prior or nets)
    )
    params = random_params(with_prior.init, seed=3)
    prior_params = random_params(with_prior.init_prior, seed=4)
    return nets, with_prior, params, prior_params

  return make


@pytest.mark.parametrize("narrow", [False, True])
def test_a_prior_adds_its_scaled_values(priors, narrow):
  """Also one of an architecture of its own."""
  prior = networks.make_perceptrons(SPEC, 3, 2, ()) if narrow else None
  nets, with_prior, params, prior_params = priors(2.5, prior)
  values, fixed = (
    np.asarray(n.apply(p, X), np.float64)
    for n, p in ((nets, params), (prior or nets, prior_params))
  )
  q = evaluate(with_prior, params, prior_params, X)
  np.testing.assert_allclose(q, values + 2.5 * fixed, rtol=1e-5, atol=1e-6)


def test_a_scale_of_zero_is_bit_equal_to_no_prior_and_has_no_parameters(priors):
  nets, with_prior, params, prior_params = priors(scale=0.0)
  assert not jax.tree.leaves(prior_params)
  np.testing.assert_array_equal(
    evaluate(with_prior, params, prior_params, X), nets.apply(params, X)
  )
