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
from explorax.agents.q import mixture
from explorax.agents.targets import off_policy


@pytest.fixture(scope="session")
def learn(compiled):
  """(config, samples, change of the first state) → the state and the last output."""

  def run(config, samples, change=lambda state: state):
    init, update = compiled(config)
    state, output = change(init(jax.random.PRNGKey(0))), None
    for sample in samples:
      state, output = update(state, sample)
    return state, output

  return run


def assert_equal(a, b):
  jax.tree.map(np.testing.assert_array_equal, a, b)


def after(num_updates):
  return lambda state: state._replace(num_updates=jnp.int32(num_updates))


def test_the_target_policy_can_be_the_exploring_one(
  make_config, make_agent, make_sample, learn
):
  """It is what explores at the step at which an update is due."""
  config = make_config(
    target=off_policy.Retrace(epsilon=None),
    exploration=exploration.EpsilonGreedy(exploration.Linear(1.0, 0.0, 100)),
    min_replay_size=20,
    updates_per_step=0.5,
  )
  for num_updates, epsilon in ((0, 0.8), (15, 0.5), (60, 0.0)):
    found = updates.exploration_epsilon(config, jnp.int32(num_updates))
    np.testing.assert_allclose(found, epsilon, atol=1e-6)
  sample = make_sample(0, make_agent(config))
  same = dataclasses.replace(config, target=off_policy.Retrace(epsilon=0.5))
  for num_updates in (15, 60):
    state, output = learn(config, [sample], after(num_updates))
    expected, other = learn(same, [sample], after(num_updates))
    if num_updates == 15:
      assert_equal(expected.params, state.params)
    else:
      assert output.metrics["loss"] != other.metrics["loss"]


def test_a_bonus_without_beta_is_the_base_agent(
  make_config, make_agent, make_sample, learn
):
  config = make_config()
  samples = [make_sample(seed, make_agent(config)) for seed in range(2)]
  expected, _ = learn(config, samples)
  bonus = rnd.RND(hidden_sizes=(3,), output_size=2)
  state, output = learn(make_config(bonus=bonus, beta=0.0), samples)
  assert_equal(expected.params, state.params)
  assert output.metrics["r_int"] != 0


def test_exploiters_never_see_the_bonus(make_config, make_agent, make_sample, learn):
  """Nor does β matter to them, where no layer is shared with the explorers' loss."""
  config = make_config(
    num_members=3,
    num_explorers=2,
    bonus=tdu.TDUncertainty(),
    beta=exploration.Linear(1.0, 3.0, 9),
  )
  sample = make_sample(0, make_agent(config))
  heads = []
  for num_updates in (0, 9):
    state, output = learn(config, [sample], after(num_updates))
    assert output.metrics["r_int"] > 0
    heads.append(state.params.heads)
  assert_equal(*(jax.tree.map(lambda x: x[:3], h) for h in heads))
  explorers = [jax.tree.map(lambda x: x[3:], h) for h in heads]
  moved = jax.tree.map(lambda a, b: not np.array_equal(a, b), *explorers)
  assert any(jax.tree.leaves(moved))


@pytest.mark.parametrize("per_step", [False, True])
def test_masked_members_do_not_learn(
  make_config, make_agent, make_sample, compiled, learn, per_step
):
  config = make_config(num_members=2, mask_prob=0.5, mask_per_step=per_step)
  sample = make_sample(0, make_agent(config))
  kept = sample.rows if per_step else sample.first
  mask = np.zeros_like(kept["bootstrap_mask"])
  mask[..., 1] = 1.0
  columns = {**kept, "bootstrap_mask": mask}
  sample = sample._replace(**({"rows" if per_step else "first": columns}))
  before = compiled(config)[0](jax.random.PRNGKey(0)).params.heads
  state, _ = learn(config, [sample])

  def is_as_before(member):
    same = jax.tree.map(
      lambda a, b: np.array_equal(a[member], b[member]),
      before,
      state.params.heads,
    )
    return all(jax.tree.leaves(same))

  assert is_as_before(0) and not is_as_before(1)


