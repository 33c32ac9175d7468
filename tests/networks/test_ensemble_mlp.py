"""The fast ensemble of perceptrons is K copies of `hk.nets.MLP`, evaluated as one."""

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.networks import ensemble, ensemble_mlp
from explorax.networks import inputs as inputs_lib

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


def as_mlp_params(params, num_members):
  """Parameters of K copies of `hk.nets.MLP`, stacked, out of the ensemble's."""
  (params,) = params.values()
  num_layers = len(params) // 2
  layers = {}
  for i in range(num_layers):
    w, b = np.asarray(params[f"w_{i}"]), np.asarray(params[f"b_{i}"])
    if i == 0:
      w = np.stack(np.split(w, num_members, axis=1))
      b = np.stack(np.split(b, num_members))
    layers[f"mlp/~/linear_{i}"] = {"w": w, "b": b}
  return layers


def mlp(kind, hidden_sizes):
  inputs = inputs_lib.make_inputs(SPECS[kind])

  def make_module():
    layers = hk.nets.MLP((*hidden_sizes, NUM_ACTIONS))
    return lambda x: layers(inputs.dense(x))

  return ensemble.from_haiku(make_module, SPECS[kind])


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("hidden_sizes", [(5, 4), ()])
def test_equals_the_lifted_mlp(kind, hidden_sizes, random_params):
  num_members = 4
  fast = ensemble_mlp.make_ensemble_mlp(
    SPECS[kind], NUM_ACTIONS, num_members, hidden_sizes
  )
  slow = ensemble.lift(mlp(kind, hidden_sizes), num_members)
  x = observations(kind)
  params = random_params(fast.init, seed=1)
  slow_params = as_mlp_params(params, num_members)
  expected = jax.jit(slow.apply)(slow_params, x)
  assert expected.shape == (num_members, 6, NUM_ACTIONS)
  np.testing.assert_allclose(
    jax.jit(fast.apply)(params, x), expected, rtol=1e-5, atol=1e-5
  )
  if len(hidden_sizes) == 2:  # Not jitted, it is the same.
    np.testing.assert_allclose(fast.apply(params, x), expected, rtol=1e-5, atol=1e-5)

  # The same gradients, too: mapped over, they are the slow ensemble's.
  weights = np.random.default_rng(3).standard_normal(expected.shape)
  weights = jnp.asarray(weights, jnp.float32)

  def gradient(networks, params):
    loss = jax.jit(jax.grad(lambda p: jnp.sum(networks.apply(p, x) * weights)))
    return loss(params)

  fast_grads, slow_grads = gradient(fast, params), gradient(slow, slow_params)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
    as_mlp_params(fast_grads, num_members),
    slow_grads,
  )


