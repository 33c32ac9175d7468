"""Epinets: action values of an observation and a random index.

The spread of the values over the index is the network's uncertainty.

Sources: Osband et al. (2023), "Epistemic Neural Networks", and "Approximate Thompson
Sampling via Epistemic Neural Networks", whose public code (`enn_acme`, for bsuite)
decides where the texts leave a choice.
"""

from collections.abc import Sequence

import dm_env
import haiku as hk
import jax
import jax.numpy as jnp

from explorax.networks import inputs as inputs_lib
from explorax.networks import priors, recurrent, types


class Epinet(hk.Module):
  """A base network, and a small network that adds what its index says.

      Q(x, z) = μ(x) + Σ_d z_d f_d(z, x, φ(x)),    μ linear in φ(x)

  No gradient passes through the features φ(x) in f, so that only μ trains the torso.
  Products with x and φ(x) are computed once for all indices.
  """

  def __init__(
    self,
    inputs: inputs_lib.Inputs,
    num_actions: int,
    hidden_sizes: Sequence[int],
    name: str | None = None,
  ):
    """Makes the module.

    Args:
      inputs: how observations become vectors, for f.
      num_actions: A.
      hidden_sizes: units of f's layers, with ReLU after each; if empty, f is linear.
      name: of the module.
    """
    super().__init__(name)
    self._inputs = inputs
    self._num_actions = num_actions
    self._hidden_sizes = tuple(hidden_sizes)

  def __call__(self, features: jax.Array, x: jax.Array, z: jax.Array) -> jax.Array:
    """φ(x) `[B, F]`, observations `[B, ...]`, indices `[K, D]` → values `[K, B, A]`."""
    base = hk.Linear(self._num_actions, name="base")(features)
    features = jax.lax.stop_gradient(features)
    index_dim = z.shape[1]
    first, *others = (*self._hidden_sizes, self._num_actions * index_dim)
    fan_ins = {
      "index": index_dim,
      "input": self._inputs.num_features,
      "features": features.shape[1],
    }
    # As for one matrix that multiplies (z, x, φ(x)).
    w_init = hk.initializers.TruncatedNormal(sum(fan_ins.values()) ** -0.5)
    w = {}
    for name, fan_in in fan_ins.items():  # Haiku draws the keys in this order.
      if name == "input":
        w[name] = self._inputs.weights("w_input", first, w_init)
      else:
        w[name] = hk.get_parameter(f"w_{name}", (fan_in, first), init=w_init)
    b = hk.get_parameter("b", (first,), init=jnp.zeros)
    of_x = self._inputs.linear(x, w["input"]) + features @ w["features"] + b[None]
    hidden = of_x[None] + (z @ w["index"])[:, None]  # [K, B, first]
    for size in others:
      hidden = hk.Linear(size)(jax.nn.relu(hidden))
    f = jnp.reshape(hidden, (*hidden.shape[:2], self._num_actions, index_dim))
    return base[None] + jnp.einsum("kbad,kd->kba", f, z)


def make_epinet(
  trunk: recurrent.Trunk,
  observation_spec: dm_env.specs.Array,
  num_actions: int,
  num_members: int,
  index_dim: int = 2,
  hidden_sizes: Sequence[int] = (50,),
  prior_scale: float = 1.0,
  lstm_size: int = 0,
) -> recurrent.QNetworks:
  """An epinet with a fixed random function; its members are K samples of the index.

      Q_k(x) = Q(x, z_k) + λ Σ_d z_kd P_d(x),    z_k ~ N(0, I_D)

  `unroll` draws the indices from its key. With the key None all indices are 0, and each
  member is the base network μ. Q(x, z) is an `Epinet` on the features of the trunk. The
  P_d are linear in x, as in `enn_acme`. Their deviation is 1 for one-hot observations,
  and for vectors whose elements have unit variance; `enn_acme` divides λ by a number
  for each environment.

  Args:
    trunk: the base network's layers before the last (`recurrent.make_trunk`).
    observation_spec: of the encoded observations.
    num_actions: A.
    num_members: K.
    index_dim: D.
    hidden_sizes: of the epinet's hidden layers; may be empty.
    prior_scale: λ; 0: no prior.
    lstm_size: the trunk's.

  Raises:
    ValueError: if a size, K, A or D is less than 1, if λ is negative or not finite, or
      if networks do not support observations of this spec.
  """
  sizes = {"num_actions": num_actions, "num_members": num_members}
  sizes |= {"index_dim": index_dim, "hidden_sizes": min(hidden_sizes, default=1)}
  for name, size in sizes.items():
    if size < 1:
      raise ValueError(f"{name} of an epinet is {size}; it must be at least 1.")
  priors.check_scale(prior_scale)
  inputs = inputs_lib.make_inputs(observation_spec)

  def evaluate(
    steps: recurrent.StepInputs, state: jax.Array, z: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    features, state = trunk(steps, state)
    epinet = Epinet(inputs, num_actions, hidden_sizes)
    x = recurrent.flatten(jnp.asarray(steps.observation))
    return epinet(recurrent.flatten(features), x, z), state

  network: hk.Transformed = hk.without_apply_rng(hk.transform(evaluate))
  no_index = jnp.zeros((num_members, index_dim), jnp.float32)
  example = recurrent.example(observation_spec)

  def init(key: jax.Array) -> types.Params:
    return network.init(
      key, example, jnp.zeros((1, 2 * lstm_size), jnp.float32), no_index
    )

  def init_prior(key: jax.Array) -> types.Params:
    if not prior_scale:
      return ()
    stddev = 1.0 if inputs.is_index else inputs.num_features**-0.5
    shape = (inputs.num_features, num_actions * index_dim)
    return inputs.rows(stddev * jax.random.normal(key, shape, jnp.float32))

  def unroll(
    params: types.Params,
    prior_params: types.Params,
    steps: recurrent.StepInputs,
    state: jax.Array,
    key: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array]:
    z = no_index if key is None else jax.random.normal(key, no_index.shape, jnp.float32)
    q, state = network.apply(params, steps, state, z)
    if prior_scale:
      x = recurrent.flatten(jnp.asarray(steps.observation))
      p = inputs.linear(x, jax.lax.stop_gradient(prior_params))
      p = jnp.reshape(p, (p.shape[0], num_actions, index_dim))
      q += prior_scale * jnp.einsum("bad,kd->kba", p, z)
    shape = (num_members, *steps.observation.shape[:2], num_actions)
    return jnp.reshape(q, shape), state

  return recurrent.QNetworks(init, init_prior, 2 * lstm_size, unroll)
