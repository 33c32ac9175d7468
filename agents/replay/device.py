"""Replay in arrays on the device, for programs that act and learn.

It handles the last row of many environments at a time where other backends handle
episodes, with the same windows and padding; the oldest window is dropped first. All
functions are pure, with fixed shapes.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from explorax import accelerators
from explorax.agents import types
from explorax.agents.replay import packing, windows
from explorax.exploration import sums

Columns = Mapping[str, jax.Array]

# Priorities are summed in blocks of this size, then over blocks: one running sum would
# lose small ones to rounding.
_BLOCK = 256


class State(NamedTuple):
  """The rows, and the windows that refer to them; E environments.

  Attributes:
    rows: `[E, R, ...]`, a ring of rows.
    num_rows: int32 `[E]`, rows appended so far, fewer than 2³¹.
    episode_start: int32 `[E]`, how many of them came before the current episode.
    pending: `[E, P, ...]`, the first-row columns of the current episode's rows at which
      a window may start.
    newest: `[E, R, ...]`, what priorities of new windows need of the newest rows of the
      current episode; a ring.
    first: `[E, W, ...]`, the first-row columns of the windows.
    windows: int32 `[E, W, 3]`, a ring of windows: each one's first row, how many rows
      of its episode come before it, and how many of its own are real; the others are
      padding.
    num_windows: int32 `[E]`, windows made so far.
    priorities: float32 `[E, W]`, to the power of the exponent; 0 where there is none.
  """

  rows: packing.Rows
  num_rows: jax.Array
  episode_start: jax.Array
  pending: packing.Rows
  newest: packing.Rows
  first: packing.Rows
  windows: jax.Array
  num_windows: jax.Array
  priorities: jax.Array


def drop_open_episodes(state: State) -> State:
  """Drops the rows of open episodes, except for those in windows."""
  return state._replace(episode_start=jnp.copy(state.num_rows))


class DeviceReplay:
  """The functions of an agent's replay in `num_envs` environments."""

  def __init__(self, agent: types.Agent, num_envs: int, max_steps: int | None = None):
    """Prepares the functions; `init` makes the arrays.

    With `max_steps` batches are the same; those by priority only in distribution, as
    sums over arrays of another size are rounded differently.

    Args:
      agent: of the windows.
      num_envs: E.
      max_steps: of each environment, for which memory is reserved; None: for a full
        replay.

    Raises:
      ValueError: if the capacity is less than a window for each environment.
    """
    self._spec = spec = agent.replay
    self._of_rows, self._of_first = packing.layouts(agent)
    self._of_priority = packing.priority_layouts(agent)
    self._initial_priority = agent.initial_priority
    self._num_envs = num_envs
    self._max_windows = spec.max_windows // num_envs
    if self._max_windows < 1:
      raise ValueError(
        f"a replay of {spec.capacity} environment steps has no window for each of "
        f"{num_envs} environments; raise replay_capacity, or use fewer."
      )
    # An episode of one window may have burn_in + length + 1 rows, and after the last
    # window come the rows of an incomplete one.
    self._num_rows = self._max_windows * (spec.burn_in + spec.length + 1)
    self._num_rows += spec.window_frames + spec.period
    if max_steps is not None:
      # Each window starts at another step, and each episode has one more row.
      self._num_rows = min(self._num_rows, 2 * max_steps)
      self._max_windows = min(self._max_windows, max_steps)
    self._num_pending = spec.window_rows // spec.period + 2
    self._envs = jnp.arange(num_envs)

  def init(self) -> State:
    """An empty replay."""
    envs, size = self._num_envs, self._max_windows

    def zeros(length: int, layouts: packing.Layouts) -> packing.Rows:
      words = {
        kind: jnp.zeros((envs, length, layout.num_words), jnp.int32)
        for kind, layout in layouts.items()
      }
      return packing.Rows(layouts, words)

    return State(
      rows=zeros(self._num_rows, self._of_rows),
      num_rows=jnp.zeros((envs,), jnp.int32),
      episode_start=jnp.zeros((envs,), jnp.int32),
      pending=zeros(self._num_pending, self._of_first),
      newest=zeros(self._spec.window_rows, self._of_priority),
      first=zeros(size, self._of_first),
      windows=jnp.zeros((envs, size, 3), jnp.int32),
      num_windows=jnp.zeros((envs,), jnp.int32),
      priorities=jnp.zeros((envs, size), jnp.float32),
    )

  def append(self, state: State, row: Columns, where: jax.Array) -> State:
    """Appends a row in each environment in which `where` (bool `[E]`) is true.

    Args:
      state: from `init`.
      row: column name → `[E, ...]`, all columns, and those of priorities.
      where: rows of other environments are ignored.
    """
    spec = self._spec
    t = state.num_rows - state.episode_start
    may_start = where & (t % spec.period == 0)
    pending = t // spec.period % self._num_pending
    state = state._replace(
      rows=self._set_row(state.rows, state.num_rows % self._num_rows, row, where),
      pending=self._set_row(state.pending, pending, row, may_start),
      newest=self._set_row(state.newest, t % spec.window_rows, row, where),
      num_rows=state.num_rows + where,
    )
    is_complete = where & windows.is_complete(spec, t + 1)
    size = jnp.full_like(t, spec.window_rows)
    return self._create(state, t + 1 - spec.window_rows, size, is_complete)

  def end_episodes(self, state: State, where: jax.Array) -> State:
    """After the last rows: makes the windows that padding completes."""
    spec = self._spec
    num_rows = state.num_rows - state.episode_start
    needed = windows.num_windows(spec, num_rows - 1)
    number = windows.num_complete(spec, num_rows)
    for _ in range(math.ceil(spec.window_rows / spec.period)):
      start = number * spec.period
      state = self._create(state, start, num_rows - start, where & (number < needed))
      number += 1
    episode_start = jnp.where(where, state.num_rows, state.episode_start)
    return state._replace(episode_start=episode_start)

  def num_windows(self, state: State) -> jax.Array:
    """The number of windows: int32 `[E]`."""
    return jnp.minimum(state.num_windows, self._max_windows)

  def sample(self, state: State, key: jax.Array) -> tuple[jax.Array, types.Sample]:
    """Draws a batch with replacement; there must be a window.

    Returns:
      Keys int32 `[B]` for `update_priorities`, and the Sample, its frames not joined.
    """
    spec = self._spec
    counts = self.num_windows(state)
    env, slot, probabilities = draw_uniformly(key, counts, spec.batch_size)
    keys = env * self._max_windows + slot
    if spec.priority_exponent > 0:
      uniforms = jax.random.uniform(key, (spec.batch_size,), jnp.float32)
      by_priority = draw_in_proportion(uniforms, jnp.ravel(state.priorities))
      has_priority = by_priority[1] > 0  # NaN if all are 0.
      keys, probabilities = jax.tree.map(
        lambda a, b: jnp.where(has_priority, a, b), by_priority, (keys, probabilities)
      )
    env, slot = keys // self._max_windows, keys % self._max_windows

    # Rows −(F − 1), …, −1 have the frames from before the window.
    offsets = jnp.arange(1 - spec.num_frames, spec.window_rows)[None]
    start, before, num_real = jnp.split(state.windows[env, slot], 3, axis=1)
    is_real = (offsets < num_real) & (offsets >= -before)
    index = (start + offsets) % self._num_rows
    index, is_real, env = _computed_once((index, is_real, env))

    def gather(kind: str, words: jax.Array) -> jax.Array:
      since = 0 if kind == packing.FRAMES else spec.num_frames - 1
      values = words[env[:, None], index[:, since:]]
      return mask_rows(values, is_real[:, since:])

    words = {kind: gather(kind, x) for kind, x in state.rows.words.items()}
    sample = types.Sample(
      rows=packing.Rows(self._of_rows, words),
      first=jax.tree.map(lambda x: x[env, slot], state.first),
      probabilities=probabilities,
      population=jnp.sum(counts),
    )
    return keys, sample

  def update_priorities(
    self, state: State, keys: jax.Array, priorities: jax.Array
  ) -> State:
    """Gives the windows of these keys new priorities (before the exponent)."""
    if self._spec.priority_exponent == 0:
      return state
    env, slot = keys // self._max_windows, keys % self._max_windows
    powered = jnp.power(priorities, self._spec.priority_exponent)
    return state._replace(priorities=state.priorities.at[env, slot].set(powered))

  def _set(
    self, column: jax.Array, index: jax.Array, value: jax.Array, where: jax.Array
  ) -> jax.Array:
    """Sets entry `index[e]` of each environment e that is selected."""
    # JAX drops updates that are out of bounds.
    index = jnp.where(where, index, column.shape[1])
    return column.at[self._envs, index].set(value.astype(column.dtype), mode="drop")

  def _set_row(
    self, rows: packing.Rows, index: jax.Array, row: Columns, where: jax.Array
  ) -> packing.Rows:
    """Sets row `index[e]` of each environment e that is selected."""
    return packing.Rows(
      rows.layouts,
      {
        kind: self._set(words, index, rows.layouts[kind].pack_on_device(row), where)
        for kind, words in rows.words.items()
      },
    )

  def _create(
    self, state: State, start: jax.Array, num_real: jax.Array, where: jax.Array
  ) -> State:
    """Makes a window of the current episode's rows from row `start` on."""
    slot = state.num_windows % self._max_windows
    pending = start // self._spec.period % self._num_pending
    initial = self._priorities(state, start, num_real, where)
    window = jnp.stack([state.episode_start + start, start, num_real], axis=1)
    return state._replace(
      windows=self._set(state.windows, slot, window, where),
      first=jax.tree.map(
        lambda new, old: self._set(old, slot, new[self._envs, pending], where),
        state.pending,
        state.first,
      ),
      priorities=self._set(
        state.priorities, slot, initial**self._spec.priority_exponent, where
      ),
      num_windows=state.num_windows + where,
    )

  def _priorities(
    self, state: State, start: jax.Array, num_real: jax.Array, where: jax.Array
  ) -> jax.Array:
    """The initial priorities of those windows: `[E]`, of any value elsewhere."""
    initial_priority, ones = self._initial_priority, jnp.ones(start.shape, jnp.float32)
    if initial_priority is None:
      return ones
    offsets = jnp.arange(self._spec.window_rows)[None]
    index = (start[:, None] + offsets) % self._spec.window_rows

    def compute() -> jax.Array:
      is_real = offsets < num_real[:, None]
      rows = jax.tree.map(
        lambda words: mask_rows(words[self._envs[:, None], index], is_real),
        state.newest,
      )
      return initial_priority(rows, start == 0)

    return accelerators.branch(jnp.any(where), compute, lambda: ones)


