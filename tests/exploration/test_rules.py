"""The rules that agents plug in: one contract for all, then what each one adds."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration

pytestmark = pytest.mark.ops

_K, _A = 4, 3
_STEPS = jnp.int32(50)

_RULES = [
  exploration.Greedy(),
  exploration.Greedy(num_members=2),
  exploration.EpsilonGreedy(0.3),
  exploration.EpsilonGreedy(1.0, final_epsilon=0.2, decay_steps=100),
  exploration.EzGreedy(0.3),
  exploration.EzGreedy(1.0, 0.2, 100, duration="uniform", cap=3),
  exploration.EzGreedy(0.5, duration="exponential", decay=0.7),
  exploration.Boltzmann(0.5),
  exploration.MajorityVote(),
  exploration.MajorityVote(epsilon=0.4),
  exploration.Ucb(),
  exploration.Ucb(scale=1.0, ddof=1, epsilon=0.4),
  exploration.Thompson(),
  exploration.Thompson(period_steps=3, epsilon=0.4),
  exploration.QUcb(),
  exploration.QUcb(scale=0.5, epsilon=0.4),
  exploration.Ucb1(),
  exploration.Ucb1(scale=1.0, epsilon=0.4),
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


@all_rules
def test_actions_come_with_the_probability_reported(rule):
  """Drawn 4000 times from one state, each action's share is what it was said to be."""
  state = _start(rule)
  actions, probs, _ = _select_batch(rule, _keys(4000), _Q, state)
  actions, probs = np.asarray(actions), np.asarray(probs)
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


@all_rules
def test_the_compiled_batch_and_plain_calls_agree(rule):
  keys = _keys(4000)
  state = _start(rule)
  batched = _select_batch(rule, keys, _Q, state)
  for i in range(5):
    plain = rule.select(keys[i], _Q, state, _STEPS)
    chex.assert_trees_all_close(plain, jax.tree.map(lambda x, i=i: x[i], batched))


@all_rules
def test_no_gradient_leaves(rule):
  state = _start(rule)
  gradient = jax.grad(
    lambda q: rule.select(jax.random.PRNGKey(0), q, state, _STEPS)[1]
  )(_Q)
  np.testing.assert_array_equal(gradient, np.zeros(_Q.shape))


@all_rules
def test_values_without_members_are_refused(rule):
  with pytest.raises(AssertionError):
    rule.select(jax.random.PRNGKey(0), jnp.zeros((_A,)), _start(rule), _STEPS)


@all_rules
def test_rules_are_values(rule):
  assert dataclasses.replace(rule) == rule
  assert hash(dataclasses.replace(rule)) == hash(rule)
  with pytest.raises(dataclasses.FrozenInstanceError):
    rule.epsilon = 0.1


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


def test_epsilon_follows_its_schedule():
  rule = exploration.EpsilonGreedy(1.0, final_epsilon=0.0, decay_steps=100)
  q = jnp.array([[0.0, 1.0]])
  key = jax.random.PRNGKey(0)
  select = jax.vmap(
    lambda key, steps: rule.select(key, q, rule.init(key, 1, 2), steps), (0, None)
  )
  select = jax.jit(select)
  for env_steps, expected in [(0, 0.5), (50, 0.75), (100, 1.0)]:
    actions, probs, _ = select(_keys(64), env_steps)
    actions, probs = np.asarray(actions), np.asarray(probs)
    np.testing.assert_allclose(probs[actions == 1], expected, rtol=1e-6)
  ez = exploration.EzGreedy(1.0, final_epsilon=0.0, decay_steps=100)
  _, prob, state = ez.select(key, q, ez.init(key, 1, 2), 0)
  assert (float(prob), int(state.repeat.remaining) >= 0) == (0.5, True)
  assert ez.select(key, q, ez.init(key, 1, 2), 100)[1] == 1.0


@pytest.mark.parametrize(
  "rule",
  [
    exploration.EpsilonGreedy(0.4, ladder=7.0),
    exploration.EzGreedy(0.4, ladder=7.0),
    exploration.Thompson(epsilon=0.4, ladder=7.0),
  ],
  ids=str,
)
def test_actors_stand_on_a_ladder(rule):
  """Actor j of J explores with ε^(1 + 7 j / (J − 1)), a single one with ε."""
  q = jnp.array([[0.0, 1.0]])
  key = jax.random.PRNGKey(0)

  def greedy_prob(actor_id, num_actors):
    state = rule.init(key, 1, 2, exploration.Place(actor_id, num_actors))
    state = rule.begin_episode(key, state, _STEPS)
    actions, probs, _ = _select_batch(rule, _keys(64), q, state)
    return float(np.asarray(probs)[np.asarray(actions) == 1][0])

  for actor_id, num_actors, power in [(0, 1, 1.0), (0, 3, 1.0), (1, 3, 4.5), (2, 3, 8)]:
    np.testing.assert_allclose(
      greedy_prob(actor_id, num_actors), 1.0 - 0.4**power / 2, rtol=1e-6
    )


