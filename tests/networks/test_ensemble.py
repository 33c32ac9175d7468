"""The lift: K copies of a network, apart or on one torso, with noise of their own."""

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

both = pytest.mark.parametrize("shared", [True, False])


def make_torso():
  return hk.Sequential([hk.Linear(H, name="torso"), jax.nn.relu])


def make_head():
  return networks.NoisyLinear(A, name="head")


def make(num_members, shared_torso):
  return networks.lift(make_torso, make_head, SPEC, num_members, shared_torso)


def member(params, k, shared):
  """One member's parameters, as those of a single network."""
  torso = params.torso if shared else jax.tree.map(lambda x: x[k], params.torso)
  return torso | jax.tree.map(lambda x: x[k], params.heads)


@both
@pytest.mark.parametrize("num_members", [1, 3])
def test_each_member_is_the_network_with_its_own_parameters(
  random_params, shared, num_members
):
  nets = make(num_members, shared)
  params = random_params(nets.init)
  alone = hk.transform(lambda x: make_head()(make_torso()(x)))
  q = jax.jit(nets.apply)(params, X)
  assert q.shape == (num_members, B, A)
  for k in range(num_members):
    expected = alone.apply(member(params, k, shared), None, X)
    np.testing.assert_allclose(q[k], expected, rtol=1e-5, atol=1e-6)


@both
def test_members_begin_apart_and_draw_noise_of_their_own(shared):
  nets = make(3, shared)
  params = jax.jit(nets.init)(jax.random.key(0))
  mean = nets.apply(params, X)
  noise = nets.apply(params, X, jax.random.key(1)) - mean
  for values in (mean, noise):
    apart = np.abs(values[:, None] - values[None, :]).max(axis=(2, 3)) + np.eye(3)
    assert apart.min() > 1e-3
  np.testing.assert_array_equal(nets.apply(params, X, jax.random.key(1)), noise + mean)
  other = jax.jit(nets.init)(jax.random.key(7))
  assert np.abs(nets.apply(other, X) - mean).max() > 1e-3


@both
def test_a_members_loss_has_no_gradient_on_the_others(random_params, shared):
  nets = make(3, shared)
  params = random_params(nets.init)

  def gradients(k):
    return jax.grad(lambda p: jnp.sum(nets.apply(p, X, jax.random.key(0))[k] ** 2))

  grads = jax.jit(gradients(1))(params)
  leaves = grads.heads if shared else grads
  for leaf in jax.tree.leaves(leaves):
    assert [bool(np.any(g)) for g in leaf] == [False, True, False]
  if shared:
    assert all(np.any(leaf) for leaf in jax.tree.leaves(grads.torso))
