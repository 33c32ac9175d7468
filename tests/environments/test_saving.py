"""bsuite's environments, saved between two episodes and resumed in new ones."""

import json

import numpy as np
import pytest
from bsuite import sweep

from explorax.environments import bsuite_environments, bsuite_sweeps, saving


def _play(environment, rng, num_episodes):
  """All that is seen of episodes at random."""
  seen = []
  num_actions = environment.action_spec().num_values
  for _ in range(num_episodes):
    timestep = environment.reset()
    seen.append(np.asarray(timestep.observation).tolist())
    while not timestep.last():
      timestep = environment.step(rng.integers(num_actions))
      seen.append((timestep.reward, np.asarray(timestep.observation).tolist()))
  return seen


@pytest.mark.parametrize(
  "bsuite_id", [i for i in sweep.TESTING if not bsuite_sweeps.needs_mnist(i)]
)
def test_bsuites_environments_resume_bit_for_bit_between_episodes(bsuite_id):
  rows, rows_after = [], []
  whole = bsuite_environments.load(bsuite_id, seed=3, on_row=rows.append)
  rng = np.random.default_rng(0)
  _play(whole, rng, 4)
  arrays, counts = saving.save(whole)
  counts = json.loads(json.dumps(counts))
  del rows[:]

  after = bsuite_environments.load(bsuite_id, seed=4, on_row=rows_after.append)
  saving.restore(after, arrays, counts)
  again = np.random.default_rng()
  again.bit_generator.state = rng.bit_generator.state
  assert _play(after, again, 5) == _play(whole, rng, 5)
  assert rows_after == rows and len(rows) == 5
  assert after.raw.bsuite_info() == whole.raw.bsuite_info()