def test_a_greedy_rule_may_be_disturbed():
  q = jnp.array([[0.0, 1.0], [5.0, 0.0]])
  rule = exploration.Greedy(num_members=1, epsilon=0.2)
  actions, probs, _ = _select_batch(rule, _keys(400), q, rule.init(None, 2, 2))
  actions, probs = np.asarray(actions), np.asarray(probs)
  assert set(actions) == {0, 1}
  np.testing.assert_allclose(probs[actions == 1], 0.9, rtol=1e-6)
  np.testing.assert_allclose(probs[actions == 0], 0.1, rtol=1e-6)


@pytest.mark.parametrize(
  "degenerate",
  [
    exploration.EzGreedy(0.4, cap=1),
    exploration.EzGreedy(0.4, duration="uniform", cap=1),
    exploration.EzGreedy(0.4, duration="exponential", decay=0.0),
  ],
  ids=str,
)
def test_ez_greedy_with_durations_of_1_is_epsilon_greedy(degenerate):
  q = jax.random.normal(jax.random.PRNGKey(3), (100, _K, _A))

  def run(rule):
    def body(state, inputs):
      key, values = inputs
      action, prob, state = rule.select(key, values, state, _STEPS)
      return state, (action, prob)

    return jax.lax.scan(body, _start(rule), (_keys(100), q))[1]

  chex.assert_trees_all_equal(run(degenerate), run(exploration.EpsilonGreedy(0.4)))


def test_ez_greedy_forgets_its_repeat_at_an_episodes_start():
  rule = exploration.EzGreedy(1.0, duration="uniform", cap=50)
  q = jnp.zeros((1, 2))
  _, _, state = rule.select(jax.random.PRNGKey(0), q, _start(rule), _STEPS)
  assert state.repeat.remaining > 0
  action, prob, _ = rule.select(jax.random.PRNGKey(1), q, state, _STEPS)
  assert (int(action), float(prob)) == (int(state.repeat.action), 1.0)
  begun = rule.begin_episode(jax.random.PRNGKey(2), state, _STEPS)
  assert begun.repeat.remaining == 0
  _, prob, _ = rule.select(jax.random.PRNGKey(1), q, begun, _STEPS)
  assert prob == 0.5


@pytest.mark.parametrize(
  ("rule", "draw"),
  [
    (
      exploration.EzGreedy(0.1, mu=3.0, cap=7),
      lambda key: exploration.sample_zeta(key, 3.0, 7),
    ),
    (
      exploration.EzGreedy(0.1, duration="exponential", decay=0.9, cap=20),
      lambda key: exploration.sample_exponential(key, 0.9, 20),
    ),
    (
      exploration.EzGreedy(0.1, duration="uniform", cap=20),
      lambda key: exploration.sample_uniform(key, 20),
    ),
  ],
  ids=["zeta", "exponential", "uniform"],
)
def test_ez_greedy_draws_from_the_law_named(rule, draw):
  keys = _keys(100)
  drawn, expected = (jax.jit(jax.vmap(f))(keys) for f in (rule.sample_duration, draw))
  np.testing.assert_array_equal(drawn, expected)


def test_ucb_of_scale_0_is_greedy_on_the_mean():
  for seed in range(3):
    q = jax.random.normal(jax.random.PRNGKey(seed), (10, 5))
    by_bound = _select_all(exploration.Ucb(scale=0.0), q)
    chex.assert_trees_all_equal(by_bound, _select_all(exploration.Greedy(), q))


@pytest.mark.parametrize(
  "rule",
  [
    exploration.Greedy(),
    exploration.EpsilonGreedy(0.0),
    exploration.EzGreedy(0.0),
    exploration.MajorityVote(),
    exploration.Ucb(),
    exploration.Thompson(),
    exploration.Ucb1(),
  ],
  ids=str,
)
def test_one_member_is_the_plain_greedy_agent(rule):
  q = jnp.array([[0.5, -1.0, 2.0]])
  actions, probs = _select_all(rule, q)
  assert (set(actions), set(probs)) == ({2}, {1.0})


def test_a_tied_vote_is_one_over_the_number_tied():
  q = jnp.eye(3)[jnp.array([0, 0, 2, 2, 1])]
  actions, probs = _select_all(exploration.MajorityVote(), q)
  assert set(actions) == {0, 2}
  np.testing.assert_array_equal(probs, np.full(64, 0.5))


def test_thompson_follows_the_member_it_names():
  rule = exploration.Thompson()
  seen = set()
  for seed in range(20):
    state = _start(rule, seed, num_members=3)
    actions, probs = _select_all(rule, jnp.eye(3), state)
    assert (set(actions), set(probs)) == ({int(rule.policy(state))}, {1.0})
    seen.add(int(rule.policy(state)))
  assert seen == {0, 1, 2}


def _members_followed(rule, num_steps: int) -> np.ndarray:
  def body(state, key):
    action, _, state = rule.select(key, jnp.eye(_A), state, _STEPS)
    return state, (action, rule.policy(state))

  start = _start(rule, num_members=_A)
  _, (actions, policies) = jax.lax.scan(body, start, _keys(num_steps))
  np.testing.assert_array_equal(actions, policies)
  return np.asarray(policies)