@pytest.mark.parametrize(
  ("kind", "shared_torso"), [("index", False), ("index", True), ("uint8", True)]
)
def test_one_member_is_the_plain_mlp(kind, shared_torso, random_params):
  fast = ensemble_mlp.make_ensemble_mlp(
    SPECS[kind], NUM_ACTIONS, 1, (5, 4), shared_torso
  )
  params = random_params(fast.init, seed=2)
  (flat,) = params.values()
  plain = {
    f"mlp/~/linear_{i}": {
      "w": jnp.reshape(flat[f"w_{i}"], flat[f"w_{i}"].shape[-2:]),
      "b": jnp.ravel(flat[f"b_{i}"]),
    }
    for i in range(3)
  }
  x = observations(kind)
  expected = jax.jit(mlp(kind, (5, 4)).apply)(plain, x)
  q = jax.jit(fast.apply)(params, x)
  assert q.shape == (1, 6, NUM_ACTIONS)
  np.testing.assert_allclose(q[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", SPECS)
def test_shared_torso_equals_linear_heads_on_one_torso(kind, random_params):
  num_members = 3
  fast = ensemble_mlp.make_ensemble_mlp(
    SPECS[kind], NUM_ACTIONS, num_members, (5, 4), shared_torso=True
  )
  inputs = inputs_lib.make_inputs(SPECS[kind])

  def make_torso():
    layers = hk.nets.MLP((5, 4), activate_final=True)
    return lambda x: layers(inputs.dense(x))

  slow = ensemble.with_shared_torso(
    make_torso, lambda: hk.Linear(NUM_ACTIONS), SPECS[kind], num_members
  )
  params = random_params(fast.init, seed=4)
  (flat,) = params.values()
  slow_params = ensemble.SharedTorsoParams(
    torso={
      f"mlp/~/linear_{i}": {"w": flat[f"w_{i}"], "b": flat[f"b_{i}"]} for i in range(2)
    },
    heads={
      "linear": {
        "w": jnp.stack(jnp.split(flat["w_2"], num_members, axis=1)),
        "b": jnp.stack(jnp.split(flat["b_2"], num_members)),
      }
    },
  )
  x = observations(kind)
  np.testing.assert_allclose(
    jax.jit(fast.apply)(params, x),
    jax.jit(slow.apply)(slow_params, x),
    rtol=1e-5,
    atol=1e-5,
  )


def member_slices(params, member, num_members):
  """The member's share of every array, and everybody else's."""
  stacked = as_mlp_params(params, num_members)
  own = jax.tree.leaves(jax.tree.map(lambda x: x[member], stacked))
  others = jax.tree.leaves(
    jax.tree.map(lambda x: np.delete(x, member, axis=0), stacked)
  )
  return own, others


@pytest.mark.parametrize("kind", SPECS)
def test_a_members_loss_has_no_gradient_on_the_others(kind, random_params):
  num_members = 4
  networks = ensemble_mlp.make_ensemble_mlp(
    SPECS[kind], NUM_ACTIONS, num_members, (8, 8)
  )
  params = random_params(networks.init, seed=5)
  x = observations(kind)
  gradient = jax.jit(jax.grad(lambda p, k: jnp.sum(networks.apply(p, x)[k] ** 2)))
  for member in range(num_members):
    grads = gradient(params, member)
    own, others = member_slices(grads, member, num_members)
    assert all(np.any(g != 0) for g in own)
    assert all(np.all(g == 0) for g in others)


def test_the_shared_torso_learns_from_every_head_and_heads_from_their_own(
  random_params,
):
  num_members = 3
  networks = ensemble_mlp.make_ensemble_mlp(
    SPECS["float"], NUM_ACTIONS, num_members, (8, 8), shared_torso=True
  )
  params = random_params(networks.init, seed=6)
  x = observations("float")
  gradient = jax.jit(jax.grad(lambda p, k: jnp.sum(networks.apply(p, x)[k] ** 2)))
  for member in range(num_members):
    grads = gradient(params, member)
    (flat,) = grads.values()
    assert np.any(flat["w_0"] != 0) and np.any(flat["w_1"] != 0)
    heads = np.split(np.asarray(flat["w_2"]), num_members, axis=1)
    touched = [bool(np.any(head != 0)) for head in heads]
    assert touched == [k == member for k in range(num_members)]


def test_weights_begin_as_hk_linear_would_draw_them():
  spec = dm_env.specs.BoundedArray((), np.int32, -1, 399)
  num_members, sizes = 6, (400, 64, 48, NUM_ACTIONS)
  networks = ensemble_mlp.make_ensemble_mlp(spec, NUM_ACTIONS, num_members, sizes[1:3])
  stacked = as_mlp_params(jax.jit(networks.init)(jax.random.key(7)), num_members)
  # Of a standard normal truncated at ±2, by its textbook formula.
  truncated_deviation = np.sqrt(1 - 4 * np.exp(-2) / np.sqrt(2 * np.pi) / 0.9544997)
  for i, fan_in in enumerate(sizes[:-1]):
    layer = stacked[f"mlp/~/linear_{i}"]
    assert layer["w"].shape == (num_members, fan_in, sizes[i + 1])
    assert np.all(layer["b"] == 0)
    for w in layer["w"]:
      tolerance = 4 / np.sqrt(w.size)  # Four standard errors, or more.
      scaled = w.astype(np.float64) * np.sqrt(fan_in)
      assert np.max(np.abs(scaled)) <= 2 + 1e-5
      np.testing.assert_allclose(np.std(scaled), truncated_deviation, rtol=tolerance)
      np.testing.assert_allclose(np.mean(scaled), 0, atol=tolerance)


def test_members_begin_independent_of_each_other():
  spec = dm_env.specs.BoundedArray((), np.int32, -1, 199)
  num_members = 5
  networks = ensemble_mlp.make_ensemble_mlp(spec, NUM_ACTIONS, num_members, (40, 40))
  stacked = as_mlp_params(jax.jit(networks.init)(jax.random.key(8)), num_members)
  for i in range(2):
    w = stacked[f"mlp/~/linear_{i}"]["w"].reshape(num_members, -1)
    correlation = np.corrcoef(w) - np.eye(num_members)
    assert np.max(np.abs(correlation)) < 4 / np.sqrt(w.shape[1])


def test_another_key_draws_other_weights_and_the_same_key_the_same():
  networks = ensemble_mlp.make_ensemble_mlp(SPECS["float"], NUM_ACTIONS, 2)
  x = observations("float")
  init = jax.jit(networks.init)
  q = [networks.apply(init(jax.random.key(seed)), x) for seed in (0, 0, 1)]
  np.testing.assert_array_equal(q[0], q[1])
  assert not np.allclose(q[0], q[2])


@pytest.mark.parametrize(
  ("kind", "shared_torso"), [("index", False), ("index", True), ("uint8", True)]
)
def test_rows_of_a_batch_do_not_mix(kind, shared_torso, random_params):
  networks = ensemble_mlp.make_ensemble_mlp(
    SPECS[kind], NUM_ACTIONS, 3, (5,), shared_torso
  )
  params = random_params(networks.init, seed=9)
  x = observations(kind)
  apply = jax.jit(networks.apply)
  one_by_one = [apply(params, x[i : i + 1]) for i in range(len(x))]
  np.testing.assert_allclose(
    apply(params, x), np.concatenate(one_by_one, axis=1), rtol=1e-5, atol=1e-6
  )


def test_vmaps_over_time(random_params):
  networks = ensemble_mlp.make_ensemble_mlp(SPECS["index"], NUM_ACTIONS, 3, (5,))
  params = random_params(networks.init, seed=10)
  x = np.stack([observations("index", seed=seed) for seed in range(4)])
  q = jax.vmap(networks.apply, in_axes=(None, 0))(params, x)
  for q_t, x_t in zip(q, x, strict=True):
    np.testing.assert_allclose(q_t, networks.apply(params, x_t), rtol=1e-5, atol=1e-6)


def test_a_second_call_does_not_compile():
  networks = ensemble_mlp.make_ensemble_mlp(SPECS["index"], NUM_ACTIONS, 3)
  traces = []

  @jax.jit
  def apply(params, x):
    traces.append(None)
    return networks.apply(params, x)

  init = jax.jit(networks.init)
  for seed in range(3):
    apply(init(jax.random.key(seed)), observations("index", seed=seed))
  assert len(traces) == 1


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"num_members": 0}, "num_members is 0"),
    ({"num_actions": 0}, "num_actions is 0"),
    ({"hidden_sizes": (50, 0)}, r"hidden_sizes are \(50, 0\)"),
    ({"hidden_sizes": (), "shared_torso": True}, "nothing to share"),
    ({"observation_spec": dm_env.specs.Array((2,), np.int64)}, "one-hot"),
  ],
)
def test_bad_arguments_are_refused(changes, message):
  arguments = {
    "observation_spec": SPECS["float"],
    "num_actions": NUM_ACTIONS,
    "num_members": 2,
  }
  with pytest.raises(ValueError, match=message):
    ensemble_mlp.make_ensemble_mlp(**(arguments | changes))
