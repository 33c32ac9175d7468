"""The embedding of Never Give Up, its inverse dynamics, and RND on images."""

import dm_env
import jax
import numpy as np
import pytest

from explorax import networks

VECTOR = dm_env.specs.Array((3,), np.float32)
IMAGE = dm_env.specs.Array((84, 84, 1), np.uint8)
SMALL = dm_env.specs.Array((6, 6, 2), np.uint8)


def matrix_shapes(params):
  return sorted(x.shape for x in jax.tree.leaves(params) if len(x.shape) > 1)


def test_sizes_on_atari():
  """Convolutions, then one linear layer and none in between; 128 hidden units."""
  nets = networks.make_embedding_networks(IMAGE, 18)
  params = jax.eval_shape(nets.init, jax.random.key(0))
  convolutions = [(3, 3, 64, 64), (4, 4, 32, 64), (8, 8, 1, 32)]
  assert matrix_shapes(params.embedding) == [*convolutions, (7 * 7 * 64, 32)]
  assert matrix_shapes(params.inverse) == [(64, 128), (128, 18)]
  frames = jax.ShapeDtypeStruct((5, 84, 84, 1), np.uint8)
  assert jax.eval_shape(nets.embed, params, frames).shape == (5, 32)


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


def test_embedding_does_not_read_the_inverse_dynamics(random_params):
  nets = networks.make_embedding_networks(VECTOR, 4)
  params = random_params(nets.init)
  x = np.ones((2, 3), np.float32)
  np.testing.assert_array_equal(
    nets.embed(params._replace(inverse=None), x), nets.embed(params, x)
  )
  e = nets.embed(params, x)
  np.testing.assert_array_equal(
    nets.action_logits(params._replace(embedding=None), e, e),
    nets.action_logits(params, e, e),
  )


@pytest.mark.parametrize("name", ["num_actions", "embedding_size", "hidden_size"])
def test_refuses_invalid_sizes(name):
  sizes = {"num_actions": 3, name: 0}
  with pytest.raises(ValueError, match=f"{name} is 0; it must be at least 1"):
    networks.make_embedding_networks(VECTOR, **sizes)


def test_refuses_observations_that_the_torso_cannot_take():
  with pytest.raises(ValueError, match="the torso 'dqn' takes images of at least 36"):
    networks.make_embedding_networks(SMALL, 4, torso="dqn")


def test_rnd_on_images_has_convolutions_and_one_linear_layer():
  nets = networks.make_rnd_networks(IMAGE, (), 128)
  for network in nets:
    params = jax.eval_shape(network.init, jax.random.key(0))
    assert matrix_shapes(params) == [
      (3, 3, 64, 64),
      (4, 4, 32, 64),
      (8, 8, 1, 32),
      (7 * 7 * 64, 128),
    ]


def test_rnd_on_images_can_be_a_perceptron_and_have_hidden_layers():
  perceptron = networks.make_rnd_networks(SMALL, (4,), 3, torso="mlp").predictor
  params = jax.eval_shape(perceptron.init, jax.random.key(0))
  assert matrix_shapes(params) == [(4, 3), (72, 4)]
  deep = networks.make_rnd_networks(SMALL, (4,), 3).predictor
  params = jax.eval_shape(deep.init, jax.random.key(0))
  shapes = [(3, 3, 2, 16), (3, 3, 16, 32), (4, 3), (2 * 2 * 32, 4)]
  assert matrix_shapes(params) == sorted(shapes)


def test_rnd_on_images_is_novel_until_the_predictor_is_the_target(random_params):
  nets = networks.make_rnd_networks(SMALL, (), 3)
  x = np.random.default_rng(0).integers(0, 256, (4, 6, 6, 2), dtype=np.uint8)
  a, b = (random_params(nets.predictor.init, seed=seed) for seed in (0, 1))
  target = nets.target.apply(b, x)
  assert np.abs(nets.predictor.apply(a, x) - target).max() > 1e-2
  np.testing.assert_array_equal(nets.predictor.apply(b, x), target)


def test_rnd_refuses_invalid_sizes():
  with pytest.raises(ValueError, match="output_size is 0"):
    networks.make_rnd_networks(IMAGE, (), 0)
  with pytest.raises(ValueError, match="hidden_sizes are"):
    networks.make_rnd_networks(VECTOR, (0,), 10)
