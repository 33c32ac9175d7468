"""Sums and counts that go on where single precision stops."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import accelerators
from explorax.exploration import moments as moments_lib
from explorax.exploration import novelty, regression, sums

pytestmark = pytest.mark.core

MANY = 2**24


def number(total):
  return float(total.value) + float(total.rest)


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_sums_are_those_of_double_precision(scale):
  terms = np.random.default_rng(0).normal(size=2000).astype(np.float32) * scale
  terms[0] = 2e7

  def step(total, term):
    return sums.add(total, term), ()

  total, _ = jax.jit(lambda xs: jax.lax.scan(step, sums.zero(), xs))(terms)
  exact = math.fsum(map(float, terms))
  assert abs(number(total) - exact) < 1e-6 * np.abs(terms[1:]).sum()
  assert float(np.sum(terms, dtype=np.float32)) != exact  # As hard as it should be.


def test_counts_do_not_stop():
  update = jax.jit(moments_lib.update_moments)
  decayed = jax.jit(lambda m, x: moments_lib.update_ema_moments(m, x, 1.0))
  for add in (update, decayed):
    moments = moments_lib.init_moments()._replace(weight=jnp.float32(MANY))
    for _ in range(99):
      moments = add(moments, jnp.ones(1))
    assert float(moments.weight) + float(moments.rest) == MANY + 99

  state, step = novelty.init_episodic_memory(4, 1), jax.jit(novelty.episodic_novelty)
  state = step(state, jnp.ones(1))[1]
  state = state._replace(num_distances=sums.add(state.num_distances, MANY - 2))
  for value in range(9):  # The memory holds 1, 2, 3, 4, 4, … of them.
    state = step(state, np.full(1, value, np.float32))[1]
  assert number(state.num_distances) == MANY - 2 + 1 + 2 + 3 + 6 * 4

  learnt = regression.init_regression(2)
  learnt = learnt._replace(weight=sums.add(learnt.weight, MANY))
  for _ in range(9):
    learnt = regression.update_regression(learnt, jnp.ones((1, 2)), jnp.ones(1), 1.0)
  assert number(learnt.weight) == MANY + 9


@pytest.mark.parametrize("may_branch", [True, False])
@pytest.mark.parametrize("number", [1, 7, 17])
def test_running_sums_are_those_of_plain_loops(number, may_branch, monkeypatch):
  monkeypatch.setattr(accelerators, "may_branch", lambda: may_branch)
  x = np.random.default_rng(number).normal(size=(50, number)).astype(np.float32)
  found = jax.jit(jax.vmap(sums.cumulative))(x)
  np.testing.assert_allclose(found, np.cumsum(x, axis=1), rtol=1e-5, atol=1e-6)
