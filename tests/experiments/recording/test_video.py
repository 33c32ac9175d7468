"""What is kept of evaluation episodes, and how it is written as a GIF."""

import io

import numpy as np
import pytest

from explorax.experiments.recording import video

Image = pytest.importorskip("PIL.Image")


def frame(shade: int, height: int = 170, width: int = 200) -> np.ndarray:
  return np.full((height, width, 3), shade, np.uint8)


def shades(film: video.Film) -> list[int]:
  """The shade of each picture that is kept."""
  return [int(picture[0, 0, 0]) for picture in film.frames()]


@pytest.mark.parametrize(
  "length, stride", [(3, 1), (600, 1), (601, 2), (1200, 2), (2600, 8)]
)
def test_pictures_are_evenly_spaced_and_the_last_is_kept(length, stride):
  film = video.Film()
  for row in range(length):
    film.add(frame(row % 256, 1, 1))
  kept = sorted({*range(0, length, stride), length - 1})
  assert shades(film) == [row % 256 for row in kept]
  film.write(file := io.BytesIO())
  assert Image.open(file).n_frames >= min(2, len(kept))  # Equal ones are joined.


@pytest.fixture
def watch(make_evaluation):
  """Films episodes of these returns, each with its number as the only shade."""

  def run(returns: list[float]) -> video.EpisodeRecorder:
    recorder = video.EpisodeRecorder()
    for episode in make_evaluation(30, returns).episodes:
      recorder.begin()
      recorder.row(frame(episode.episode))
      recorder.end(episode)
    recorder.begin()
    recorder.row(frame(255))  # Of an interrupted episode.
    return recorder

  return run


@pytest.mark.parametrize(
  "returns, expected",
  [
    ([], {}),
    ([1.0], {"last": 1}),
    ([3.0, 5.0, 5.0, 1.0], {"last": 4, "best": 2}),
    ([3.0, 5.0, 5.0], {"last": 3}),  # As good as the best.
    ([-3.0, -1.0, -2.0], {"last": 3, "best": 2}),
  ],
)
def test_the_last_episode_and_the_best_are_kept(watch, returns, expected):
  films = watch(returns).films()
  assert {name: shades(film) for name, film in films.items()} == {
    name: [shade] for name, shade in expected.items()
  }
