"""Ensembles of perceptrons: Haiku's, lifted, with weights drawn for all at once."""

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import networks

NUM_ACTIONS = 3
SPECS = {
  "index": dm_env.specs.BoundedArray((), np.int32, -1, 10),
  "float": dm_env.specs.Array((2, 3), np.float32),
  "uint8": dm_env.specs.Array((3, 2), np.uint8),
}


def observations(kind, batch_size=6, seed=0):
  rng = np.random.default_rng(seed)
  if kind == "index":
    index = rng.integers(0, 11, batch_size).astype(np.int32)
    index[1] = -1
    return index
  if kind == "uint8":
    return rng.integers(0, 256, (batch_size, 3, 2)).astype(np.uint8)
  return rng.standard_normal((batch_size, 2, 3)).astype(np.float32)


def layers(params, k, shared):
  """Member k's layers, from the first to the last."""
  torso = params.torso if shared else jax.tree.map(lambda x: x[k], params.torso)
  head = jax.tree.map(lambda x: x[k], params.heads)
  return [*torso.values(), *head.values()]


@pytest.mark.parametrize(
  ("kind", "num_members", "hidden_sizes", "shared"),
  [
    ("index", 4, (5, 4), False),
    ("index", 3, (5, 4), True),
    ("uint8", 2, (), False),
    ("float", 3, (4,), False),
  ],
)
def test_equal_haikus_perceptrons(
  kind, num_members, hidden_sizes, shared, random_params
):
  """Values and gradients."""
  nets = networks.make_perceptrons(
    SPECS[kind], NUM_ACTIONS, num_members, hidden_sizes, shared
  )
  params = random_params(nets.init, seed=1)
  x = observations(kind)
  inputs = networks.make_inputs(SPECS[kind])
  mlp = hk.without_apply_rng(
    hk.transform(lambda x: hk.nets.MLP((*hidden_sizes, NUM_ACTIONS))(inputs.dense(x)))
  )

  def alone(params, k):
    names = (f"mlp/~/linear_{i}" for i in range(len(hidden_sizes) + 1))
    return mlp.apply(dict(zip(names, layers(params, k, shared), strict=True)), x)

  def plain(params):
    return jnp.stack([alone(params, k) for k in range(num_members)])

  shape = (num_members, 6, NUM_ACTIONS)
  weights = np.random.default_rng(3).standard_normal(shape).astype(np.float32)

  @jax.jit
  def values_and_gradients(params):
    results = []
    for apply in (lambda params: nets.apply(params, x), plain):
      values, pull = jax.vjp(apply, params)
      results.append((values, *pull(weights)))
    return results

  found, expected = values_and_gradients(params)
  assert found[0].shape == shape
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected
  )


@pytest.mark.parametrize("shared", [False, True])
def test_weights_begin_as_hk_linear_would_draw_them(shared):
  """And independent of each other."""
  spec = dm_env.specs.BoundedArray((), np.int32, -1, 99)
  num_members, sizes = 4, (100, 32, 24, NUM_ACTIONS)
  nets = networks.make_perceptrons(spec, NUM_ACTIONS, num_members, sizes[1:3], shared)
  params = jax.device_get(jax.jit(nets.init)(jax.random.key(7)))
  # Of a standard normal truncated at ±2, by its textbook formula.
  truncated_deviation = np.sqrt(1 - 4 * np.exp(-2) / np.sqrt(2 * np.pi) / 0.9544997)
  drawn = [layers(params, k, shared) for k in range(num_members)]
  for i, fan_in in enumerate(sizes[:-1]):
    for member in drawn:
      w, b = member[i]["w"], member[i]["b"]
      assert w.shape == (fan_in, sizes[i + 1])
      assert np.all(b == 0)
      tolerance = 4 / np.sqrt(w.size)  # Four standard errors, or more.
      scaled = np.asarray(w, np.float64) * np.sqrt(fan_in)
      assert np.max(np.abs(scaled)) <= 2 + 1e-5
      np.testing.assert_allclose(np.std(scaled), truncated_deviation, rtol=tolerance)
      np.testing.assert_allclose(np.mean(scaled), 0, atol=tolerance)
    if i == 2 or not shared:
      rows = np.stack([np.ravel(member[i]["w"]) for member in drawn])
      correlation = np.corrcoef(rows) - np.eye(num_members)
      assert np.max(np.abs(correlation)) < 5 / np.sqrt(rows.shape[1])
