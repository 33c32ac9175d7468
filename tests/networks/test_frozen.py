"""A frozen network is the same function, looked up where observations are indices."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import networks as networks_lib
from explorax.networks import frozen, rnd

INDEX = dm_env.specs.BoundedArray((), np.int32, -1, 8)
DENSE = dm_env.specs.Array((4,), np.float32)
X = np.array([-1, 3, 8, 0, 3, -1], np.int32)


def test_the_table_holds_the_network():
  networks = networks_lib.make_perceptrons(INDEX, 3, 4, (6, 5))
  table = frozen.freeze(networks, INDEX)
  params = jax.jit(table.init)(jax.random.key(0))
  assert params.shape == (10, 4, 3)
  expected = networks.apply(jax.jit(networks.init)(jax.random.key(0)), X)
  for apply in (table.apply, jax.jit(table.apply)):
    np.testing.assert_allclose(apply(params, X), expected, rtol=1e-5, atol=1e-6)
  beyond = table.apply(params, np.array([8, 9], np.int32))
  assert np.all(np.isfinite(beyond[:, 0])) and np.all(np.isnan(beyond[:, 1]))
  # Other observations keep their network.
  dense = networks_lib.make_perceptrons(DENSE, 3, 4)
  assert frozen.freeze(dense, DENSE) is dense


def test_as_a_prior_it_is_the_networks_own_prior():
  networks = networks_lib.make_perceptrons(INDEX, 3, 4, (6, 5))
  nets, table = (
    networks_lib.feed_forward(n) for n in (networks, frozen.freeze(networks, INDEX))
  )
  plain = networks_lib.with_prior(nets, 3.0, nets)
  looked_up = networks_lib.with_prior(nets, 3.0, table)
  inputs = networks_lib.StepInputs(X[:, None], np.zeros((len(X), 1), np.int32))
  state = np.zeros((len(X), 0), np.float32)
  key, prior_key = jax.random.split(jax.random.key(2))
  params = plain.init(key)
  np.testing.assert_allclose(
    looked_up.unroll(params, looked_up.init_prior(prior_key), inputs, state)[0],
    plain.unroll(params, plain.init_prior(prior_key), inputs, state)[0],
    rtol=1e-5,
    atol=1e-6,
  )


def test_rnd_is_learnt_where_it_was_trained_and_novel_elsewhere():
  networks = rnd.make_rnd_networks(INDEX, (32,), output_size=8)
  params = jax.jit(networks.predictor.init)(jax.random.key(4))
  target_params = jax.jit(networks.target.init)(jax.random.key(5))

  @jax.jit
  def errors(params, x):
    difference = networks.predictor.apply(params, x) - networks.target.apply(
      target_params, x
    )
    return jnp.sum(difference**2, axis=-1)

  seen, unseen = np.array([0, 1, 2], np.int32), np.array([5, 6, 7], np.int32)
  step = jax.jit(jax.grad(lambda p: jnp.mean(errors(p, seen))))
  before = errors(params, seen)
  for _ in range(500):
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, step(params))
  assert np.max(errors(params, seen)) < 0.01 * np.min(before)
  assert np.min(errors(params, unseen)) > 10 * np.max(errors(params, seen))
