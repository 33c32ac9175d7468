"""The general lift, shared torsos and fixed priors."""

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.networks import ensemble, ensemble_mlp

SPEC = dm_env.specs.Array((4,), np.float32)
X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def single():
  return ensemble.from_haiku(lambda: hk.nets.MLP((6, 3)), SPEC)


def member(tree, k):
  return jax.tree.map(lambda x: x[k], tree)


def test_lifted_members_are_the_single_network_with_their_own_parameters(random_params):
  network = single()
  networks = ensemble.lift(network, 4)
  params = random_params(networks.init, seed=0)
  assert jax.tree.map(jnp.shape, params) == jax.tree.map(
    lambda x: (4, *x.shape), jax.eval_shape(network.init, jax.random.key(0))
  )
  q = jax.jit(networks.apply)(params, X)
  apply = jax.jit(network.apply)
  assert q.shape == (4, 5, 3)
  for k in range(4):
    np.testing.assert_allclose(q[k], apply(member(params, k), X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
  "networks",
  [
    ensemble.lift(ensemble.from_haiku(lambda: hk.Linear(3), SPEC), 4),
    ensemble.with_shared_torso(lambda: jnp.tanh, lambda: hk.Linear(3), SPEC, 4),
  ],
)
def test_no_two_members_begin_alike(networks):
  q = networks.apply(jax.jit(networks.init)(jax.random.key(0)), X)
  assert q.shape == (4, 5, 3)
  differences = np.abs(q[:, None] - q[None, :]).max(axis=(2, 3)) + np.eye(4)
  assert np.min(differences) > 1e-2


def test_a_lifted_members_loss_has_no_gradient_on_the_others(random_params):
  networks = ensemble.lift(single(), 3)
  params = random_params(networks.init, seed=1)
  gradient = jax.jit(jax.grad(lambda p: jnp.sum(networks.apply(p, X)[1] ** 2)))
  grads = gradient(params)
  for leaf in jax.tree.leaves(grads):
    assert [bool(np.any(g != 0)) for g in leaf] == [False, True, False]


def test_heads_share_the_torso_and_nothing_else(random_params):
  def make_torso():
    return hk.nets.MLP((6,), activate_final=True)

  def make_head():
    return hk.nets.MLP((5, 3))

  networks = ensemble.with_shared_torso(make_torso, make_head, SPEC, 3)
  params = random_params(networks.init, seed=2)
  whole = ensemble.from_haiku(lambda: hk.Sequential([make_torso(), make_head()]), SPEC)
  q = jax.jit(networks.apply)(params, X)
  apply = jax.jit(whole.apply)
  assert q.shape == (3, 5, 3)
  names = [f"mlp/~/linear_{i}" for i in range(2)]
  for k in range(3):
    head = member(params.heads, k)
    plain = params.torso | {name.replace("mlp", "mlp_1"): head[name] for name in names}
    np.testing.assert_allclose(q[k], apply(plain, X), rtol=1e-5, atol=1e-6)

  def loss(p, k):
    return jnp.sum(networks.apply(p, X)[k] ** 2)

  gradient = jax.jit(jax.grad(loss))
  grads = [gradient(params, k) for k in range(3)]
  for k, grad in enumerate(grads):
    assert all(np.any(g != 0) for g in jax.tree.leaves(grad.torso))
    for leaf in jax.tree.leaves(grad.heads):
      assert [bool(np.any(g != 0)) for g in leaf] == [j == k for j in range(3)]
  total = jax.jit(jax.grad(lambda p: sum(loss(p, k) for k in range(3))))(params)
  jax.tree.map(
    lambda whole, *parts: np.testing.assert_allclose(
      whole, sum(parts), rtol=1e-4, atol=1e-5
    ),
    total.torso,
    *[grad.torso for grad in grads],
  )


@pytest.fixture
def priors(random_params):
  def make(scale, prior=None):
    networks = ensemble_mlp.make_ensemble_mlp(SPEC, 3, 2, (6,))
    with_prior = ensemble.with_prior(networks, scale, prior)
    params = random_params(with_prior.init, seed=3)
    prior_params = random_params(with_prior.init_prior, seed=4)
    return networks, with_prior, params, prior_params

  return make


def test_a_prior_adds_its_scaled_values(priors):
  networks, with_prior, params, prior_params = priors(scale=2.5)
  expected = np.asarray(networks.apply(params, X), np.float64) + 2.5 * np.asarray(
    networks.apply(prior_params, X), np.float64
  )
  for apply in (with_prior.apply, jax.jit(with_prior.apply)):
    np.testing.assert_allclose(
      apply(params, prior_params, X), expected, rtol=1e-5, atol=1e-6
    )


def test_a_prior_gets_no_gradient_and_changes_the_trained_one_only_by_its_values(
  priors,
):
  networks, with_prior, params, prior_params = priors(scale=2.5)

  def loss(params, prior_params):
    return jnp.sum(with_prior.apply(params, prior_params, X) ** 2)

  grads, prior_grads = jax.jit(jax.grad(loss, argnums=(0, 1)))(params, prior_params)
  assert all(np.all(g == 0) for g in jax.tree.leaves(prior_grads))
  offset = 2.5 * networks.apply(prior_params, X)
  plain = jax.grad(lambda p: jnp.sum((networks.apply(p, X) + offset) ** 2))
  expected = jax.jit(plain)(params)
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
    grads,
    expected,
  )
  assert all(np.any(g != 0) for g in jax.tree.leaves(grads))


def test_a_scale_of_zero_is_bit_equal_to_no_prior_and_has_no_parameters(priors):
  networks, with_prior, params, prior_params = priors(scale=0.0)
  assert not jax.tree.leaves(prior_params)
  np.testing.assert_array_equal(
    with_prior.apply(params, prior_params, X), networks.apply(params, X)
  )


def test_a_prior_may_have_an_architecture_of_its_own(priors):
  narrow = ensemble.lift(ensemble.from_haiku(lambda: hk.Linear(3), SPEC), 2)
  networks, with_prior, params, prior_params = priors(1.5, narrow)
  np.testing.assert_allclose(
    with_prior.apply(params, prior_params, X),
    networks.apply(params, X) + 1.5 * narrow.apply(prior_params, X),
    rtol=1e-5,
    atol=1e-6,
  )


@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf")])
def test_a_scale_that_makes_no_sense_is_refused(scale, priors):
  with pytest.raises(ValueError, match="scale of the priors"):
    priors(scale)


def test_an_ensemble_of_nobody_is_refused():
  with pytest.raises(ValueError, match="num_members is 0"):
    ensemble.lift(single(), 0)
  with pytest.raises(ValueError, match="num_members is -1"):
    ensemble.with_shared_torso(lambda: hk.Linear(2), lambda: hk.Linear(2), SPEC, -1)
