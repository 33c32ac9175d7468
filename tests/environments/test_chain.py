"""The chain, against its rewards written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.environments import chain, jax_adapter, jax_environments, specs

WRITTEN_OUT = (0, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 4, 0)


@pytest.mark.parametrize("size", [2, 4, 5, 8, 9, 15])
def test_rewards_are_n_zeros_and_an_n(size):
  rewards = chain.make_rewards(size)
  assert rewards.dtype == np.float32
  np.testing.assert_array_equal(rewards, WRITTEN_OUT[:size])


def test_rewards_of_a_long_chain_as_a_loop_writes_them():
  expected = []
  for n in range(1, 40):
    expected += [0] * n + [n]
  np.testing.assert_array_equal(chain.make_rewards(500), expected[:500])


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


def test_each_of_a_batch_may_have_its_own_rewards():
  links = chain.Chain(3)
  rewards = jnp.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
  state = chain.State(jnp.int32(1))

  def stop(rewards):
    params = chain.Params(rewards)
    return links.step(jax.random.PRNGKey(0), state, jnp.int32(chain.DOWN), params)[1]

  assert jax.vmap(stop)(rewards).reward.tolist() == [2.0, 5.0]


def test_has_a_name_and_no_settings():
  environment, params = jax_environments.make("chain/9")
  assert environment == chain.Chain(9)
  np.testing.assert_array_equal(params.rewards, WRITTEN_OUT[:9])
  with pytest.raises(ValueError, match="size is 1"):
    jax_environments.make("chain/1")
  with pytest.raises(ValueError, match=r"'jax:chain/9,n=2' .* it has no settings"):
    jax_environments.make("chain/9,n=2")
