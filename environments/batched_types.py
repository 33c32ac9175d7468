"""What environments stepped together by the host are, as runners see them."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import dm_env
import numpy as np


class Step(NamedTuple):
  """What E environments answer to an action each; `[E]` and `[E, ...]`.

  Frames are observations; where the spec is a `specs.StackedFrames`, the newest frame
  of each alone.

  Attributes:
    reward: float32.
    discount: float32, 0 at a termination, else 1.
    last: bool, whether an episode has ended.
    frames: arrived in; where an episode has ended, its last one.
    first_frames: where an episode has ended, the first one of the next, which has
      begun already; the others are not looked at. None if no episode has ended.
    metrics: environment → numbers by name about the episode that has ended in it.
  """

  reward: np.ndarray
  discount: np.ndarray
  last: np.ndarray
  frames: np.ndarray
  first_frames: np.ndarray | None
  metrics: Mapping[int, dict[str, float]]


@runtime_checkable
class BatchedEnvironment(Protocol):
  """E environments side by side, each of which goes on by itself after an episode.

  Arrays handed out are never written to again.
  """

  @property
  def num_envs(self) -> int:
    """E."""
    ...

  def observation_spec(self) -> dm_env.specs.Array:
    """Of one environment."""
    ...

  def action_spec(self) -> dm_env.specs.DiscreteArray:
    """Of one environment."""
    ...

  def reset(self) -> np.ndarray:
    """Begins an episode in each; the first frames `[E, ...]`."""
    ...

  def send(self, actions: np.ndarray) -> None:
    """Begins a step with actions int32 `[E]`, and does not wait for its end."""
    ...

  def recv(self) -> Step:
    """Waits for the end of the step begun."""
    ...

  def close(self) -> None:
    """Ends what runs beside the process's own thread."""
    ...
