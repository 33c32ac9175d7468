"""What windows become: a golden table by hand, and real runs unrolled again."""

import dm_env
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agents import types
from explorax.agents.bonuses import ngu
from explorax.agents.q import config as q_config
from explorax.agents.q import learning, predictions, windows
from explorax.agents.q import values as values_lib
from explorax.agents.targets import greedy, off_policy


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
  # A mean over time is over all sources, the burn-in and padding included.
  config, deltas = q_config.QConfig(loss_mean_over="time"), np.float32([[[1, 2, 3, 4]]])
  loss = learning.window_losses(config, deltas, batch)
  np.testing.assert_allclose(loss, [(starts + 4 + 9) / 2 / 4])
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
