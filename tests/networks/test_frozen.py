"""A frozen network is the same function, looked up where observations are indices."""

import dm_env
import jax
import numpy as np

from explorax import networks as networks_lib
from explorax.networks import frozen

INDEX = dm_env.specs.BoundedArray((), np.int32, -1, 8)
DENSE = dm_env.specs.Array((4,), np.float32)
X = np.array([-1, 3, 8, 0, 3, -1], np.int32)


def test_the_table_holds_the_network():
  networks = networks_lib.make_perceptrons(INDEX, 3, 4, (6, 5))
  table = frozen.freeze(networks, INDEX)

  @jax.jit
  def run(key):
    return table.init(key), networks.apply(networks.init(key), X)

  params, expected = run(jax.random.key(0))
  assert params.shape == (10, 4, 3)
  np.testing.assert_allclose(table.apply(params, X), expected, rtol=1e-5, atol=1e-6)
  beyond = table.apply(params, np.array([8, 9], np.int32))
  assert np.all(np.isfinite(beyond[:, 0])) and np.all(np.isnan(beyond[:, 1]))
  # Other observations keep their network.
  dense = networks_lib.make_perceptrons(DENSE, 3, 4)
  assert frozen.freeze(dense, DENSE) is dense
