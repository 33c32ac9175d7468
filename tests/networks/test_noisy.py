"""Noisy layers, and heads with distributions."""

import dm_env
import haiku as hk
import jax
import numpy as np
import pytest

from explorax import networks
from explorax.networks import heads, noisy

P, SIZE = 4, 3
LAYER = hk.transform(lambda x: noisy.NoisyLinear(SIZE)(x))
X = np.random.default_rng(0).normal(size=(5, P)).astype(np.float32)


def layer(params):
  (module,) = params.values()
  return {k: np.asarray(v, np.float64) for k, v in module.items()}


def test_noise_is_factorised(random_params):
  """Against the matrix of noise, its factors read off the layer itself."""
  params = random_params(lambda key: LAYER.init(key, X))
  values, apply = layer(params), jax.jit(LAYER.apply)
  key, ((name, module),) = jax.random.key(3), params.items()
  only_noise = {k: np.full(v.shape, "sigma" in k, v.dtype) for k, v in module.items()}
  # ε_b = f(ε_j) is the output at 0; with one input at 1, ε_w = f(ε_i) f(ε_j) is added.
  x = np.eye(P + 1, P, dtype=np.float32)
  output = np.asarray(apply({name: only_noise}, key, x), np.float64)
  noise_w, noise_b = output[:P] - output[P], output[P]
  assert np.linalg.matrix_rank(noise_w, tol=1e-5) == 1
  ratios = noise_w / noise_b[None]
  np.testing.assert_allclose(ratios, np.tile(ratios[:, :1], (1, SIZE)), rtol=1e-4)

  expected = X @ (values["w_mu"] + values["w_sigma"] * noise_w) + (
    values["b_mu"] + values["b_sigma"] * noise_b
  )
  np.testing.assert_allclose(apply(params, key, X), expected, rtol=1e-4, atol=1e-5)


def test_noise_is_the_signed_root_of_a_normal_deviate(random_params):
  params = random_params(lambda key: LAYER.init(key, X[:1]))
  ((name, module),) = params.items()
  only_b = {k: np.full(v.shape, k == "b_sigma", v.dtype) for k, v in module.items()}
  keys = jax.random.split(jax.random.key(1), 20_000)
  f = jax.jit(jax.vmap(lambda k: LAYER.apply({name: only_b}, k, X[:1])[0]))(keys)
  f = np.asarray(f)
  z = np.sign(f) * np.square(f)
  assert abs(np.mean(z)) < 0.02 and abs(np.std(z) - 1) < 0.02
  np.testing.assert_allclose(np.mean(np.abs(z) < 0.6745), 0.5, atol=0.01)
  np.testing.assert_allclose(np.corrcoef(z.T), np.eye(SIZE), atol=0.03)


@pytest.mark.parametrize("of_index", [False, True])
def test_white_noise_is_independent_and_of_the_variance(random_params, of_index):
  """Its matrix is read off the layer, one input at a time."""
  inputs, x = None, np.eye(P, dtype=np.float32)
  if of_index:
    spec = dm_env.specs.BoundedArray((), np.int32, -1, P - 1)
    inputs, x = networks.make_inputs(spec), np.arange(P, dtype=np.int32)
  white = hk.transform(
    lambda x: noisy.NoisyLinear(SIZE, noisy.Noise(0.5, variance=4.0), inputs)(x)
  )
  params = random_params(lambda key: white.init(key, x))
  ((name, module),) = params.items()
  zeros = {k: np.zeros_like(v) for k, v in module.items()}
  keys = jax.random.split(jax.random.key(1), 20_000)
  apply = jax.jit(
    jax.vmap(lambda module, key: white.apply({name: module}, key, x), (None, 0))
  )

  def noise(**sigma):
    return np.asarray(apply({**zeros, **sigma}, keys), np.float64)

  ones = np.ones((P, SIZE), np.float32)
  noise_w, noise_b = noise(w_sigma=ones), noise(b_sigma=ones[0])
  assert np.all(noise_b == noise_b[:, :1])  # One draw for the whole batch.
  each = np.concatenate([noise_w.reshape(-1, P * SIZE), noise_b[:, 0]], axis=1)
  spread = 5 * 4 / np.sqrt(20_000)
  np.testing.assert_allclose(np.cov(each.T), 4 * np.eye(15), atol=1.5 * spread)
  np.testing.assert_allclose(np.mean(each, axis=0), 0, atol=spread)
  np.testing.assert_allclose(np.mean(np.abs(each) < 2 * 0.6745), 0.5, atol=0.01)
  # Scaled by the trained σ, element by element.
  sigma = ones + np.arange(P * SIZE, dtype=np.float32).reshape(P, SIZE)
  np.testing.assert_allclose(noise(w_sigma=sigma), noise_w * sigma[None], rtol=1e-4)


def test_initial_scales():
  wide = hk.transform(lambda x: noisy.NoisyLinear(50, noisy.Noise(0.4))(x))
  values = layer(jax.jit(wide.init)(jax.random.key(0), np.zeros((1, 100), np.float32)))
  np.testing.assert_allclose(values["w_sigma"], 0.04, rtol=1e-6)
  np.testing.assert_allclose(values["b_sigma"], 0.04, rtol=1e-6)
  for name in ("w_mu", "b_mu"):
    assert np.abs(values[name]).max() <= 0.1
  # A uniform distribution within ±0.1.
  np.testing.assert_allclose(values["w_mu"].std(), 0.1 / np.sqrt(3), rtol=0.03)
  assert values["b_mu"].std() > 0.03


def test_an_index_is_its_one_hot_vector(random_params):
  """Of encoded observations the layer is that of their vectors, noise included."""
  spec = dm_env.specs.BoundedArray((), np.int32, -1, P - 1)
  inputs = networks.make_inputs(spec)
  of_index = hk.transform(lambda x: noisy.NoisyLinear(SIZE, inputs=inputs)(x))
  params = random_params(lambda k: of_index.init(k, inputs.example))
  index = np.array([2, -1, 0, 2, 3], np.int32)
  one_hot = np.eye(P + 1, P, dtype=np.float32)[index]
  of_index, of_vector = jax.jit(of_index.apply), jax.jit(LAYER.apply)
  for key in (None, jax.random.key(5)):
    expected = of_vector(params, key, one_hot)
    np.testing.assert_allclose(of_index(params, key, index), expected, rtol=1e-5)
  # Without a key the layer is its mean.
  values = layer(params)
  mean = X @ values["w_mu"] + values["b_mu"]
  np.testing.assert_allclose(of_vector(params, None, X), mean, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("num_atoms", [None, 5])
def test_duelling_heads_are_composed_atom_by_atom(random_params, num_atoms):
  net = hk.without_apply_rng(
    hk.transform(lambda x: heads.DuellingHead(SIZE, 6, num_atoms)(x))
  )
  params = random_params(lambda key: net.init(key, X))
  values = {k.split("/")[-1]: jax.device_get(v) for k, v in params.items()}

  def branch(name):
    first, second = values[f"{name}_hidden"], values[name]
    return np.maximum(X @ first["w"] + first["b"], 0) @ second["w"] + second["b"]

  atoms = num_atoms or 1
  value, advantage = branch("value"), branch("advantage").reshape(5, SIZE, atoms)
  got = np.asarray(jax.jit(net.apply)(params, X)).reshape(5, SIZE, atoms)
  for b in range(5):
    for atom in range(atoms):
      mean = advantage[b, :, atom].mean()
      expected = value[b, atom] + advantage[b, :, atom] - mean
      np.testing.assert_allclose(got[b, :, atom], expected, rtol=1e-4, atol=1e-5)
