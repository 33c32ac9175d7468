"""Acme's adder interface over windows of raw rows, for every replay backend."""

import collections
from collections.abc import Mapping
from typing import Any, Protocol

import dm_env
import jax
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


def column_specs(
  agent: types.Agent,
) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
  """Column name → (shape, dtype) of one row, in the order of storage."""
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
  for name in agent.replay.extras + agent.replay.first_row_extras:
    specs[name] = (agent.extras_spec[name].shape, agent.extras_spec[name].dtype)
  return {name: (tuple(s), np.dtype(d)) for name, (s, d) in specs.items()}


class WindowAdder(adders.Adder):
  """Writes the rows of episodes, and windows of them as soon as they are complete.

  Beside Acme's three methods there is `add_last`: the last observation has extras (for
  example its novelty), which exist only after the actor has seen it. After the `add`
  with a LAST timestep, call `add_last` with them.
  """

  def __init__(self, agent: types.Agent, writer: Writer):
    self._spec = agent.replay
    self._writer: Any = writer
    self._columns = column_specs(agent)
    self._encoded_spec = agent.encoding.spec
    self._observation: Any = None
    self._num_rows = 0
    # |δ| and mask of the newest rows, for the priority of their window.
    self._newest: collections.deque[tuple[float, float]] = collections.deque(
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
      self._complete_row(0.0, 0.0)
    self.reset()

  def reset(self) -> None:
    """Ends the episode; rows that are not yet in a window are dropped."""
    if self._num_rows:
      self._writer.end_episode()
    self._observation = None
    self._num_rows = 0
    self._newest.clear()

  def save(self) -> tuple[dict[str, Any], dict[str, Any]]:
    """The open episode: (a pytree of arrays, values in JSON's types).

    Requires a writer with `save`, such as the memory replay's.
    """
    begun = self._observation is not None
    writer, writer_counts = self._writer.save()
    arrays = {"observation": self._observation if begun else (), "writer": writer}
    return arrays, {
      "begun": begun,
      "num_rows": self._num_rows,
      "num_windows": self.num_windows,
      "newest": list(self._newest),
      "writer": writer_counts,
    }

  def shapes(self, counts: Mapping[str, Any]) -> dict[str, Any]:
    """The shapes of the arrays that `save` returned with `counts`."""
    observation: Any = ()
    if counts["begun"]:
      spec = self._encoded_spec
      observation = jax.ShapeDtypeStruct(spec.shape, spec.dtype)
    writer = self._writer.shapes(counts["writer"])
    return {"observation": observation, "writer": writer}

  def restore(self, arrays: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
    """Resumes from the result of `save`."""
    self._observation = arrays["observation"] if counts["begun"] else None
    self._num_rows, self.num_windows = counts["num_rows"], counts["num_windows"]
    self._newest.clear()
    self._newest.extend(tuple(row) for row in counts["newest"])
    self._writer.restore(arrays["writer"], counts["writer"])

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
    self._complete_row(float(values.get("td_error", 0.0)), float(values["mask"]))

  def _complete_row(self, td_error: float, mask: float) -> None:
    self._num_rows += 1
    self._newest.append((td_error, mask))
    if windows.is_complete(self._spec, self._num_rows):
      self._writer.create_window(self._priority())
      self.num_windows += 1

  def _priority(self) -> float:
    """The priority of the window of the newest rows."""
    if self._spec.priority_eta is None:
      return 1.0
    td_error, mask = np.array(self._newest).T
    starts_episode = np.array(self._num_rows == self._spec.window_rows)
    return float(windows.initial_priority(self._spec, td_error, mask, starts_episode))
