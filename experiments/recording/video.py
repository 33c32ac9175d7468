"""Films evaluation episodes, and writes them as animated GIFs."""

import importlib.util
import math
import zlib
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from explorax.experiments import errors, output
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


class Film:
  """Evenly spaced pictures of an episode, of which the last one is always kept.

  Attributes:
    episode: the runner's record of it; None until the episode ends.
  """

  def __init__(self) -> None:
    self.episode: common.EvaluationEpisode | None = None
    # (shape, compressed picture) of every `_stride`-th observation.
    self._frames: list[tuple[tuple[int, ...], bytes]] = []
    self._stride = 1
    self._num_rows = 0
    self._newest: np.ndarray | None = None  # If it is not among the frames.

  @property
  def episode_return(self) -> float:
    return -math.inf if self.episode is None else self.episode.episode_return

  def add(self, frame: np.ndarray) -> None:
    """Adds the picture of the next observation.

    Every k-th picture is kept; k doubles when there are too many. The pictures are
    therefore evenly spaced in an episode of any length.
    """
    if self._num_rows % self._stride == 0 and len(self._frames) == MAX_FRAMES:
      self._frames = self._frames[::2]
      self._stride *= 2
    self._newest = np.array(frame)
    if self._num_rows % self._stride == 0:
      scaled = _scaled(self._newest)
      packed = zlib.compress(scaled.tobytes(), level=1)
      self._frames.append((scaled.shape, packed))
      self._newest = None
    self._num_rows += 1

  def frames(self) -> Iterator[np.ndarray]:
    """The pictures, uint8 `[H, W, 3]`, in order."""
    for shape, packed in self._frames:
      yield np.frombuffer(zlib.decompress(packed), np.uint8).reshape(shape)
    if self._newest is not None:
      yield _scaled(self._newest)

  def write(self, file: BinaryIO) -> None:
    """Writes the pictures as a GIF."""
    from PIL import Image

    images = [
      Image.fromarray(frame).convert("P", palette=Image.Palette.ADAPTIVE)
      for frame in self.frames()
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


class EpisodeRecorder:
  """An observer of evaluations that keeps the last episode and the best."""

  def __init__(self) -> None:
    self._film = self._last = self._best = Film()

  def begin(self) -> None:
    self._film = Film()

  def row(self, frame: np.ndarray) -> None:
    self._film.add(frame)

  def end(self, episode: common.EvaluationEpisode) -> None:
    self._film.episode = episode
    self._last = self._film
    if self._last.episode_return > self._best.episode_return:
      self._best = self._last

  def films(self) -> dict[str, Film]:
    """`last`: the last episode; `best`: the first best one, if it is better."""
    films = {"last": self._last, "best": self._best}
    if self._best.episode_return <= self._last.episode_return:
      del films["best"]
    return films if self._last.episode else {}

  def write(self, directory: output.RunDirectory) -> None:
    """Writes `videos/step_*.gif` of these episodes."""
    for which, film in self.films().items():
      assert film.episode is not None
      suffix = "" if which == "last" else f"_{which}"
      name = f"videos/step_{film.episode.env_steps:08d}{suffix}.gif"
      directory.write(name, film.write)


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
