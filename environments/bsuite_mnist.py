"""bsuite's MNIST experiments, from files of the user's: nothing is downloaded."""

import gzip
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from bsuite.environments import base, mnist
from bsuite.utils import wrappers

FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")


def directory() -> str:
  """The folder of the files: that of `EXPLORAX_MNIST_DIR`, or bsuite's, /tmp/mnist."""
  return os.path.expanduser(os.environ.get("EXPLORAX_MNIST_DIR", "/tmp/mnist"))


def problem(directory: str | os.PathLike[str]) -> str:
  """Why the MNIST experiments cannot run with the files of a folder; '' if they can."""
  missing = [name for name in FILES if not (pathlib.Path(directory) / name).is_file()]
  if not missing:
    return ""
  return (
    f"{' and '.join(missing)} must be in {directory}; put the published files there"
  )


def load(
  experiment: str, settings: Mapping[str, Any], directory: str | os.PathLike[str]
) -> base.Environment:
  """Makes `mnist`, `mnist_noise` or `mnist_scale`, as bsuite's own `load` does.

  bsuite reads the pixels as int8, so that values from 128 on become negative; here they
  are uint8, as in the files, and observations lie in [0, 1].

  Args:
    experiment: which of the three.
    settings: of the id: `noise_scale` or `reward_scale`.
    directory: a folder for which `problem` returns ''.
  """
  environment: base.Environment = _MNISTBandit(*_read(pathlib.Path(directory)))
  if experiment == "mnist_noise":
    environment = wrappers.RewardNoise(environment, settings["noise_scale"])
  elif experiment == "mnist_scale":
    environment = wrappers.RewardScale(environment, settings["reward_scale"])
  return environment


class _MNISTBandit(mnist.MNISTBandit):
  """bsuite's environment, on the images and labels that it is given."""

  def __init__(self, images: np.ndarray, labels: np.ndarray):
    base.Environment.__init__(self)
    self._images = images
    self._labels = labels
    self._num_data = len(labels)
    self._image_shape = images.shape[1:]
    self._rng = np.random.RandomState()
    self._correct_label = None
    self._total_regret = 0.0
    self._optimal_return = 1.0


def _read(folder: pathlib.Path) -> tuple[np.ndarray, np.ndarray]:
  """uint8 `[N, 28, 28]` and `[N]`: the training set."""
  content, labels = (gzip.decompress((folder / x).read_bytes()) for x in FILES)
  shape = np.frombuffer(content, ">u4", count=3, offset=4)
  images = np.frombuffer(content, np.uint8, offset=16).reshape(*map(int, shape))
  return images, np.frombuffer(labels, np.uint8, offset=8)
