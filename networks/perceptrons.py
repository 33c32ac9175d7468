"""Ensembles of multi-layer perceptrons."""

import math
from collections.abc import Sequence

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp

from explorax.networks import ensemble, heads, torsos, types
from explorax.networks import inputs as inputs_lib


def make_perceptrons(
  observation_spec: dm_env.specs.Array,
  num_actions: int,
  num_members: int,
  hidden_sizes: Sequence[int] = (50, 50),
  shared_torso: bool = False,
) -> types.Ensemble:
  """K action-value perceptrons, evaluated together; K = 1 is the plain network.

  It is `ensemble.lift` of an `mlp` torso and a linear head, with the same layout of
  parameters; but the weights of a layer are drawn for all members at once, from one key
  per layer, as for a single network in bsuite's ensembles. Each weight has the
  distribution of `hk.Linear`: normal with deviation 1/sqrt(fan-in), truncated at two
  deviations; biases are zero.

  Args:
    observation_spec: of the encoded observations: floats, uint8 (scaled to [0, 1])
      or the int32 index of a one-hot vector, where −1 means all zeros.
    num_actions: A.
    num_members: K.
    hidden_sizes: of each member's hidden layers; an empty tuple makes members linear.
    shared_torso: whether all members share the hidden layers and are linear heads on
      them (as in the UCB ensembles of Chen et al., 2017); otherwise they share nothing
      (bsuite's bootstrapped DQN).

  Raises:
    ValueError: if a size, K or A is less than 1, if networks do not support
      observations of this spec, or if there is no hidden layer to share.
  """
  if num_actions < 1:
    raise ValueError(f"num_actions is {num_actions}; it must be at least 1.")
  if shared_torso and not hidden_sizes:
    raise ValueError(
      "shared_torso is on, but hidden_sizes is empty, so there is nothing to share; "
      "give at least one hidden layer or turn shared_torso off."
    )
  inputs = inputs_lib.make_inputs(observation_spec)
  lifted = ensemble.lift(
    torsos.make_torso("mlp", observation_spec, hidden_sizes),
    lambda: heads.PlainHead(num_actions),
    observation_spec,
    num_members,
    shared_torso,
  )
  shapes = jax.eval_shape(lifted.init, jax.random.PRNGKey(0))
  suffixes = ["", "/linear", *(f"/linear_{i}" for i in range(1, len(hidden_sizes)))]
  names = [f"perceptron_torso{suffix}" for suffix in suffixes[: len(hidden_sizes)]]

  def init(key: jax.Array) -> types.EnsembleParams:
    keys = hk.PRNGSequence(key)

    def draw(
      layer: dict[str, jax.ShapeDtypeStruct],
      same_input: bool,
      sees_observation: bool = False,
    ) -> types.Params:
      w, b = layer["w"], layer["b"]
      *members, fan_in, size = w.shape
      if same_input:  # Of all members.
        fan_in = inputs.num_features if sees_observation else fan_in
        weights = _truncated_normal(next(keys), (fan_in, math.prod(members) * size))
        weights = inputs.rows(weights) if sees_observation else weights
        weights = jnp.moveaxis(jnp.reshape(weights, (-1, *members, size)), 0, -2)
      else:
        weights = _truncated_normal(next(keys), w.shape)
      return {"w": weights, "b": jnp.zeros(b.shape, b.dtype)}

    torso = {
      name: draw(shapes.torso[name], same_input=i == 0, sees_observation=i == 0)
      for i, name in enumerate(names)
    }
    head_sees_all = shared_torso or not hidden_sizes
    head = {name: draw(layer, head_sees_all) for name, layer in shapes.heads.items()}
    return types.EnsembleParams(torso, head)

  return types.Ensemble(init, lifted.apply)


def _truncated_normal(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  stddev = jnp.float32(shape[-2] ** -0.5)
  return stddev * jax.random.truncated_normal(key, -2.0, 2.0, shape, jnp.float32)
