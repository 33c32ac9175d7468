"""Records the pictures and the intrinsic rewards of evaluation episodes."""

import dataclasses
import importlib.util
import math
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from explorax.experiments import errors

if TYPE_CHECKING:
  from explorax.experiments.runners import common

MAX_FRAMES = 600  # Per episode: half a minute at 20 frames per second.
_MAX_SIDE, _MIN_SIDE = 320, 160  # Pixels; pictures are scaled into this range.


def check_installed() -> None:
  """Checks that videos can be written.

  Raises:
    SetUpError: if Pillow is not installed.
  """
  if importlib.util.find_spec("PIL") is None:
    raise errors.SetUpError(
      "--video needs Pillow, which is not installed: install explorax[video], or leave "
      "out --video."
    )


@dataclasses.dataclass
class Recording:
  """An episode: its intrinsic rewards, and evenly spaced pictures of it.

  Attributes:
    r_int: of each observation; empty if the actor's extras have none.
    num_rows: number of observations, including the first and the last.
    episode: the runner's record of it; None until the episode ends.
  """

  r_int: list[float] = dataclasses.field(default_factory=list)
  num_rows: int = 0
  episode: "common.EvaluationEpisode | None" = None
  # (number of the observation, shape of its picture, the picture compressed).
  _frames: list[tuple[int, tuple[int, ...], bytes]] = dataclasses.field(
    default_factory=list
  )
  _newest: tuple[int, np.ndarray] | None = None
  _stride: int = 1

  def add(self, frame: np.ndarray | None, r_int: float | None) -> None:
    """Adds the next observation.

    Every k-th picture is kept; k doubles when there are too many. The pictures are
    therefore evenly spaced in an episode of any length.
    """
    if frame is not None:
      if self.num_rows % self._stride == 0 and len(self._frames) == MAX_FRAMES:
        self._frames = self._frames[::2]
        self._stride *= 2
      self._newest = self.num_rows, np.array(frame)
      if self.num_rows % self._stride == 0:
        self._keep(*self._newest)
    if r_int is not None:
      self.r_int.append(r_int)
    self.num_rows += 1

  def frames(self) -> Iterator[tuple[int, np.ndarray]]:
    """(the observation's number from 0, its picture uint8 `[H, W, 3]`), in order.

    The last observation is always among them.
    """
    if self._newest is not None and self._frames[-1][0] != self._newest[0]:
      self._keep(*self._newest)
    for row, shape, packed in self._frames:
      yield row, np.frombuffer(zlib.decompress(packed), np.uint8).reshape(shape)

  def _keep(self, row: int, frame: np.ndarray) -> None:
    frame = _scaled(frame)
    self._frames.append((row, frame.shape, zlib.compress(frame.tobytes(), level=1)))


class EpisodeRecorder:
  """An observer of evaluations that keeps the last episode and the best."""

  def __init__(self, draws: bool):
    """Args: draws: whether to keep pictures, or intrinsic rewards only."""
    self.draws = draws
    self._last: Recording | None = None
    self._best: Recording | None = None  # The first with the greatest return.
    self._recording = Recording()

  def begin(self) -> None:
    self._recording = Recording()

  def row(self, frame: np.ndarray | None, r_int: float | None) -> None:
    self._recording.add(frame, r_int)

  def end(self, episode: "common.EvaluationEpisode") -> None:
    self._last = self._recording
    self._last.episode = episode
    if _return(self._last) > _return(self._best):
      self._best = self._last

  def recordings(self) -> dict[str, Recording]:
    """`last`: the last episode; `best`: the best one, if it is better."""
    kept = {} if self._last is None else {"last": self._last}
    if self._best is not None and _return(self._best) > _return(self._last):
      kept["best"] = self._best
    return kept


def _return(recording: Recording | None) -> float:
  if recording is None or recording.episode is None:
    return -math.inf
  return recording.episode.episode_return


def _scaled(frame: np.ndarray) -> np.ndarray:
  """Scales the picture: means over blocks if it is large, repeated pixels if small."""
  side = max(frame.shape[:2])
  if side > _MAX_SIDE:
    step = -(-side // _MAX_SIDE)
    height, width = (length // step for length in frame.shape[:2])
    blocks = frame[: height * step, : width * step].reshape(
      height, step, width, step, 3
    )
    return blocks.mean(axis=(1, 3)).round().astype(np.uint8)
  times = -(-_MIN_SIDE // side) if side < _MIN_SIDE else 1
  return frame.repeat(times, axis=0).repeat(times, axis=1)
