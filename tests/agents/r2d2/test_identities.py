"""Settings that must be one another's, and what the parts of an update do."""

import dataclasses

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types, updates
from explorax.agents.bonuses import ngu, rnd, tdu
from explorax.agents.r2d2 import learning
from explorax.agents.targets import greedy, off_policy, one_step


def learn(agent, samples, change=lambda state: state):
  """The state and the output after an update on each of the samples."""
  update = jax.jit(agent.learner.update)
  state, output = change(agent.learner.init(jax.random.PRNGKey(0))), None
  for sample in samples:
    state, output = update(state, sample)
  return state, output


def assert_equal(a, b, rtol=0.0):
  jax.tree.map(
    lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol / 10), a, b
  )


def test_one_step_returns_have_no_trace(make_config, make_agent, make_sample):
  """n = 1 is every λ = 0: double Q-learning."""
  one = make_agent(make_config(target=greedy.NStep(n=1)))
  samples = [make_sample(0, one)]
  expected, output = learn(one, samples)
  for target in (
    one_step.DoubleQ(),
    off_policy.Retrace(lambda_=0.0),
    off_policy.ExpectedSarsaLambda(lambda_=0.0),
    greedy.PengQ(lambda_=0.0),
    greedy.WatkinsQ(lambda_=(0.0,) * 6),
  ):
    agent = make_agent(make_config(target=target))
    state, other = learn(agent, samples)
    assert_equal(expected.params, state.params, rtol=1e-4)
    np.testing.assert_allclose(output.priorities, other.priorities, rtol=1e-4)


def test_the_target_policy_can_be_the_exploring_one(
  make_config, make_agent, make_sample
):
  """ε fixed: that number. Falling: what it is at the step at which an update is due."""
  rule = exploration.EpsilonGreedy(0.3)
  config = make_config(target=off_policy.Retrace(epsilon=0.3), exploration=rule)
  following = off_policy.Retrace(epsilon=None)
  samples = [make_sample(0, make_agent(config))]
  expected, _ = learn(make_agent(config), samples)
  state, _ = learn(make_agent(dataclasses.replace(config, target=following)), samples)
  assert_equal(expected.params, state.params)

  falling = dataclasses.replace(
    config,
    target=following,
    exploration=exploration.EpsilonGreedy(exploration.Linear(1.0, 0.0, 100)),
    min_replay_size=20,
    updates_per_step=0.5,
  )
  for num_updates, epsilon in ((0, 0.8), (15, 0.5), (60, 0.0)):
    found = updates.exploration_epsilon(falling, jnp.int32(num_updates))
    np.testing.assert_allclose(found, epsilon, atol=1e-6)
  state, _ = learn(make_agent(falling), samples)
  assert any(
    np.any(a != b)
    for a, b in zip(
      jax.tree.leaves(expected.params), jax.tree.leaves(state.params), strict=True
    )
  )


def test_a_bonus_without_beta_is_the_base_agent(make_config, make_agent, make_sample):
  plain = make_agent(make_config())
  samples = [make_sample(seed, plain) for seed in range(2)]
  expected, _ = learn(plain, samples)
  bonus = rnd.RND(hidden_sizes=(3,), output_size=2)
  state, output = learn(make_agent(make_config(bonus=bonus, beta=0.0)), samples)
  assert_equal(expected.params, state.params)
  assert output.metrics["r_int"] != 0


def test_exploiters_never_see_the_bonus(make_config, make_agent, make_sample):
  """Nor does β matter to them, where no layer is shared with the explorers' loss."""
  config = make_config(
    num_members=3, num_explorers=2, bonus=tdu.TDUncertainty(), beta=1.0
  )
  agents = [make_agent(dataclasses.replace(config, beta=b)) for b in (1.0, 3.0)]
  sample = make_sample(0, agents[0])
  heads = []
  for agent in agents:
    state, output = learn(agent, [sample])
    assert output.metrics["r_int"] > 0
    heads.append(state.params.heads)
  exploiters = [jax.tree.map(lambda x: x[:3], h) for h in heads]
  assert_equal(*exploiters)
  explorers = [jax.tree.map(lambda x: x[3:], h) for h in heads]
  moved = jax.tree.map(lambda a, b: not np.array_equal(a, b), *explorers)
  assert any(jax.tree.leaves(moved))


