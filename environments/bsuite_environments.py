"""bsuite's environments: loaded by id, and seeded."""

import gzip
import os
import pathlib
from unittest import mock

import dm_env
import numpy as np
from bsuite import bsuite, sweep
from bsuite.environments import deep_sea
from bsuite.utils import datasets

from explorax import notation
from explorax.environments import bsuite_sweeps, specs, standard

_MNIST_FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")


def load(bsuite_id: str, *, seed: int) -> standard.StandardEnvironment:
  """Loads a bsuite environment, for example `deep_sea/0`.

  The task is bsuite's: the id determines action mapping, sizes and noise scales for
  every seed. Its randomness (wind and noise of stochastic Deep Sea, initial states,
  contexts, reward noise) follows `seed`, with an independent stream for each layer of
  the environment; in bsuite, some ids are unseeded and others always use the same
  stream. Deep Sea's observations get a `specs.OneHotArray`.

  Raises:
    ValueError: if there is no such id, or its data are missing.
  """
  _check_id(bsuite_id)
  experiment, settings = bsuite_sweeps.experiment(bsuite_id), sweep.SETTINGS[bsuite_id]
  if experiment.startswith("mnist"):
    if problem := missing_mnist():
      raise ValueError(f"'bsuite:{bsuite_id}' needs the MNIST files: {problem}.")
    # bsuite's own function downloads them, and reads pixels from 128 on as negative.
    with mock.patch.object(datasets, "load_mnist", lambda: (_read_mnist(), None)):
      raw = bsuite.load(experiment, settings)
  else:
    # `load_from_id` would do the same and print a message.
    raw = bsuite.load(experiment, settings)
  reseed(raw, seed)
  spec = None
  if isinstance(raw, deep_sea.DeepSea):
    one_hot = raw.observation_spec()
    spec = specs.OneHotArray(one_hot.shape, one_hot.name, lower_triangle=True)
  return standard.StandardEnvironment(raw, spec)


def reseed(environment: dm_env.Environment, seed: int) -> None:
  """Gives each layer of a bsuite environment its own generator from `seed`.

  bsuite's settings have no seed, its loader of stochastic Deep Sea accepts none, and
  its noisy experiments seed two layers alike. The constructors have already drawn the
  task (mappings); a reset draws everything else.
  """
  layers = [environment]
  while "_env" in vars(layers[-1]):
    layers.append(vars(layers[-1])["_env"])
  streams = np.random.SeedSequence(seed).spawn(len(layers))
  for layer, stream in zip(layers, streams, strict=True):
    if "_rng" in vars(layer):
      vars(layer)["_rng"] = np.random.RandomState(np.random.MT19937(stream))


def missing_mnist() -> str:
  """Why the mnist experiments cannot run; '' if the files of their images are there.

  The folder is `EXPLORAX_MNIST_DIR`, or bsuite's, /tmp/mnist.
  """
  missing = [name for name in _MNIST_FILES if not (_mnist_folder() / name).is_file()]
  if not missing:
    return ""
  return f"{' and '.join(missing)} must be in {_mnist_folder()}"


def _mnist_folder() -> pathlib.Path:
  return pathlib.Path(os.environ.get("EXPLORAX_MNIST_DIR", "/tmp/mnist")).expanduser()


def _read_mnist() -> tuple[np.ndarray, np.ndarray]:
  """uint8 `[N, 28, 28]` and `[N]`: the training set."""
  content, labels = (
    gzip.decompress((_mnist_folder() / name).read_bytes()) for name in _MNIST_FILES
  )
  shape = np.frombuffer(content, ">u4", count=3, offset=4)
  images = np.frombuffer(content, np.uint8, offset=16).reshape(*map(int, shape))
  return images, np.frombuffer(labels, np.uint8, offset=8)


def names() -> list[str]:
  """All of bsuite's."""
  return [f"bsuite:{bsuite_id}" for bsuite_id in sweep.SWEEP]


def list_experiments() -> list[tuple[str, str]]:
  """(names, what they test) of each experiment, for `--env=bsuite:…`."""
  rows = []
  for experiment, ids in bsuite_sweeps.experiments().items():
    tags = ", ".join(tag for tag in sweep.TAGS if ids[0] in sweep.TAGS[tag])
    name = f"bsuite:{experiment}/0 … /{len(ids) - 1}"
    rows.append((name, f"{sweep.EPISODES[ids[0]]} episodes; {tags}"))
  return rows


def _check_id(bsuite_id: str) -> None:
  if bsuite_id in sweep.SETTINGS:
    return
  experiment = bsuite_sweeps.experiment(bsuite_id)
  if ids := bsuite_sweeps.experiments().get(experiment):
    raise ValueError(
      f"bsuite has no environment 'bsuite:{bsuite_id}'; its {experiment} experiment "
      f"has settings 'bsuite:{ids[0]}' to 'bsuite:{ids[-1]}'."
    )
  near = notation.nearest(f"bsuite:{bsuite_id}", names()) or " Try bsuite:deep_sea/0."
  raise ValueError(f"bsuite has no environment 'bsuite:{bsuite_id}'.{near}")
