"""What windows become: a golden table by hand, and real runs unrolled again."""

import dataclasses

import dm_env
import fakes
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import exploration
from explorax.agents import types
from explorax.agents.bonuses import ngu
from explorax.agents.q import agent as q_agent
from explorax.agents.q import config as q_config
from explorax.agents.q import predictions, windows
from explorax.agents.q import values as values_lib
from explorax.agents.targets import greedy, off_policy
from explorax.agents.wiring import builder as builder_lib
from explorax.environments import factory, standard
from explorax.experiments.presets import r2d2 as r2d2_presets


def golden_sample(starts: int) -> types.Sample:
  """An episode of three transitions that terminates, and a row of padding."""
  rows = {
    "observation": [[10.0, 11.0, 12.0, 13.0, 0.0]],
    "action": [[2, 1, 2, 0, 0]],
    "reward": [[0.1, 0.2, 0.3, 0.0, 0.0]],
    "discount": [[1.0, 1.0, 0.0, 0.0, 0.0]],
    "mask": [[1.0, 1.0, 1.0, 0.0, 0.0]],
    "behaviour_prob": [[0.5, 0.6, 0.7, 0.8, 0.0]],
    "r_int": [[4.0, 5.0, 6.0, 7.0, 0.0]],
  }
  first = {
    "starts_episode": [starts],
    "previous_action": [-1 if starts else 0],
    "previous_reward": [0.0 if starts else 0.9],
    "previous_r_int": [0.0 if starts else 3.0],
    "core_state": [[0.0, 0.0]],
  }
  integers = ("action", "previous_action")
  cast = lambda columns: {  # noqa: E731
    name: np.asarray(x, np.int32 if name in integers else np.float32)
    for name, x in columns.items()
  }
  return types.Sample(cast(rows), cast(first), np.ones(1, np.float32), np.int32(1))


def make_windows(sample, burn_in, bonus_end):
  """Of a discount of 0.5."""
  config = q_config.QConfig(
    lstm_size=1, burn_in=burn_in, sequence_length=4 - burn_in, target=greedy.PengQ()
  )
  policy = jnp.zeros(1, jnp.int32)
  spec = dm_env.specs.Array((1,), np.float32)
  bonus = ngu.NeverGiveUp().build(spec, 3)._replace(end=bonus_end)
  return windows.make_windows(sample, config, jnp.array([0.5]), policy, bonus)


@pytest.mark.parametrize("starts", [0, 1])
def test_golden_table(starts):
  batch = make_windows(golden_sample(starts), burn_in=1, bonus_end="destination")
  inputs = batch.inputs()
  before = (-1, 0.0, 0.0) if starts else (0, 0.9, 3.0)
  np.testing.assert_array_equal(inputs.previous_action, [[before[0], 2, 1, 2, 0]])
  np.testing.assert_allclose(inputs.previous_reward, [[before[1], 0.1, 0.2, 0.3, 0.0]])
  np.testing.assert_allclose(inputs.previous_r_int, [[before[2], 4, 5, 6, 7]])
  np.testing.assert_allclose(batch.reward, [[0.1, 0.2, 0.3, 0.0]])
  np.testing.assert_allclose(batch.discount, [[0.5, 0.5, 0.0, 0.0]])
  # The novelty of the last observation, row 3, belongs to the transition into it.
  np.testing.assert_allclose(batch.stored, [[5.0, 6.0, 7.0, 0.0]])
  np.testing.assert_allclose(batch.real, [[1.0, 1.0, 1.0, 0.0, 0.0]])
  # At an episode's start there is nothing to warm up from.
  np.testing.assert_allclose(batch.trained, [[float(starts), 1.0, 1.0, 0.0]])
  np.testing.assert_allclose(batch.member_mask, np.ones((1, 4, 1)))
  np.testing.assert_allclose(inputs.observation, [[10, 11, 12, 13, 0]])
  source = make_windows(golden_sample(1), burn_in=0, bonus_end="source")
  np.testing.assert_allclose(source.stored, [[4.0, 5.0, 6.0, 7.0]])