@jax.custom_batching.custom_vmap
def _computed_once(tree: Any) -> Any:
  """The same arrays; XLA computes them once, not for each word that they select."""
  return jax.lax.optimization_barrier(tree)


@_computed_once.def_vmap
def _(axis_size: int, is_batched: list[Any], tree: Any) -> tuple[Any, Any]:
  del axis_size
  return _computed_once(tree), is_batched[0]  # JAX 0.4.34 has no rule of its own.


def mask_rows(values: jax.Array, is_real: jax.Array) -> jax.Array:
  """Values `[N, R, ...]`, and zeros in the rows that are not real, of `[N, R]`."""
  is_real = jnp.reshape(is_real, is_real.shape + (1,) * (values.ndim - 2))
  return jnp.where(is_real, values, jnp.zeros_like(values))


def draw_uniformly(
  key: jax.Array, counts: jax.Array, batch_size: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Draws windows with equal probability, with replacement.

  Args:
    key: a random key.
    counts: int32 `[E]`, the number of windows of each environment.
    batch_size: B.

  Returns:
    The environment and the number of each window, int32 `[B]`; probabilities `[B]`.
  """
  total = jnp.sum(counts)
  number = jax.random.randint(key, (batch_size,), 0, jnp.maximum(total, 1), jnp.int32)
  until = sums.cumulative(counts)
  env = jnp.searchsorted(until, number, side="right", method="scan_unrolled")
  slot = number - (until - counts)[env]
  probabilities = jnp.broadcast_to(1.0 / total, (batch_size,)).astype(jnp.float32)
  return env, slot, probabilities


def draw_in_proportion(
  uniforms: jax.Array, values: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Draws indices with probabilities proportional to values that are not negative.

  Args:
    uniforms: float32 `[B]`, in [0, 1).
    values: float32 `[N]`, not all of them 0.

  Returns:
    Indices int32 `[B]`, never of a 0, and their probabilities `[B]`.
  """
  flat = jnp.pad(values, (0, -values.size % _BLOCK))
  blocks = jnp.reshape(flat, (-1, _BLOCK))
  sums = jnp.sum(blocks, axis=1)
  until = jnp.cumsum(sums)
  total = until[-1]
  target = uniforms * total
  block = jnp.searchsorted(until, target, side="right", method="scan_unrolled")
  block = jnp.minimum(block, len(until) - 1)
  # Rounding must not select an empty block, nor an index of a 0 in another one. (An
  # `argmax` over all values would take most of the time.)
  block = jnp.where(sums[block] > 0, block, jnp.argmax(sums))
  chosen = blocks[block]
  within = jnp.cumsum(chosen, axis=1)
  rest = target - (until[block] - within[:, -1])
  inside = jnp.sum(within <= rest[:, None], axis=1)
  last = _BLOCK - 1 - jnp.argmax(chosen[:, ::-1] > 0, axis=1)
  inside = jnp.minimum(inside, last)
  value = jnp.take_along_axis(chosen, inside[:, None], axis=1)[:, 0]
  inside = jnp.where(value > 0, inside, last)
  drawn = block * _BLOCK + inside
  return drawn, flat[drawn] / total
