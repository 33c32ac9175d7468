"""εz-greedy, against a plain state machine and against ε-greedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.exploration import repeats, selection

pytestmark = pytest.mark.ops


def _keys(num: int) -> jax.Array:
  return jax.random.split(jax.random.PRNGKey(7), num)


def _ones(key: jax.Array) -> jax.Array:
  del key
  return jnp.int32(1)


def _up_to_four(key: jax.Array) -> jax.Array:
  return exploration.sample_uniform(key, 4)


def test_actions_follow_the_state_machine():
  """The rule of section 4 as a loop, fed with the draws of the same keys."""
  q = jax.random.normal(jax.random.PRNGKey(0), (200, 2, 5))
  epsilon = 0.4
  state = exploration.init_ez_state()
  step = jax.jit(
    lambda key, q, state: repeats.ez_step(key, q, epsilon, state, _up_to_four)
  )
  dither = jax.jit(lambda key, q: selection.dither(key, q.mean(axis=0), epsilon))
  duration = jax.jit(lambda key: _up_to_four(jax.random.fold_in(key, 1)))
  remaining, repeated, num_repeats = 0, None, 0
  for key, values in zip(_keys(200), q, strict=True):
    action, prob, state = step(key, values, state)
    if remaining > 0:
      expected, expected_prob = repeated, 1.0
      remaining -= 1
      num_repeats += 1
    else:
      choice = dither(key, values)
      expected, expected_prob = int(choice.action), float(choice.prob)
      if choice.explored:
        repeated = expected
        remaining = int(duration(key)) - 1
    assert int(action) == expected
    np.testing.assert_allclose(prob, expected_prob, rtol=1e-6)
    assert int(state.remaining) == remaining
  assert num_repeats > 50


def test_a_duration_counts_its_first_step():
  key = jax.random.PRNGKey(0)
  state = exploration.init_ez_state()
  remaining = []
  actions = []
  for key in _keys(4):
    action, state = exploration.ez_greedy(
      key, jnp.zeros((1, 9)), 1.0, state, lambda key: jnp.int32(4)
    )
    actions.append(int(action))
    remaining.append(int(state.remaining))
  assert remaining == [3, 2, 1, 0]
  assert len(set(actions)) == 1


def test_the_default_duration_is_the_papers_zeta():
  q = jnp.zeros((1, 2))
  start = exploration.init_ez_state()
  for key in _keys(20):
    _, state = exploration.ez_greedy(key, q, 1.0, start)
    duration = exploration.sample_zeta(jax.random.fold_in(key, 1), 2.0, 10_000)
    assert int(state.remaining) == int(duration) - 1


def test_durations_of_1_are_epsilon_greedy():
  q = jax.random.normal(jax.random.PRNGKey(1), (200, 3, 4))

  def body(state, inputs):
    action, state = exploration.ez_greedy(*inputs, 0.5, state, _ones)
    return state, (action, state.remaining)

  keys = _keys(200)
  _, (actions, remaining) = jax.lax.scan(body, exploration.init_ez_state(), (keys, q))
  plain = jax.jit(jax.vmap(exploration.epsilon_greedy, in_axes=(0, 0, None)))
  np.testing.assert_array_equal(actions, plain(keys, q, 0.5))
  np.testing.assert_array_equal(remaining, np.zeros(200))


def test_no_repeat_starts_at_epsilon_0():
  state = exploration.init_ez_state()
  for key in _keys(20):
    action, state = exploration.ez_greedy(key, jnp.array([[0.0, 1.0]]), 0.0, state)
    assert (int(action), int(state.remaining)) == (1, 0)


def test_vmapped_and_scanned():
  q = jax.random.normal(jax.random.PRNGKey(2), (50, 6, 1, 3))
  keys = jax.random.split(jax.random.PRNGKey(3), (50, 6))
  step = jax.vmap(
    lambda key, q, state: exploration.ez_greedy(key, q, 0.5, state, _up_to_four)
  )
  start = jax.vmap(lambda _: exploration.init_ez_state())(jnp.arange(6))

  def body(state, inputs):
    action, state = step(*inputs, state)
    return state, action

  _, actions = jax.lax.scan(body, start, (keys, q))
  single = jax.jit(
    lambda key, q, state: exploration.ez_greedy(key, q, 0.5, state, _up_to_four)
  )
  for i in range(2):
    state = exploration.init_ez_state()
    for t in range(50):
      action, state = single(keys[t, i], q[t, i], state)
      assert action == actions[t, i]
