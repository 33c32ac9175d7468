"""Inputs that are always 0 need no weights: the agent without them is the same."""

import dataclasses

import jax
import numpy as np

from explorax import environments
from explorax.environments import deep_sea, jax_adapter, specs
from explorax.experiments import config as config_lib
from explorax.experiments import presets
from explorax.experiments.runners import common, device


class WholeSea(deep_sea.DeepSea):
  """With weights for the positions above the diagonal, too."""

  def observation_spec(self) -> specs.OneHotArray:
    return super().observation_spec().replace(lower_triangle=False)


def test_an_agent_without_weights_for_impossible_inputs_is_the_same():
  """All weights and episodes, on Deep Sea with N = 5."""
  preset = presets.PRESETS["tdu"]
  config = dataclasses.replace(preset.config, min_replay_size=16, batch_size=16)
  results = []
  for environment in (WholeSea(5), deep_sea.DeepSea(5)):
    adapter = jax_adapter.JaxEnvironment(environment, seed=0)
    agent = preset.make_agent(config, environments.spec(adapter))
    returns: list[float] = []
    (result,) = device.run(
      agent,
      environment,
      config_lib.RunConfig(runner="device", steps=100),
      common.Hooks(on_episode=lambda e, to=returns: to.append(e.episode_return)),
    )
    results.append((jax.tree.leaves(result.weights), returns))
  (whole, whole_returns), (own, own_returns) = results
  assert whole_returns == own_returns
  entries = np.flatnonzero(np.tri(5))
  smaller = 0
  # XLA may sum the terms of a layer in another order, which depends on the processor.
  for theirs, ours in zip(whole, own, strict=True):
    if theirs.shape != ours.shape:  # The first layer, or a table of fixed values.
      (axis,) = np.flatnonzero(np.subtract(theirs.shape, ours.shape))
      has_zeros = theirs.shape[axis] == 26
      rows = np.concatenate([[0], entries + 1]) if has_zeros else entries
      theirs = np.take(theirs, rows, axis)
      smaller += 1
    np.testing.assert_allclose(theirs, ours, rtol=0.0, atol=1e-6)
  assert smaller > 0
