"""Scalars for TensorBoard, without TensorFlow.

TensorBoard reads files of length-prefixed, checksummed records, each an `Event`
message of protocol buffers. Scalars need four fields of it, few enough to encode
here: TensorFlow would cost seconds at start-up and does not exist for every Python,
and writers that work in a thread of their own cannot say that the disk is full.

    record = length (uint64) · crc(length) · data · crc(data),    little-endian,
    crc(x) = ((c >> 15 | c << 17) + 0xa282ead8) mod 2^32,    c = CRC-32C(x).
"""

import functools
import math
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

from explorax.experiments import output

_CRC_32C_POLYNOMIAL = 0x82F63B78  # Castagnoli's, bits reversed.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # Wire types.


class EventWriter:
  """Writes scalars into an event file of a run's directory."""

  def __init__(
    self, directory: output.RunDirectory, resumed: Mapping[str, Any] | None = None
  ):
    """Begins a file, or goes on with one.

    Args:
      directory: of the run.
      resumed: what `save` returned; what was written after it is cut off. None to
        begin.
    """
    if resumed is not None:
      self._file = directory.append_to(resumed["name"], resumed["size"])
      return
    if directory.holds_run:  # Which begins anew.
      for path in directory.path.glob("events.out.tfevents.*"):
        path.unlink()
    now = time.time()
    name = f"events.out.tfevents.{int(now)}.{socket.gethostname()}"
    self._file = directory.append_to(name)
    self._file.append(_record(_event(now, 0, _bytes(3, b"brain.Event:2"))))

  def save(self) -> dict[str, Any]:
    """What goes into a checkpoint; the records so far are on disk when it returns."""
    self._file.sync()
    return {"name": self._file.path.name, "size": self._file.size}

  def write(self, step: int, scalars: Mapping[str, float]) -> None:
    """Adds `scalars` (tag → value) at `step`, in one piece."""
    values = b"".join(
      _bytes(1, _bytes(1, tag.encode()) + _key(2, _FIXED32) + _float32(value))
      for tag, value in scalars.items()
    )
    self._file.append(_record(_event(time.time(), step, _bytes(5, values))))

  def close(self) -> None:
    self._file.close()


def _event(wall_time: float, step: int, what: bytes) -> bytes:
  clock = _key(1, _FIXED64) + struct.pack("<d", wall_time)
  return clock + _key(2, _VARINT) + _varint(step) + what


def _record(data: bytes) -> bytes:
  length = struct.pack("<Q", len(data))
  return length + _masked_crc(length) + data + _masked_crc(data)


def _key(field: int, wire_type: int) -> bytes:
  return _varint(field << 3 | wire_type)


def _bytes(field: int, content: bytes) -> bytes:
  return _key(field, _BYTES) + _varint(len(content)) + content


def _float32(value: float) -> bytes:
  try:
    return struct.pack("<f", value)
  except OverflowError:  # Beyond float32, and finite.
    return struct.pack("<f", math.copysign(math.inf, value))


def _varint(value: int) -> bytes:
  encoded = bytearray()
  while value > 0x7F:
    encoded.append(value & 0x7F | 0x80)
    value >>= 7
  encoded.append(value)
  return bytes(encoded)


def _masked_crc(data: bytes) -> bytes:
  table = _crc_table()
  crc = 0xFFFFFFFF
  for byte in data:
    crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
  crc ^= 0xFFFFFFFF
  rotated = (crc >> 15 | crc << 17) & 0xFFFFFFFF
  return struct.pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)


@functools.cache
def _crc_table() -> tuple[int, ...]:
  table = []
  for value in range(256):
    for _ in range(8):
      value = value >> 1 ^ (_CRC_32C_POLYNOMIAL if value & 1 else 0)
    table.append(value)
  return tuple(table)
