"""Which member is followed: Thompson sampling and the bandit."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core

# Member k thinks action k best.
_Q = jnp.eye(4)


def _keys(num: int, seed: int = 0) -> jax.Array:
  return jax.random.split(jax.random.PRNGKey(seed), num)


def _arms(values, counts) -> exploration.Ucb1State:
  return exploration.Ucb1State(jnp.array(values), jnp.array(counts))


@pytest.mark.parametrize("period_steps", [None, 5])
def test_a_member_is_followed_greedily_for_its_period(period_steps):
  def body(state, key):
    action, state = exploration.thompson(key, _Q, state, period_steps)
    return state, (action, state.member, state.steps)

  start = exploration.init_thompson(jax.random.PRNGKey(5), 4)
  _, outputs = jax.lax.scan(body, start, _keys(1000))
  actions, followed, steps = map(np.asarray, outputs)
  np.testing.assert_array_equal(actions, followed)
  length = period_steps or 1000
  np.testing.assert_array_equal(
    steps, np.tile(np.arange(1, length + 1), 1000 // length)
  )
  periods = followed.reshape(-1, length)
  np.testing.assert_array_equal(periods, np.repeat(periods[:, :1], length, axis=1))
  assert periods[0, 0] == start.member
  if period_steps:
    counts = np.bincount(periods[:, 0], minlength=4)
    np.testing.assert_array_less(np.abs(counts - 50), 5 * math.sqrt(200 * 0.1875))


def test_the_bandit_matches_a_loop():
  """V_k and n(k) as lists of the rewards seen under each arm."""
  rng = np.random.default_rng(0)
  state = exploration.init_ucb1(3)
  choose = jax.jit(exploration.ucb1)
  update = jax.jit(exploration.update_ucb1)
  seen = [[], [], []]
  chosen = []
  for key in _keys(60):
    arm = int(choose(key, state, 0.7))
    if any(not rewards for rewards in seen):
      assert not seen[arm]
    else:
      total = sum(len(rewards) for rewards in seen)
      bounds = [
        sum(rewards) / len(rewards) + 0.7 * math.sqrt(math.log(total) / len(rewards))
        for rewards in seen
      ]
      assert arm == int(np.argmax(bounds))
    for _ in range(rng.integers(1, 4)):
      reward = rng.normal(arm, 1.0)
      seen[arm].append(reward)
      state = update(state, arm, jnp.float32(reward))
    chosen.append(arm)
    np.testing.assert_array_equal(state.counts, [len(rewards) for rewards in seen])
    np.testing.assert_allclose(
      state.values, [np.mean(r) if r else 0.0 for r in seen], rtol=1e-4, atol=1e-5
    )
  assert np.argmax(np.bincount(chosen)) == 2  # It pays the most.


def test_explorers_are_followed_as_often_as_asked():
  """The last two of five members, with probability 0.2 in all."""
  rule = exploration.Thompson(explorers=exploration.Explorers(2, prob=0.2))

  def draw(key):
    state = rule.init(key, 5, 3)
    begun = rule.begin_episode(jax.random.fold_in(key, 1), state, jnp.int32(0))
    return state.member, begun.member

  for members in jax.jit(jax.vmap(draw))(_keys(4000)):
    shares = np.bincount(members, minlength=5) / 4000
    np.testing.assert_allclose(shares, [0.8 / 3] * 3 + [0.1] * 2, atol=0.025)


def test_a_period_may_end_in_another_episode():
  """Of episodes of three steps."""
  rule = exploration.Thompson(period_steps=5)

  def body(state, inputs):
    key, t = inputs
    begun = rule.begin_episode(key, state, t)
    state = jax.tree.map(lambda a, b: jnp.where(t % 3 == 0, a, b), begun, state)
    *_, state = rule.select(key, _Q, state, t)
    return state, state.member

  start = rule.init(jax.random.PRNGKey(0), 4, 4)
  _, followed = jax.lax.scan(body, start, (_keys(100), jnp.arange(100)))
  periods = np.asarray(followed).reshape(20, 5)
  np.testing.assert_array_equal(periods, np.repeat(periods[:, :1], 5, axis=1))
  assert set(periods[:, 0]) == {0, 1, 2, 3}
