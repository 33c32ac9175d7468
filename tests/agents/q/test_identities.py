"""Identities between settings: who learns from what, and towards what."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from explorax import exploration
from explorax.agents import types, updates
from explorax.agents.bonuses import rnd, tdu
from explorax.agents.q import mixture
from explorax.agents.targets import off_policy, one_step

TDU = {"num_members": 2, "num_explorers": 2, "bonus": tdu.TDUncertainty()}


def members_alike(a, b) -> list[bool]:
  """Which members have the same head, to rounding in another program."""
  pairs = [*zip(*map(jax.tree.leaves, (a.heads, b.heads)), strict=True)]
  return [
    all(np.allclose(x[k], y[k], rtol=0.0, atol=1e-8) for x, y in pairs)
    for k in range(len(pairs[0][0]))
  ]


def after(num_updates):
  return lambda state: state._replace(num_updates=jnp.int32(num_updates))


def test_a_bonus_without_beta_is_the_base_agent(make_config, make_sample, learn):
  """To the bit, after two updates."""
  config = make_config()
  samples = [make_sample(seed, config) for seed in range(2)]
  expected, _ = learn(config, samples)
  bonus = rnd.RND(hidden_sizes=(3,), output_size=2)
  state, output = learn(make_config(bonus=bonus, beta=0.0), samples)
  jax.tree.map(np.testing.assert_array_equal, expected.params, state.params)
  assert output.metrics["r_int"] != 0


FEED_FORWARD = {"lstm_size": 0, "burn_in": 0}


def test_explorers_alone_see_the_bonus(
  sequence_config, make_agent, sequence_sample, learn
):
  """β matters to them, and not to the exploiters."""
  apart = {"shared_torso": False, "max_gradient_norm": None, **FEED_FORWARD}
  config = sequence_config(**TDU, **apart, beta=exploration.Linear(1.0, 3.0, 9))
  sample = sequence_sample(0, make_agent(config))
  # Adam's first step is the sign of the gradient alone.
  (a, output), (b, _) = (learn(config, [sample] * 3, after(n)) for n in (0, 9))
  assert output.metrics["r_int"] > 0
  assert members_alike(a.params, b.params) == [True, True, False, False]


def test_a_masked_member_does_not_learn(
  sequence_config, make_agent, sequence_sample, learn
):
  masks = {"mask_prob": 0.5, "mask_per_step": True, **FEED_FORWARD}
  config = sequence_config(num_members=2, **masks)
  sample = sequence_sample(0, make_agent(config))
  mask = np.zeros_like(sample.rows["bootstrap_mask"])
  mask[..., 1] = 1.0
  start, _ = learn(config, [])
  sample = sample._replace(rows={**sample.rows, "bootstrap_mask": mask})
  state, _ = learn(config, [sample])
  assert members_alike(start.params, state.params) == [True, False]


def test_the_target_policy_can_be_the_exploring_one(make_config, make_sample, learn):
  """It is what explores at the step at which an update is due."""
  config = make_config(
    n_step=2,
    target=off_policy.Retrace(epsilon=None),
    exploration=exploration.EpsilonGreedy(exploration.Linear(1.0, 0.0, 100)),
    min_replay_size=20,
    updates_per_step=0.5,
  )
  for num_updates, epsilon in ((0, 0.8), (15, 0.5), (60, 0.0)):
    found = updates.exploration_epsilon(config, jnp.int32(num_updates))
    np.testing.assert_allclose(found, epsilon, atol=1e-6)
  sample = make_sample(0, config)
  same = dataclasses.replace(config, target=off_policy.Retrace(epsilon=0.5))
  for num_updates in (15, 60):
    state, output = learn(config, [sample], after(num_updates))
    expected, other = learn(same, [sample], after(num_updates))
    if num_updates == 15:
      jax.tree.map(np.testing.assert_array_equal, expected.params, state.params)
    else:
      assert output.metrics["loss"] != other.metrics["loss"]


def test_what_the_loss_is_the_mean_over(
  sequence_config, make_agent, sequence_sample, compiled
):
  """With a one-step target, a window of 4 is four windows of length 1.

  Padding counts: a window has its length whatever is real of it.
  """
  changes = {"transform_eps": None, "priority_eta": None, "max_gradient_norm": None}
  changes |= {"lstm_size": 0, "burn_in": 0, "importance_exponent": 0.0, "n_step": 2}
  changes |= {"target": one_step.DoubleQ(), "exploration": exploration.Greedy()}
  each = sequence_config(**changes, sequence_length=1, sequence_period=1, batch_size=24)
  whole = sequence_config(**changes)
  sample = sequence_sample(0, make_agent(whole))
  assert not sample.rows["mask"].all()

  def loss(config, batch):
    init, update = compiled(config)
    state, other = (init(jax.random.PRNGKey(seed)) for seed in (1, 2))
    state = state._replace(target_params=other.params)
    return update(state, batch)[1].metrics["loss"]

  rows = {
    name: np.concatenate([column[:, t : t + 3] for t in range(4)])
    for name, column in sample.rows.items()
  }
  repeated = types.Sample(rows, {}, np.full(24, 0.1, np.float32), np.int32(20))
  mean = loss(each, repeated)
  numbers = {"windows": 4, "time": 6, "transitions": 1, "nothing": 24}
  for over, number in numbers.items():
    found = loss(dataclasses.replace(whole, loss_mean_over=over), sample)
    np.testing.assert_allclose(found, number * mean, rtol=1e-5, err_msg=over)


def test_relabelling():
  policy = jnp.arange(8, dtype=jnp.int32) % 4
  keys = jax.random.split(jax.random.PRNGKey(0), 200)
  relabel = jax.jit(jax.vmap(lambda key: mixture.relabel(key, policy, 0.5, 4)))
  drawn = np.asarray(relabel(keys))
  np.testing.assert_array_equal(drawn[:, 4:], np.tile(policy[4:], (200, 1)))
  assert not np.any(drawn[:, :4] == np.asarray(policy[:4]))
  for i in range(4):  # The three others, about as often.
    counts = np.bincount(drawn[:, i], minlength=4)
    assert counts[i] == 0 and np.all(np.delete(counts, i) > 40)
  assert mixture.relabel(keys[0], policy, 0.0, 1) is policy
