"""The chain, against its rewards written out."""

import numpy as np

from explorax.environments import chain, jax_adapter, specs

WRITTEN_OUT = (0, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 4, 0)


def test_rewards_are_n_zeros_and_an_n():
  expected = np.concatenate([[0] * n + [n] for n in range(1, 40)])
  np.testing.assert_array_equal(expected[:15], WRITTEN_OUT)
  for size in (2, 5, 500):
    rewards = chain.make_rewards(size)
    assert rewards.dtype == np.float32
    np.testing.assert_array_equal(rewards, expected[:size])


def test_down_earns_the_states_reward_and_right_moves_on():
  environment = jax_adapter.JaxEnvironment(chain.Chain(15), seed=0)
  assert isinstance(environment.observation_spec(), specs.OneHotArray)
  for stop in range(16):  # The last time, it never stops.
    timestep = environment.reset()
    for state in range(15):
      np.testing.assert_array_equal(timestep.observation, np.eye(15)[state])
      timestep = environment.step(chain.DOWN if state == stop else chain.RIGHT)
      if state in (stop, 14):
        break
      assert timestep.mid()
      assert (timestep.reward, timestep.discount) == (0.0, 1.0)
    assert timestep.last() and timestep.discount == 0.0
    assert timestep.reward == (WRITTEN_OUT[stop] if stop < 15 else 0.0)
    assert not timestep.observation.any()
