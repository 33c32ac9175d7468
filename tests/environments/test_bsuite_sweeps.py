"""The names of bsuite's sweeps."""

import numpy as np
import pytest
from bsuite import sweep

from explorax import environments
from explorax.environments import bsuite_sweeps


def test_groups_are_bsuites():
  groups = bsuite_sweeps.groups()
  assert groups["SWEEP"] == sweep.SWEEP and groups["TESTING"] == sweep.TESTING
  for name in ("DEEP_SEA", "BANDIT", "MNIST_SCALE", "UMBRELLA_LENGTH"):
    assert groups[name] == getattr(sweep, name)
  assert groups["memory"] == sweep.TAGS["memory"]
  assert len(groups) == 2 + 23 + len(sweep.TAGS)
  assert sum(map(bsuite_sweeps.needs_mnist, sweep.SWEEP)) == 60


@pytest.mark.parametrize("bsuite_id", sweep.TESTING)
def test_steps_per_episode(bsuite_id):
  """Of the first five episodes at random; cartpole's and the car's are the most."""
  if bsuite_sweeps.needs_mnist(bsuite_id):
    assert bsuite_sweeps.steps_per_episode(bsuite_id) == 1
    return
  environment = environments.make(f"bsuite:{bsuite_id}", seed=0)
  num_actions = environment.action_spec().num_values
  rng, lengths = np.random.default_rng(0), []
  for _ in range(5):
    timestep, length = environment.reset(), 0
    while not timestep.last():
      timestep, length = environment.step(rng.integers(num_actions)), length + 1
    lengths.append(length)
  told = bsuite_sweeps.steps_per_episode(bsuite_id)
  assert max(lengths) <= told + 1
  assert bsuite_id.startswith(("cartpole", "mountain")) or min(lengths) >= told
