"""TensorBoard scalars, in files that a run can resume.

The messages and checksums come from tensorboardX. Its writers are not used: they cannot
continue a file, so a resumed run could not truncate it to its checkpoint, and they
write in a thread that cannot report a full disk.
"""

import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

from explorax.experiments import output


class EventWriter:
  """Writes scalars into an event file of a run's directory."""

  def __init__(
    self, directory: output.RunDirectory, resumed: Mapping[str, Any] | None = None
  ):
    """Creates the file, or resumes it.

    Args:
      directory: of the run.
      resumed: what `save` returned; later records are removed. None creates the
        file.
    """
    if resumed is not None:
      self._file = directory.append_to(resumed["name"], resumed["size"])
      return
    if directory.holds_run:  # It restarts.
      for path in directory.path.glob("events.out.tfevents.*"):
        path.unlink()
    name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
    self._file = directory.append_to(name)
    self._append(file_version="brain.Event:2")

  def write(self, step: int, scalars: Mapping[str, float]) -> None:
    """Adds `scalars` (tag → value) at `step` in one write."""
    from tensorboardX.proto import summary_pb2

    values = [
      summary_pb2.Summary.Value(tag=tag, simple_value=value)
      for tag, value in scalars.items()
    ]
    self._append(step=step, summary=summary_pb2.Summary(value=values))

  def save(self) -> dict[str, Any]:
    """The state for a checkpoint; syncs all records to disk."""
    self._file.sync()
    return {"name": self._file.path.name, "size": self._file.size}

  def close(self) -> None:
    self._file.close()

  def _append(self, **content: Any) -> None:
    """Adds an event as a record: length, checksum, message, checksum."""
    from tensorboardX import record_writer
    from tensorboardX.proto import event_pb2

    def checksum(data: bytes) -> bytes:
      return struct.pack("<I", record_writer.masked_crc32c(data))

    data = event_pb2.Event(wall_time=time.time(), **content).SerializeToString()
    length = struct.pack("<Q", len(data))
    self._file.append(length + checksum(length) + data + checksum(data))
