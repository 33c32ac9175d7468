"""What replay stores of a row, packed into words: one array for many columns.

The costs of small columns are per column: of a chunk in Reverb, of a gather and of an
argument of a compiled update in memory, of a scatter on the device.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agents import types

# Kinds of records: of each row; of each row at which a window may start; and, where
# observations join several frames, of each frame, because windows contain frames from
# before their first row.
ROWS = "rows"
FIRST = "first"
FRAMES = "frames"

# Column name → (shape, dtype) of one row.
ColumnSpecs = dict[str, tuple[tuple[int, ...], np.dtype]]


class Layout:
  """Where columns are in records of int32 words; equal columns make equal layouts."""

  def __init__(self, columns: ColumnSpecs):
    self.columns = dict(columns)
    self._key = tuple(columns.items())
    self._starts: dict[str, int] = {}
    self.num_words = 0
    for name, (shape, dtype) in columns.items():
      self._starts[name] = self.num_words
      self.num_words += -(-math.prod(shape) * dtype.itemsize // 4)
    self._record = np.dtype(
      {
        "names": list(columns),
        "formats": [(dtype, shape) for shape, dtype in columns.values()],
        "offsets": [4 * start for start in self._starts.values()],
        "itemsize": 4 * self.num_words,
      }
    )

  def __eq__(self, other: object) -> bool:
    return isinstance(other, Layout) and self._key == other._key

  def __hash__(self) -> int:
    return hash(self._key)

  def pack(self, row: Mapping[str, Any]) -> np.ndarray:
    """The columns of one row → int32 `[num_words]`."""
    words = np.zeros((self.num_words,), np.int32)
    record: np.ndarray = np.ndarray((), self._record, words)  # A view.
    for name in self._starts:
      record[name] = row[name]
    return words

  def pack_on_device(self, rows: Mapping[str, jax.Array]) -> jax.Array:
    """Columns `[N, *shape]` → int32 `[N, num_words]`."""
    words = []
    for name, (_, dtype) in self.columns.items():
      values = rows[name].astype(dtype)
      values = jnp.reshape(values, (len(values), -1))
      ratio = 4 // dtype.itemsize
      if ratio > 1:
        values = jnp.pad(values, ((0, 0), (0, -values.shape[1] % ratio)))
        values = jnp.reshape(values, (len(values), -1, ratio))
      words.append(jax.lax.bitcast_convert_type(values, jnp.int32))
    return jnp.concatenate(words, axis=-1)

  def column(self, words: Any, name: str) -> Any:
    """A column `[..., *shape]` of words `[..., num_words]`; of numpy's, a view."""
    if isinstance(words, np.ndarray):
      return words.view(self._record)[..., 0][name]
    start, (shape, dtype) = self._starts[name], self.columns[name]
    size, ratio = math.prod(shape), 4 // dtype.itemsize
    values = words[..., start : start + -(-size // ratio)]
    values = jax.lax.bitcast_convert_type(values, jnp.dtype(dtype))
    if ratio > 1:
      values = jnp.reshape(values, (*words.shape[:-1], -1))[..., :size]
    return jnp.reshape(values, (*words.shape[:-1], *shape))


Layouts = dict[str, Layout]  # Kind → layout.


@jax.tree_util.register_pytree_node_class
class Rows(Mapping[str, Any]):
  """Columns of rows; the leaves of this pytree are the words of each kind."""

  def __init__(self, layouts: Layouts, words: Mapping[str, Any]):
    self.layouts, self.words = layouts, words

  def __getitem__(self, name: str) -> Any:
    for kind, layout in self.layouts.items():
      if name in layout.columns:
        return layout.column(self.words[kind], name)
    raise KeyError(name)

  def __iter__(self) -> Iterator[str]:
    for layout in self.layouts.values():
      yield from layout.columns

  def __len__(self) -> int:
    return sum(len(layout.columns) for layout in self.layouts.values())

  def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[tuple[str, Layout], ...]]:
    return (self.words,), tuple(self.layouts.items())

  @classmethod
  def tree_unflatten(cls, layouts: Any, children: tuple[Any, ...]) -> "Rows":
    return cls(dict(layouts), *children)


def column_specs(agent: types.Agent) -> ColumnSpecs:
  """The columns that replay stores, in the order of storage."""
  observation = agent.encoding.spec
  shape = observation.shape
  if agent.replay.num_frames > 1:
    shape = (*shape[:-1], shape[-1] // agent.replay.num_frames)
  extras = agent.replay.extras + agent.replay.first_row_extras
  return {
    "observation": (tuple(shape), np.dtype(observation.dtype)),
    "action": ((), np.dtype(np.int32)),
    "reward": ((), np.dtype(np.float32)),
    "discount": ((), np.dtype(np.float32)),
    "mask": ((), np.dtype(np.float32)),
    **_extras_specs(agent, extras),
  }


def layouts(agent: types.Agent) -> tuple[Layouts, Layouts]:
  """Of all rows, by their kinds; and of rows at which a window may start, if any."""
  columns = column_specs(agent)
  of_first = {name: columns.pop(name) for name in agent.replay.first_row_extras}
  of_rows: Layouts = {}
  if agent.replay.num_frames > 1:
    of_rows[FRAMES] = Layout({"observation": columns.pop("observation")})
  of_rows[ROWS] = Layout(columns)
  return of_rows, {FIRST: Layout(of_first)} if of_first else {}


def priority_layouts(agent: types.Agent) -> Layouts:
  """Of the rows that `Agent.initial_priority` reads; none if priorities are 1."""
  if agent.initial_priority is None:
    return {}
  columns = column_specs(agent)
  names = ("action", "reward", "discount", "mask")
  extras = _extras_specs(agent, agent.replay.priority_extras)
  return {ROWS: Layout({**{name: columns[name] for name in names}, **extras})}


def _extras_specs(agent: types.Agent, names: tuple[str, ...]) -> ColumnSpecs:
  specs = {name: agent.extras_spec[name] for name in names}
  return {name: (tuple(x.shape), np.dtype(x.dtype)) for name, x in specs.items()}
