"""The embedding of Never Give Up, its inverse dynamics, and RND on images."""

import dm_env
import jax
import numpy as np

from explorax import networks

VECTOR = dm_env.specs.Array((3,), np.float32)
IMAGE = dm_env.specs.Array((84, 84, 1), np.uint8)


def matrix_shapes(params):
  return sorted(x.shape for x in jax.tree.leaves(params) if len(x.shape) > 1)


def test_sizes_on_atari():
  """Convolutions, then one linear layer and none in between; 128 hidden units."""
  nets = networks.make_embedding_networks(IMAGE, 18)
  params = jax.eval_shape(nets.init, jax.random.key(0))
  convolutions = [(3, 3, 64, 64), (4, 4, 32, 64), (8, 8, 1, 32)]
  assert matrix_shapes(params.embedding) == [*convolutions, (7 * 7 * 64, 32)]
  assert matrix_shapes(params.inverse) == [(64, 128), (128, 18)]


def test_against_plain_products(random_params):
  nets = networks.make_embedding_networks(
    VECTOR, 4, hidden_sizes=(5,), embedding_size=2, hidden_size=6
  )
  params = random_params(nets.init, seed=3)
  rng = np.random.default_rng(0)
  x = rng.normal(size=(7, 3)).astype(np.float32)

  def layer(parameters, name):
    (match,) = (v for k, v in parameters.items() if k.split("/")[-1] == name)
    return np.asarray(match["w"], np.float64), np.asarray(match["b"], np.float64)

  (w_0, b_0), (w_1, b_1) = (
    layer(params.embedding, name) for name in ("perceptron_torso", "embedding")
  )
  embedded = np.maximum(x @ w_0 + b_0, 0) @ w_1 + b_1
  got = jax.jit(nets.embed)(params, x)
  np.testing.assert_allclose(got, embedded, rtol=1e-4, atol=1e-5)
  # No ReLU at the end.
  assert np.any(embedded < 0)

  (w_0, b_0), (w_1, b_1) = (
    layer(params.inverse, name) for name in ("linear_0", "linear_1")
  )
  both = np.concatenate([embedded[:-1], embedded[1:]], axis=1)
  logits = np.maximum(both @ w_0 + b_0, 0) @ w_1 + b_1
  np.testing.assert_allclose(
    jax.jit(nets.action_logits)(params, got[:-1], got[1:]), logits, rtol=1e-4, atol=1e-5
  )
