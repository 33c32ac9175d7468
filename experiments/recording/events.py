"""TensorBoard scalars, in tensorboardX's event files.

tensorboardX's `SummaryWriter` is not used: it writes in a thread, and when the disk is
full, that thread ends and the next writes wait forever.
"""

import time
from collections.abc import Mapping
from typing import Any

from tensorboardX import event_file_writer
from tensorboardX.proto import event_pb2, summary_pb2

from explorax.experiments import output

_SYNC_SECONDS = 10.0


class EventWriter:
  """A logger that writes scalars into an event file of a run's directory."""

  def __init__(self, directory: output.RunDirectory, last_step: int = 0):
    """Creates the file.

    Args:
      directory: of the run.
      last_step: of the earlier files that a resumed run keeps: TensorBoard hides their
        later events, which the run writes again. 0: earlier files are deleted.

    Raises:
      OutputError: if the file cannot be written.
    """
    earlier = list(directory.path.glob("events.out.tfevents.*"))
    if not last_step:
      for path in earlier:
        path.unlink()
    self._path = directory.path / "events.out.tfevents"
    self._synced_at = time.monotonic()
    with output.write_errors(self._path):
      self._writer = event_file_writer.EventsWriter(
        str(directory.path / "events"), f".{len(earlier)}"
      )
    if last_step:
      started = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
      self._write(step=last_step + 1, session_log=started)

  def __call__(self, scalars: Mapping[str, float], step: int) -> None:
    """Writes `scalars` (tag → value) at `step`."""
    values = [
      summary_pb2.Summary.Value(tag=tag, simple_value=value)
      for tag, value in scalars.items()
    ]
    self._write(step=step, summary=summary_pb2.Summary(value=values))
    if time.monotonic() - self._synced_at > _SYNC_SECONDS:
      self.sync()

  def sync(self) -> None:
    """Waits until all events are on disk."""
    with output.write_errors(self._path):
      self._writer.flush()
    self._synced_at = time.monotonic()

  def close(self) -> None:
    with output.write_errors(self._path):
      self._writer.close()

  def _write(self, **content: Any) -> None:
    with output.write_errors(self._path):
      self._writer.write_event(event_pb2.Event(wall_time=time.time(), **content))
