"""What is kept of evaluation episodes, and how it is written as a GIF."""

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


@pytest.mark.parametrize("length, stride", [(3, 1), (600, 1), (601, 2), (2600, 8)])
def test_pictures_are_evenly_spaced(length, stride):
  film = video.Film()
  for row in range(length):
    film.add(frame(row % 256, 1, 1))
  assert shades(film) == [row % 256 for row in range(0, length, stride)]


def test_the_last_episode_is_written(make_evaluation, tmp_path):
  """Each episode shows its number as the only shade."""

  class Numbered(fakes.FakeEnvironment):
    number = 0

    def reset(self):
      self.number += 1
      return super().reset()

    def render(self):
      return frame(self.number)

  filmed = video.Filmed(Numbered())
  for _ in range(2):
    timestep = filmed.reset()
    while not timestep.last():
      timestep = filmed.step(0)
  filmed.on_evaluation(make_evaluation(30, [1.0, 2.0]))
  filmed.reset()  # Of an interrupted evaluation.
  directory = output.RunDirectory.create(tmp_path / "run")
  filmed.write(directory)
  directory.unlock()
  (written,) = (tmp_path / "run/videos").iterdir()
  assert written.name == "step_00000030.gif"
  with Image.open(written) as image:
    assert image.convert("RGB").getpixel((0, 0))[0] == 2
