"""The binary tree, against a plain walk along its mapping."""

import itertools

import numpy as np
import pytest

from explorax.environments import binary_tree, jax_adapter, specs


@pytest.mark.parametrize("size", [1, 4])
def test_one_of_all_sequences_earns_the_reward(size):
  tree = binary_tree.BinaryTree(size, mapping_seed=3)
  up = binary_tree.action_mapping(3, size)
  environment = jax_adapter.JaxEnvironment(tree, seed=0)
  assert isinstance(environment.observation_spec(), specs.OneHotArray)
  earned = []
  for actions in itertools.product((0, 1), repeat=size):
    timestep = environment.reset()
    for level, action in enumerate(actions):
      np.testing.assert_array_equal(timestep.observation, np.eye(size)[level])
      timestep = environment.step(action)
      right, top = action == up[level], level == size - 1
      assert timestep.reward == float(right and top)
      assert timestep.last() == (top or not right)
      if timestep.last():
        break
      assert timestep.discount == 1.0
    assert timestep.last() and timestep.discount == 0.0
    assert not timestep.observation.any()
    if timestep.reward:
      earned.append(actions)
  assert earned == [tuple(up)]
