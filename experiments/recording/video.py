"""Evaluation episodes as animated GIFs, the intrinsic reward below the pictures."""

import dataclasses
import importlib.util
import io
import math
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from explorax.experiments import errors

if TYPE_CHECKING:
  from PIL import Image

  from explorax.experiments.runners import core

MAX_FRAMES = 600  # Kept of an episode: half a minute at 20 a second.
MAX_BYTES = 10_000_000  # Of a file.
_MAX_SIDE, _MIN_SIDE = 320, 160  # Pixels; pictures are scaled to lie between.
_MILLISECONDS, _LAST_MILLISECONDS = 50, 1000  # That a frame is shown, and the last.
_STRIP_HEIGHT, _TEXT_HEIGHT = 48, 14  # Pixels.
_BACKGROUND, _BARS, _TEXT = (20, 20, 20), (90, 170, 250), (220, 220, 220)


def check_installed() -> None:
  """Refuses to record what could not be written.

  Raises:
    SetUpError: if Pillow is not installed.
  """
  if importlib.util.find_spec("PIL") is None:
    raise errors.SetUpError(
      "--video needs Pillow, which is not installed: install explorax[plots], or "
      "leave --video out."
    )


@dataclasses.dataclass
class Recording:
  """An episode: its intrinsic rewards, and pictures of it, evenly thinned.

  Attributes:
    r_int: of each observation; empty where the actor's extras have none.
    num_rows: how many observations there were, the first and the last included.
    episode: the runner's record of it; None until it has ended.
  """

  r_int: list[float] = dataclasses.field(default_factory=list)
  num_rows: int = 0
  episode: "core.EvaluationEpisode | None" = None
  # (number of the observation, shape of its picture, the picture compressed).
  _frames: list[tuple[int, tuple[int, ...], bytes]] = dataclasses.field(
    default_factory=list
  )
  _newest: tuple[int, np.ndarray] | None = None
  _stride: int = 1

  def add(self, frame: np.ndarray | None, r_int: float | None) -> None:
    """Takes in the next observation.

    Every k-th picture is kept, and k is doubled when they become too many: so they
    are spread evenly over an episode of any length.
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
    """Args: draws: whether pictures are kept, or intrinsic rewards alone."""
    self.draws = draws
    self._last: Recording | None = None
    self._best: Recording | None = None  # Of the greatest return, the first of them.
    self._recording = Recording()

  def begin(self) -> None:
    self._recording = Recording()

  def row(self, frame: np.ndarray | None, r_int: float | None) -> None:
    self._recording.add(frame, r_int)

  def end(self, episode: "core.EvaluationEpisode") -> None:
    self._last = self._recording
    self._last.episode = episode
    if _return(self._last) > _return(self._best):
      self._best = self._last

  def recordings(self) -> dict[str, Recording]:
    """The last episode as `last`, and as `best` the best if that was a better one."""
    kept = {} if self._last is None else {"last": self._last}
    if self._best is not None and _return(self._best) > _return(self._last):
      kept["best"] = self._best
    return kept


def write(file: BinaryIO, recording: Recording) -> None:
  """Writes the recording's pictures as a GIF of at most `MAX_BYTES`.

  Where the recording has intrinsic rewards, a strip below each picture shows those
  of the episode so far, on one scale from 0 (or the least, if that is below 0) to
  the greatest of the episode. If the file would become too large, every second
  picture is left out, once or as often as it takes.
  """
  from PIL import Image

  images, strip = [], None
  for row, frame in recording.frames():
    if recording.r_int:
      width = frame.shape[1]
      if strip is None or strip.shape[1] != width:
        strip = _strip(recording.r_int, width)
      so_far = strip.copy()  # What comes later is left empty.
      so_far[_TEXT_HEIGHT:, (row + 1) * width // recording.num_rows :] = _BACKGROUND
      frame = np.concatenate([frame, so_far])
    images.append(_quantised(Image.fromarray(frame)))
  step = 1
  content = _encode(images)
  while len(content) > MAX_BYTES and step < len(images):
    step *= 2
    content = _encode([*images[:-1:step], images[-1]])
  file.write(content)


def _return(recording: Recording | None) -> float:
  if recording is None or recording.episode is None:
    return -math.inf
  return recording.episode.episode_return


def _scaled(frame: np.ndarray) -> np.ndarray:
  """The picture, means over blocks if it is large, its pixels repeated if small."""
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


def _strip(r_int: list[float], width: int) -> np.ndarray:
  """uint8 `[H, W, 3]`: the intrinsic rewards, a bar for each column of pixels."""
  from PIL import Image, ImageDraw

  rewards = np.nan_to_num(np.array(r_int, np.float64))
  low, high = min(0.0, rewards.min()), max(0.0, rewards.max())
  height = _STRIP_HEIGHT - _TEXT_HEIGHT
  # Each column shows the greatest of the observations that fall on it.
  first = np.arange(width) * len(rewards) // width
  end = np.maximum(np.append(first[1:], len(rewards)), first + 1)
  peaks = [rewards[a:b].max() for a, b in zip(first, end, strict=True)]
  share = (np.array(peaks) - low) / (high - low) if high > low else np.zeros(width)
  tops = height - np.round(share * (height - 1)).astype(int) - 1
  strip = np.full((_STRIP_HEIGHT, width, 3), _BACKGROUND, np.uint8)
  strip[_TEXT_HEIGHT:][np.arange(height)[:, None] >= tops[None, :]] = _BARS
  image = Image.fromarray(strip)
  text = f"intrinsic reward, {low:.3g} to {high:.3g}"
  ImageDraw.Draw(image).text((2, 1), text, fill=_TEXT)
  return np.asarray(image)


def _quantised(image: "Image.Image") -> "Image.Image":
  """With a palette: the exact colours if these are at most 256, else near ones."""
  from PIL import Image

  few = image.getcolors(256) is not None
  method = Image.Quantize.MEDIANCUT if few else Image.Quantize.FASTOCTREE
  return image.quantize(method=method)


def _encode(images: "list[Image.Image]") -> bytes:
  buffer = io.BytesIO()
  durations = [_MILLISECONDS] * (len(images) - 1) + [_LAST_MILLISECONDS]
  images[0].save(
    buffer,
    format="GIF",
    save_all=True,
    append_images=images[1:],
    duration=durations,
    loop=0,
    optimize=False,
  )
  return buffer.getvalue()
