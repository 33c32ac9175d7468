"""Evaluation episodes as animated GIFs, with the intrinsic reward in a strip below."""

from typing import BinaryIO

import numpy as np
from PIL import Image, ImageDraw

from explorax.experiments.recording import video

_MILLISECONDS, _LAST_MILLISECONDS = 50, 1000  # Duration of a frame and of the last.
_STRIP_HEIGHT, _TEXT_HEIGHT = 48, 14  # Pixels.
_BACKGROUND, _BARS, _TEXT = (20, 20, 20), (90, 170, 250), (220, 220, 220)


def write(file: BinaryIO, recording: video.Recording) -> None:
  """Writes the recording's pictures as a GIF.

  If the recording has intrinsic rewards, a strip below each picture shows those of the
  episode so far, on one scale from 0 (or the minimum, if negative) to the maximum of
  the episode.
  """
  images, strip = [], None
  for row, frame in recording.frames():
    if recording.r_int:
      width = frame.shape[1]
      if strip is None or strip.shape[1] != width:
        strip = _strip(recording.r_int, width)
      so_far = strip.copy()  # The future is left empty.
      so_far[_TEXT_HEIGHT:, (row + 1) * width // recording.num_rows :] = _BACKGROUND
      frame = np.concatenate([frame, so_far])
    image = Image.fromarray(frame)
    images.append(image.convert("P", palette=Image.Palette.ADAPTIVE))
  images[0].save(
    file,
    format="GIF",
    save_all=True,
    append_images=images[1:],
    duration=[_MILLISECONDS] * (len(images) - 1) + [_LAST_MILLISECONDS],
    loop=0,
    optimize=False,
  )


def _strip(r_int: list[float], width: int) -> np.ndarray:
  """uint8 `[H, W, 3]`: the intrinsic rewards, one bar for each column of pixels."""
  rewards = np.nan_to_num(np.array(r_int, np.float64))
  low, high = min(0.0, rewards.min()), max(0.0, rewards.max())
  height = _STRIP_HEIGHT - _TEXT_HEIGHT
  # Each column shows the greatest of its observations.
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