@pytest.mark.parametrize("per_step", [False, True])
def test_masked_members_do_not_learn(make_config, make_agent, make_sample, per_step):
  config = make_config(num_members=2, mask_prob=0.5, mask_per_step=per_step)
  agent = make_agent(config)
  sample = make_sample(0, agent)
  kept = sample.rows if per_step else sample.first
  mask = np.zeros_like(kept["bootstrap_mask"])
  mask[..., 1] = 1.0
  columns = {**kept, "bootstrap_mask": mask}
  sample = sample._replace(**({"rows" if per_step else "first": columns}))
  before = agent.learner.init(jax.random.PRNGKey(0)).params.heads
  after, _ = learn(agent, [sample])

  def is_as_before(member):
    same = jax.tree.map(
      lambda a, b: np.array_equal(a[member], b[member]),
      before,
      after.params.heads,
    )
    return all(jax.tree.leaves(same))

  assert is_as_before(0) and not is_as_before(1)


def test_padding_changes_nothing(make_config, make_agent, make_sample):
  """Whatever stands in rows after an episode's end: the update is the same."""
  agent = make_agent(make_config(target=off_policy.Retrace(), burn_in=0))
  sample = make_sample(0, agent)
  first = np.cumsum(sample.rows["mask"] == 0, axis=1) > 1  # Beyond the last row.
  assert first.any()
  rows = dict(sample.rows)
  for name in ("observation", "reward", "behaviour_prob"):
    column = rows[name].copy()
    column[first] = 7.0
    rows[name] = column
  expected = learn(agent, [sample])
  changed = learn(agent, [sample._replace(rows=rows)])
  assert_equal(expected[0].params, changed[0].params)
  assert_equal(expected[1].priorities, changed[1].priorities)


def test_a_loss_that_is_not_finite_changes_nothing(
  make_config, make_agent, make_sample
):
  agent = make_agent(make_config())
  sample = make_sample(0, agent)
  rows = {**sample.rows, "reward": np.full_like(sample.rows["reward"], np.inf)}
  before = agent.learner.init(jax.random.PRNGKey(0))
  after, output = learn(agent, [sample._replace(rows=rows)])
  assert output.metrics["finite"] == 0
  assert_equal(before, after)


def test_relabelling():
  policy = jnp.arange(8, dtype=jnp.int32) % 4
  keys = jax.random.split(jax.random.PRNGKey(0), 200)
  relabel = jax.vmap(learning.relabel, (0, None, None, None))
  drawn = np.asarray(relabel(keys, policy, 0.5, 4))
  np.testing.assert_array_equal(drawn[:, 4:], np.tile(policy[4:], (200, 1)))
  assert not np.any(drawn[:, :4] == np.asarray(policy[:4]))
  for i in range(4):  # The three others, about as often.
    counts = np.bincount(drawn[:, i], minlength=4)
    assert counts[i] == 0 and np.all(np.delete(counts, i) > 40)
  np.testing.assert_array_equal(learning.relabel(keys[0], policy, 0.0, 1), policy)


def test_a_bound_is_on_the_gradient():
  td, mask = jnp.array([[-3.0, 0.5, 2.0]]), jnp.ones((3, 1))

  def loss(td):
    return updates.ensemble_loss(td, mask, 1.0)

  np.testing.assert_allclose(loss(td), [2.5, 0.125, 1.5])
  gradient = jax.grad(lambda x: jnp.sum(loss(x)))(td)
  np.testing.assert_allclose(gradient, [[-1.0, 0.5, 1.0]])


def actor_policies(agent, actor_id, num_actors, evaluation=False, episodes=40):
  """The mixture's policy in each of some one-step episodes."""
  core = agent.actor(evaluation=evaluation)
  weights = agent.learner.params(agent.learner.init(jax.random.PRNGKey(0)))
  params = types.ActorParams(weights, np.int32(0))
  first = dm_env.TimeStep(
    np.int32(dm_env.StepType.FIRST),
    np.float32(0),
    np.float32(1),
    np.zeros(2, np.float32),
  )

  def step(state, _):
    _, state = core.select_action(params, first, state)
    return state, core.extras(state)["policy"]

  state = core.init(jax.random.PRNGKey(3), actor_id, num_actors)
  _, policies = jax.jit(lambda s: jax.lax.scan(step, s, None, episodes))(state)
  return set(np.asarray(policies).tolist())


def test_who_follows_which_policy_of_a_mixture(make_config, make_agent):
  """Actor j follows policy j mod N; too few actors draw one for each episode."""
  agent = make_agent(
    make_config(
      num_policies=3,
      bonus=ngu.NeverGiveUp(hidden_sizes=(3,), embedding_size=2, memory_capacity=5),
      beta=0.1,
      target=off_policy.Retrace(),
      exploration=exploration.EpsilonGreedy(0.1),
    )
  )
  assert actor_policies(agent, 4, 6) == {1}
  assert actor_policies(agent, 2, 3) == {2}
  assert actor_policies(agent, 0, 1) == {0, 1, 2}
  assert actor_policies(agent, 0, 1, evaluation=True) == {0}
  assert agent.policy_names == ("policy 0", "policy 1", "policy 2")
