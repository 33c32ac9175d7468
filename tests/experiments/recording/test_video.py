"""What is kept of evaluation episodes, and how it is written as a GIF."""

import io

import fakes
import numpy as np
import pytest

from explorax.experiments import output
from explorax.experiments.recording import video

Image = pytest.importorskip("PIL.Image")


def frame(shade: int, height: int = 170, width: int = 200) -> np.ndarray:
  return np.full((height, width, 3), shade, np.uint8)


def shades(film: video.Film) -> list[int]:
  """The shade of each picture that is kept."""
  return [image.getpixel((0, 0))[0] for image in film.images()]


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


@pytest.mark.parametrize(
  "returns, expected",
  [
    ([1.0], {"last": 1}),
    ([3.0, 5.0, 5.0, 1.0], {"last": 4, "best": 2}),
    ([3.0, 5.0, 5.0], {"last": 3}),  # As good as the best.
    ([-3.0, -1.0, -2.0], {"last": 3, "best": 2}),
  ],
)
def test_the_last_episode_and_the_best_are_written(
  make_evaluation, tmp_path, returns, expected
):
  """Each episode shows its number as the only shade."""

  class Numbered(fakes.FakeEnvironment):
    number = 0

    def reset(self):
      self.number += 1
      return super().reset()

    def render(self):
      return frame(self.number)

  filmed = video.Filmed(Numbered())
  for _ in returns:
    timestep = filmed.reset()
    while not timestep.last():
      timestep = filmed.step(0)
  filmed.on_evaluation(make_evaluation(30, returns))
  filmed.reset()  # Of an interrupted evaluation.
  filmed.write(output.RunDirectory.create(tmp_path / "run"))
  names = {"last": "step_00000030.gif", "best": "step_00000030_best.gif"}
  written = {path.name: path for path in (tmp_path / "run/videos").iterdir()}
  assert written.keys() == {names[which] for which in expected}
  for which, shade in expected.items():
    with Image.open(written[names[which]]) as image:
      assert image.convert("RGB").getpixel((0, 0))[0] == shade
