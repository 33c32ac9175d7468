"""Targets, padding and policies of a mixture on windows of several rows."""

import dataclasses

import dm_env
import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration
from explorax.agents import types, updates
from explorax.agents.bonuses import ngu
from explorax.agents.q import mixture
from explorax.agents.targets import off_policy, one_step


def assert_equal(a, b):
  jax.tree.map(np.testing.assert_array_equal, a, b)


def after(num_updates):
  return lambda state: state._replace(num_updates=jnp.int32(num_updates))


def test_the_target_policy_can_be_the_exploring_one(
  sequence_config, make_agent, sequence_sample, learn
):
  """It is what explores at the step at which an update is due."""
  config = sequence_config(
    target=off_policy.Retrace(epsilon=None),
    exploration=exploration.EpsilonGreedy(exploration.Linear(1.0, 0.0, 100)),
    min_replay_size=20,
    updates_per_step=0.5,
  )
  for num_updates, epsilon in ((0, 0.8), (15, 0.5), (60, 0.0)):
    found = updates.exploration_epsilon(config, jnp.int32(num_updates))
    np.testing.assert_allclose(found, epsilon, atol=1e-6)
  sample = sequence_sample(0, make_agent(config))
  same = dataclasses.replace(config, target=off_policy.Retrace(epsilon=0.5))
  for num_updates in (15, 60):
    state, output = learn(config, [sample], after(num_updates))
    expected, other = learn(same, [sample], after(num_updates))
    if num_updates == 15:
      assert_equal(expected.params, state.params)
    else:
      assert output.metrics["loss"] != other.metrics["loss"]


def test_padding_changes_nothing(sequence_config, make_agent, sequence_sample, learn):
  """Whatever stands in rows after an episode's end: the update is the same."""
  config = sequence_config(target=off_policy.Retrace(), burn_in=0)
  sample = sequence_sample(0, make_agent(config))
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


def test_what_the_loss_is_the_mean_over(
  sequence_config, make_agent, sequence_sample, learn
):
  """Padding counts: a window has its length whatever is real of it."""
  config = sequence_config()
  sample = sequence_sample(0, make_agent(config))
  assert not sample.rows["mask"].all()
  windows, sources = config.batch_size, config.burn_in + config.sequence_length
  divisors = {
    "windows": windows,
    "time": sources,
    "transitions": windows * sources,
    "nothing": 1,
  }
  sums = {
    over: learn(sequence_config(loss_mean_over=over), [sample])[1].metrics["loss"]
    * divisor
    for over, divisor in divisors.items()
  }
  np.testing.assert_allclose(list(sums.values()), sums["windows"], rtol=1e-5)


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


def test_actors_policies_of_a_mixture(sequence_config, make_agent):
  """Actor j follows policy j mod N; too few actors draw one for each episode."""
  agent = make_agent(
    sequence_config(
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


def test_a_window_of_transitions_is_their_sum(
  sequence_config, make_agent, sequence_sample, compiled
):
  """With a one-step target, a window of 4 is four windows of length 1."""
  changes = {"transform_eps": None, "priority_eta": None, "max_gradient_norm": None}
  changes |= {"lstm_size": 0, "burn_in": 0, "importance_exponent": 0.0, "n_step": 2}
  changes |= {"target": one_step.DoubleQ(), "exploration": exploration.Greedy()}
  whole = sequence_config(**changes)
  each = sequence_config(**changes, sequence_length=1, sequence_period=1, batch_size=24)
  sample = sequence_sample(0, make_agent(whole))
  rows = {
    name: np.concatenate([column[:, t : t + 3] for t in range(4)])
    for name, column in sample.rows.items()
  }
  repeated = np.full(24, 0.1, np.float32)
  samples = sample, types.Sample(rows, {}, repeated, np.int32(20))
  losses = []
  for config, batch in zip((whole, each), samples, strict=True):
    init, update = compiled(config)
    state, other = (init(jax.random.PRNGKey(seed)) for seed in (1, 2))
    state = state._replace(target_params=other.params)
    losses.append(update(state, batch)[1].metrics["loss"])
  np.testing.assert_allclose(losses[0], 4 * losses[1], rtol=1e-5)
