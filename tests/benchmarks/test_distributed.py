"""The benchmark of the distributed runner: what is asked for, and plain actors."""

import queue
import types

import pytest

from explorax.experiments import threads

pytest.importorskip("ray")


@pytest.fixture
def distributed(load):
  return load("distributed")


def test_both_ways_of_acting_are_compared(distributed, monkeypatch):
  speeds = {"ray": 70.0, "plain": 100.0}
  monkeypatch.setattr(
    distributed.bench, "sample", lambda function, how, **_: speeds[how]
  )
  rows = distributed.measure_acting()
  assert [(row["agent"], row["actors"]) for row in rows] == [
    (agent, number) for agent in ("r2d2", "dqn") for number in (1, 2, 4)
  ]
  assert rows[0]["ray_and_reverb_steps_per_s"] == 70 and rows[0]["share"] == 0.7


def test_processes_without_ray_act(distributed, monkeypatch):
  monkeypatch.setattr(threads, "use_one_thread", lambda: None)
  results: queue.SimpleQueue = queue.SimpleQueue()
  barrier = types.SimpleNamespace(wait=lambda: None)
  distributed._act_plainly("dqn", "bsuite:catch/0", 1, 2, 0.2, barrier, results)
  assert results.get() > 20
