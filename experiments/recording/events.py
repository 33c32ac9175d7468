"""TensorBoard scalars, in tensorboardX's event files.

tensorboardX's `SummaryWriter` is not used: it writes in a thread, and when the disk is
full, that thread ends and the next writes wait forever.
"""

import time
from collections.abc import Mapping
from typing import Any

from explorax.experiments import output

_FLUSH_SECONDS = 10.0


class EventWriter:
  """Writes scalars into an event file of a run's directory.

  A resumed run writes another file. It starts with the step from which TensorBoard
  hides the events in earlier files.
  """

  def __init__(
    self, directory: output.RunDirectory, saved: Mapping[str, Any] | None = None
  ):
    """Creates the file.

    Args:
      directory: of the run.
      saved: what `save` returned; later events are hidden. None: all earlier files
        are deleted.

    Raises:
      OutputError: if the file cannot be written.
    """
    from tensorboardX import event_file_writer
    from tensorboardX.proto import event_pb2

    earlier = list(directory.path.glob("events.out.tfevents.*"))
    if saved is None and directory.holds_run:
      for path in earlier:
        path.unlink()
    self._path = directory.path / "events.out.tfevents"
    self._event = event_pb2.Event
    self._step = -1 if saved is None else int(saved["step"])
    self._flushed_at = time.monotonic()
    with output.write_errors(self._path):
      self._writer = event_file_writer.EventsWriter(
        str(directory.path / "events"), f".{len(earlier)}"
      )
      if saved is not None:
        started = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        self._write(step=self._step + 1, session_log=started)

  def write(self, scalars: Mapping[str, float], step: int) -> None:
    """Adds `scalars` (tag → value) at `step`."""
    from tensorboardX.proto import summary_pb2

    values = [
      summary_pb2.Summary.Value(tag=tag, simple_value=value)
      for tag, value in scalars.items()
    ]
    self._step = max(self._step, step)
    with output.write_errors(self._path):
      self._write(step=step, summary=summary_pb2.Summary(value=values))
      if time.monotonic() - self._flushed_at > _FLUSH_SECONDS:
        self._flush()

  def save(self) -> dict[str, Any]:
    """The state for a checkpoint; syncs all events to disk."""
    with output.write_errors(self._path):
      self._flush()
    return {"step": self._step}

  def close(self) -> None:
    with output.write_errors(self._path):
      self._writer.close()

  def _write(self, **content: Any) -> None:
    self._writer.write_event(self._event(wall_time=time.time(), **content))

  def _flush(self) -> None:
    self._writer.flush()
    self._flushed_at = time.monotonic()
