"""The networks of random network distillation."""

from collections.abc import Sequence

import dm_env
import haiku as hk

from explorax.networks import ensemble, frozen, torsos, types


def make_rnd_networks(
  observation_spec: dm_env.specs.Array,
  hidden_sizes: Sequence[int],
  output_size: int,
  torso: str = "auto",
) -> types.RNDNetworks:
  """Two networks of one architecture that embed observations.

  The novelty of x is the squared error between `predictor` and `target` at x. Call the
  `init` functions with different keys: with one key they are the same function, and
  nothing is novel.

  Source: Burda et al. (2018); for bsuite, appendix D.1 of the TDU paper, which sweeps
  `output_size` over 10, 64 and 128; on Atari, Dabney et al. (2021) and Badia et al.
  (2020) use the convolutions of DQN and one linear layer of 128, that is, no
  `hidden_sizes`.

  Args:
    observation_spec: of the encoded observations.
    hidden_sizes: of the linear layers before the last, with ReLU after each; with
      none, and no convolutions, the networks are linear.
    output_size: size of the embedding, m.
    torso: the first layers, see `torsos.make_torso`.

  Raises:
    ValueError: if a size is less than 1, or if the torso does not support the
      observations.
  """
  if output_size < 1:
    raise ValueError(f"output_size is {output_size}; an embedding needs at least 1.")
  make_torso = torsos.make_torso(torso, observation_spec, hidden_sizes)
  network = ensemble.from_haiku(
    lambda: hk.Sequential([make_torso(), hk.Linear(output_size, name="embedding")]),
    observation_spec,
  )
  return types.RNDNetworks(network, frozen.freeze(network, observation_spec))


def make_random_features(
  observation_spec: dm_env.specs.Array,
  hidden_sizes: Sequence[int],
  output_size: int,
  torso: str = "auto",
) -> types.Network:
  """Features that are never trained: the target of `make_rnd_networks`.

  Args:
    observation_spec, hidden_sizes, output_size, torso: as there.
  """
  return make_rnd_networks(observation_spec, hidden_sizes, output_size, torso).target
