"""What environments count of their own episodes."""

import numpy as np

from explorax import environments
from explorax.environments import testing


class Counting(testing.FakeEnvironment):
  def episode_metrics(self):
    return {"coins": np.float32(2.0), "keys": 1}


def test_an_environment_may_count_for_itself():
  environment = environments.wrap(Counting(), seed=0)
  metrics = environments.episode_metrics(environment)
  assert metrics == {"coins": 2.0, "keys": 1.0}
  assert all(type(value) is float for value in metrics.values())
  assert environments.episode_metrics(Counting()) == metrics


def test_most_count_nothing():
  assert environments.episode_metrics(testing.FakeEnvironment()) == {}
