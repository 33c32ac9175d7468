"""Evaluation episodes as they happen, kept for videos and plots."""

import dataclasses
import math
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
  from explorax.experiments.runners import evaluation

# Frames kept of an episode: half a minute at 20 a second.
MAX_FRAMES = 600
# Pixels. Larger pictures are made smaller, and what observations draw larger.
_MAX_SIDE, _MIN_SIDE = 320, 160


# An observation's number, the shape of its picture, and that compressed.
_Packed = tuple[int, tuple[int, ...], bytes]


@dataclasses.dataclass
class Recording:
  """An episode: its intrinsic rewards, and pictures of it, evenly thinned.

  Attributes:
    r_int: of each observation; empty where the actor's extras hold none.
    episode: what the runner knows of it; None until it has ended.
  """

  r_int: list[float] = dataclasses.field(default_factory=list)
  episode: "evaluation.EvaluationEpisode | None" = None
  _frames: list[_Packed] = dataclasses.field(default_factory=list)
  _newest: tuple[int, np.ndarray] | None = None
  _stride: int = 1
  _num_rows: int = 0

  def add(self, frame: np.ndarray | None, r_int: float | None) -> None:
    """Takes in the next observation.

    Every k-th picture is kept, and where they become too many, k is doubled: so they
    are spread evenly over an episode of any length.
    """
    if frame is not None:
      if self._num_rows % self._stride == 0 and len(self._frames) == MAX_FRAMES:
        self._frames = self._frames[::2]
        self._stride *= 2
      if self._num_rows % self._stride == 0:
        self._frames.append(_packed(self._num_rows, frame))
      self._newest = (self._num_rows, np.array(frame))
    if r_int is not None:
      self.r_int.append(r_int)
    self._num_rows += 1

  @property
  def num_rows(self) -> int:
    """How many observations there were, the first and the last included."""
    return self._num_rows

  def frames(self) -> Iterator[tuple[int, np.ndarray]]:
    """(the observation's number from 0, its picture uint8 `[H, W, 3]`), in order.

    The last observation is always among them.
    """
    kept = list(self._frames)
    if self._newest is not None and kept[-1][0] != self._newest[0]:
      kept.append(_packed(*self._newest))
    for row, shape, packed in kept:
      yield row, np.frombuffer(zlib.decompress(packed), np.uint8).reshape(shape)


class Film:
  """A `Watcher` of evaluations that keeps the last episode and the best."""

  def __init__(self, draws: bool):
    """Starts with nothing.

    Args:
      draws: whether pictures are kept, or intrinsic rewards alone.
    """
    self.draws = draws
    self.last: Recording | None = None
    self.best: Recording | None = None  # Of the greatest return, the first of them.
    self._recording = Recording()

  def begin(self) -> None:
    self._recording = Recording()

  def row(self, frame: np.ndarray | None, r_int: float | None) -> None:
    self._recording.add(frame, r_int)

  def end(self, episode: "evaluation.EvaluationEpisode") -> None:
    self.last = self._recording
    self.last.episode = episode
    if self.best is None or _return(self.last) > _return(self.best):
      self.best = self.last

  def recordings(self) -> dict[str, Recording]:
    """The last episode as `last`, and as `best` the best if that was a better one."""
    kept = {} if self.last is None else {"last": self.last}
    if self.best is not None and _return(self.best) > _return(self.last):
      kept["best"] = self.best
    return kept


def _return(recording: Recording | None) -> float:
  if recording is None or recording.episode is None:
    return -math.inf
  return recording.episode.episode_return


def _packed(row: int, frame: np.ndarray) -> _Packed:
  frame = _of_handy_size(frame)
  return row, frame.shape, zlib.compress(frame.tobytes(), level=1)


def _of_handy_size(frame: np.ndarray) -> np.ndarray:
  """The picture with each pixel repeated, or with some left out."""
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
