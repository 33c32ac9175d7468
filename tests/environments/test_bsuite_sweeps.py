"""The names of bsuite's sweeps."""

from bsuite import sweep

from explorax.environments import bsuite_sweeps


def test_groups_are_bsuites():
  groups = bsuite_sweeps.groups()
  assert groups["SWEEP"] == sweep.SWEEP and groups["TESTING"] == sweep.TESTING
  for name in ("DEEP_SEA", "BANDIT", "MNIST_SCALE", "UMBRELLA_LENGTH"):
    assert groups[name] == getattr(sweep, name)
  assert groups["memory"] == sweep.TAGS["memory"]
  assert len(groups) == 2 + 23 + len(sweep.TAGS)
  assert sum(map(bsuite_sweeps.needs_mnist, sweep.SWEEP)) == 60
