"""bsuite's MNIST experiments on files made here: the pixels, the scales, the checks."""

import gzip
import struct

import numpy as np
import pytest
from bsuite import sweep

from explorax import environments
from explorax.environments import bsuite_environments, bsuite_mnist

IMAGES, LABELS = bsuite_mnist.FILES


@pytest.fixture
def folder(tmp_path):
  """Fifty images, image i having the pixels i, 255 and, elsewhere, 0; and labels."""
  images = np.zeros((50, 28, 28), np.uint8)
  images[:, 0, 0] = np.arange(50)
  images[:, 5, 7] = 255
  labels = (np.arange(50) % 10).astype(np.uint8)
  header = struct.pack(">IIII", 2051, *images.shape)
  (tmp_path / IMAGES).write_bytes(gzip.compress(header + images.tobytes()))
  header = struct.pack(">II", 2049, len(labels))
  (tmp_path / LABELS).write_bytes(gzip.compress(header + labels.tobytes()))
  return tmp_path


def test_pixels_are_what_the_files_hold(folder):
  environment = bsuite_mnist.load("mnist", {}, folder)
  bsuite_environments.reseed(environment, 3)
  seen = set()
  for _ in range(200):
    observation = environment.reset().observation
    assert observation.shape == (28, 28)
    assert observation[5, 7] == 1.0  # bsuite's own loader would make it -1/255.
    assert observation.min() == 0.0
    image = round(float(observation[0, 0]) * 255)
    seen.add(image)
    timestep = environment.step(image % 10)
    assert timestep.reward == 1.0 and timestep.last()
  assert len(seen) > 40 and max(seen) < 50


@pytest.mark.parametrize("name", ["mnist_scale/0", "mnist_noise/19"])
def test_wrong_answers_cost_as_their_settings_say(folder, name):
  experiment = name.partition("/")[0]
  environment = bsuite_mnist.load(experiment, sweep.SETTINGS[name], folder)
  bsuite_environments.reseed(environment, 3)
  rewards = []
  for _ in range(30):
    label = round(float(environment.reset().observation[0, 0]) * 255) % 10
    rewards.append(environment.step((label + 1) % 10).reward)
  if experiment == "mnist_noise":
    assert np.std(rewards) > 0.5 * sweep.SETTINGS[name]["noise_scale"]
  else:
    np.testing.assert_allclose(rewards, -1e-3, rtol=1e-6)
  assert environment.bsuite_info()["total_regret"] == 60.0


def test_missing_files_are_refused(folder, monkeypatch):
  monkeypatch.setenv("EXPLORAX_MNIST_DIR", str(folder))
  (folder / LABELS).unlink()
  with pytest.raises(ValueError, match=LABELS):
    environments.make("bsuite:mnist_noise/3", seed=0)
