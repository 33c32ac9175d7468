"""The rules that agents plug in: one contract for all, then what each one adds."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.core

_K, _A = 4, 3
_STEPS = jnp.int32(50)

_RULES = [
  exploration.Greedy(),
  exploration.Greedy(num_members=2),
  exploration.EpsilonGreedy(0.3),
  exploration.EpsilonGreedy(exploration.Linear(1.0, 0.2, 100), ladder=7.0),
  exploration.EzGreedy(0.3),
  exploration.EzGreedy(
    0.5, of=exploration.Thompson(), duration=exploration.ExponentialDuration(0.7)
  ),
  exploration.EzGreedy(0.5, of=exploration.EpsilonGreedy(0.5, exploration.Ucb1())),
  exploration.Boltzmann(exploration.Linear(1.0, 0.1, 100), of=exploration.Thompson(3)),
  exploration.MajorityVote(),
  exploration.EpsilonGreedy(0.4, of=exploration.MajorityVote()),
  exploration.Ucb(),
  exploration.EpsilonGreedy(0.4, of=exploration.Ucb(scale=1.0, ddof=1)),
  exploration.Thompson(),
  exploration.EpsilonGreedy(0.4, of=exploration.Thompson(period_steps=3)),
  exploration.Ucb(scale=0.5, ddof=1, of=exploration.Thompson()),
  exploration.Ucb1(),
]
# Whole numbers, so that votes, means and members' values have ties among them.
_Q = jnp.array([[1.0, 1.0, 0.0], [0.0, 2.0, 0.0], [2.0, 0.0, 1.0], [2.0, 2.0, 0.0]])

all_rules = pytest.mark.parametrize("rule", _RULES, ids=str)


def _keys(num: int, seed: int = 0) -> jax.Array:
  return jax.random.split(jax.random.PRNGKey(seed), num)


def _start(rule: exploration.Rule, seed: int = 0, num_members: int = _K):
  key_init, key_begin = _keys(2, seed)
  state = rule.init(key_init, num_members, _A)
  return rule.begin_episode(key_begin, state, _STEPS)


@functools.partial(jax.jit, static_argnums=0)
def _select_batch(rule: exploration.Rule, keys, q, state):
  """`select` for each key, compiled once for each rule and shape."""
  select = jax.vmap(rule.select, in_axes=(0, None, None, None))
  return select(keys, q, state, _STEPS)


@all_rules
def test_the_contract_of_shapes_and_types(rule):
  """All states are of one kind, so that a rule can be scanned; so is all it returns."""

  def episode(key):
    state = rule.init(key, _K, _A)
    begun = rule.begin_episode(key, state, _STEPS)
    action, prob, selected = rule.select(key, _Q, begun, _STEPS)
    observed = rule.observe(jnp.float32(1.0), selected)
    return (state, begun, selected, observed), (action, prob, rule.policy(observed))

  states, returned = jax.eval_shape(episode, jax.random.PRNGKey(0))
  chex.assert_trees_all_equal_shapes_and_dtypes(*states)
  chex.assert_shape(returned, ())
  chex.assert_type(returned, (jnp.int32, jnp.float32, jnp.int32))
  # A rule is a value, and its q has members.
  assert dataclasses.replace(rule) == rule
  assert hash(dataclasses.replace(rule)) == hash(rule)
  with pytest.raises(ValueError, match=rf"{type(rule).__name__}.select: q .* \[K, A\]"):
    jax.eval_shape(rule.select, _keys(1)[0], jnp.zeros((_A,)), states[0], _STEPS)


@all_rules
def test_actions_come_with_the_probability_reported(rule):
  """Drawn 4000 times from one state, each action's share is what it was said to be.

  A plain call does as the compiled batch does, and the probability has no gradient.
  """
  state, keys = _start(rule), _keys(4000)
  batched = _select_batch(rule, keys, _Q, state)
  actions, probs = map(np.asarray, batched[:2])
  total = 0.0
  for action in range(_A):
    drawn = actions == action
    if not drawn.any():
      continue
    prob = float(probs[drawn][0])
    np.testing.assert_array_equal(probs[drawn], np.full(drawn.sum(), prob, np.float32))
    assert abs(drawn.mean() - prob) <= 5 * np.sqrt(prob * (1 - prob) / 4000) + 1e-6
    total += prob
  np.testing.assert_allclose(total, 1.0, rtol=1e-5)

  def select(q):
    action, prob, after = rule.select(keys[0], q, state, _STEPS)
    return prob, (action, prob, after)

  gradient, plain = jax.grad(select, has_aux=True)(_Q)
  np.testing.assert_array_equal(gradient, np.zeros(_Q.shape))
  chex.assert_trees_all_close(plain, jax.tree.map(lambda x: x[0], batched))


def _select_all(rule, q, state=None, num: int = 64):
  """Actions and probabilities for each of `num` keys."""
  state = _start(rule, num_members=q.shape[0]) if state is None else state
  actions, probs, _ = _select_batch(rule, _keys(num), q, state)
  return np.asarray(actions), np.asarray(probs)


def test_greedy_averages_only_the_first_members():
  q = jnp.array([[0.0, 1.0], [0.0, 1.0], [9.0, 0.0]])
  assert set(_select_all(exploration.Greedy(), q)[0]) == {0}
  assert set(_select_all(exploration.Greedy(num_members=2), q)[0]) == {1}
  assert set(_select_all(exploration.Greedy(num_members=3), q)[0]) == {0}
  tied = jnp.ones((3, 4))
  assert set(_select_all(exploration.Greedy(), tied)[0]) == {0, 1, 2, 3}
  actions, probs = _select_all(exploration.Greedy(ties="first"), tied)[:2]
  assert set(actions) == {0} and set(probs) == {1.0}


_FALLING = exploration.Linear(1.0, 0.0, 100)


@pytest.mark.parametrize(
  "rule", [exploration.EpsilonGreedy(_FALLING), exploration.EzGreedy(_FALLING)], ids=str
)
def test_epsilon_follows_its_schedule(rule):
  q = jnp.array([[0.0, 1.0]])
  state = rule.init(jax.random.PRNGKey(0), 1, 2)
  select = jax.jit(jax.vmap(rule.select, (0, None, None, None)))
  for env_steps, expected in [(0, 0.5), (50, 0.75), (100, 1.0)]:
    actions, probs, _ = select(_keys(64), q, state, env_steps)
    np.testing.assert_allclose(probs[actions == 1], expected, rtol=1e-6)


def test_scales_and_temperatures_follow_their_schedules():
  q = jnp.array([[1.0, 2.0], [1.0, -1.0]])  # Means 1 and 0.5, deviations 0 and 1.5.
  ucb = exploration.Ucb(exploration.Linear(0.0, 1.0, 10))
  boltzmann = exploration.Boltzmann(exploration.Linear(1.0, 0.1, 10))
  for env_steps, action, temperature in [(0, 0, 1.0), (10, 1, 0.1)]:
    assert ucb.select(jax.random.PRNGKey(0), q, (), env_steps)[0] == action
    probs, _ = boltzmann.probs(jax.random.PRNGKey(0), q, (), env_steps)
    np.testing.assert_allclose(probs[0], 1 / (1 + np.exp(-0.5 / temperature)), 1e-5)
  bandit = exploration.Ucb1(exploration.Linear(0.0, 8.0, 10))
  arms = exploration.Ucb1State(jnp.array([0.3, 0.2]), jnp.array([1000, 1]))
  state = bandit.init(jax.random.PRNGKey(0), 2, 2)._replace(arms=arms)
  for env_steps, arm in [(0, 0), (10, 1)]:
    begun = bandit.begin_episode(jax.random.PRNGKey(0), state, jnp.int32(env_steps))
    assert bandit.policy(begun) == arm


@pytest.mark.parametrize(
  "rule",
  [
    exploration.EpsilonGreedy(0.4, ladder=7.0),
    exploration.EzGreedy(0.4, ladder=7.0),
    exploration.EpsilonGreedy(0.4, of=exploration.Thompson(), ladder=7.0),
  ],
  ids=str,
)
def test_epsilons_of_actors_form_a_ladder(rule):
  """Actor j of J explores with ε^(1 + 7 j / (J − 1)), a single one with ε."""
  q = jnp.array([[0.0, 1.0]])
  key = jax.random.PRNGKey(0)

  def greedy_prob(actor_id, num_actors):
    state = rule.init(key, 1, 2, exploration.ActorIndex(actor_id, num_actors))
    state = rule.begin_episode(key, state, _STEPS)
    actions, probs, _ = _select_batch(rule, _keys(64), q, state)
    return float(np.asarray(probs)[np.asarray(actions) == 1][0])

  for actor_id, num_actors, power in [(0, 1, 1.0), (0, 3, 1.0), (1, 3, 4.5), (2, 3, 8)]:
    np.testing.assert_allclose(
      greedy_prob(actor_id, num_actors), 1.0 - 0.4**power / 2, rtol=1e-6
    )


@pytest.mark.parametrize(
  ("of", "one"),
  [
    (exploration.Greedy(), exploration.ZetaDuration(cap=1)),
    (exploration.Boltzmann(0.5), exploration.UniformDuration(1)),
    (exploration.Thompson(3), exploration.ExponentialDuration(0.0)),
  ],
)
def test_ez_greedy_with_durations_of_1_is_epsilon_greedy(one, of):
  q = jax.random.normal(jax.random.PRNGKey(3), (100, _K, _A))

  def run(rule):
    def body(state, inputs):
      key, values = inputs
      action, prob, state = rule.select(key, values, state, _STEPS)
      return state, (action, prob, rule.policy(state))

    return jax.lax.scan(body, _start(rule), (_keys(100), q))[1]

  ez = run(exploration.EzGreedy(0.4, of=of, duration=one))
  chex.assert_trees_all_equal(ez, run(exploration.EpsilonGreedy(0.4, of=of)))


def test_ez_greedy_forgets_its_repeat_at_an_episodes_start():
  rule = exploration.EzGreedy(1.0, duration=exploration.UniformDuration(50))
  q = jnp.zeros((1, 2))
  _, _, state = rule.select(jax.random.PRNGKey(0), q, _start(rule), _STEPS)
  assert state.repeat.remaining > 0
  action, prob, _ = rule.select(jax.random.PRNGKey(1), q, state, _STEPS)
  assert (int(action), float(prob)) == (int(state.repeat.action), 1.0)
  begun = rule.begin_episode(jax.random.PRNGKey(2), state, _STEPS)
  assert begun.repeat.remaining == 0
  _, prob, _ = rule.select(jax.random.PRNGKey(1), q, begun, _STEPS)
  assert prob == 0.5


def test_a_wrapper_passes_on_what_happens_to_the_rule_it_wraps():
  """Rewards, episodes and places reach a bandit below two layers."""
  bandit = exploration.Ucb1(scale=0.1)
  rule = exploration.EzGreedy(0.0, of=exploration.EpsilonGreedy(0.0, of=bandit))
  states = [r.init(jax.random.PRNGKey(0), _A, _A) for r in (bandit, rule)]
  for key in _keys(9):
    for i, r in enumerate((bandit, rule)):
      states[i] = r.begin_episode(key, states[i], _STEPS)
      _, _, states[i] = r.select(key, jnp.eye(_A), states[i], _STEPS)
      states[i] = r.observe(jnp.float32(bandit.policy(states[0]) == 1), states[i])
    assert rule.policy(states[1]) == bandit.policy(states[0])
  chex.assert_trees_all_equal(states[1].of.of, states[0])


def test_q_ucb_adds_the_sample_deviation_to_the_member_followed():
  # Sample deviations over the members: 0 and sqrt(2).
  q = jnp.array([[1.0, 0.0], [1.0, 2.0]])
  for scale, expected in [(0.5, {0: 0, 1: 1}), (1.0, {0: 1, 1: 1})]:
    rule = exploration.Ucb(scale, ddof=1, of=exploration.Thompson())
    seen = set()
    for seed in range(12):
      state = _start(rule, seed, num_members=2)
      followed = int(rule.policy(state))
      actions, _ = _select_all(rule, q, state)
      assert set(actions) == {expected[followed]}
      seen.add(followed)
    assert seen == {0, 1}
