"""Acme's adder interface over windows of raw rows, for every replay backend."""

import collections
from collections.abc import Mapping
from typing import Any, Protocol

import dm_env
import numpy as np
from acme import adders

from explorax.agents import types
from explorax.agents.replay import windows

Row = dict[str, np.ndarray]


class Writer(Protocol):
  """The output of an adder; one implementation per backend."""

  def append(self, row: Row) -> None:
    """Appends a row; it has first-row columns if a window may start there."""

  def pad(self) -> None:
    """Appends a row of zeros."""

  def create_window(self, priority: float) -> None:
    """Makes an item of the newest `window_rows` rows (priority before the exponent)."""

  def end_episode(self) -> None:
    """Ends the episode: no later window contains its rows."""


# Column name → (shape, dtype) of one row.
ColumnSpecs = dict[str, tuple[tuple[int, ...], np.dtype]]


def column_specs(agent: types.Agent) -> ColumnSpecs:
  """The columns that replay stores, in the order of storage."""
  observation = agent.encoding.spec
  shape = observation.shape
  if agent.replay.num_frames > 1:
    shape = (*shape[:-1], shape[-1] // agent.replay.num_frames)
  specs = {
    "observation": (shape, observation.dtype),
    "action": ((), np.int32),
    "reward": ((), np.float32),
    "discount": ((), np.float32),
    "mask": ((), np.float32),
  }
  specs |= _extras_specs(agent, agent.replay.extras + agent.replay.first_row_extras)
  return {name: (tuple(s), np.dtype(d)) for name, (s, d) in specs.items()}


def priority_specs(agent: types.Agent) -> ColumnSpecs:
  """The columns that `Agent.initial_priority` reads; none if priorities are 1."""
  if agent.initial_priority is None:
    return {}
  columns = column_specs(agent)
  names = ("action", "reward", "discount", "mask")
  extras = _extras_specs(agent, agent.replay.priority_extras)
  return {**{name: columns[name] for name in names}, **extras}


def _extras_specs(agent: types.Agent, names: tuple[str, ...]) -> ColumnSpecs:
  specs = {name: agent.extras_spec[name] for name in names}
  return {name: (tuple(x.shape), np.dtype(x.dtype)) for name, x in specs.items()}


class WindowAdder(adders.Adder):
  """Writes the rows of episodes, and windows of them as soon as they are complete.

  Beside Acme's three methods there is `add_last`: the last observation has extras (for
  example its novelty), which exist only after the actor has seen it. After the `add`
  with a LAST timestep, call `add_last` with them. It keeps observations
  without a copy: nothing may write into them, as a `StandardEnvironment` does not.
  """

  def __init__(self, agent: types.Agent, writer: Writer):
    self._spec = agent.replay
    self._writer: Any = writer
    self._columns = column_specs(agent)
    self._initial_priority = agent.initial_priority
    self._priority_columns = priority_specs(agent)
    self._observation: Any = None
    self._num_rows = 0
    # The priority columns of the newest rows.
    self._newest: collections.deque[Row] = collections.deque(
      maxlen=agent.replay.window_rows
    )
    self.num_windows = 0

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode; an unfinished one is ended first."""
    if not timestep.first():
      raise ValueError(
        f"add_first got a timestep of type {timestep.step_type!r}; it must be FIRST."
      )
    self.reset()
    self._observation = timestep.observation

  def add(
    self,
    action: Any,
    next_timestep: dm_env.TimeStep,
    extras: Mapping[str, Any] = (),  # type: ignore[assignment]
  ) -> None:
    """Appends row t: the action taken on x_t, and its results."""
    if self._observation is None:
      raise ValueError("add was called before add_first; start an episode first.")
    row = {
      "observation": self._newest_frame(),
      "action": action,
      "reward": next_timestep.reward,
      "discount": next_timestep.discount,
      "mask": 1.0,
    }
    self._append(row, dict(extras))
    self._observation = next_timestep.observation

  def add_last(self, extras: Mapping[str, Any]) -> None:
    """Appends row T, the last observation with its extras, and pads the windows."""
    num_transitions = self._num_rows
    row = {
      "observation": self._newest_frame(),
      "action": 0,
      "reward": 0.0,
      "discount": 0.0,
      "mask": 0.0,
    }
    self._append(row, dict(extras))
    for _ in range(windows.num_padding_rows(self._spec, num_transitions)):
      self._writer.pad()
      self._complete_row({})
    self.reset()

  def reset(self) -> None:
    """Ends the episode; rows that are not yet in a window are dropped."""
    if self._num_rows:
      self._writer.end_episode()
    self._observation = None
    self._num_rows = 0
    self._newest.clear()

  def _newest_frame(self) -> Any:
    if self._spec.num_frames == 1:
      return self._observation
    channels = self._columns["observation"][0][-1]
    return self._observation[..., -channels:]

  def _append(self, row: Mapping[str, Any], extras: Mapping[str, Any]) -> None:
    values = {**extras, **row}
    may_start = self._num_rows % self._spec.period == 0
    self._writer.append(
      {
        name: np.asarray(values[name], dtype)
        for name, (_, dtype) in self._columns.items()
        if may_start or name not in self._spec.first_row_extras
      }
    )
    self._complete_row(values)

  def _complete_row(self, values: Mapping[str, Any]) -> None:
    """Counts a row of these columns and extras; an empty one is padding."""
    self._num_rows += 1
    self._newest.append(
      {
        name: np.array(values[name], dtype) if values else np.zeros(shape, dtype)
        for name, (shape, dtype) in self._priority_columns.items()
      }
    )
    if windows.is_complete(self._spec, self._num_rows):
      self._writer.create_window(self._priority())
      self.num_windows += 1

  def _priority(self) -> float:
    """The priority of the window of the newest rows."""
    if self._initial_priority is None:
      return 1.0
    rows = {
      name: np.stack([row[name] for row in self._newest])[None]
      for name in self._priority_columns
    }
    starts_episode = np.array([self._num_rows == self._spec.window_rows])
    return float(self._initial_priority(rows, starts_episode)[0])
