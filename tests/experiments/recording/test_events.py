import math
import pathlib
import sys
import types

import numpy as np
import pytest

from explorax.experiments import output
from explorax.experiments.recording import events


@pytest.fixture
def directory(tmp_path):
  return output.RunDirectory.create(tmp_path / "run")


def event_file(directory) -> pathlib.Path:
  (path,) = directory.path.glob("events.out.tfevents.*")
  return path


def test_tensorboard_reads_what_was_written(directory, monkeypatch):
  """TensorBoard's own reader checks the checksums and the messages."""
  # Its reader in Python, which takes no seconds to import TensorFlow.
  notf = "tensorboard.compat.notf"
  monkeypatch.setitem(sys.modules, notf, types.ModuleType(notf))
  loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
  writer = events.EventWriter(directory)
  written = [
    (0, {"return/explorer": 0.1}),
    (127, {"return/explorer": -1.5, "metrics/loss": 1e30}),
    (2**40, {"größe": math.inf, "long": 3.0, **{f"metric {i}": i for i in range(50)}}),
  ]
  for step, scalars in written:
    writer.write(step, scalars)
  writer.close()
  first, *rest = loader.EventFileLoader(str(event_file(directory))).Load()
  assert first.file_version == "brain.Event:2"
  read = [
    (event.step, {v.tag: _scalar(v) for v in event.summary.value}) for event in rest
  ]
  expected = [(s, {k: np.float32(v) for k, v in d.items()}) for s, d in written]
  assert read == expected
  assert all(abs(event.wall_time - first.wall_time) < 60 for event in rest)


def _scalar(value) -> float:
  # The loader turns the old form of scalars, ours, into the new one.
  if value.HasField("simple_value"):
    return value.simple_value
  return value.tensor.float_val[0]


def test_a_resumed_file_loses_what_followed_its_checkpoint(directory):
  writer = events.EventWriter(directory)
  writer.write(1, {"a": 1.0})
  saved = writer.save()
  kept = event_file(directory).read_bytes()
  writer.write(2, {"a": 2.0})
  writer.close()
  events.EventWriter(directory, saved).close()
  assert event_file(directory).read_bytes() == kept


def test_values_beyond_float32_become_infinite(directory):
  writer = events.EventWriter(directory)
  writer.write(1, {"a": 1e300, "b": -1e300})
  content = event_file(directory).read_bytes()
  assert np.float32(np.inf).tobytes() in content
  assert np.float32(-np.inf).tobytes() in content
