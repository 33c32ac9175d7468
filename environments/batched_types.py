"""The interface of environments that the host steps as a batch."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import dm_env
import numpy as np


class Step(NamedTuple):
  """The answers of E environments to one action each; `[E]` and `[E, ...]`.

  Frames are observations; if the spec is a `specs.StackedFrames`, only the newest frame
  of each.

  Attributes:
    reward: float32.
    discount: float32, 0 at a termination, else 1.
    last: bool, whether an episode has ended.
    frames: the new ones; for an ended episode, its last one.
    first_frames: for an ended episode, the first frame of the next one, which has
      already started; other entries are ignored. None if no episode has ended.
    metrics: environment → its ended episode's metrics by name.
  """

  reward: np.ndarray
  discount: np.ndarray
  last: np.ndarray
  frames: np.ndarray
  first_frames: np.ndarray | None
  metrics: Mapping[int, dict[str, float]]


@runtime_checkable
class BatchedEnvironment(Protocol):
  """E environments; each starts its next episode by itself.

  Returned arrays are never written to again.
  """

  @property
  def num_envs(self) -> int: ...

  def observation_spec(self) -> dm_env.specs.Array: ...  # Of one environment.

  def action_spec(self) -> dm_env.specs.DiscreteArray: ...  # Of one environment.

  def reset(self) -> np.ndarray:
    """Starts an episode in each; returns the first frames `[E, ...]`."""

  def send(self, actions: np.ndarray) -> None:
    """Starts a step with actions int32 `[E]` without waiting for its end."""

  def recv(self) -> Step:
    """Waits for the end of the current step."""

  def close(self) -> None: ...
