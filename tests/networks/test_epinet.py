"""Epinets against loops in float64: the base, the epinet and the prior."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import networks
from explorax.environments import encodings, specs

A, K, D, H = 3, 4, 2, 5
VECTORS = dm_env.specs.Array((6,), np.float32)
INDICES = encodings.make(specs.OneHotArray((2, 3), "observation")).spec
X = np.random.default_rng(0).normal(size=(7, 6)).astype(np.float32)
X_INDICES = np.array([0, 5, -1, 3], np.int32)
ONE_HOT = np.eye(7, 6)[X_INDICES]  # All zeros for −1.


def make(spec, hidden_sizes=(8,), prior_scale=1.5, num_members=K):
  trunk = networks.make_trunk(networks.make_torso("mlp", spec, (H,)), A, lstm_size=0)
  return networks.make_epinet(trunk, spec, A, num_members, D, hidden_sizes, prior_scale)


def evaluate(epinet, params, prior, x, key):
  """Values `[K, B, A]` of observations."""
  inputs = networks.StepInputs(x[:, None], np.zeros((len(x), 1), np.int32))
  q, _ = epinet.unroll(params, prior, inputs, jnp.zeros((len(x), 0)), key)
  return q[:, :, 0]


def expected(params, prior, x, z, prior_scale):
  """Q of one observation, a vector, and of one index, action by action."""
  layers = {
    name.removeprefix("epinet/").removeprefix("~/"): jax.tree.map(np.float64, layer)
    for name, layer in params.items()
  }
  torso, base, epinet = layers["perceptron_torso"], layers["base"], layers["epinet"]
  features = np.maximum(x @ torso["w"] + torso["b"], 0.0)
  w = np.concatenate([epinet[f"w_{n}"] for n in ("index", "input", "features")])
  hidden = np.concatenate([z, x, features]) @ w + epinet["b"]
  for i in range(2):
    if layer := layers.get("linear" + f"_{i}" * (i > 0)):
      hidden = np.maximum(hidden, 0.0) @ layer["w"] + layer["b"]
  q = features @ base["w"] + base["b"]
  for a in range(A):
    for d in range(D):
      of_prior = sum(x[i] * np.float64(prior[i, a * D + d]) for i in range(len(x)))
      q[a] += z[d] * (hidden[a * D + d] + prior_scale * of_prior)
  return q


@pytest.mark.parametrize(
  ("spec", "x", "vectors", "hidden_sizes"),
  [(VECTORS, X, X, (8,)), (VECTORS, X, X, ()), (INDICES, X_INDICES, ONE_HOT, (8, 4))],
  ids=["vectors", "linear", "one-hot"],
)
def test_values_are_those_of_the_base_the_epinet_and_the_prior(
  random_params, spec, x, vectors, hidden_sizes
):
  epinet = make(spec, hidden_sizes)
  params = random_params(epinet.init)
  prior = random_params(epinet.init_prior, seed=1)

  @jax.jit
  def run(params, prior, key):
    keys = None, key
    return [evaluate(epinet, params, prior, x, given) for given in keys]

  key = jax.random.key(3)
  drawn = np.float64(jax.random.normal(key, (K, D)))
  for z, q in zip((0 * drawn, drawn), run(params, prior, key), strict=True):
    assert q.shape == (K, len(x), A)
    for k, b in np.ndindex(K, len(x)):
      one = expected(params, prior, vectors[b], z[k], 1.5)
      np.testing.assert_allclose(q[k, b], one, rtol=1e-4, atol=1e-4)


def test_only_the_base_trains_the_torso(random_params):
  """With a loss linear in the values, the indices leave the torso's gradient alone."""
  epinet = make(VECTORS)
  params = random_params(epinet.init)
  prior = random_params(epinet.init_prior, seed=1)
  weights = np.random.default_rng(2).normal(size=(K, 7, A)).astype(np.float32)

  def loss(params, prior, key):
    return jnp.sum(weights * evaluate(epinet, params, prior, X, key))

  @jax.jit
  def gradients(params, prior, key):
    both = jax.grad(loss, argnums=(0, 1))(params, prior, key)
    return *both, jax.grad(loss)(params, prior, None)

  with_index, of_prior, without = gradients(params, prior, jax.random.key(3))
  for name, layer in with_index.items():
    for leaf, value in layer.items():
      assert np.any(value != 0)
      if "torso" in name or "base" in name:
        np.testing.assert_allclose(value, without[name][leaf], rtol=1e-4, atol=1e-5)
  assert np.all(of_prior == 0)


@pytest.mark.parametrize(
  ("spec", "x"),
  [
    (dm_env.specs.BoundedArray((), np.int32, -1, 2499), np.arange(2500)),
    (
      dm_env.specs.Array((400,), np.float32),
      np.random.default_rng(0).normal(size=(2500, 400)).astype(np.float32),
    ),
  ],
  ids=["one-hot", "vectors"],
)
def test_the_prior_has_a_deviation_of_the_indexs_norm(spec, x):
  """λ |z|, over one-hot observations and over vectors of unit variance."""
  epinet = make(spec, prior_scale=1.5, num_members=1)
  params = jax.tree.map(
    lambda p: np.zeros(p.shape, p.dtype), jax.eval_shape(epinet.init, jax.random.key(0))
  )

  @jax.jit
  def run(key):
    prior = epinet.init_prior(jax.random.fold_in(key, 1))
    return evaluate(epinet, params, prior, x, key)

  key = jax.random.key(3)
  q = run(key)
  norm = np.linalg.norm(jax.random.normal(key, (1, D)))
  np.testing.assert_allclose(np.std(q), 1.5 * norm, rtol=0.1)
