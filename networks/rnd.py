"""The networks of random network distillation."""

from collections.abc import Sequence

import dm_env
import jax

from explorax.networks import ensemble_mlp, frozen, types


def make_rnd_networks(
  observation_spec: dm_env.specs.Array,
  hidden_sizes: Sequence[int],
  output_size: int,
) -> types.RNDNetworks:
  """Two perceptrons of one architecture that embed observations.

  The novelty of x is the squared error between `predictor` and `target` at x. Give
  `init` of the two different keys: with one key they are the same function, and
  nothing is ever novel.

  Source: Burda et al. (2018); for bsuite, appendix D.1 of the paper of TDU, which
  sweeps `output_size` over 10, 64 and 128.

  Args:
    observation_spec: of the encoded observations: as `make_ensemble_mlp` takes them.
    hidden_sizes: of the hidden layers; none makes the networks linear.
    output_size: size of the embedding, m.

  Raises:
    ValueError: if a size is less than 1, or if observations of this spec cannot enter
      a network.
  """
  if output_size < 1:
    raise ValueError(f"output_size is {output_size}; an embedding needs at least 1.")
  members = ensemble_mlp.make_ensemble_mlp(
    observation_spec, output_size, num_members=1, hidden_sizes=hidden_sizes
  )

  def apply(params: types.Params, observation: jax.Array) -> jax.Array:
    return members.apply(params, observation)[0]

  network = types.Network(members.init, apply)
  return types.RNDNetworks(network, frozen.freeze(network, observation_spec))