def test_padding_changes_nothing(make_config, make_agent, make_sample, learn):
  """Whatever stands in rows after an episode's end: the update is the same."""
  config = make_config(target=off_policy.Retrace(), burn_in=0)
  sample = make_sample(0, make_agent(config))
  first = np.cumsum(sample.rows["mask"] == 0, axis=1) > 1  # Beyond the last row.
  assert first.any()
  rows = dict(sample.rows)
  for name in ("observation", "reward", "behaviour_prob"):
    column = rows[name].copy()
    column[first] = 7.0
    rows[name] = column
  expected = learn(config, [sample])
  changed = learn(config, [sample._replace(rows=rows)])
  assert_equal(expected[0].params, changed[0].params)
  assert_equal(expected[1].priorities, changed[1].priorities)


def test_what_the_loss_is_the_mean_over(make_config, make_agent, make_sample, learn):
  """Padding counts: a window has its length whatever is real of it."""
  config = make_config()
  sample = make_sample(0, make_agent(config))
  assert not sample.rows["mask"].all()
  windows, sources = config.batch_size, config.burn_in + config.sequence_length
  divisors = {
    "windows": windows,
    "time": sources,
    "transitions": windows * sources,
    "nothing": 1,
  }
  sums = {
    over: learn(make_config(loss_mean_over=over), [sample])[1].metrics["loss"] * divisor
    for over, divisor in divisors.items()
  }
  np.testing.assert_allclose(list(sums.values()), sums["windows"], rtol=1e-5)


def test_a_loss_that_is_not_finite_changes_nothing(
  make_config, make_agent, make_sample, compiled, learn
):
  config = make_config()
  sample = make_sample(0, make_agent(config))
  rows = {**sample.rows, "reward": np.full_like(sample.rows["reward"], np.inf)}
  before = compiled(config)[0](jax.random.PRNGKey(0))
  state, output = learn(config, [sample._replace(rows=rows)])
  assert output.metrics["finite"] == 0
  assert_equal(before, state)


def test_relabelling():
  policy = jnp.arange(8, dtype=jnp.int32) % 4
  keys = jax.random.split(jax.random.PRNGKey(0), 200)
  relabel = jax.vmap(mixture.relabel, (0, None, None, None))
  drawn = np.asarray(relabel(keys, policy, 0.5, 4))
  np.testing.assert_array_equal(drawn[:, 4:], np.tile(policy[4:], (200, 1)))
  assert not np.any(drawn[:, :4] == np.asarray(policy[:4]))
  for i in range(4):  # The three others, about as often.
    counts = np.bincount(drawn[:, i], minlength=4)
    assert counts[i] == 0 and np.all(np.delete(counts, i) > 40)
  np.testing.assert_array_equal(mixture.relabel(keys[0], policy, 0.0, 1), policy)


def test_max_abs_td_bounds_the_gradient():
  td, mask = jnp.array([[-3.0, 0.5, 2.0]]), jnp.ones((3, 1))

  def loss(td):
    return updates.ensemble_loss(td, mask, 1.0)

  np.testing.assert_allclose(loss(td), [2.5, 0.125, 1.5])
  gradient = jax.grad(lambda x: jnp.sum(loss(x)))(td)
  np.testing.assert_allclose(gradient, [[-1.0, 0.5, 1.0]])


def test_actors_policies_of_a_mixture(make_config, make_agent):
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
  weights = jax.jit(lambda key: agent.learner.params(agent.learner.init(key)))(
    jax.random.PRNGKey(0)
  )
  first = dm_env.TimeStep(
    np.int32(dm_env.StepType.FIRST),
    np.float32(0),
    np.float32(1),
    np.zeros(2, np.float32),
  )

  def make_policies(evaluation):
    core = agent.actor(evaluation=evaluation)

    def step(state, _):
      params = types.ActorParams(weights, jnp.int32(0))
      _, state = core.select_action(params, first, state)
      return state, core.extras(state)["policy"]

    @jax.jit
    def policies(actor_id, num_actors):
      state = core.init(jax.random.PRNGKey(3), actor_id, num_actors)
      return jax.lax.scan(step, state, None, 40)[1]

    return lambda *place: set(np.asarray(policies(*place)).tolist())

  acting, evaluating = make_policies(False), make_policies(True)
  assert acting(4, 6) == {1}
  assert acting(2, 3) == {2}
  assert acting(0, 1) == {0, 1, 2}
  assert evaluating(0, 1) == {0}
  assert agent.policy_names == ("policy 0", "policy 1", "policy 2")