def test_burn_in_passes_no_gradient_but_at_an_episodes_start(
  sequence_config, make_agent, sequence_sample
):
  """The gradient of what is trained on, with respect to the stored state."""
  config = sequence_config(burn_in=2, target=off_policy.Retrace())
  agent = make_agent(config)
  sample = sequence_sample(0, agent)
  values = values_lib.make_values(config, agent.encoding.spec, 3)
  weights = values_lib.Weights(jax.jit(values.init)(jax.random.PRNGKey(0)), ())
  policy = jnp.zeros(config.batch_size, jnp.int32)
  batch = windows.make_windows(sample, config, jnp.array([0.9]), policy)

  def predict(batch):
    return predictions.predict(config, values, weights, weights, batch, True, None)

  def after_burn_in(core_state):
    q = predict(batch._replace(core_state=core_state)).tm1.q
    return jnp.sum(jnp.square(q[:, :, config.burn_in :]), axis=(0, 2, 3))

  jacobian = jax.jit(jax.jacobian(after_burn_in))(batch.core_state)
  for b, starts in enumerate(sample.first["starts_episode"]):
    assert np.any(np.asarray(jacobian[b, b]) != 0) == bool(starts)
  # The values themselves are those of one unroll through all rows.
  unroll = jax.jit(values.unroll)
  whole, _ = unroll(weights, batch.inputs(), batch.core_state, None)
  q = jax.jit(predict)(batch).tm1.q
  np.testing.assert_allclose(q, whole.q[:, :, :-1], rtol=1e-5, atol=1e-6)


def test_what_was_acted_is_unrolled_again():
  """From a stored state, the learner's unroll arrives at the next stored state.

  So the state kept is the one before the window's first row, and what lags (a_{t−1},
  r_t and r^i_{t−1}) lags by one, in the middle of episodes and at their starts.
  """
  period = 3
  config = dataclasses.replace(
    r2d2_presets.ATARI,
    hidden_sizes=(4,),
    lstm_size=3,
    head_size=2,
    prior_scale=0.5,
    exploration=exploration.EpsilonGreedy(0.5),
    bonus=ngu.NeverGiveUp(hidden_sizes=(4,), embedding_size=2, memory_capacity=9),
    beta=0.5,
    target=off_policy.Retrace(),
    sequence_length=6,
    sequence_period=period,
    burn_in=0,
    replay_capacity=400,
    min_replay_size=60,
    batch_size=64,  # Of 15 windows: all are in it, whatever the sampler draws.
    actor_update_period=1000,
  )
  environment = standard.StandardEnvironment(
    fakes.FakeEnvironment(
      episode_length=11,
      truncate=True,
      reward=lambda t, action: 0.1 * t + action,
    )
  )
  agent = q_agent.make_agent(config, factory.spec(environment))
  builder = builder_lib.Builder(agent)
  store = builder.make_replay_tables("memory", 0)
  adder = builder.make_adder(store)
  batches = builder.make_dataset_iterator(store)
  learner = builder.make_learner(jax.random.PRNGKey(0), batches, store)
  actor = builder.make_actor(jax.random.PRNGKey(1), learner, [adder])
  for _ in range(5):
    timestep = environment.reset()
    actor.observe_first(timestep)
    while not timestep.last():
      action = actor.select_action(timestep.observation)
      timestep = environment.step(action)
      actor.observe(action, timestep)
  _, sample = next(batches)
  store.close()

  policy = jnp.zeros(config.batch_size, jnp.int32)
  bonus = config.bonus.build(agent.encoding.spec, 2)
  batch = windows.make_windows(sample, config, jnp.array([0.9]), policy, bonus)
  values = values_lib.make_values(config, agent.encoding.spec, 2, knows_r_int=True)
  (weights,) = learner.get_variables(["params"])
  assert isinstance(weights, values_lib.Weights)
  rows = jax.tree.map(lambda x: x[:, :period], batch.inputs())
  _, arrived = jax.jit(values.unroll)(weights, rows, batch.core_state, None)
  # Windows of an episode are recognised by their content: time is in the observation.
  found = 0
  for b in range(config.batch_size):
    time = sample.rows["observation"][b, 0, 0]
    for other in range(config.batch_size):
      follows = np.allclose(
        sample.rows["observation"][other, 0], sample.rows["observation"][b, period]
      ) and np.allclose(
        sample.rows["r_int"][b, period:-1].sum(),
        sample.rows["r_int"][other, : -1 - period].sum(),
      )
      same_actions = np.array_equal(
        sample.rows["action"][b, period:], sample.rows["action"][other, :-period]
      )
      if follows and same_actions and sample.rows["mask"][b, period]:
        np.testing.assert_allclose(
          arrived[b], sample.first["core_state"][other], rtol=1e-4, atol=1e-5
        )
        assert (
          sample.first["previous_action"][other]
          == (sample.rows["action"][b, period - 1])
        )
        found += 1
    assert (time == 0) == bool(sample.first["starts_episode"][b])
    if time == 0:
      np.testing.assert_array_equal(sample.first["core_state"][b], 0)
      assert sample.rows["r_int"][b, 0] == 0  # The memory was empty.
  assert found >= 3
