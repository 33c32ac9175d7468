"""The names of bsuite's sweeps, and the log of Deep Sea's twin."""

import csv

import numpy as np
import pytest
from bsuite import sweep

from explorax import environments
from explorax.environments import bsuite_environments, bsuite_sweeps


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


def test_twin_log_is_what_bsuite_logs(tmp_path):
  """Of the same episodes, every fifth of which reaches the goal."""
  reference = bsuite_environments.load("deep_sea/0", seed=0, record_to=str(tmp_path))
  twin = environments.make(bsuite_sweeps.jax_equivalent("deep_sea/0"), seed=0)
  log = bsuite_sweeps.DeepSeaLog(limit=44)
  mapping = reference.raw._action_mapping
  rng = np.random.default_rng(0)
  for episode in range(51):
    reference.reset()
    timestep, total = twin.reset(), 0.0
    for row in range(10):
      action = mapping[row, row] if episode % 5 == 0 else rng.integers(2)
      reference.step(action)
      timestep = twin.step(action)
      total += float(timestep.reward)
    assert timestep.last()
    log.add(10, total, environments.episode_metrics(twin))
  theirs = (tmp_path / bsuite_sweeps.csv_name("deep_sea/0")).read_text()
  (header, *expected), (own_header, *rows) = (
    [*csv.reader(text.splitlines())] for text in (theirs, log.csv().decode())
  )
  assert own_header == header
  assert [int(row[1]) for row in rows] == [*range(1, 11), 12, 14, 17, 20, 25, 30, 40]
  np.testing.assert_allclose(
    np.array(rows, np.float64), np.array(expected[:-1], np.float64), rtol=1e-5
  )
