"""An ensemble of multi-layer perceptrons evaluated as one network."""

from collections.abc import Sequence

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp

from explorax.networks import inputs as inputs_lib
from explorax.networks import types


class EnsembleMLP(hk.Module):
  """K perceptrons with ReLU between layers, as one Haiku module.

  What would be K small programs is one: all members' layers on a common input are
  one matrix product with `w_i` `[D, K·H]` (the columns k·H to (k + 1)·H being
  member k's), and the layers after it are batched products with `w_i` `[K, H, H2]`.
  Biases are `b_i`, `[K·H]` and `[K, H2]`. Layers that members share have `w_i`
  `[D, H]` and `b_i` `[H]`.

  Each weight is drawn as `hk.Linear` would draw it: from a normal distribution of
  deviation 1/sqrt(fan-in), truncated at two deviations; biases begin at zero.
  """

  def __init__(
    self,
    inputs: inputs_lib.Inputs,
    output_sizes: Sequence[int],
    num_members: int,
    num_shared_layers: int = 0,
    name: str | None = None,
  ):
    """Creates the module.

    Args:
      inputs: how observations become features.
      output_sizes: of each layer, in each member.
      num_members: K.
      num_shared_layers: how many of the first layers all members share.
      name: of the module.
    """
    super().__init__(name=name)
    self._inputs = inputs
    self._output_sizes = tuple(output_sizes)
    self._num_members = num_members
    self._num_shared_layers = num_shared_layers

  def __call__(self, observation: jax.Array) -> jax.Array:
    """Evaluates all members.

    Args:
      observation: `[B, ...]`.

    Returns:
      `[K, B, F]`, F being the last of the output sizes.
    """
    hidden, fan_in = observation, self._inputs.num_features
    for i, size in enumerate(self._output_sizes):
      linear = self._inputs.linear if i == 0 else jnp.matmul
      if i > 0:
        hidden = jax.nn.relu(hidden)
      if i < self._num_shared_layers:
        w, b = self._parameters(i, (fan_in, size), (size,))
        hidden = linear(hidden, w) + b[None, :]
      elif i == self._num_shared_layers:
        joint = self._num_members * size
        w, b = self._parameters(i, (fan_in, joint), (joint,))
        hidden = linear(hidden, w) + b[None, :]
        hidden = jnp.reshape(hidden, (-1, self._num_members, size))
        hidden = jnp.swapaxes(hidden, 0, 1)
      else:
        w, b = self._parameters(
          i, (self._num_members, fan_in, size), (self._num_members, size)
        )
        hidden = hidden @ w + b[:, None, :]
      fan_in = size
    return hidden

  def _parameters(
    self, layer: int, w_shape: tuple[int, ...], b_shape: tuple[int, ...]
  ) -> tuple[jax.Array, jax.Array]:
    fan_in = w_shape[-2]
    w_init = hk.initializers.TruncatedNormal(stddev=fan_in**-0.5)
    w = hk.get_parameter(f"w_{layer}", w_shape, jnp.float32, w_init)
    b = hk.get_parameter(f"b_{layer}", b_shape, jnp.float32, jnp.zeros)
    return w, b


def make_ensemble_mlp(
  observation_spec: dm_env.specs.Array,
  num_actions: int,
  num_members: int,
  hidden_sizes: Sequence[int] = (50, 50),
  shared_torso: bool = False,
) -> types.QNetworks:
  """K action-value perceptrons that are evaluated as one network.

  The same functions, up to rounding, as K copies of `hk.nets.MLP` would give, with
  one matrix product for the first layers of all members, or a gather where
  observations are one-hot indices. K = 1 is the plain network.

  Args:
    observation_spec: of the encoded observations: floats, uint8 (scaled to [0, 1])
      or the int32 index of a one-hot vector, −1 being all zeros.
    num_actions: A.
    num_members: K.
    hidden_sizes: of the hidden layers of each member; none makes members linear.
    shared_torso: whether all members share the hidden layers, a member being one
      linear head on them (the heads of the UCB ensembles of Chen et al., 2017); if
      not, members share nothing (bsuite's bootstrapped DQN).

  Raises:
    ValueError: if a size, K or A is less than 1, if observations of this spec cannot
      enter a network, or if there is no hidden layer to share.
  """
  sizes = {"num_actions": num_actions, "num_members": num_members}
  for name, size in sizes.items():
    if size < 1:
      raise ValueError(f"{name} is {size}; an ensemble needs at least 1.")
  hidden_sizes = tuple(hidden_sizes)
  if any(size < 1 for size in hidden_sizes):
    raise ValueError(
      f"hidden_sizes are {hidden_sizes}; each must be at least 1 (leave layers out "
      "instead; no layers at all make the members linear)."
    )
  if shared_torso and not hidden_sizes:
    raise ValueError(
      "shared_torso is on, but hidden_sizes is empty, so there is nothing to share; "
      "give at least one hidden layer or turn shared_torso off."
    )
  inputs = inputs_lib.make_inputs(observation_spec)

  def forward(observation: jax.Array) -> jax.Array:
    return EnsembleMLP(
      inputs,
      (*hidden_sizes, num_actions),
      num_members,
      num_shared_layers=len(hidden_sizes) if shared_torso else 0,
    )(observation)

  network: hk.Transformed = hk.without_apply_rng(hk.transform(forward))
  return types.QNetworks(
    init=lambda key: network.init(key, inputs.example), apply=network.apply
  )
