"""What is kept of evaluation episodes, and how it is written as a GIF."""

import io

import numpy as np
import pytest

from explorax.experiments import recording as recording_lib
from explorax.experiments.recording import video

Image = pytest.importorskip("PIL.Image")


def frame(shade: int, height: int = 170, width: int = 200) -> np.ndarray:
  return np.full((height, width, 3), shade, np.uint8)


def shades(recording: video.Recording) -> list[tuple[int, int]]:
  """(number of the observation, shade) of each picture that is kept."""
  return [(row, int(picture[0, 0, 0])) for row, picture in recording.frames()]


def images(recording: video.Recording) -> list[np.ndarray]:
  file = io.BytesIO()
  recording_lib.gif.write(file, recording)
  image = Image.open(file)
  pictures = []
  for index in range(image.n_frames):
    image.seek(index)
    pictures.append(np.asarray(image.convert("RGB")))
  return pictures


@pytest.mark.parametrize(
  "length, stride", [(3, 1), (600, 1), (601, 2), (1200, 2), (2600, 8)]
)
def test_pictures_are_evenly_spaced_and_the_last_is_kept(length, stride):
  recording = video.Recording()
  for row in range(length):
    recording.add(frame(row % 256, 1, 1), r_int=None)
  kept = sorted({*range(0, length, stride), length - 1})
  assert shades(recording) == [(row, row % 256) for row in kept]
  assert recording.num_rows == length and not recording.r_int


@pytest.fixture
def watch(make_evaluation):
  """Films episodes of these returns, each with its number as the only reward."""

  def run(returns: list[float]) -> video.EpisodeRecorder:
    filmed = video.EpisodeRecorder(draws=False)
    for episode in make_evaluation(30, returns).episodes:
      filmed.begin()
      filmed.row(None, float(episode.episode))
      filmed.end(episode)
    filmed.begin()
    filmed.row(None, -1.0)  # Of an interrupted episode.
    return filmed

  return run


@pytest.mark.parametrize(
  "returns, expected",
  [
    ([], {}),
    ([1.0], {"last": [1.0]}),
    ([3.0, 5.0, 5.0, 1.0], {"last": [4.0], "best": [2.0]}),
    ([3.0, 5.0, 5.0], {"last": [3.0]}),  # As good as the best.
    ([-3.0, -1.0, -2.0], {"last": [3.0], "best": [2.0]}),
  ],
)
def test_the_last_episode_and_the_best_are_kept(watch, returns, expected):
  kept = watch(returns).recordings()
  assert {name: recording.r_int for name, recording in kept.items()} == expected


def bars(picture: np.ndarray) -> np.ndarray:
  """Per column of pixels, how much of the strip below a black picture is blue."""
  strip = picture[170 + 14 :].astype(int)
  return ((strip[..., 2] - strip[..., 0]) > 60).sum(axis=0)


def test_a_strip_shows_the_intrinsic_reward_so_far():
  recording = video.Recording()
  for r_int in (0.0, 0.5, 1.0, 0.25):
    recording.add(frame(0), r_int)
  pictures = images(recording)
  assert {picture.shape for picture in pictures} == {(170 + 48, 200, 3)}
  heights = np.repeat([1, 17, 34, 9], 50)  # Of 34 pixels, one of them being 0.
  for index, picture in enumerate(pictures):
    shown = (np.arange(200) < 50 * (index + 1)) * heights
    assert np.abs(bars(picture) - shown).max() <= 1
  # The scale is written above the bars.
  assert (pictures[0][170 : 170 + 14] > 150).any()
