"""Films evaluation episodes, and writes them as animated GIFs."""

import math
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
  """Evenly spaced pictures of an episode, of which the last one is always kept."""

  def __init__(self) -> None:
    # (size, compressed picture) of every `_stride`-th observation.
    self._frames: list[tuple[tuple[int, int], bytes]] = []
    self._stride = 1
    self._num_rows = 0
    self._newest: np.ndarray | None = None  # If it is not among the frames.

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
      image = _scaled(self._newest)
      self._frames.append((image.size, zlib.compress(image.tobytes(), level=1)))
      self._newest = None
    self._num_rows += 1

  def images(self) -> list[Any]:
    """The pictures in order, as images of Pillow."""
    from PIL import Image

    images = [
      Image.frombytes("RGB", size, zlib.decompress(packed))
      for size, packed in self._frames
    ]
    return images if self._newest is None else [*images, _scaled(self._newest)]

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
  """An environment of evaluations that films its episodes: the last one and the best.

  Attributes:
    films: `last` and `best`, the first of the best: (return, environment steps of
      training before it, film).
  """

  def __init__(self, environment: dm_env.Environment):
    self.films: dict[str, tuple[float, int, Film]] = {}
    self._environment = environment
    self._newest: list[Film] = []  # Since the last evaluation.

  def __getattr__(self, name: str) -> Any:
    return getattr(self._environment, name)

  def reset(self) -> dm_env.TimeStep:
    self._newest.append(Film())
    return self._filmed(self._environment.reset())

  def step(self, action: Any) -> dm_env.TimeStep:
    return self._filmed(self._environment.step(action))

  def on_evaluation(self, evaluation: common.Evaluation) -> None:
    """Keeps the films of its last episode and of the best one."""
    films = self._newest[-len(evaluation.episodes) :]
    for episode, film in zip(evaluation.episodes, films, strict=True):
      self.films["last"] = episode.episode_return, evaluation.env_steps, film
      best, *_ = self.films.get("best", (-math.inf,))
      if episode.episode_return > best:
        self.films["best"] = self.films["last"]
    self._newest = []

  def write(self, directory: output.RunDirectory) -> None:
    """Writes `videos/step_*.gif`; that of the best episode if it is better."""
    for which, (episode_return, env_steps, film) in self.films.items():
      if which == "last" or episode_return > self.films["last"][0]:
        suffix = "" if which == "last" else f"_{which}"
        directory.write(f"videos/step_{env_steps:08d}{suffix}.gif", film.write)

  def _filmed(self, timestep: dm_env.TimeStep) -> dm_env.TimeStep:
    frame = rendering.picture(self._environment, timestep)
    if frame is not None:
      self._newest[-1].add(frame)
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
