"""Acme's adder interface over windows of raw rows, for every replay backend."""

import collections
from collections.abc import Mapping
from typing import Any, Protocol

import dm_env
import numpy as np
from acme import adders

from explorax.agents import types
from explorax.agents.replay import packing, windows

Records = dict[str, np.ndarray]  # Kind → the words of one row; see `packing`.


class Writer(Protocol):
  """The output of an adder; one implementation per backend."""

  def append(self, records: Records) -> None:
    """Appends a row; it has first-row columns if a window may start there."""

  def pad(self) -> None:
    """Appends a row of zeros."""

  def create_window(self, priority: float) -> None:
    """Makes an item of the newest `window_rows` rows (priority before the exponent)."""

  def end_episode(self) -> None:
    """Ends the episode: no later window contains its rows."""


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
    self._of_rows, of_first = packing.layouts(agent)
    self._of_first_rows = {**self._of_rows, **of_first}
    self._channels = packing.column_specs(agent)["observation"][0][-1:]
    self._initial_priority = agent.initial_priority
    self._of_priority = packing.priority_layouts(agent)
    self._observation: Any = None
    self._num_rows = 0
    # What priorities need of the newest rows.
    self._newest: collections.deque[Records] = collections.deque(
      maxlen=agent.replay.window_rows
    )
    self.num_windows = 0

  def add_first(self, timestep: dm_env.TimeStep) -> None:
    """Starts an episode; an unfinished one is ended first."""
    self.reset()
    self._observation = timestep.observation

  def add(
    self,
    action: Any,
    next_timestep: dm_env.TimeStep,
    extras: Mapping[str, Any] = (),  # type: ignore[assignment]
  ) -> None:
    """Appends row t: the action taken on x_t, and its results."""
    reward, discount = next_timestep.reward, next_timestep.discount
    self._append(dict(extras), action, reward, discount, mask=1.0)
    self._observation = next_timestep.observation

  def add_last(self, extras: Mapping[str, Any]) -> None:
    """Appends row T, the last observation with its extras, and pads the windows."""
    num_transitions = self._num_rows
    self._append(extras, action=0, reward=0.0, discount=0.0, mask=0.0)
    for _ in range(windows.num_padding_rows(self._spec, num_transitions)):
      self._writer.pad()
      zeros = {
        kind: np.zeros(layout.num_words, np.int32)
        for kind, layout in self._of_priority.items()
      }
      self._complete_row(zeros)
    self.reset()

  def reset(self) -> None:
    """Ends the episode; rows that are not yet in a window are dropped."""
    if self._num_rows:
      self._writer.end_episode()
    self._observation = None
    self._num_rows = 0
    self._newest.clear()

  def _append(
    self, extras: Mapping[str, Any], action: Any, reward: Any, discount: Any, mask: Any
  ) -> None:
    observation = self._observation
    if self._spec.num_frames > 1:
      observation = observation[..., -self._channels[0] :]
    values = {
      **extras,
      "observation": observation,
      "action": action,
      "reward": reward,
      "discount": discount,
      "mask": mask,
    }
    may_start = self._num_rows % self._spec.period == 0
    layouts = self._of_first_rows if may_start else self._of_rows
    self._writer.append(_packed(layouts, values))
    self._complete_row(_packed(self._of_priority, values))

  def _complete_row(self, priority_records: Records) -> None:
    """Counts a row, which may be padding, and makes the window that it completes."""
    self._num_rows += 1
    self._newest.append(priority_records)
    if windows.is_complete(self._spec, self._num_rows):
      self._writer.create_window(self._priority())
      self.num_windows += 1

  def _priority(self) -> float:
    """The priority of the window of the newest rows."""
    if self._initial_priority is None:
      return 1.0
    words = {
      kind: np.stack([records[kind] for records in self._newest])[None]
      for kind in self._of_priority
    }
    starts_episode = np.array([self._num_rows == self._spec.window_rows])
    rows = packing.Rows(self._of_priority, words)
    return float(self._initial_priority(rows, starts_episode)[0])


def _packed(layouts: packing.Layouts, values: Mapping[str, Any]) -> Records:
  return {kind: layout.pack(values) for kind, layout in layouts.items()}
