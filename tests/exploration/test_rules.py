"""The rules that agents plug in: one contract for all, then what each one adds."""

import dataclasses

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
  exploration.Greedy(num_members=2),
  exploration.EpsilonGreedy(exploration.Linear(1.0, 0.2, 100), ladder=7.0),
  exploration.EzGreedy(
    0.5, of=exploration.Thompson(), duration=exploration.ExponentialDuration(0.7)
  ),
  exploration.EzGreedy(0.5, of=exploration.EpsilonGreedy(0.5, exploration.Ucb1())),
  exploration.Boltzmann(exploration.Linear(1.0, 0.1, 100), of=exploration.Thompson(3)),
  exploration.MajorityVote(),
  exploration.EpsilonGreedy(0.4, of=exploration.Ucb(scale=1.0, ddof=1)),
  exploration.Ucb(scale=0.5, ddof=1, of=exploration.Thompson()),
  exploration.EpsilonGreedy(0.4, of=exploration.Thompson(period_steps=3)),
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

  The probability has no gradient.
  """
  state = _start(rule)

  def select(q, key):
    action, prob, _ = rule.select(key, q, state, _STEPS)
    return prob, action

  batched = jax.vmap(jax.value_and_grad(select, has_aux=True), (None, 0))
  (probs, actions), gradients = jax.device_get(jax.jit(batched)(_Q, _keys(4000)))
  assert not gradients.any()
  total = 0.0
  for action in set(actions):
    drawn = actions == action
    prob = float(probs[drawn][0])
    np.testing.assert_array_equal(probs[drawn], np.full(drawn.sum(), prob, np.float32))
    assert abs(drawn.mean() - prob) <= 5 * np.sqrt(prob * (1 - prob) / 4000) + 1e-6
    total += prob
  np.testing.assert_allclose(total, 1.0, rtol=1e-5)


def test_greedy_averages_the_members_of_its_range():
  q = jnp.array([[0.0, 1.0], [0.0, 1.0], [9.0, 0.0]])
  for first, number, action in [(0, None, 0), (2, None, 0), (0, 2, 1), (1, 1, 1)]:
    rule = exploration.Greedy(number, first=first)
    np.testing.assert_array_equal(rule.probs(None, q, (), 0)[0], np.eye(2)[action])
  tied = jnp.array([[0.0, 2.0, 2.0]])
  for ties, expected in [("random", [0.0, 0.5, 0.5]), ("first", [0.0, 1.0, 0.0])]:
    probs, _ = exploration.Greedy(ties=ties).probs(None, tied, (), 0)
    np.testing.assert_array_equal(probs, expected)


@pytest.mark.parametrize("make", [exploration.EpsilonGreedy, exploration.EzGreedy])
def test_epsilon_follows_its_schedule_and_the_actors_ladder(make):
  """Actor j of J explores with ε^(1 + 7 j / (J − 1)), a single one with ε."""
  rule = make(exploration.Linear(1.0, 0.0, 100), ladder=7.0)
  key = jax.random.PRNGKey(0)

  @jax.jit
  @jax.vmap
  def greedy_prob(actor_id, num_actors, env_steps):
    state = rule.init(key, 1, 2, exploration.ActorIndex(actor_id, num_actors))
    state = rule.begin_episode(key, state, env_steps)
    action, prob, _ = rule.select(key, jnp.array([[0.0, 1.0]]), state, env_steps)
    return jnp.where(action == 1, prob, 1.0 - prob)

  actor_ids, num_actors = np.array([0, 0, 1, 2, 0, 0]), np.array([1, 3, 3, 3, 1, 1])
  probs = greedy_prob(actor_ids, num_actors, np.array([60, 60, 60, 60, 0, 100]))
  expected = 1 - np.array([0.4, 0.4, 0.4**4.5, 0.4**8, 1.0, 0.0]) / 2
  np.testing.assert_allclose(probs, expected, rtol=1e-6)


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
  ("of", "one"),
  [
    (exploration.Greedy(), exploration.ZetaDuration(cap=1)),
    (exploration.Thompson(3), exploration.ExponentialDuration(0.0)),
  ],
)
def test_ez_greedy_with_durations_of_1_is_epsilon_greedy(one, of):
  q = jax.random.normal(jax.random.PRNGKey(3), (100, _K, _A))
  ez = exploration.EzGreedy(0.4, of=of, duration=one)
  rules = ez, exploration.EpsilonGreedy(0.4, of=of)

  def body(states, inputs):
    key, values = inputs
    steps = [
      rule.select(key, values, state, _STEPS)
      for rule, state in zip(rules, states, strict=True)
    ]
    outputs = [
      (action, prob, rule.policy(state))
      for rule, (action, prob, state) in zip(rules, steps, strict=True)
    ]
    return [state for *_, state in steps], outputs

  start = [_start(rule) for rule in rules]
  _, outputs = jax.lax.scan(body, start, (_keys(100), q))
  chex.assert_trees_all_equal(*outputs)


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
  for scale, expected in [(0.5, {(0, 0), (1, 1)}), (1.0, {(0, 1), (1, 1)})]:
    rule = exploration.Ucb(scale, ddof=1, of=exploration.Thompson())

    def choose(key, rule=rule):
      action, _, state = rule.select(key, q, rule.init(key, 2, 2), _STEPS)
      return rule.policy(state), action

    followed, actions = map(np.asarray, jax.jit(jax.vmap(choose))(_keys(12)))
    assert {*zip(followed.tolist(), actions.tolist(), strict=True)} == expected
