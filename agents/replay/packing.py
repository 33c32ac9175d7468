"""Packs columns into one array, because the costs of small columns are per column.

Reverb spends the time of inserting and sampling on chunks, one per column and row,
whatever their size; a record of bytes has one per row. In memory, a batch of words is
one gather and one argument of a compiled update; on a device, a row is one scatter.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Column name → (shape, dtype) of one row.
ColumnSpecs = Mapping[str, tuple[tuple[int, ...], np.dtype]]


class RecordPacker:
  """Packs a row's columns into one uint8 record, and unpacks batches of records."""

  def __init__(self, columns: ColumnSpecs):
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


class WordLayout:
  """Where the columns of four-byte types are in rows of int32 words."""

  def __init__(self, columns: ColumnSpecs):
    """Takes the columns that have such a type; equal columns make equal layouts."""
    self.fields: dict[str, tuple[int, tuple[int, ...], np.dtype]] = {}
    self.num_words = 0
    for name, (shape, dtype) in columns.items():
      if dtype.itemsize == 4:
        self.fields[name] = self.num_words, shape, dtype
        self.num_words += math.prod(shape)
    self._key = tuple((name, *field) for name, field in self.fields.items())

  def __eq__(self, other: object) -> bool:
    return isinstance(other, WordLayout) and self._key == other._key

  def __hash__(self) -> int:
    return hash(self._key)

  def pack(self, row: Mapping[str, jax.Array]) -> jax.Array:
    """Columns `[N, *shape]` → words `[N, num_words]`, in compiled functions."""
    columns = [
      jax.lax.bitcast_convert_type(row[name].astype(dtype), jnp.int32)
      for name, (_, _, dtype) in self.fields.items()
    ]
    return jnp.concatenate([x.reshape(len(x), -1) for x in columns], axis=-1)

  def column(self, words: Any, name: str) -> Any:
    """A column `[..., *shape]` of words `[..., num_words]`; of numpy's, a view."""
    start, shape, dtype = self.fields[name]
    values = words[..., start : start + math.prod(shape)]
    if isinstance(words, np.ndarray):
      values = values.view(dtype)
    else:
      values = jax.lax.bitcast_convert_type(values, jnp.dtype(dtype))
    return values.reshape(*words.shape[:-1], *shape)


@jax.tree_util.register_pytree_node_class
class WordRows(Mapping[str, Any]):
  """Columns of rows, of which those of four-byte types are in one array of words."""

  def __init__(self, layout: WordLayout, words: Any, others: Mapping[str, Any]):
    """Joins them.

    Args:
      layout: of the words.
      words: int32 `[..., num_words]`.
      others: the other columns.
    """
    self._layout, self.words, self.others = layout, words, dict(others)

  def __getitem__(self, name: str) -> Any:
    if name in self.others:
      return self.others[name]
    return self._layout.column(self.words, name)

  def __iter__(self) -> Iterator[str]:
    yield from self._layout.fields
    yield from self.others

  def __len__(self) -> int:
    return len(self._layout.fields) + len(self.others)

  def tree_flatten(self) -> tuple[tuple[Any, ...], WordLayout]:
    return (self.words, self.others), self._layout

  @classmethod
  def tree_unflatten(cls, layout: WordLayout, children: tuple[Any, ...]) -> "WordRows":
    return cls(layout, *children)
