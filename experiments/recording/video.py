"""Films evaluation episodes, and writes them as animated GIFs."""

import zlib
from typing import Any, BinaryIO

import dm_env
import numpy as np

from explorax.environments import rendering
from explorax.experiments import output
from explorax.experiments.runners import common

MAX_FRAMES = 600  # Per episode: half a minute at 20 frames per second.
_MAX_SIDE, _MIN_SIDE = 320, 160  # Pixels; pictures are scaled into this range.
_MILLISECONDS, _LAST_MILLISECONDS = 50, 1000  # Duration of a frame and of the last.


class Film:
  """Evenly spaced pictures of an episode."""

  def __init__(self) -> None:
    # (size, compressed picture) of every `_stride`-th observation.
    self._frames: list[tuple[tuple[int, int], bytes]] = []
    self._stride = 1
    self._num_rows = 0

  def add(self, frame: np.ndarray) -> None:
    """Adds the picture of the next observation.

    Every k-th picture is kept; k doubles when there are too many.
    """
    if self._num_rows % self._stride == 0:
      image = _scaled(frame)
      self._frames.append((image.size, zlib.compress(image.tobytes(), level=1)))
    if len(self._frames) > MAX_FRAMES:
      self._frames = self._frames[::2]
      self._stride *= 2
    self._num_rows += 1

  def images(self) -> list[Any]:
    """The pictures in order, as images of Pillow."""
    from PIL import Image

    return [
      Image.frombytes("RGB", size, zlib.decompress(packed))
      for size, packed in self._frames
    ]

  def write(self, file: BinaryIO) -> None:
    """Writes the pictures as a GIF."""
    first, *others = (image.quantize() for image in self.images())
    first.save(
      file,
      format="GIF",
      save_all=True,
      append_images=others,
      duration=[_MILLISECONDS] * len(others) + [_LAST_MILLISECONDS],
      loop=0,
      optimize=False,
    )


class Filmed:
  """An environment of evaluations that films its episodes, and keeps the last one."""

  def __init__(self, environment: dm_env.Environment):
    self._environment = environment
    self._newest = Film()
    # Environment steps of training before the last evaluation, and its last episode.
    self._last: tuple[int, Film] | None = None

  def __getattr__(self, name: str) -> Any:
    return getattr(self._environment, name)

  def reset(self) -> dm_env.TimeStep:
    self._newest = Film()
    return self._filmed(self._environment.reset())

  def step(self, action: Any) -> dm_env.TimeStep:
    return self._filmed(self._environment.step(action))

  def on_evaluation(self, evaluation: common.Evaluation) -> None:
    """Keeps the film of its last episode."""
    self._last = evaluation.env_steps, self._newest

  def write(self, directory: output.RunDirectory) -> None:
    """Writes `videos/step_*.gif`, if there was an evaluation."""
    if self._last is not None:
      env_steps, film = self._last
      directory.write(f"videos/step_{env_steps:08d}.gif", film.write)

  def _filmed(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    frame = rendering.picture(self._environment, timestep)
    if frame is not None:
      self._newest.add(frame)
    return timestep


def _scaled(frame: np.ndarray) -> Any:
  """The picture as an image, reduced if it is large, with larger pixels if small."""
  from PIL import Image

  image = Image.fromarray(frame)
  side = max(image.size)
  if side > _MAX_SIDE:
    return image.reduce(-(-side // _MAX_SIDE))
  times = max(1, -(-_MIN_SIDE // side))
  size = (times * image.width, times * image.height)
  return image.resize(size, Image.Resampling.NEAREST)
