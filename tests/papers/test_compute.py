"""Sums over the parts of a run."""

import numpy as np

from explorax.papers import compute


def test_an_episode_counts_in_the_part_of_a_run_where_it_ends():
  ends, values = np.array([1, 10, 11, 29, 35]), np.array([1.0, 2.0, 4.0, 8.0, 16.0])
  sums, counts = compute.windows(ends, values, 30, 3)
  assert sums.tolist() == [3, 4, 24] and counts.tolist() == [2, 1, 2]
