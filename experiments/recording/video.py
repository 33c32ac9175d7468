"""Films evaluation episodes, and writes them as animated GIFs."""

import dataclasses
import importlib.util
import math
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from explorax.experiments import errors, output

if TYPE_CHECKING:
  from explorax.experiments.runners import common

MAX_FRAMES = 600  # Per episode: half a minute at 20 frames per second.
_MAX_SIDE, _MIN_SIDE = 320, 160  # Pixels; pictures are scaled into this range.
_MILLISECONDS, _LAST_MILLISECONDS = 50, 1000  # Duration of a frame and of the last.


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
class Film:
  """Evenly spaced pictures of an episode, of which the last one is always kept.

  Attributes:
    episode: the runner's record of it; None until the episode ends.
  """

  episode: "common.EvaluationEpisode | None" = None
  # (number of the observation, shape of its picture, the picture compressed).
  _frames: list[tuple[int, tuple[int, ...], bytes]] = dataclasses.field(
    default_factory=list
  )
  _newest: tuple[int, np.ndarray] | None = None
  _num_rows: int = 0
  _stride: int = 1

  def add(self, frame: np.ndarray) -> None:
    """Adds the picture of the next observation.

    Every k-th picture is kept; k doubles when there are too many. The pictures are
    therefore evenly spaced in an episode of any length.
    """
    if self._num_rows % self._stride == 0 and len(self._frames) == MAX_FRAMES:
      self._frames = self._frames[::2]
      self._stride *= 2
    self._newest = self._num_rows, np.array(frame)
    if self._num_rows % self._stride == 0:
      self._keep(*self._newest)
    self._num_rows += 1

  def frames(self) -> Iterator[tuple[int, np.ndarray]]:
    """(the observation's number from 0, its picture uint8 `[H, W, 3]`), in order."""
    if self._newest is not None and self._frames[-1][0] != self._newest[0]:
      self._keep(*self._newest)
    for row, shape, packed in self._frames:
      yield row, np.frombuffer(zlib.decompress(packed), np.uint8).reshape(shape)

  def write(self, file: BinaryIO) -> None:
    """Writes the pictures as a GIF."""
    from PIL import Image

    images = [
      Image.fromarray(frame).convert("P", palette=Image.Palette.ADAPTIVE)
      for _, frame in self.frames()
    ]
    images[0].save(
      file,
      format="GIF",
      save_all=True,
      append_images=images[1:],
      duration=[_MILLISECONDS] * (len(images) - 1) + [_LAST_MILLISECONDS],
      loop=0,
      optimize=False,
    )

  def _keep(self, row: int, frame: np.ndarray) -> None:
    frame = _scaled(frame)
    self._frames.append((row, frame.shape, zlib.compress(frame.tobytes(), level=1)))


class EpisodeRecorder:
  """An observer of evaluations that keeps the last episode and the best."""

  def __init__(self) -> None:
    self._last: Film | None = None
    self._best: Film | None = None  # The first with the greatest return.
    self._film = Film()

  def begin(self) -> None:
    self._film = Film()

  def row(self, frame: np.ndarray) -> None:
    self._film.add(frame)

  def end(self, episode: "common.EvaluationEpisode") -> None:
    self._last = self._film
    self._last.episode = episode
    if _return(self._last) > _return(self._best):
      self._best = self._last

  def films(self) -> dict[str, Film]:
    """`last`: the last episode; `best`: the best one, if it is better."""
    films = {} if self._last is None else {"last": self._last}
    if self._best is not None and _return(self._best) > _return(self._last):
      films["best"] = self._best
    return films

  def write(self, directory: output.RunDirectory) -> None:
    """Writes `videos/step_*.gif` of these episodes."""
    for which, film in self.films().items():
      assert film.episode is not None
      suffix = "" if which == "last" else f"_{which}"
      name = f"videos/step_{film.episode.env_steps:08d}{suffix}.gif"
      directory.write(name, film.write)


def _return(film: Film | None) -> float:
  if film is None or film.episode is None:
    return -math.inf
  return film.episode.episode_return


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
