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


@pytest.mark.parametrize(("num_members", "shared"), [(3, True), (3, False), (1, False)])
def test_each_member_is_the_network_with_its_own_parameters(
  random_params, num_members, shared
):
  nets = make(num_members, shared)
  params = random_params(nets.init)
  alone = jax.jit(hk.transform(lambda x: make_head()(make_torso()(x))).apply)
  q = jax.jit(nets.apply)(params, X)
  assert q.shape == (num_members, B, A)
  for k in range(num_members):
    expected = alone(member(params, k, shared), None, X)
    np.testing.assert_allclose(q[k], expected, rtol=1e-5, atol=1e-6)


@both
def test_members_begin_apart_and_draw_noise_of_their_own(shared):
  nets = make(3, shared)

  @jax.jit
  def run(of_params, of_noise):
    params = nets.init(jax.random.key(of_params))
    return nets.apply(params, X), nets.apply(params, X, jax.random.key(of_noise))

  mean, noisy = map(np.asarray, run(0, 1))
  for values in (mean, noisy - mean):
    apart = np.abs(values[:, None] - values[None, :]).max(axis=(2, 3)) + np.eye(3)
    assert apart.min() > 1e-3
  assert np.abs(run(0, 2)[1] - noisy).max() > 1e-3
  assert np.abs(run(7, 1)[0] - mean).max() > 1e-3


@both
def test_a_members_loss_has_no_gradient_on_the_others(random_params, shared):
  nets = make(3, shared)

  @jax.jit
  @jax.grad
  def gradient(params):
    return jnp.sum(nets.apply(params, X, jax.random.key(0))[1] ** 2)

  grads = jax.device_get(gradient(random_params(nets.init)))
  leaves = grads.heads if shared else grads
  for leaf in jax.tree.leaves(leaves):
    assert [bool(np.any(g)) for g in leaf] == [False, True, False]
  if shared:
    assert all(np.any(leaf) for leaf in jax.tree.leaves(grads.torso))
