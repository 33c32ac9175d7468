"""Scores over seeds: which seeds count, their means and intervals."""

import math

import numpy as np

from explorax.experiments.reports import bsuite


def _catch(score: float) -> dict[str, np.ndarray]:
  """A log of catch, and of its variants, with that score."""
  return {
    "episode": np.array([1.0, 2.0]),
    "total_regret": np.array([0.0, 2 * 1.6 * (1 - score)]),
  }


def test_mean_and_interval_are_over_seeds():
  logs = {("a", "catch/0", seed): _catch(x) for seed, x in enumerate([0.2, 0.4, 0.9])}
  score = bsuite.compute(logs)["catch"]["a"]
  np.testing.assert_allclose(score.values, [0.2, 0.4, 0.9])
  np.testing.assert_allclose(score.mean.value, 0.5)
  # Of 27 equally likely draws of three seeds, the least mean is 0.2 and the greatest
  # 0.9, each with a probability of 1/27, which is more than 2.5 %.
  np.testing.assert_allclose([score.mean.low, score.mean.high], [0.2, 0.9])


def test_a_seed_with_fewer_ids_is_left_out_until_it_has_them():
  logs = {
    ("a", "catch/0", 0): _catch(0.5),
    ("a", "catch/1", 0): _catch(0.7),
    ("a", "catch/0", 1): _catch(0.1),
  }
  score = bsuite.compute(logs)["catch"]["a"]
  assert score.seeds == (0,)
  assert score.ids == ("catch/0", "catch/1")
  np.testing.assert_allclose(score.mean.value, 0.6)
  logs["a", "catch/1", 1] = _catch(0.1)
  score = bsuite.compute(logs)["catch"]["a"]
  assert score.seeds == (0, 1)
  np.testing.assert_allclose(score.mean.value, 0.35)


def test_a_tag_is_over_the_seeds_that_all_its_experiments_have():
  noise = {("a", "catch_noise/0", seed): _catch(x) for seed, x in ((1, 0.6), (2, 0.2))}
  plain = {("a", "catch/0", seed): _catch(x) for seed, x in ((0, 0.0), (1, 0.8))}
  found = bsuite.compute(noise | plain)
  credit = found["credit_assignment"]["a"]  # Of both.
  assert credit.seeds == (1,)
  np.testing.assert_allclose(credit.mean.value, 0.7)
  assert credit.ids == ("catch/0", "catch_noise/0")
  np.testing.assert_allclose(found["noise"]["a"].mean.value, 0.4)


def test_undetermined_scores_are_left_out_of_their_tags():
  logs = {
    ("a", "catch/0", 0): _catch(0.5),
    ("a", "mnist/0", 0): _catch(0.5),  # Its accuracy needs the last tenth.
  }
  found = bsuite.compute(logs)
  assert math.isnan(found["mnist"]["a"].mean.value)
  np.testing.assert_allclose(found["basic"]["a"].mean.value, 0.5)
  assert math.isnan(found["generalization"]["a"].mean.value)


def test_intervals_of_a_tag_draw_the_seeds_of_each_experiment_by_itself():
  """Drawn together, the two experiments' deviations would cancel out."""
  logs = {}
  for seed, x in enumerate([0.2, 0.8]):
    logs["a", "catch/0", seed] = _catch(x)
    logs["a", "catch_scale/0", seed] = _catch(1 - x)
  score = bsuite.compute(logs)["credit_assignment"]["a"]
  np.testing.assert_allclose(
    [score.mean.value, score.mean.low, score.mean.high], [0.5, 0.2, 0.8]
  )
