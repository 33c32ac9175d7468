"""TensorBoard's own reader on the event files of a run and of a resumed run."""

import sys
import types

import numpy as np
import pytest

from explorax.experiments.recording import loggers


@pytest.fixture
def read(tmp_path, monkeypatch):
  """() → tag → [(step, value)], of all event files in the directory."""
  # Its reader in Python, which takes no seconds to import TensorFlow.
  notf = "tensorboard.compat.notf"
  monkeypatch.setitem(sys.modules, notf, types.ModuleType(notf))
  accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator"
  )

  def read() -> dict[str, list[tuple[int, float]]]:
    found = accumulator.EventAccumulator(str(tmp_path)).Reload()
    return {
      tag: [(event.step, event.value) for event in found.Scalars(tag)]
      for tag in found.Tags()["scalars"]
    }

  return read


def test_tensorboard_reads_what_was_written(tmp_path, read):
  writer = loggers.TensorBoard(tmp_path)
  writer({"return/explorer": 0.1}, 0)
  writer({"return/explorer": -1.5, "metrics/größe": 1e300}, 127)
  writer({f"metric {i}": i for i in range(50)}, 2**40)
  writer.close()
  scalars = read()
  assert scalars["return/explorer"] == [(0, np.float32(0.1)), (127, -1.5)]
  assert scalars["metrics/größe"] == [(127, np.inf)]  # Beyond float32.
  assert scalars["metric 49"] == [(2**40, 49)]


def test_episodes_are_due_after_a_period_and_other_rows_always(
  tmp_path, make_episode, monkeypatch
):
  now = iter([10.0, 10.001, 10.006, 10.007])
  monkeypatch.setattr(loggers.time, "monotonic", lambda: next(now))
  writer = loggers.TensorBoard(tmp_path)
  assert [writer.is_due(make_episode(x)) for x in range(4)] == [
    True,
    False,
    True,
    False,
  ]
  assert writer.is_due(None)
  writer.close()


def test_a_resumed_run_hides_the_events_after_its_checkpoint(tmp_path, read):
  writer = loggers.TensorBoard(tmp_path)
  for step in (1, 2):
    writer({"a": step}, step)
  for step in (3, 9):
    writer({"a": -1.0}, step)
  writer.close()
  resumed = loggers.TensorBoard(tmp_path, last_step=2)
  for step in (3, 4):
    resumed({"a": step}, step)
  resumed.close()
  assert read()["a"] == [(1, 1), (2, 2), (3, 3), (4, 4)]
