"""Torsos: against plain loops, on the sizes of the papers, and refusals."""

import dm_env
import haiku as hk
import jax
import numpy as np
import pytest

from explorax import networks
from explorax.environments import specs
from explorax.networks import ensemble, torsos

INDEX = dm_env.specs.BoundedArray((), np.int32, -1, 5)


def image(*shape, dtype=np.uint8):
  return dm_env.specs.Array(shape, dtype)


def categories(side):
  return specs.CategoricalImage((side, side, 2), (("object", 4), ("state", 3)))


def network(name, spec, hidden_sizes=(), width=1.0):
  make = networks.make_torso(name, spec, hidden_sizes, width)
  return ensemble.from_haiku(make, spec)


def convolve(x, w, b, stride):
  """A convolution without padding, then ReLU, in float64: `[H, W, C]`."""
  size = w.shape[0]
  height, width = ((side - size) // stride + 1 for side in x.shape[:2])
  output = np.zeros((height, width, w.shape[3]))
  for i in range(height):
    for j in range(width):
      patch = x[i * stride : i * stride + size, j * stride : j * stride + size]
      output[i, j] = np.sum(patch[..., None] * w, axis=(0, 1, 2)) + b
  return np.maximum(output, 0)


def test_convolutions_and_linear_layers_are_those_of_a_plain_loop(random_params):
  spec = image(37, 45, 2)
  net = network("dqn", spec, (56,), width=1 / 8)
  params = random_params(net.init)
  x = np.random.default_rng(1).integers(0, 256, (2, *spec.shape), dtype=np.uint8)
  features = jax.jit(net.apply)(params, x)

  weights = {name.split("/")[-1]: value for name, value in params.items()}
  for got, observation in zip(features, x, strict=True):
    hidden = observation.astype(np.float64) / 255
    for layer, stride in (("conv2_d", 4), ("conv2_d_1", 2), ("conv2_d_2", 1)):
      w, b = (np.asarray(weights[layer][name], np.float64) for name in "wb")
      hidden = convolve(hidden, w, b, stride)
    w, b = (np.asarray(weights["linear"][name], np.float64) for name in "wb")
    expected = np.maximum(hidden.reshape(-1) @ w + b, 0)
    assert np.any(expected > 0)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("side", "name"), [(7, "small"), (4, "mlp")])
def test_cells_of_categories_are_one_hot_floats(random_params, side, name):
  spec = categories(side)
  cells = np.random.default_rng(0).integers(3, size=(2, side, side, 2), dtype=np.uint8)
  one_hot = np.concatenate([np.eye(4)[cells[..., 0]], np.eye(3)[cells[..., 1]]], -1)
  net = network("auto", spec, (6,))
  plain = network(name, image(side, side, 7, dtype=np.float32), (6,))
  params = random_params(net.init)
  found = jax.jit(net.apply)(params, cells)
  expected = jax.jit(plain.apply)(params, one_hot.astype(np.float32))
  np.testing.assert_allclose(found, expected, rtol=1e-5)


DQN, SMALL = [(3, 3, 64, 64), (4, 4, 32, 64)], (3, 3, 16, 32)


@pytest.mark.parametrize(
  ("name", "spec", "features", "weights"),
  [
    ("dqn", image(84, 84, 4), 7 * 7 * 64, [*DQN, (8, 8, 4, 32)]),
    ("dqn", image(36, 36, 1), 64, [*DQN, (8, 8, 1, 32)]),
    (
      "r2d2_rgb",
      image(210, 160, 3),
      8 * 5 * 128,
      [(3, 3, 128, 128), (5, 5, 32, 64), (5, 5, 64, 128), (7, 7, 3, 32)],
    ),
    ("data_efficient", image(84, 84, 4), 3 * 3 * 64, [(5, 5, 4, 32), (5, 5, 32, 64)]),
    ("small", image(21, 21, 3), 17 * 17 * 32, [(3, 3, 3, 16), SMALL]),
    ("small", image(6, 5, 1, dtype=np.float32), 2 * 32, [(3, 3, 1, 16), SMALL]),
  ],
)
def test_features_and_filters_are_those_of_the_papers(name, spec, features, weights):
  net = network(name, spec, (9,))  # The linear layer has a row for each feature.
  params = jax.eval_shape(net.init, jax.random.key(0))
  actual = [x.shape for x in jax.tree.leaves(params) if len(x.shape) > 1]
  assert sorted(actual) == sorted([*weights, (features, 9)])
  assert networks.resolve_torso(name, spec) == name


