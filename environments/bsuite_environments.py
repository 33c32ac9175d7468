"""bsuite's environments: loaded by id, and seeded."""

import dm_env
import numpy as np
from bsuite import bsuite, sweep
from bsuite.environments import deep_sea

from explorax import notation
from explorax.environments import bsuite_mnist, bsuite_sweeps, specs, standard


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
  experiment = bsuite_sweeps.experiment(bsuite_id)
  settings = sweep.SETTINGS[bsuite_id]
  if bsuite_sweeps.needs_mnist(bsuite_id):
    # Otherwise bsuite would start a download during the experiment.
    mnist_dir = bsuite_mnist.directory()
    if problem := bsuite_mnist.problem(mnist_dir):
      raise ValueError(f"'bsuite:{bsuite_id}' needs the MNIST files: {problem}.")
    raw = bsuite_mnist.load(experiment, settings, mnist_dir)
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


def names() -> list[str]:
  """All of bsuite's."""
  return [f"bsuite:{bsuite_id}" for bsuite_id in sweep.SWEEP]


def list_experiments() -> list[tuple[str, str]]:
  """(name, description) of each experiment, for `--env=bsuite:…`."""
  rows = []
  for experiment in dict.fromkeys(map(bsuite_sweeps.experiment, sweep.SWEEP)):
    ids = bsuite_sweeps.groups()[experiment.upper()]
    first, last = sweep.SETTINGS[ids[0]], sweep.SETTINGS[ids[-1]]
    parts = [
      f"{key} {value}" + (f" … {last[key]:g}" if last[key] != value else "")
      for key, value in first.items()
      if last[key] is not None
    ]
    parts += [f"{sweep.EPISODES[ids[0]]} episodes"]
    parts += [", ".join(tag for tag in sweep.TAGS if ids[0] in sweep.TAGS[tag])]
    if bsuite_sweeps.needs_mnist(ids[0]):
      parts.append(f"needs its data in {bsuite_mnist.directory()}")
    rows.append((f"bsuite:{experiment}/0 … /{len(ids) - 1}", "; ".join(parts)))
  return rows


def _check_id(bsuite_id: str) -> None:
  if bsuite_id in sweep.SETTINGS:
    return
  experiment = bsuite_sweeps.experiment(bsuite_id)
  settings = [i for i in sweep.SWEEP if bsuite_sweeps.experiment(i) == experiment]
  if settings:
    raise ValueError(
      f"bsuite has no environment 'bsuite:{bsuite_id}'; its {experiment} experiment "
      f"has settings 'bsuite:{settings[0]}' to 'bsuite:{settings[-1]}'."
    )
  near = notation.nearest(f"bsuite:{bsuite_id}", names()) or " Try bsuite:deep_sea/0."
  raise ValueError(f"bsuite has no environment 'bsuite:{bsuite_id}'.{near}")