def test_thompson_changes_member_only_when_due():
  assert len(set(_members_followed(exploration.Thompson(), 50))) == 1
  periods = _members_followed(exploration.Thompson(period_steps=5), 100)
  periods = periods.reshape(20, 5)
  np.testing.assert_array_equal(periods, np.repeat(periods[:, :1], 5, axis=1))
  assert set(periods[:, 0]) == {0, 1, 2}


def test_q_ucb_adds_the_sample_deviation_to_the_member_followed():
  # Sample deviations over the members: 0 and sqrt(2).
  q = jnp.array([[1.0, 0.0], [1.0, 2.0]])
  for scale, expected in [(0.5, {0: 0, 1: 1}), (1.0, {0: 1, 1: 1})]:
    rule = exploration.QUcb(scale=scale)
    seen = set()
    for seed in range(12):
      state = _start(rule, seed, num_members=2)
      followed = int(rule.policy(state))
      actions, _ = _select_all(rule, q, state)
      assert set(actions) == {expected[followed]}
      seen.add(followed)
    assert seen == {0, 1}


def test_q_ucb_of_scale_0_is_thompson():
  q = jax.random.normal(jax.random.PRNGKey(0), (_K, _A))
  by_bound = _select_all(exploration.QUcb(scale=0.0), q)
  chex.assert_trees_all_equal(by_bound, _select_all(exploration.Thompson(), q))


def test_the_bandit_picks_by_what_its_own_episodes_paid():
  """Three members are tried in turn; the one that pays is then chosen again."""
  rule = exploration.Ucb1(scale=0.1)
  state = rule.init(jax.random.PRNGKey(0), _A, _A)
  followed = []
  for key in _keys(12):
    state = rule.begin_episode(key, state, _STEPS)
    member = int(rule.policy(state))
    followed.append(member)
    for _ in range(5):
      action, _, state = rule.select(key, jnp.eye(_A), state, _STEPS)
      assert action == member
      state = rule.observe(jnp.float32(member == 1), state)
  assert sorted(followed[:3]) == [0, 1, 2]
  assert set(followed[3:]) == {1}
  np.testing.assert_array_equal(state.arms.counts, [5, 50, 5])
  np.testing.assert_allclose(state.arms.values, [0.0, 1.0, 0.0])


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: exploration.Greedy(num_members=0), "num_members is 0"),
    (lambda: exploration.EpsilonGreedy(1.1), "EpsilonGreedy.epsilon is 1.1"),
    (lambda: exploration.EpsilonGreedy(1.0, 0.1), "a schedule needs both"),
    (lambda: exploration.EzGreedy(-0.1), "EzGreedy.epsilon is -0.1"),
    (lambda: exploration.EzGreedy(0.1, duration="zipf"), "duration is 'zipf'"),
    (lambda: exploration.EzGreedy(0.1, duration="exponential"), "decay is None"),
    (lambda: exploration.EzGreedy(0.1, decay=0.5), "decay is 0.5 with duration='zeta'"),
    (
      lambda: exploration.EzGreedy(0.1, duration="exponential", decay=1.0),
      "decay is 1.0",
    ),
    (lambda: exploration.EzGreedy(0.1, mu=-1.0), "mu is -1.0"),
    (lambda: exploration.EzGreedy(0.1, cap=0), "cap is 0 agent steps"),
    (lambda: exploration.Boltzmann(0.0), "Boltzmann.temperature is 0.0"),
    (lambda: exploration.MajorityVote(epsilon=2.0), "MajorityVote.epsilon is 2.0"),
    (lambda: exploration.Ucb(scale=-1.0), "Ucb.scale is -1.0"),
    (lambda: exploration.Ucb(ddof=2), "Ucb.ddof is 2"),
    (lambda: exploration.Ucb(epsilon=-1.0), "Ucb.epsilon is -1.0"),
    (lambda: exploration.Thompson(period_steps=0), "period_steps is 0 agent steps"),
    (lambda: exploration.Thompson(epsilon=3.0), "Thompson.epsilon is 3.0"),
    (lambda: exploration.QUcb(scale=float("nan")), "QUcb.scale is nan"),
    (lambda: exploration.Ucb1(scale=float("inf")), "Ucb1.scale is inf"),
  ],
)
def test_bad_parameters_are_refused(make, message):
  with pytest.raises(ValueError, match=message):
    make()


@pytest.mark.parametrize(
  ("rule", "num_members", "message"),
  [
    (exploration.Greedy(num_members=5), 4, "the ensemble has only 4 members"),
    (exploration.Ucb(ddof=1), 1, "Ucb needs at least 2 members"),
    (exploration.QUcb(), 1, "QUcb needs at least 2 members"),
  ],
)
def test_ensembles_too_small_are_refused(rule, num_members, message):
  with pytest.raises(ValueError, match=message):
    rule.init(jax.random.PRNGKey(0), num_members, _A)