@pytest.mark.parametrize(
  ("spec", "name"),
  [
    (image(210, 160, 3), "r2d2_rgb"),
    (image(160, 210, 3), "dqn"),
    (image(84, 84, 1), "dqn"),
    (image(35, 90, 1), "small"),
    (image(5, 7, 3), "small"),
    (image(84, 84), "mlp"),
    (image(84, 84, 1, dtype=np.float32), "dqn"),
    (image(35, 84, 1, dtype=np.float32), "mlp"),
    (image(40, 40, 40, dtype=np.float32), "mlp"),
    (image(7, dtype=np.float32), "mlp"),
    (categories(7), "small"),
    (categories(40), "small"),
    (categories(4), "mlp"),
    (INDEX, "mlp"),
  ],
)
def test_auto_chooses_what_fits(spec, name):
  assert networks.resolve_torso("auto", spec) == name
  assert networks.resolve_torso("mlp", spec) == "mlp"


def test_perceptron_is_that_of_a_plain_loop(random_params):
  spec = image(2, 3)
  net = network("mlp", spec, (4, 5))
  params = random_params(net.init)
  x = np.random.default_rng(2).integers(0, 256, (6, 2, 3), dtype=np.uint8)
  first = params["perceptron_torso"]
  second = params["perceptron_torso/linear"]
  hidden = x.reshape(6, -1).astype(np.float64) / 255
  for layer in (first, second):
    hidden = np.maximum(hidden @ np.asarray(layer["w"]) + np.asarray(layer["b"]), 0)
  np.testing.assert_allclose(jax.jit(net.apply)(params, x), hidden, rtol=1e-5)


def test_noise_is_in_the_linear_layers_alone(random_params):
  spec = dm_env.specs.BoundedArray((6, 7, 2), np.uint8, 0, 255)
  x = np.random.default_rng(0).integers(0, 256, (3, *spec.shape), dtype=np.uint8)
  torso = torsos.make_torso("small", spec, (5, 4), noise=networks.Noise(0.5))
  loud = hk.transform(lambda x: torso()(x))
  params = random_params(lambda key: loud.init(key, x))
  modules = sorted(name.split("/")[-1].removesuffix("_1") for name in params)
  assert modules == ["conv2_d"] * 2 + ["noisy_linear"] * 2
  apply = jax.jit(loud.apply)
  features = apply(params, None, x)
  assert features.shape == (3, 4) and features.dtype == np.float32
  assert np.any(apply(params, jax.random.key(1), x) != features)


@pytest.mark.parametrize(
  ("name", "spec", "sizes", "width", "message"),
  [
    ("resnet", image(84, 84, 4), (), 1.0, "no torso 'resnet'; use one of auto, mlp"),
    ("dqn", image(36, 35, 1), (), 1.0, "at least 36×36 pixels"),
    ("dqn", INDEX, (), 1.0, "but observations are int32 of shape"),
    ("mlp", image(3), (4, 0), 1.0, r"hidden_sizes are \(4, 0\); each must be"),
    ("mlp", image(3), (4,), 0.0, "the width of a torso is 0.0"),
    ("mlp", image(3, dtype=np.int32), (), 1.0, "integer observations must be"),
  ],
)
def test_what_a_torso_cannot_take_is_refused(name, spec, sizes, width, message):
  with pytest.raises(ValueError, match=message):
    networks.make_torso(name, spec, sizes, width)
