"""Figures of bonuses: MiniGrid's view, and what is counted of a run."""

import types

import jax
import numpy as np
import pytest

from explorax.papers.bonuses import minigrid, navix_tasks


def test_walls_are_visible_but_no_cells_behind_them():
  clear, expected = np.ones((7, 7), bool), np.zeros((7, 7), bool)
  assert navix_tasks.visible(clear).all()
  clear[4, :] = clear[:, 5] = False
  expected[4:, :6] = True
  np.testing.assert_array_equal(navix_tasks.visible(clear), expected)


@pytest.mark.newest
@pytest.mark.parametrize(
  ("task", "limit"),
  [("DoorKey-8x8", 640), ("MultiRoom-N4-S5", 80), ("KeyCorridorS3R2", 270)],
)
def test_navix_has_minigrids_view_and_limits(task, limit):
  pytest.importorskip("navix")
  with jax.numpy_rank_promotion("allow"):  # navix needs it.
    environment = navix_tasks.make(task)
    observation = jax.jit(environment.reset)(jax.random.PRNGKey(0)).observation
  assert environment.max_steps == limit
  assert observation.shape == (7, 7, 3)
  assert observation[-1, 3].tolist() == [1, 0, 0]  # It carries nothing.


def test_a_task_is_solved_when_80_of_the_last_100_episodes_reached_the_goal():
  episodes = [
    types.SimpleNamespace(env_steps=step, episode_return=float(step > 1000))
    for step in range(10, 3001, 10)
  ]
  assert minigrid.solved_at(episodes) == 1800
  assert minigrid.solved_at(episodes[:179]) == minigrid.solved_at([]) == 0
