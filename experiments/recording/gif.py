"""Recorded episodes as animated GIFs, the intrinsic reward below the pictures."""

import importlib.util
import io
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from explorax.experiments import errors
from explorax.experiments.recording import film

if TYPE_CHECKING:
  from PIL import Image

MAX_BYTES = 10_000_000
_MILLISECONDS = 50  # That a frame is shown.
_LAST_MILLISECONDS = 1000
_STRIP_HEIGHT = 48  # Pixels.
_TEXT_HEIGHT = 14
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


def write(file: BinaryIO, recording: film.Recording) -> None:
  """Writes the recording's pictures as a GIF of at most `MAX_BYTES`.

  Where the recording has intrinsic rewards, a strip below each picture shows those
  of the episode so far, on one scale from 0 (or the least, if that is below 0) to
  the greatest of the episode. If the file would become too large, every second
  picture is left out, once or as often as it takes.
  """
  from PIL import Image

  strips = _Strips(recording) if recording.r_int else None
  images = []
  for row, frame in recording.frames():
    if strips is not None:
      frame = np.concatenate([frame, strips.at(row, frame.shape[1])])
    images.append(_quantised(Image.fromarray(frame)))
  step = 1
  content = _encode(images)
  while len(content) > MAX_BYTES and step < len(images):
    step *= 2
    content = _encode([*images[:-1:step], images[-1]])
  file.write(content)


def _quantised(image: "Image.Image") -> "Image.Image":
  """With a palette: the exact colours if these are at most 256, else near ones."""
  from PIL import Image

  few = image.getcolors(256) is not None
  method = Image.Quantize.MEDIANCUT if few else Image.Quantize.FASTOCTREE
  return image.quantize(method=method)


def _encode(images: list["Image.Image"]) -> bytes:
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


class _Strips:
  """The intrinsic reward so far, a bar for each column of pixels."""

  def __init__(self, recording: film.Recording):
    self._r_int = np.nan_to_num(np.array(recording.r_int, np.float64))
    self._num_rows = recording.num_rows
    self._whole: np.ndarray | None = None

  def at(self, row: int, width: int) -> np.ndarray:
    """uint8 `[H, W, 3]` for the observation `row`: what comes later is left empty."""
    if self._whole is None or self._whole.shape[1] != width:
      self._whole = self._draw(width)
    strip = self._whole.copy()
    shown = (row + 1) * width // self._num_rows
    strip[_TEXT_HEIGHT:, shown:] = _BACKGROUND
    return strip

  def _draw(self, width: int) -> np.ndarray:
    from PIL import Image, ImageDraw

    low, high = min(0.0, self._r_int.min()), max(0.0, self._r_int.max())
    height = _STRIP_HEIGHT - _TEXT_HEIGHT
    # Each column shows the greatest of the observations that fall on it.
    first = np.arange(width) * len(self._r_int) // width
    end = np.maximum(np.append(first[1:], len(self._r_int)), first + 1)
    peaks = [self._r_int[a:b].max() for a, b in zip(first, end, strict=True)]
    share = (np.array(peaks) - low) / (high - low) if high > low else np.zeros(width)
    tops = height - np.round(share * (height - 1)).astype(int) - 1
    strip = np.full((_STRIP_HEIGHT, width, 3), _BACKGROUND, np.uint8)
    strip[_TEXT_HEIGHT:][np.arange(height)[:, None] >= tops[None, :]] = _BARS
    image = Image.fromarray(strip)
    text = f"intrinsic reward, {low:.3g} to {high:.3g}"
    ImageDraw.Draw(image).text((2, 1), text, fill=_TEXT)
    return np.asarray(image)
