"""What the tests of networks share."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.fixture
def random_params():
  """(networks' init, seed) → parameters of the right shapes that no initialiser drew.

  Much cheaper than `init`, and biases are not zero, so that a test sees them.
  """

  def draw(init, seed=0):
    rng = np.random.default_rng(seed)
    return jax.tree.map(
      lambda x: jnp.asarray(0.5 * rng.standard_normal(x.shape), x.dtype),
      jax.eval_shape(init, jax.random.key(0)),
    )

  return draw
