"""Heads that may be noisy, on torsos that may be shared."""

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import networks

F, H, A, B = 3, 4, 2, 5
SPEC = dm_env.specs.Array((F,), np.float32)
X = np.random.default_rng(0).normal(size=(B, F)).astype(np.float32)


def make_torso():
  return hk.Sequential([hk.Linear(H, name="torso"), jax.nn.relu])


def make_head():
  return networks.NoisyLinear(A, name="head")


def make(num_members, shared_torso):
  return networks.make_head_networks(
    make_torso, make_head, SPEC, num_members, shared_torso
  )


def member(tree, k):
  return jax.tree.map(lambda x: x[..., k, :], tree)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("num_members", [1, 3])
def test_each_member_is_the_module_with_its_own_parameters(
  random_params, shared, num_members
):
  nets = make(num_members, shared)
  params = random_params(nets.init)
  alone = hk.transform(lambda x: make_head()(make_torso()(x)))
  q = jax.jit(nets.apply)(params, X, None)
  assert q.shape == (num_members, B, A)
  for k in range(num_members):
    own = member(params.heads, k) | params.torso if shared else member(params, k)
    np.testing.assert_allclose(q[k], alone.apply(own, None, X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_one_row_is_as_in_a_batch(random_params, shared):
  nets = make(2, shared)
  params, key = random_params(nets.init), jax.random.key(4)
  for noise in (None, key):
    q, one = nets.apply(params, X, noise), nets.apply(params, X[2:3], noise)
    assert one.shape == (2, 1, A)
    np.testing.assert_allclose(one, q[:, 2:3], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_members_begin_apart_and_draw_noise_of_their_own(shared):
  nets = make(3, shared)
  params = jax.jit(nets.init)(jax.random.key(0))
  mean = nets.apply(params, X, None)
  noise = nets.apply(params, X, jax.random.key(1)) - mean
  for values in (mean, noise):
    apart = np.abs(values[:, None] - values[None, :]).max(axis=(2, 3)) + np.eye(3)
    assert apart.min() > 1e-3
  np.testing.assert_array_equal(nets.apply(params, X, jax.random.key(1)), noise + mean)


@pytest.mark.parametrize("shared", [True, False])
def test_a_members_loss_has_no_gradient_on_the_others(random_params, shared):
  nets = make(3, shared)
  params = random_params(nets.init)
  gradient = jax.jit(
    jax.grad(lambda p: jnp.sum(nets.apply(p, X, jax.random.key(0))[1] ** 2))
  )
  grads = gradient(params)
  if shared:
    assert all(np.any(leaf) for leaf in jax.tree.leaves(grads.torso))
    grads = grads.heads
  for leaf in jax.tree.leaves(grads):
    moved = [bool(np.any(leaf[..., k, :])) for k in range(3)]
    assert moved == [False, True, False]


def test_convolutions_of_members_apart(random_params):
  spec = dm_env.specs.Array((6, 5, 2), np.uint8)
  torso = networks.make_torso("small", spec, (H,))
  nets = networks.make_head_networks(
    torso, lambda: hk.Linear(A, name="head"), spec, 2, shared_torso=False
  )
  params = random_params(nets.init)
  x = np.random.default_rng(0).integers(0, 256, (3, 6, 5, 2), dtype=np.uint8)
  alone = networks.from_haiku(
    lambda: hk.Sequential([torso(), hk.Linear(A, name="head")]), spec
  )
  q = nets.apply(params, x, None)
  for k in range(2):
    np.testing.assert_allclose(
      q[k], alone.apply(member(params, k), x), rtol=1e-4, atol=1e-4
    )


def test_an_ensemble_has_members():
  with pytest.raises(ValueError, match="num_members is 0; an ensemble needs"):
    make(0, shared_torso=True)
