"""Packs columns into one record of bytes, because Reverb's costs are per column.

Inserting and sampling a window of small columns spends its time on chunks, one per
column and row, whatever their size; with records there is one per row.
"""

from collections.abc import Mapping

import numpy as np


class RecordPacker:
  """Packs a row's columns into one uint8 record, and unpacks batches of records."""

  def __init__(self, columns: Mapping[str, tuple[tuple[int, ...], np.dtype]]):
    self._dtype = np.dtype(
      [(name, dtype, shape) for name, (shape, dtype) in columns.items()]
    )

  @property
  def num_bytes(self) -> int:
    return self._dtype.itemsize

  def pack(self, row: Mapping[str, np.ndarray]) -> np.ndarray:
    """Columns of the declared shapes → uint8 `[num_bytes]`."""
    record = np.zeros((1,), self._dtype)
    for name in self._dtype.names or ():
      record[name] = row[name]
    return record.view(np.uint8)

  def zeros(self) -> np.ndarray:
    """The record of columns of zeros."""
    return np.zeros((self.num_bytes,), np.uint8)

  def unpack(self, records: np.ndarray) -> dict[str, np.ndarray]:
    """uint8 `[..., num_bytes]` → name → a contiguous array `[..., *shape]`."""
    structured = np.ascontiguousarray(records).view(self._dtype)[..., 0]
    return {
      name: np.ascontiguousarray(structured[name]) for name in self._dtype.names or ()
    }
