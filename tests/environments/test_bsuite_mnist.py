"""bsuite's MNIST experiments on files made here: the pixels, the checks, the scales."""

import gzip
import hashlib
import struct

import numpy as np
import pytest
from bsuite import sweep

from explorax import environments
from explorax.environments import bsuite_environments, bsuite_mnist

IMAGES, LABELS = bsuite_mnist.CHECKSUMS


@pytest.fixture
def data(tmp_path, monkeypatch):
  """Fifty images, image i having the pixels i, 255 and, elsewhere, 0; and labels."""
  images = np.zeros((50, 28, 28), np.uint8)
  images[:, 0, 0] = np.arange(50)
  images[:, 5, 7] = 255
  labels = (np.arange(50) % 10).astype(np.uint8)
  folder = tmp_path / "mnist"
  folder.mkdir()
  header = struct.pack(">IIII", 2051, *images.shape)
  (folder / IMAGES).write_bytes(gzip.compress(header + images.tobytes()))
  header = struct.pack(">II", 2049, len(labels))
  (folder / LABELS).write_bytes(gzip.compress(header + labels.tobytes()))
  checksums = {
    name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
    for name in (IMAGES, LABELS)
  }
  monkeypatch.setattr(bsuite_mnist, "CHECKSUMS", checksums)
  monkeypatch.setenv("EXPLORAX_MNIST_DIR", str(folder))
  return folder


def _load(bsuite_id, **arguments):
  return bsuite_environments.load(bsuite_id, seed=3, **arguments)


def test_pixels_are_what_the_files_hold(data):
  environment = _load("mnist/0")
  seen = set()
  for _ in range(200):
    observation = environment.reset().observation
    assert observation.dtype == np.float32 and observation.shape == (28, 28)
    assert observation[5, 7] == 1.0  # bsuite's own loader would make it -1/255.
    assert observation.min() == 0.0
    image = round(float(observation[0, 0]) * 255)
    seen.add(image)
    timestep = environment.step(image % 10)
    assert timestep.reward == 1.0 and timestep.last()
  assert len(seen) > 40 and max(seen) < 50


@pytest.mark.parametrize(
  ("name", "scale", "noisy"),
  [
    ("mnist/3", 1.0, False),
    ("mnist_scale/0", 1e-3, False),
    ("mnist_noise/19", 1, True),
  ],
)
def test_wrong_answers_cost_as_their_settings_say(data, name, scale, noisy):
  environment = _load(name)
  rewards = []
  for _ in range(30):
    label = round(float(environment.reset().observation[0, 0]) * 255) % 10
    rewards.append(environment.step((label + 1) % 10).reward)
  if noisy:
    assert np.std(rewards) > 0.5 * sweep.SETTINGS[name]["noise_scale"]
  else:
    np.testing.assert_allclose(rewards, -scale, rtol=1e-6)
  assert environment.raw.bsuite_info()["total_regret"] == 60.0


def test_runs_repeat_by_their_seed(data):
  def first(seed):
    environment = bsuite_environments.load("mnist/0", seed=seed)
    return [float(environment.reset().observation[0, 0]) for _ in range(10)]

  assert first(1) == first(1) != first(2)


@pytest.mark.parametrize("name", ["mnist/0", "mnist_noise/3", "mnist_scale/19"])
def test_without_its_data_it_is_refused_and_not_downloaded(name, tmp_path, monkeypatch):
  def download(*args, **kwargs):
    raise AssertionError("tried to download")

  monkeypatch.setattr("bsuite.utils.datasets.urlretrieve", download)
  (tmp_path / IMAGES).write_bytes(b"")
  monkeypatch.setenv("EXPLORAX_MNIST_DIR", str(tmp_path))
  with pytest.raises(ValueError, match="needs the MNIST files") as caught:
    environments.make(f"bsuite:{name}", seed=0)
  assert LABELS in str(caught.value) and IMAGES not in str(caught.value)
  assert str(tmp_path) in str(caught.value)


def test_other_files_are_refused(data):
  (data / IMAGES).write_bytes((data / IMAGES).read_bytes()[:-1])
  with pytest.raises(ValueError, match=f"{IMAGES} is not the published file"):
    _load("mnist/0")
